//! Builds in the CI of the operator's repository.

use crate::support::{
    managed::{CENTRAL, CONFIG, World, run_name, succeeded},
    service::fixture,
};
use serde_json::{Value, json};

#[test]
fn the_operators_repository_builds_what_no_other_ci_builds() {
    let test = "the_operators_repository_builds_what_no_other_ci_builds";
    let Some(world) = World::new(test) else { return };
    let central = json!({
        "do": "workflow", "file": "svc-central.yml", "runName": run_name(CENTRAL),
        "inputs": {"build_id": {"required": true}, "platform": {"required": true},
            "api_url": {"required": true}},
    });
    world.github.tell(&central);
    // The command shows what it can see.
    let sample = fixture("sample.apk");
    let command = format!("env; git config --list; cp {} app.apk", sample.display());
    let config = json!({
        "app": world.app, "repository": "acme/app", "platforms": ["android"],
        "build": {"android": {"production": command}},
        "artifact": {"android": {"production": "app.apk"}},
    });
    std::fs::remove_file(world.git.work().join("package.json")).unwrap();
    let commit = world.git.commit(&[(CONFIG, config.to_string())]);
    assert_eq!(world.connect()["mode"], "artifact-only");

    // The connection breaks after GitHub accepted the first of two builds.
    world.fail("/dispatches$", 1, json!("cutAfter"));
    let builds = ["svc_triggerBuild", "svc_triggerMobileWorkflow"]
        .map(|function| world.call(function, json!({"platform": "android"})));
    let [first, build] = builds.map(|build| world.until(&build, "dispatched"));
    let run = world.run_of(&build);
    let inputs =
        json!({"build_id": build["id"], "platform": "android", "api_url": world.service.url});
    assert_eq!((&run["inputs"], &run["repository"]), (&inputs, &json!("other")));
    assert_eq!((&run["ref"], &build["commit"]), (&json!("v1"), &json!(commit)));

    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output");
    let output_variable = [("GITHUB_OUTPUT", output.to_str().unwrap())];
    let said = succeeded(&world.step(&run, "central/build.sh", folder.path(), &output_variable));
    assert!(said.contains(&format!("SVC_COMMIT={commit}")), "{said}");
    let masks: Vec<_> = said.lines().filter_map(|l| l.strip_prefix("::add-mask::")).collect();
    assert_eq!(masks.len(), 3, "{said}");
    for secret in masks.iter().chain(&["of-the-job", "ACTIONS_ID_TOKEN"]) {
        let shown = said.lines().filter(|line| !line.starts_with("::add-mask::"));
        assert!(!shown.into_iter().any(|line| line.contains(secret)), "{secret}");
    }
    let outputs = std::fs::read_to_string(&output).unwrap();
    let output = |name: &str| {
        let line = outputs.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap().to_owned()
    };
    assert_eq!(
        (output("app-id"), output("platform")),
        (world.app.as_str().unwrap().into(), "android".into())
    );
    let (artifact, app) = (output("artifact"), output("app-id"));
    let variables = [("ARTIFACT", &*artifact), ("PLATFORM", "android"), ("SVC_APP_ID", &*app)];
    succeeded(&world.step(&run, "upload/upload.sh", folder.path(), &variables));
    let ended =
        json!({"do": "run", "id": run["id"], "status": "completed", "conclusion": "success"});
    world.github.tell(&ended);
    let built = world.until(&build, "succeeded");
    let artifact = json!({"artifactId": built["artifactId"]});
    let artifact = world.service.call(Some(&world.ada), "svc_getArtifact", artifact).ok();
    let provenance = &artifact["provenance"];
    assert_eq!((&artifact["trust"], &provenance["buildId"]), (&json!("oidc"), &build["id"]));
    assert_eq!(
        (&provenance["commit"], &provenance["repository"]),
        (&json!(commit), &json!(world.url))
    );

    // A run gets its own build only, while the build is under way.
    let is_refused = |run: &Value, why: &str| {
        let folder = tempfile::tempdir().unwrap();
        let exchanged = world.step(run, "central/build.sh", folder.path(), &[("patience", "0")]);
        let said = String::from_utf8_lossy(&exchanged.stdout).into_owned();
        assert!(!exchanged.status.success() && said.contains(why), "{said}");
    };
    is_refused(&run, "no build waits for run");
    let mut another = run.clone();
    another["id"] = json!(4711);
    is_refused(&another, "no build waits for run");
    let mut elsewhere = world.run_of(&first);
    elsewhere["repository"] = json!("app");
    is_refused(&elsewhere, "appId");
    world.github.check();
}
