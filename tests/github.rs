//! Builds in the CI of managed repositories: the real GitHub client, behind a proxy that checks each
//! request and each answer against the description of GitHub's API.

use crate::support::{
    load::together,
    managed::{CONFIG, World},
    service::{Answer, eventually},
};
use serde_json::{Value, json};

#[test]
fn a_managed_build_runs_in_the_ci_of_its_repository() {
    let Some(world) = World::new("a_managed_build_runs_in_the_ci_of_its_repository") else {
        return;
    };
    let connected = world.connect();
    let expected = json!({"host": "github", "mode": "managed", "installationId": "77",
        "hasToken": false, "error": null, "findings": []});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&connected[field], value, "{field}: {connected}");
    }
    let publisher = json!({"repository": "acme/app", "workflow": "svc-build.yml"});
    world.call("svc_addTrustedPublisher", publisher);

    // The function that chooses by mode chooses the CI.
    let build = world.call("svc_triggerBuild", json!({"platform": "android", "trigger": "cli"}));
    let build = world.until(&build, "dispatched");
    let run = world.run_of(&build);
    let inputs = json!({"app_id": world.app, "platform": "android", "profile": "production"});
    assert_eq!((&run["inputs"], &run["ref"]), (&inputs, &json!("main")));

    let steps = json!([{"name": "build", "status": "in_progress", "steps": [
        {"name": "Build", "status": "completed", "conclusion": "success", "number": 1},
        {"name": "Upload", "status": "in_progress", "conclusion": null, "number": 2},
    ]}]);
    world
        .github
        .tell(&json!({"do": "run", "id": run["id"], "status": "in_progress", "jobs": steps}));
    world.report(&run, "in_progress");
    let running = world.until(&build, "running");
    assert_eq!(running["commit"], run["head_sha"], "the run says which commit it builds");
    assert!(running["startedAt"].is_string(), "{running}");

    // What the job of the run uploads is the artifact of the build.
    world.upload(&run);
    assert_eq!(world.build(&build)["state"], "running", "the run has not ended");
    let ended =
        json!({"do": "run", "id": run["id"], "status": "completed", "conclusion": "success"});
    world.github.tell(&ended);
    world.report(&run, "completed");
    let built = world.until(&build, "succeeded");
    let id = json!({"artifactId": built["artifactId"]});
    let artifact = world.service.call(Some(&world.ada), "svc_getArtifact", id).ok();
    let known = json!({"path": "cli-trigger", "buildId": build["id"], "claimed": false,
        "commit": run["head_sha"], "runUrl": run["html_url"], "profile": "production"});
    for (field, value) in known.as_object().unwrap() {
        assert_eq!(&artifact["provenance"][field], value, "{field}: {artifact}");
    }
    assert_eq!(artifact["trust"], "oidc");
    let log = world.log(&build);
    assert_eq!(log.matches("build / Build: success\n").count(), 1, "{log}");

    // A job that has a deploy token says of which run it is.
    let build = world.dispatch();
    let build = world.until(&build, "dispatched");
    let run = world.run_of(&build);
    let token = json!({"name": "ci", "scopes": ["artifact:upload"], "appId": world.app});
    let ci = world.service.with_token(&world.ada, token);
    let request = json!({
        "appId": world.app, "platform": "android", "fileName": "app.apk",
        "provenance": {"path": "external-ci", "runUrl": run["html_url"]},
    });
    let opened = world.service.post(Some(&ci), "upload-url", &request).body;
    let artifact = world.service.call(
        Some(&world.ada),
        "svc_getArtifact",
        json!({"artifactId": opened["artifactId"]}),
    );
    let provenance = &artifact.ok()["provenance"];
    assert_eq!((&provenance["buildId"], &provenance["claimed"]), (&build["id"], &json!(true)));

    // A run that fails, and one without an artifact that fits.
    let failed =
        json!({"do": "run", "id": run["id"], "status": "completed", "conclusion": "failure"});
    world.github.tell(&failed);
    world.report(&run, "completed");
    let failed = world.until(&build, "failed");
    assert!(failed["error"].as_str().unwrap().contains("failure"), "{failed}");

    // A build that is cancelled takes its run with it, and a cancelled run its build.
    let build = world.dispatch();
    let build = world.until(&build, "dispatched");
    let id = json!({"buildId": build["id"]});
    let cancelled = world.service.call(Some(&world.ada), "svc_cancelBuild", id).ok();
    assert_eq!(cancelled["state"], "cancelled");
    eventually("the run is cancelled", || world.run_of(&build)["conclusion"] == "cancelled");
    // A run whose steps take their time is cancelled until it has ended.
    let build = world.dispatch();
    let run = world.run_of(&world.until(&build, "dispatched"));
    world.github.tell(&json!({"do": "run", "id": run["id"], "ignoreCancel": true}));
    let asked = world.github.requests("POST", "/cancel");
    world.service.call(Some(&world.ada), "svc_cancelBuild", json!({"buildId": build["id"]})).ok();
    eventually("it asks twice", || world.github.requests("POST", "/cancel") >= asked + 2);
    world.github.tell(&json!({"do": "run", "id": run["id"], "ignoreCancel": false}));
    eventually("the run is cancelled", || world.run_of(&build)["conclusion"] == "cancelled");
    let build = world.dispatch();
    let run = world.run_of(&world.until(&build, "dispatched"));
    let cancel =
        json!({"do": "run", "id": run["id"], "status": "completed", "conclusion": "cancelled"});
    world.github.tell(&cancel);
    world.report(&run, "completed");
    world.until(&build, "cancelled");

    // The run of an app that is deleted does not go on.
    let build = world.dispatch();
    let run = world.run_of(&world.until(&build, "dispatched"));
    world.fail("/cancel$", 1, json!({"status": 502}));
    world.call("deleteApp", json!({}));
    eventually("the run is cancelled", || {
        let runs = world.github.runs();
        runs.iter().any(|other| other["id"] == run["id"] && other["conclusion"] == "cancelled")
    });
    world.github.check();
}

#[test]
fn a_run_is_begun_once_whatever_fails() {
    let Some(mut world) = World::new("a_run_is_begun_once_whatever_fails") else { return };
    world.connect();
    let dispatches = "/dispatches$";
    let faults = [
        (dispatches, json!({"status": 409})),
        (dispatches, json!({"status": 429, "retryAfter": 1})),
        (dispatches, json!({"status": 403, "secondary": true, "retryAfter": 1})),
        (dispatches, json!({"status": 401})),
        ("/access_tokens$", json!({"status": 429, "retryAfter": 1})),
        ("/installation$", json!({"status": 502})),
        // The run is begun, and nobody says so.
        (dispatches, json!("cutAfter")),
    ];
    for (path, how) in &faults {
        let before = world.github.runs().len();
        if *path == "/access_tokens$" {
            world.github.tell(&json!({"do": "revoke"}));
        }
        world.fail(path, 1, how.clone());
        let build = world.dispatch();
        world.until(&build, "dispatched");
        assert_eq!(world.github.runs().len(), before + 1, "{path}: {how}");
    }

    // Sixteen at once, each with a run of its own, whether GitHub confirms or not.
    let before = world.github.runs().len();
    world.fail(dispatches, 4, json!("cutAfter"));
    let builds = together(16, |_| world.dispatch());
    let urls: std::collections::HashSet<_> =
        builds.iter().map(|build| world.until(build, "dispatched")["runUrl"].to_string()).collect();
    assert_eq!((urls.len(), world.github.runs().len()), (16, before + 16));

    // The service is killed when GitHub began the run and the service does not know it yet.
    let sent = world.github.requests("POST", "/dispatches");
    world.fail(dispatches, 1, json!("cutAfter"));
    let build = world.dispatch();
    eventually("it was sent", || world.github.requests("POST", "/dispatches") > sent);
    world.service.kill();
    world.service.boot();
    world.until(&build, "dispatched");
    assert_eq!(world.github.runs().len(), before + 17);

    // It is killed while it follows the run, and while it wants to cancel it.
    world.service.kill();
    let run = world.github.runs().pop().unwrap();
    world.github.tell(&json!({"do": "run", "id": run["id"], "status": "in_progress"}));
    world.service.boot();
    world.until(&build, "running");
    world.fail("/cancel$", 1000, json!({"status": 502}));
    let id = json!({"buildId": build["id"]});
    world.service.call(Some(&world.ada), "svc_cancelBuild", id).ok();
    eventually("it tries to cancel", || world.github.requests("POST", "/cancel") > 0);
    world.service.kill();
    world.github.tell(&json!({"do": "heal"}));
    world.service.boot();
    eventually("the run is cancelled", || world.run_of(&build)["conclusion"] == "cancelled");
    world.github.check();
    world.service.stop();
    world.service.check();
}

#[test]
fn only_the_app_that_a_repository_names_reaches_it() {
    let Some(world) = World::new("only_the_app_that_a_repository_names_reaches_it") else { return };
    let refused = |answer: Answer, why: &str| {
        assert_eq!(answer.refusal().1, 119, "{}", answer.body);
        let said = answer.body["error"].as_str().unwrap();
        assert!(said.contains(why), "{why}: {said}");
    };
    // Mallory names a repository of somebody else, and its installation.
    let mallory = world.service.register("mallory");
    let (_, other) = world.service.project_with_app(&mallory, None);
    let call = |function: &str, params: Value| {
        let mut all = json!({"appId": other});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        world.service.call(Some(&mallory), function, all)
    };
    for installation in
        [json!({}), json!({"installationId": "77"}), json!({"installationId": "78"})]
    {
        let mut params = json!({"url": world.url});
        params.as_object_mut().unwrap().extend(installation.as_object().unwrap().clone());
        let connected = call("svc_connectRepository", params).ok();
        assert!(connected["error"].is_string(), "{connected}");
        assert_eq!(
            (&connected["mode"], &connected["installationId"]),
            (&json!("unclassified"), &Value::Null)
        );
        let build = call("svc_build_dispatch", json!({"platform": "android"}));
        let build = build.ok();
        eventually("it fails", || {
            let id = json!({"buildId": build["id"]});
            world.service.call(Some(&mallory), "svc_getBuild", id).ok()["state"] == "failed"
        });
    }
    assert_eq!(world.github.runs(), Vec::<Value>::new());

    // A copy of the repository names the same app, and is another repository.
    let copy = world.git.also_at("acme/other.git");
    let copied = world.call("svc_connectRepository", json!({"url": copy}));
    assert!(copied["error"].is_string(), "{copied}");

    // The app that the repository names, through the installation that has it, until it names
    // another app.
    let elsewhere = json!({"url": world.url, "installationId": "78"});
    assert!(world.call("svc_connectRepository", elsewhere)["error"].is_string());
    assert_eq!(world.connect()["error"], Value::Null);
    world.commit_config(&other);
    let checked = world.call("svc_checkRepository", json!({}));
    assert!(checked["error"].is_string(), "{checked}");
    let build = world.dispatch();
    world.until(&build, "failed");
    assert_eq!(world.github.runs(), Vec::<Value>::new());
    world.commit_config(&world.app);
    assert_eq!(world.call("svc_checkRepository", json!({}))["error"], Value::Null);

    // What stands against a build in the CI is said before and after it begins.
    let unknown = json!({"platform": "android", "profile": "nightly"});
    refused(world.try_call("svc_build_dispatch", unknown), "build.android.nightly");
    world.github.tell(&json!({"do": "workflow", "file": "svc-build.yml", "remove": true}));
    let build = world.until(&world.dispatch(), "failed");
    assert!(build["error"].as_str().unwrap().contains("default branch"), "{build}");
    world.workflow(json!({"trigger": false}));
    let build = world.until(&world.dispatch(), "failed");
    assert!(build["error"].as_str().unwrap().contains("workflow_dispatch"), "{build}");
    world.github.tell(&json!({"do": "suspend"}));
    let build = world.until(&world.dispatch(), "failed");
    assert!(build["error"].as_str().unwrap().contains("suspended"), "{build}");
    world.github.tell(&json!({"do": "suspend", "suspended": false}));
    assert_eq!(world.github.runs(), Vec::<Value>::new());

    // A repository that is not managed is built on a runner.
    std::fs::remove_file(world.git.work().join("package.json")).unwrap();
    world.git.commit(&[]);
    world.call("svc_checkRepository", json!({}));
    let dispatched = world.try_call("svc_build_dispatch", json!({"platform": "android"}));
    refused(dispatched, "package.json");
    let build =
        world.call("svc_triggerBuild", json!({"platform": "android", "profile": "preview"}));
    eventually("the repository was read", || world.build(&build)["commit"].is_string());
    assert_eq!(world.build(&build)["state"], "queued");
    assert_eq!(world.github.runs(), Vec::<Value>::new());
    world.github.check();
}

#[test]
fn a_managed_repository_says_what_keeps_builds_from_its_ci() {
    let Some(mut world) = World::new("a_managed_repository_says_what_keeps_builds_from_its_ci")
    else {
        return;
    };
    // Anybody can read it, so only builds need consent.
    world.git.unset("token");
    let mut config = json!({
        "$schema": "https://svc.example.com/config.schema.json",
        "platforms": ["android"],
        "build": {"android": {"production": "make"}},
        "artifact": {"android": {"production": "app.aab"}},
    });
    let commit = |world: &World, config: &Value| {
        world.git.commit(&[(CONFIG, config.to_string())]);
        world.github.tell(&json!({"do": "file", "path": CONFIG, "text": config.to_string()}));
    };
    let found = |repository: &Value| -> Vec<(Value, Value, Value)> {
        let findings = repository["findings"].as_array().unwrap().iter();
        findings
            .map(|f| (f["check"].clone(), f["severity"].clone(), f["problem"].clone()))
            .collect()
    };
    let withheld = |problem: &str| vec![(json!("config-app"), json!("warning"), json!(problem))];
    let check = |world: &World| world.call("svc_checkRepository", json!({}));
    let dispatch =
        |world: &World| world.try_call("svc_build_dispatch", json!({"platform": "android"}));

    commit(&world, &config);
    let connected = world.connect();
    assert_eq!((&connected["mode"], &connected["error"]), (&json!("managed"), &Value::Null));
    assert_eq!(found(&connected), withheld("app is missing, and repository is missing"));
    assert_eq!(connected["runsIn"], "central-ci");
    let refusal = dispatch(&world);
    assert_eq!(refusal.refusal(), (409, 119));
    assert!(refusal.body["error"].as_str().unwrap().contains(CONFIG), "{}", refusal.body);

    config["app"] = world.app.clone();
    config["repository"] = json!("acme/other");
    commit(&world, &config);
    let other = withheld("repository is \"acme/other\", which is another one");
    assert_eq!(found(&check(&world)), other);

    // With both names, the same repository is built. What is mended is seen when a build is triggered.
    config["repository"] = json!("Acme/App");
    commit(&world, &config);
    let build = dispatch(&world).ok();
    world.until(&build, "dispatched");
    let checked = world.call("svc_getRepository", json!({}));
    assert_eq!((found(&checked), &checked["runsIn"]), (vec![], &json!("client-ci")));

    // Where registration is closed, the operator knows who connects repositories.
    for field in ["app", "repository"] {
        config.as_object_mut().unwrap().remove(field);
    }
    commit(&world, &config);
    assert_eq!(found(&check(&world)).len(), 1);
    world.service.kill();
    world.service.set("SVC_REGISTRATION", "closed");
    world.service.boot();
    let checked = check(&world);
    assert_eq!((found(&checked), &checked["runsIn"]), (vec![], &json!("client-ci")));
    let build = dispatch(&world).ok();
    world.until(&build, "dispatched");
    world.github.check();
}
