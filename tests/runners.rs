//! What runners say to the service: who may run a build, and that each build runs once.

use crate::support::{
    builds::{World, config},
    load::together,
    service::{Answer, Person, eventually, fixture, sha256},
};
use serde_json::{Value, json};
use std::time::Instant;

/// Whoever runs builds gets the token of the repository.
#[test]
fn only_those_who_lead_an_organization_run_its_builds() {
    let Some(world) = World::new("only_those_who_lead_an_organization_run_its_builds") else {
        return;
    };
    let bob = world.service.register("bob");
    let organization = world.call("createOrganization", json!({"name": "Acme"}))["id"].clone();
    let invited = json!({"organizationId": organization, "email": bob.email, "role": "client"});
    let token = world.call("inviteMember", invited)["acceptToken"].clone();
    world.service.call(Some(&bob), "acceptInvitation", json!({"token": token})).ok();
    let (project, app) = world.service.project_with_app(&world.ada, Some(&organization));
    world.call("svc_updateProject", json!({"projectId": project, "memberIds": [bob.id]}));
    let commit = world.git.commit(&[config("make")]);
    let params = json!({"appId": app, "url": world.git.url, "branch": "main", "token": "s3cret"});
    world.call("svc_connectRepository", params);
    let build = world.call("svc_triggerBuild", json!({"appId": app, "platform": "android"}));
    eventually("the repository was read", || world.build(&build["id"])["commit"] == json!(commit));

    // A member may trigger builds and read them, and may not run them.
    let read = world.service.call(Some(&bob), "svc_getBuild", json!({"buildId": build["id"]}));
    assert_eq!(read.ok()["state"], "queued");
    let names = json!({"organizationIds": [organization]});
    let claim_as_bob = || ask(&world, &bob, &key(1), &["android"], &names);
    assert_eq!(claim_as_bob().refusal(), (403, 403));
    // Neither does the creator of a project who is a plain member: an admin may store its token.
    let (_, own) = world.service.project_with_app(&bob, Some(&organization));
    let of_own = ask(&world, &bob, &key(1), &["android"], &json!({"appIds": [own]}));
    assert_eq!(of_own.refusal(), (403, 403));
    let role = |role: &str| json!({"organizationId": organization, "userId": bob.id, "role": role});
    world.call("updateMember", role("admin"));
    assert_eq!(claim_as_bob().ok()["job"]["token"], "s3cret");
    // What the runner has is not repeated to somebody who may no longer have it.
    world.call("updateMember", role("client"));
    assert_eq!(claim_as_bob().refusal(), (403, 403));
}

/// The operator's own runner executes no command of a stranger.
#[test]
fn a_token_of_a_superadmin_gets_no_builds_of_others() {
    let Some(world) = World::new("a_token_of_a_superadmin_gets_no_builds_of_others") else {
        return;
    };
    let commit = world.git.commit(&[config("make")]);
    world.connect();
    let build = world.trigger();
    eventually("the repository was read", || world.build(&build["id"])["commit"] == json!(commit));
    let superadmin = world.service.administrator();
    let own = world.service.call(Some(&superadmin), "createOrganization", json!({"name": "Own"}));
    let scopes = json!({"name": "operator", "scopes": ["build:run", "artifact:upload"]});
    let operator = world.service.with_token(&superadmin, scopes);
    let android = ["android"];
    let ask = |names: Value| ask(&world, &operator, &key(1), &android, &names);
    assert_eq!(ask(json!({"organizationIds": [world.organization]})).refusal(), (404, 101));
    assert_eq!(ask(json!({"appIds": [world.app]})).refusal(), (404, 101));
    // Who names nobody serves nobody.
    assert_eq!(ask(json!({})).refusal(), (400, 142));
    assert_eq!(ask(json!({"organizationIds": [own.ok()["id"]]})).ok()["job"], Value::Null);
    assert_eq!(world.build(&build["id"])["state"], "queued");
}

/// An idle runner waits for news of its own organizations, and looks at no build of others.
#[test]
fn foreign_waiting_builds_cost_an_idle_runner_no_reads() {
    let test = "foreign_waiting_builds_cost_an_idle_runner_no_reads";
    let Some(world) = World::with(test, &[("SVC_FUNCTION_TIMEOUT", "12")]) else { return };
    let commit = world.git.commit(&[config("make")]);
    world.connect();
    let foreign: Vec<_> = (0..60).map(|_| world.trigger()["id"].clone()).collect();
    for id in &foreign {
        eventually("the repository was read", || world.build(id)["commit"] == json!(commit));
    }
    let eve = world.service.register("eve");
    let (_, app) = world.service.project_with_app(&eve, None);
    let reads = || -> u64 {
        let metrics = world.service.http.get(format!("{}/metrics", world.service.url));
        let metrics = metrics.send().unwrap().text().unwrap();
        let line = metrics.lines().find_map(|line| line.strip_prefix("svc_store_reads "));
        line.unwrap().parse().unwrap()
    };
    let names = json!({"appIds": [app]});
    let before = reads();
    let nothing = together(4, |n| ask(&world, &eve, &key(n), &["android"], &names).ok());
    let cost = reads() - before;
    assert!(nothing.iter().all(|reply| reply["job"] == Value::Null), "{nothing:?}");
    // Each call of a runner reads its caller and what it names; the sweeper reads a little too.
    assert!(cost < 4 * 60, "{cost} reads");
}

/// What a runner says without the program `svc runner`.
fn claim(world: &World, who: &Person, key: &str, labels: &[&str]) -> Value {
    let names = json!({"organizationIds": [world.organization]});
    ask(world, who, key, labels, &names).ok()["job"].clone()
}

/// Asks for a build of the organizations and apps with these names.
fn ask(world: &World, who: &Person, key: &str, labels: &[&str], names: &Value) -> Answer {
    let mut params = json!({"runner": key, "name": key, "labels": labels});
    params.as_object_mut().unwrap().extend(names.as_object().unwrap().clone());
    world.service.call(Some(who), "svc_claimBuild", params)
}

fn key(number: usize) -> String {
    format!("key-of-the-runner-{number:04}")
}

#[test]
fn only_the_runner_of_a_build_reports_uploads_and_ends_it() {
    let Some(world) = World::new("only_the_runner_of_a_build_reports_uploads_and_ends_it") else {
        return;
    };
    let commit = world.git.commit(&[config("make")]);
    world.connect();
    let build = world.call(
        "svc_triggerMobileWorkflow",
        json!({"appId": world.app, "platform": "android", "labels": ["ndk"]}),
    );
    let id = &build["id"];
    eventually("the repository was read", || world.build(id)["commit"] == json!(commit));

    // Who does not reach the app gets nothing, and neither does a runner without the labels.
    let eve = world.service.register("eve");
    let scopes = json!(["build:run", "artifact:upload"]);
    let (_, other) = world.service.project_with_app(&world.ada, None);
    let bound = json!({"name": "bound", "scopes": scopes, "appId": other});
    let bound = world.service.with_token(&world.ada, bound);
    let eves = world.service.with_token(&eve, json!({"name": "eve", "scopes": scopes}));
    let all = ["android", "ndk"];
    let bound_to = |names: Value| ask(&world, &bound, &key(1), &all, &names);
    let hidden = ask(&world, &eves, &key(0), &all, &json!({"appIds": [world.app]}));
    assert_eq!(hidden.refusal(), (404, 101));
    assert_eq!(bound_to(json!({"appIds": [world.app]})).refusal(), (404, 101));
    let organizations = json!({"organizationIds": [world.organization]});
    assert_eq!(bound_to(organizations).refusal(), (400, 142));
    let nothing = together(2, |n| match n {
        // A token of an app serves this app.
        0 => bound_to(json!({})).ok()["job"].clone(),
        _ => claim(&world, &world.token, &key(2), &["android"]),
    });
    assert_eq!(nothing, [Value::Null, Value::Null]);
    let only_uploads = json!({"name": "ci", "scopes": ["artifact:upload"]});
    let only_uploads = world.service.with_token(&world.ada, only_uploads);
    let params = json!({"runner": key(3), "name": "ci", "labels": all});
    let refused = world.service.call(Some(&only_uploads), "svc_claimBuild", params);
    assert_eq!(refused.status, 403, "{}", refused.body);
    let params = json!({"runner": key(3), "name": "ci", "labels": ["linux"]});
    let refused = world.service.call(Some(&world.token), "svc_claimBuild", params);
    assert_eq!(refused.refusal(), (400, 142));

    // Sixteen runners ask at once: one gets the build, and gets it again if the reply was lost.
    let claims = together(16, |n| match n {
        // The others would wait for another build.
        0..4 => claim(&world, &world.token, &key(10 + n), &all),
        _ => claim(&world, &world.token, &key(10), &all),
    });
    let got: Vec<_> = claims.iter().filter(|job| !job.is_null()).collect();
    assert!(!got.is_empty() && got.iter().all(|job| job["buildId"] == *id), "{claims:?}");
    let holder = (0..4).find(|n| claims[*n] != Value::Null).map_or(10, |n| 10 + n);
    let order = claim(&world, &world.token, &key(holder), &all);
    assert_eq!((&order["token"], &order["commit"]), (&json!("s3cret-of-the-host"), &json!(commit)));
    assert_eq!((&order["command"], &order["artifact"]), (&json!("make"), &json!("app.apk")));

    let report = |number: usize, from: u32, lines: Value| {
        let params = json!({"buildId": id, "runner": key(number), "from": from, "lines": lines});
        world.service.call(Some(&world.token), "svc_reportBuild", params)
    };
    let open = |number: usize, platform: &str, file: &str| {
        let named = json!({"buildId": id, "runner": key(number)});
        let body = json!({"appId": world.app, "platform": platform, "fileName": file, "build": named,
            "provenance": {"path": "manual-upload", "commit": "f00"}});
        world.service.post(Some(&world.token), "upload-url", &body)
    };
    let finish = |number: usize, more: Value| {
        let mut params = json!({"buildId": id, "runner": key(number)});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.service.call(Some(&world.token), "svc_finishBuild", params)
    };
    let stranger = 99;
    assert_eq!(report(stranger, 0, json!(["mine"])).refusal(), (409, 119));
    assert_eq!(open(stranger, "android", "app.apk").refusal(), (409, 119));
    assert_eq!(finish(stranger, json!({"error": "mine"})).refusal(), (409, 119));

    assert_eq!(
        report(holder, 0, json!(["one", "two"])).ok(),
        json!({"state": "running", "lines": 2})
    );
    assert_eq!(report(holder, 0, json!(["one", "two", "three"])).ok()["lines"], 3);
    assert_eq!(report(holder, 7, json!(["eight"])).refusal(), (409, 119));
    assert_eq!(report(holder, 3, json!(vec!["x"; 1_001])).refusal(), (400, 142));
    assert!(world.log(id).ends_with("one\ntwo\nthree\n"), "{}", world.log(id));

    // An artifact of something else, and one that is not verified, are none of the build.
    assert_eq!(open(holder, "ios", "app.ipa").refusal(), (400, 142));
    let foreign = world.service.upload(&world.ada, &world.app, "sample.apk", "1.4.2");
    assert_eq!(finish(holder, json!({"artifactId": foreign["id"]})).refusal(), (409, 119));
    let opened = open(holder, "android", "app.apk");
    assert_eq!(opened.status, 201, "{}", opened.body);
    let artifact = opened.body["artifactId"].clone();
    assert_eq!(finish(holder, json!({"artifactId": artifact})).refusal(), (409, 119));
    assert_eq!(finish(holder, json!({})).refusal(), (400, 142));
    let bytes = std::fs::read(fixture("sample.apk")).unwrap();
    let sha256 = sha256(&bytes);
    world.service.http.put(opened.body["uploadUrl"].as_str().unwrap()).body(bytes).send().unwrap();
    let address = format!("{}/finalize", artifact.as_str().unwrap());
    let verified = world.service.post(Some(&world.token), &address, &json!({"sha256": sha256}));
    assert_eq!(verified.status, 201, "{}", verified.body);
    assert_eq!(verified.body["provenance"]["commit"], json!(commit));

    let ended = together(16, |_| finish(holder, json!({"artifactId": artifact})));
    for build in ended {
        assert_eq!(build.ok()["state"], "succeeded");
    }
    assert_eq!(report(holder, 3, json!(["late"])).ok()["state"], "succeeded");
    assert_eq!(finish(holder, json!({"error": "late"})).refusal(), (409, 119));
    assert!(!world.log(id).contains("late"));
}

#[test]
fn a_build_goes_on_after_a_crash_in_each_of_its_states() {
    let Some(mut world) = World::new("a_build_goes_on_after_a_crash_in_each_of_its_states") else {
        return;
    };
    // An app in a folder of a repository with several.
    let commit =
        world.git.commit(&[config("cd apps/shop && make"), ("apps/shop/Makefile", "".into())]);
    world.connect();
    let crash = |world: &mut World| {
        world.service.kill();
        world.service.boot();
    };

    // The service reads the repository.
    world.git.set("slow", "");
    let build = world.trigger();
    crash(&mut world);
    world.git.unset("slow");
    eventually("the repository was read", || world.build(&build["id"])["commit"] == json!(commit));

    // The build waits for a runner, which then has it.
    crash(&mut world);
    let job = claim(&world, &world.ada, &key(1), &["android"]);
    assert_eq!((&job["buildId"], &job["command"]), (&build["id"], &json!("cd apps/shop && make")));
    assert_eq!(world.build(&build["id"])["state"], "dispatched");
    crash(&mut world);
    assert_eq!(claim(&world, &world.ada, &key(1), &["android"]), job);
    assert_eq!(claim(&world, &world.ada, &key(2), &["android"]), Value::Null);

    // It runs, and its lines go on where they stopped.
    let report = |world: &World, from: u32, line: &str| {
        let report =
            json!({"buildId": build["id"], "runner": key(1), "from": from, "lines": [line]});
        world.call("svc_reportBuild", report)
    };
    assert_eq!(report(&world, 0, "one")["lines"], 1);
    crash(&mut world);
    assert_eq!(world.build(&build["id"])["state"], "running");
    assert_eq!(report(&world, 0, "one")["lines"], 1);
    assert_eq!(report(&world, 1, "two")["lines"], 2);
    assert!(world.log(&build["id"]).ends_with("one\ntwo\n"));

    // It has ended.
    let end = json!({"buildId": build["id"], "runner": key(1), "error": "make failed"});
    let ended = world.call("svc_finishBuild", end);
    let cancelled = world.trigger();
    let cancelled = world.call("svc_cancelBuild", json!({"buildId": cancelled["id"]}));
    crash(&mut world);
    assert_eq!((&world.build(&build["id"]), &ended["state"]), (&ended, &json!("failed")));
    assert_eq!(world.build(&cancelled["id"]), cancelled);
    world.service.stop();
    world.service.check();
}

#[test]
fn a_hundred_runners_execute_each_of_a_thousand_builds_once() {
    let Some(world) = World::new("a_hundred_runners_execute_each_of_a_thousand_builds_once") else {
        return;
    };
    world.git.commit(&[config("make")]);
    // An app has at most a hundred builds under way.
    let apps: Vec<_> = (0..10)
        .map(|_| {
            let (_, app) = world.service.project_with_app(&world.ada, None);
            let params = json!({"appId": app, "url": world.git.url, "branch": "main"});
            world.call("svc_connectRepository", params);
            app
        })
        .collect();
    let trigger = |app: &Value| {
        let params = json!({"appId": app, "platform": "android"});
        world.service.call(Some(&world.ada), "svc_triggerBuild", params)
    };
    together(10, |n| (0..100).for_each(|_| drop(trigger(&apps[n]).ok())));
    assert_eq!(trigger(&apps[0]).refusal(), (409, 119));
    // And an organization at most a thousand.
    let (_, another) = world.service.project_with_app(&world.ada, None);
    let params = json!({"appId": another, "url": world.git.url, "branch": "main"});
    world.call("svc_connectRepository", params);
    assert_eq!(trigger(&another).refusal(), (409, 119));

    let begun = Instant::now();
    let executed = together(100, |n| {
        let mut executed = Vec::new();
        loop {
            let order = claim(&world, &world.token, &key(n), &["android"]);
            let Some(id) = order["buildId"].as_str() else { return executed };
            let params = json!({"buildId": id, "runner": key(n), "from": 0, "lines": ["a line"]});
            let report = world.service.call(Some(&world.token), "svc_reportBuild", params);
            assert_eq!(report.ok()["state"], "running");
            let params = json!({"buildId": id, "runner": key(n), "error": "as the test wants it"});
            world.service.call(Some(&world.token), "svc_finishBuild", params).ok();
            executed.push(id.to_owned());
        }
    });
    let mut executed = executed.concat();
    println!("{} builds in {:?}", executed.len(), begun.elapsed());
    executed.sort();
    executed.dedup();
    assert_eq!(executed.len(), 1_000);
    for app in &apps {
        let failed = json!({"appId": app, "state": "failed", "limit": 200});
        let builds = world.call("svc_getBuilds", failed)["items"].clone();
        let once = |build: &&Value| build["attempts"] == 1;
        assert_eq!(builds.as_array().unwrap().iter().filter(once).count(), 100);
    }
}
