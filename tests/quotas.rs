//! Quotas of organizations: what they use, what is refused, and who uses the most.

use crate::{
    backups::{finished, psql},
    egress::container,
    instances::{backend, until},
    support::{
        engine::{docker, engine},
        load::together,
        service::{Answer, Person, Service, eventually},
    },
    uploads::{Upload, declared, opening},
};
use serde_json::{Value, json};

/// What an organization uses of a quota, and its limit. Without an organization, the personal one.
pub fn used(
    service: &Service,
    who: &Person,
    organization: Option<&Value>,
    quota: &str,
) -> (u64, Value) {
    let params = organization.map_or_else(|| json!({}), |id| json!({"organizationId": id}));
    let usage = service.call(Some(who), "svc_getUsage", params).ok();
    let quotas = usage["quotas"].as_array().unwrap();
    let found = quotas.iter().find(|one| one["quota"] == quota).unwrap();
    (found["used"].as_u64().unwrap(), found["limit"].clone())
}

/// Sets the tier of an account.
fn set_tier(service: &Service, who: &Person, tier: &str) {
    let params = json!({"userId": who.id, "tier": tier});
    service.call(Some(&service.administrator()), "svc_admin_setTier", params).ok();
}

/// A service with these quotas, and a person of the tier `developer`.
fn start(quotas: &str) -> (Service, Person) {
    let service = Service::start_with(&[("SVC_QUOTAS", quotas)]);
    let bob = service.register_free("bob");
    set_tier(&service, &bob, "developer");
    (service, bob)
}

/// The words of a refusal by a quota.
pub fn over(answer: &Answer) -> &str {
    assert_eq!(answer.refusal(), (409, 119), "{answer:?}");
    answer.body["error"].as_str().unwrap()
}

#[test]
fn what_an_organization_may_have_holds_for_sixteen_callers_and_after_a_crash() {
    let quotas = "developer.projects=4,developer.apps=3,developer.members=2,developer.webhooks=2,\
        developer.organizations=1,developer.mails=2";
    let (mut service, bob) = start(quotas);
    let acme = service.call(Some(&bob), "createOrganization", json!({"name": "Acme"})).ok();
    let acme = &acme["id"];
    let again = service.call(Some(&bob), "createOrganization", json!({"name": "Acme"}));
    assert!(over(&again).contains("you made 1 of 1 organizations"), "{again:?}");
    assert_eq!(used(&service, &bob, None, "organizations"), (1, json!(1)));
    let make = |service: &Service, n: usize| {
        let params = json!({"organizationId": acme, "name": format!("Shop {n}")});
        service.call(Some(&bob), "svc_createProject", params)
    };
    let answers = together(16, |n| make(&service, n));
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(made.len(), 4, "{refused:?}");
    assert_eq!(
        over(refused[0]),
        "this organization uses 4 of 4 projects (quota projects of the tier developer); delete some first, or \
         ask an operator for a higher tier"
    );
    assert_eq!(used(&service, &bob, Some(acme), "projects"), (4, json!(4)));
    assert_eq!(used(&service, &bob, None, "projects").0, 0, "another organization has its own");
    assert_eq!(used(&service, &bob, None, "members").0, 1, "its owner");

    // What is deleted is used no longer, with all below it.
    let project = &made[0].body["result"]["id"];
    let app = json!({"projectId": project, "name": "App"});
    let answers = together(16, |_| service.call(Some(&bob), "createApp", app.clone()));
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(made.len(), 3);
    assert!(over(refused[0]).contains("3 of 3 apps"));
    service.kill();
    service.boot();
    assert_eq!(used(&service, &bob, Some(acme), "apps"), (3, json!(3)));
    service.call(Some(&bob), "svc_deleteProject", json!({"projectId": project})).ok();
    assert_eq!(make(&service, 20).status, 200);
    eventually("the apps are gone", || used(&service, &bob, Some(acme), "apps").0 == 0);

    // An invitation is accepted only where there is room.
    let invite = |name: &str| {
        let guest = service.register(name);
        let email = format!("{name}@example.com");
        let params = json!({"organizationId": acme, "email": email, "role": "client"});
        let invitation = service.call(Some(&bob), "inviteMember", params).ok();
        let token = json!({"token": invitation["acceptToken"]});
        (guest.clone(), move |service: &Service| {
            service.call(Some(&guest), "acceptInvitation", token.clone())
        })
    };
    let ((first, accepts), (_, waits)) = (invite("carol"), invite("dan"));
    let third = json!({"organizationId": acme, "email": "eve@example.com", "role": "client"});
    assert_eq!(service.call(Some(&bob), "inviteMember", third).status, 429);
    assert_eq!(used(&service, &bob, Some(acme), "mails"), (2, json!(2)));
    accepts(&service).ok();
    assert!(over(&waits(&service)).contains("2 of 2 members"));
    assert_eq!(used(&service, &first, Some(acme), "members"), (2, json!(2)), "members see it");

    // The tier of the owner counts. One that is lower takes nothing away.
    set_tier(&service, &bob, "enterprise");
    waits(&service).ok();
    assert_eq!(used(&service, &bob, Some(acme), "members"), (3, Value::Null));
    set_tier(&service, &bob, "developer");
    assert!(over(&make(&service, 21)).contains("4 of 4 projects"));
    let renamed = json!({"organizationId": acme, "name": "Acme Ltd"});
    service.call(Some(&bob), "updateOrganization", renamed).ok();

    let largest = json!({"quota": "members", "limit": 1});
    let operator = service.administrator();
    let largest = service.call(Some(&operator), "svc_admin_getUsage", largest).ok();
    let expected = json!([{
        "organizationId": acme, "name": "Acme Ltd", "tier": "developer", "used": 3, "limit": 2,
    }]);
    assert_eq!(largest["organizations"], expected);
    assert_eq!(
        service.call(Some(&bob), "svc_admin_getUsage", json!({"quota": "apps"})).status,
        403
    );

    let stranger = service.register("eve");
    let of_acme = json!({"organizationId": acme});
    assert_eq!(service.call(Some(&stranger), "svc_getUsage", of_acme).refusal(), (404, 101));
    service.stop();
    service.check();
}

#[test]
fn uploads_count_what_they_declare_or_what_arrives() {
    let quotas = "developer.openUploads=2,developer.artifactBytes=3MiB";
    let (mut service, bob) = start(quotas);
    let (_, app) = service.project_with_app(&bob, None);
    let bytes = |quota: &str| used(&service, &bob, None, quota).0;
    let open = |body: &Value| service.post(Some(&bob), "upload-url", body);

    // A declared size is taken at once.
    let mut large = declared(&app, b"large");
    large["size"] = json!(3 << 20);
    let first = open(&large);
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!((bytes("artifactBytes"), bytes("openUploads")), (3 << 20, 1));
    let why = open(&opening(&app));
    assert!(over(&why).contains("uses 3 MiB of 3 MiB artifacts"), "{why:?}");
    let given_up = json!({"artifactId": first.body["artifactId"]});
    service.call(Some(&bob), "svc_deleteArtifact", given_up).ok();
    assert_eq!((bytes("artifactBytes"), bytes("openUploads")), (0, 0));

    // Without one, the upload ends where the quota does.
    let stream = Upload::open(&service, &bob, &opening(&app));
    let refused = stream.put(vec![7; 4 << 20]);
    assert!(over(&refused).contains("quota artifactBytes"), "{refused:?}");
    service.call(Some(&bob), "svc_deleteArtifact", json!({"artifactId": stream.id})).ok();

    // A verified artifact counts its size, and the uploads of others wait.
    let apk = service.upload(&bob, &app, "sample.apk", "1.4.2");
    assert_eq!(json!(bytes("artifactBytes")), apk["size"]);
    let answers = together(16, |_| open(&opening(&app)).status);
    assert_eq!(answers.iter().filter(|status| **status == 201).count(), 2, "{answers:?}");
    service.stop();
    service.check();
}

/// An engine is not needed: what an instance takes counts from its creation.
#[test]
fn memory_and_processors_of_instances_hold_for_sixteen_callers() {
    for (quota, limit) in [("instanceMemory", "1GiB"), ("instanceCpus", "2")] {
        let (service, bob) = start(&format!("developer.{quota}={limit}"));
        let (project, _) = service.project_with_app(&bob, None);
        let create = |n: usize| {
            let params = json!({"projectId": project, "name": format!("Backend {n}"),
                "resources": {"memoryMb": 512, "cpus": 1}});
            service.call(Some(&bob), "svc_createBackendInstance", params)
        };
        let answers = together(16, create);
        let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
        assert_eq!(made.len(), 1, "{refused:?}");
        assert!(over(refused[0]).contains(&format!("(quota {quota} of")), "{refused:?}");
        let (use_of_one, most) = used(&service, &bob, None, quota);
        assert!(
            use_of_one > 0 && use_of_one * 2 > most.as_u64().unwrap(),
            "{use_of_one} of {most}"
        );
    }
}

#[test]
fn instances_count_their_services_and_backups_their_bytes() {
    let Some(engine) = engine("instances_count_their_services_and_backups_their_bytes") else {
        return;
    };
    let quotas = "enterprise.instances=1,enterprise.instanceMemory=1GiB,enterprise.instanceCpus=2,\
        enterprise.backups=1,enterprise.backupBytes=1MiB";
    let service = engine.service(&[("SVC_QUOTAS", quotas)]);
    let (ada, project, instance) = backend(&service);
    let of = |quota: &str| used(&service, &ada, None, quota);
    assert_eq!((of("instances").0, of("apps").0), (1, 1));
    let memory = instance["services"].as_array().unwrap().len() as u64 * (256 << 20);
    assert!(of("instanceMemory").0 >= memory, "{:?}", of("instanceMemory"));
    let another = json!({"projectId": project["id"], "name": "Another"});
    let refused = service.call(Some(&ada), "svc_createBackendInstance", another);
    assert!(over(&refused).contains("1 of 1 instances"), "{refused:?}");

    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let id = &instance["id"];
    for (resources, quota) in [
        (json!({"memoryMb": 1000, "cpus": 1}), "instanceMemory"),
        (json!({"memoryMb": 256, "cpus": 2}), "instanceCpus"),
    ] {
        let larger = json!({"instanceId": id, "resources": resources});
        assert!(over(&call("svc_updateBackendInstance", larger)).contains(quota), "{quota}");
    }

    // A dump ends where the quota does, and leaves nothing.
    let asked = json!({"appId": instance["appId"]});
    psql(
        &instance,
        "parse",
        "create table large as select gen_random_uuid() from generate_series(1, 100000)",
    );
    let made = call("svc_createSqlDbBackup", asked.clone()).ok();
    let failed = finished(&service, &ada, &made);
    assert!(failed["error"].as_str().unwrap().contains("backupBytes"), "{failed}");
    assert_eq!(of("backupBytes").0, 0);
    let files = std::fs::read_dir(service.data().join("backups")).unwrap();
    assert_eq!(files.count(), 0);
    call("svc_deleteBackup", json!({"backupId": made["id"]})).ok();
    psql(&instance, "parse", "drop table large");
    let made = call("svc_createSqlDbBackup", asked.clone()).ok();
    finished(&service, &ada, &made);
    assert!(over(&call("svc_createSqlDbBackup", asked)).contains("1 of 1 backups"));
    assert!(of("backupBytes").0 > 1);

    call("svc_deleteBackendInstance", json!({"instanceId": id, "deleteData": true})).ok();
    eventually("the instance is used no longer", || of("instances").0 == 0);
    assert_eq!(of("instanceMemory").0, 0);
}

#[test]
fn an_instance_that_holds_too_much_on_the_disk_is_stopped_and_loses_nothing() {
    let test = "an_instance_that_holds_too_much_on_the_disk_is_stopped_and_loses_nothing";
    let Some(engine) = engine(test) else { return };
    let quotas = "enterprise.instanceDisk=300MiB";
    let mut service = engine.service(&[("SVC_QUOTAS", quotas)]);
    let (ada, project, instance) = backend(&service);
    let id = instance["id"].as_str().unwrap();
    let seen = |service: &Service| {
        service.call(Some(&ada), "svc_getBackendInstance", json!({"instanceId": id})).ok()
    };
    eventually("it is measured", || seen(&service)["diskBytes"].is_u64());
    let (empty, limit) = used(&service, &ada, None, "instanceDisk");
    assert!(empty > 0 && limit == json!(300 << 20), "{empty} of {limit}");

    let database = container(&instance, "sqldb");
    let format = "{{range .Mounts}}{{if eq .Type \"volume\"}}{{.Destination}}{{end}}{{end}}";
    let volume = docker(&["inspect", &database, "--format", format]);
    // In one step, because the instance may be stopped at any time after it.
    let filler = format!("{volume}/filler");
    docker(&["exec", "--user", "0", &database, "fallocate", "--length=400M", &filler]);
    eventually("it is stopped", || seen(&service)["state"] == "stopped");
    let stopped = seen(&service);
    let why = stopped["lastError"].as_str().unwrap();
    assert!(why.contains("quota instanceDisk"), "{stopped}");
    // The database has its own files beside the filler, and makes more at any time.
    let counted_once = 400 << 20..600 << 20;
    assert!(counted_once.contains(&stopped["diskBytes"].as_u64().unwrap()), "{stopped}");
    let params = json!({"instanceId": id});
    for function in ["svc_startBackendInstance", "svc_restartBackendInstance"] {
        let refused = service.call(Some(&ada), function, params.clone());
        assert!(over(&refused).contains("of 300 MiB disk for instances"), "{refused:?}");
    }
    let another = json!({"projectId": project["id"], "name": "Another"});
    over(&service.call(Some(&ada), "svc_createBackendInstance", another));

    // What is kept of a deleted instance counts, too.
    service.call(Some(&ada), "svc_deleteBackendInstance", params.clone()).ok();
    let deleted = json!({"projectId": project["id"], "deleted": true});
    eventually("it is deleted", || {
        let found = service.call(Some(&ada), "svc_getBackendInstances", deleted.clone()).ok();
        found["items"][0]["state"] == "deleted"
    });
    let kept = used(&service, &ada, None, "instanceDisk").0;
    assert!(counted_once.contains(&kept), "{kept}");
    service.call(Some(&ada), "svc_undeleteBackendInstance", params.clone()).ok();
    eventually("it comes back stopped", || seen(&service)["state"] == "stopped");
    over(&service.call(Some(&ada), "svc_startBackendInstance", params.clone()));

    service.stop();
    service.check();
    service.set("SVC_QUOTAS", "enterprise.instanceDisk=1GiB");
    service.boot();
    eventually("it may run again", || {
        service.call(Some(&ada), "svc_startBackendInstance", params.clone()).status == 200
    });
    let running = until(&service, &ada, &stopped["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    let kept = docker(&["exec", &container(&instance, "sqldb"), "ls", &volume]);
    assert!(kept.contains("filler"), "{kept}");
}

#[test]
fn the_memory_of_the_machine_is_promised_to_one_of_sixteen_callers() {
    let test = "the_memory_of_the_machine_is_promised_to_one_of_sixteen_callers";
    let Some(engine) = engine(test) else { return };
    let service = engine.service(&[("SVC_MEMORY_OVERCOMMIT", "0.5")]);
    let admin = service.administrator();
    let promised = || {
        let params = json!({"quota": "instanceMemory"});
        service.call(Some(&admin), "svc_admin_getUsage", params).ok()["promised"][0].clone()
    };
    eventually("the engine says what its machine has", || promised()["limit"].is_u64());
    let limit = promised()["limit"].as_u64().unwrap();

    let ada = service.register("ada");
    let (project, _) = service.project_with_app(&ada, None);
    let create = |name: String, resources: Value| {
        let params = json!({"projectId": project, "name": name, "resources": resources});
        service.call(Some(&ada), "svc_createBackendInstance", params)
    };
    let resources = json!({"memoryMb": (limit >> 20) * 2 / 3, "cpus": 1});
    let answers = together(16, |n| create(format!("Backend {n}"), resources.clone()));
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(made.len(), 1, "{answers:?}");
    assert!(over(refused[0]).contains("this server has promised"), "{:?}", refused[0]);
    assert!(promised()["used"].as_u64().unwrap() <= limit);

    if std::thread::available_parallelism().unwrap().get() < 64 {
        let refused = create("Fast".to_owned(), json!({"memoryMb": 128, "cpus": 64}));
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body["error"].as_str().unwrap().contains("the processors of this server"));
    }

    let id = &made[0].body["result"]["id"];
    let params = json!({"instanceId": id, "deleteData": true});
    service.call(Some(&ada), "svc_deleteBackendInstance", params).ok();
    eventually("nothing is promised any more", || promised()["used"] == 0);
}
