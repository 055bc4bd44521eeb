//! What builds use of the quotas: minutes of this machine, room for images, and room for logs.

use crate::{
    instances::{backend, deployed},
    quotas::{over, used},
    support::{
        builds::{World, config},
        engine::engine,
        git::Git,
        load::together,
        requires,
        service::{Service, eventually},
    },
};
use serde_json::{Value, json};

#[test]
fn a_build_begins_only_where_minutes_and_room_for_its_image_are_left() {
    let test = "a_build_begins_only_where_minutes_and_room_for_its_image_are_left";
    let Some(engine) = engine(test) else { return };
    if !requires::programs(test, &["git", "python3"]) {
        return;
    }
    let git = Git::serve();
    let mut service = engine.service(&[("SVC_GIT_PRIVATE_HOSTS", git.host.as_str())]);
    let (ada, _, instance) = backend(&service);
    let of = |service: &Service, quota: &str| used(service, &ada, None, quota).0;
    let trigger = |service: &Service| {
        let source = json!({"git": {"url": git.url}});
        let params = json!({"appId": instance["appId"], "source": source});
        service.call(Some(&ada), "triggerDeployment", params)
    };
    git.commit_version(engine, "one");
    let live = deployed(&service, &ada, &trigger(&service).ok());
    assert_eq!(live["state"], "live", "{live}");
    let minutes = of(&service, "buildMinutes");
    assert!(minutes > 0, "a minute that has begun counts");
    let size = of(&service, "imageBytes");
    assert!(size > 1 << 20, "{size}");
    eventually("its log counts", || of(&service, "logBytes") > 100);

    // A build that is cancelled had the machine, too.
    let base = engine.base("toolbox");
    git.commit(&[("Dockerfile", format!("FROM {base}\nRUN sleep 600\n"))]);
    let slow = trigger(&service).ok();
    let named = json!({"deploymentId": slow["id"]});
    eventually("the build runs", || {
        let log = service.call(Some(&ada), "getDeploymentLogs", named.clone()).ok();
        log.to_string().contains("sleep 600")
    });
    service.call(Some(&ada), "cancelDeployment", named.clone()).ok();
    eventually("it counts", || of(&service, "buildMinutes") > minutes);
    let minutes = of(&service, "buildMinutes");

    let mut refused_with = |quotas: &str| {
        service.stop();
        service.check();
        service.set("SVC_QUOTAS", quotas);
        service.boot();
        assert_eq!(of(&service, "buildMinutes"), minutes);
        over(&trigger(&service)).to_owned()
    };
    let refused = refused_with(&format!("enterprise.buildMinutes={minutes}"));
    let full = format!("{minutes} of {minutes} build minutes of this month");
    assert!(refused.contains(&full), "{refused}");
    let refused = refused_with("enterprise.imageBytes=1MiB");
    assert!(refused.contains("quota imageBytes"), "{refused}");
    service.kill();
}

#[test]
fn a_build_goes_on_where_the_organization_has_no_room_for_its_log() {
    let test = "a_build_goes_on_where_the_organization_has_no_room_for_its_log";
    let Some(mut world) = World::with(test, &[("SVC_QUOTAS", "enterprise.logBytes=2KiB")]) else {
        return;
    };
    world.git.commit(&[config("make")]);
    world.connect();
    let build = world.trigger();
    let id = build["id"].clone();
    let key = "k".repeat(43);
    let organizations = json!([world.organization]);
    let params = json!({
        "runner": key, "name": "ci", "labels": ["android"], "organizationIds": organizations,
    });
    eventually("the runner gets it", || {
        let claimed = world.service.call(Some(&world.token), "svc_claimBuild", params.clone()).ok();
        claimed["job"]["buildId"] == id
    });
    let report = |world: &World, from: usize| {
        let lines: Vec<Value> = (0..10).map(|_| json!("x".repeat(100))).collect();
        let params = json!({"buildId": id, "runner": key, "from": from, "lines": lines});
        world.call("svc_reportBuild", params)
    };
    for from in [0, 10, 20, 30] {
        assert_eq!(report(&world, from)["lines"], from + 10, "the runner goes on");
    }
    let log = world.log(&id);
    assert!(log.ends_with("its quota logBytes allows.\n"), "{log}");
    let bytes = used(&world.service, &world.ada, Some(&world.organization), "logBytes").0;
    assert!((2 << 10..3 << 10).contains(&bytes), "{bytes}");
    world.service.stop();
    world.service.check();
}

#[test]
fn domains_and_builds_under_way_are_limited() {
    let quotas = "enterprise.domains=1,enterprise.builds=2";
    let test = "domains_and_builds_under_way_are_limited";
    let Some(mut world) = World::with(test, &[("SVC_QUOTAS", quotas)]) else { return };
    world.git.commit(&[config("make")]);
    world.connect();
    let call = |function: &str, params: &Value| {
        world.service.call(Some(&world.ada), function, params.clone())
    };
    let of = |quota: &str| used(&world.service, &world.ada, Some(&world.organization), quota);

    let build = json!({"appId": world.app, "platform": "android"});
    let answers = together(16, |_| call("svc_triggerBuild", &build));
    let (begun, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(begun.len(), 2, "{refused:?}");
    assert!(over(refused[0]).contains("2 of 2 builds and deployments under way"));
    let named = json!({"buildId": begun[0].body["result"]["id"]});
    call("svc_cancelBuild", &named).ok();
    assert_eq!(of("builds"), (1, json!(2)));
    call("svc_triggerBuild", &build).ok();

    let domain = |n: usize| {
        let name = format!("shop{n}.example.org");
        call("svc_addDomain", &json!({"appId": world.app, "hostName": name}))
    };
    let answers = together(16, domain);
    let (added, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(added.len(), 1, "{refused:?}");
    assert!(over(refused[0]).contains("1 of 1 domains"));
    let named = json!({"domainId": added[0].body["result"]["id"]});
    call("svc_removeDomain", &named).ok();
    eventually("another one has room", || domain(99).status == 200);
    world.service.stop();
    world.service.check();
}
