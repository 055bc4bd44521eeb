//! Repositories over ssh, with deploy keys: a real OpenSSH server, and the real runner.

use crate::support::{
    builds::{World, config},
    load::together,
    requires,
    service::{Answer, fixture, holds},
    ssh::{PROGRAMS, Ssh, public_half},
};
use serde_json::{Value, json};

/// `None` where a program that the test needs is missing.
fn world(test: &str) -> Option<(Ssh, World)> {
    if !requires::programs(test, &PROGRAMS) {
        return None;
    }
    let ssh = Ssh::start();
    let world = World::with(test, &[("SVC_GIT_PRIVATE_HOSTS", &ssh.host)])?;
    Some((ssh, world))
}

fn try_connect(world: &World, app: &Value, more: Value) -> Answer {
    let mut params = json!({"appId": app});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.service.call(Some(&world.ada), "svc_connectRepository", params)
}

fn connect(world: &World, more: Value) -> Value {
    try_connect(world, &world.app, more).ok()
}

fn check(world: &World) -> Value {
    world.call("svc_checkRepository", json!({"appId": world.app}))
}

fn text<'a>(repository: &'a Value, field: &str) -> &'a str {
    repository[field].as_str().unwrap_or_else(|| panic!("no {field}: {repository}"))
}

#[test]
fn a_repository_is_read_once_its_host_knows_the_deploy_key() {
    let Some((ssh, world)) = world("a_repository_is_read_once_its_host_knows_the_deploy_key")
    else {
        return;
    };
    let commit = world.git.commit(&[config("true")]);
    let url = ssh.url(&world.git);
    let told = connect(&world, json!({"url": url}));
    let key = text(&told, "deployKey").to_owned();
    assert!(key.starts_with("ssh-ed25519 AAAA"), "{told}");
    assert!(key.ends_with(&format!(" svc {}", world.app.as_str().unwrap())), "{told}");
    let advice = format!("add this deploy key to the repository at its host: {key}");
    assert!(text(&told, "error").contains(&advice), "{told}");
    assert_eq!(text(&told, "hostKey"), ssh.fingerprint(), "the first contact pins the host key");
    assert_eq!((&told["host"], &told["hasToken"]), (&json!("git"), &json!(false)));

    // The same address keeps its key pair; another app has another one.
    assert_eq!(connect(&world, json!({"url": url}))["deployKey"], told["deployKey"]);
    let (_, other) = world.service.project_with_app(&world.ada, None);
    let other = try_connect(&world, &other, json!({"url": url})).ok();
    assert_ne!(other["deployKey"], told["deployKey"]);

    // The command line says what to do.
    world.sign_in();
    let settings = [("SVC_API_URL", world.service.url.as_str())];
    let args = ["repo", "connect", &url, "--app", world.app.as_str().unwrap()];
    let said = world.service.cli_with(&args, &settings, "");
    let (out, err) =
        (String::from_utf8(said.stdout).unwrap(), String::from_utf8(said.stderr).unwrap());
    assert!(!said.status.success() && out.contains(&key), "{out}{err}");
    assert!(err.contains("the deploy key above") && err.contains("svc repo check"), "{err}");

    ssh.allow(&[&key]);
    let read = check(&world);
    assert_eq!((&read["error"], &read["commit"]), (&Value::Null, &json!(commit)), "{}", ssh.log());
    assert_eq!((&read["mode"], &read["branch"]), (&json!("artifact-only"), &json!("main")));
    let app = world.call("getApp", json!({"appId": world.app}));
    assert_eq!(app["repository"], read);
    for repository in together(8, |_| check(&world)) {
        assert_eq!(repository["error"], Value::Null, "{repository}");
    }

    // A repository that is disconnected forgets its key.
    world.call("svc_disconnectRepository", json!({"appId": world.app}));
    assert_ne!(connect(&world, json!({"url": url}))["deployKey"], told["deployKey"]);
}

#[test]
fn a_host_with_another_key_is_refused_until_its_owner_names_it() {
    let test = "a_host_with_another_key_is_refused_until_its_owner_names_it";
    let Some((mut ssh, world)) = world(test) else { return };
    world.git.commit(&[config("true")]);
    let url = ssh.url(&world.git);
    let known = ssh.fingerprint();
    // A fingerprint that is named at first is not just trusted.
    let wrong = format!("SHA256:{}", "A".repeat(43));
    let refused = connect(&world, json!({"url": url, "hostKey": wrong}));
    assert!(text(&refused, "error").contains(&format!("{known}, and not {wrong}")), "{refused}");
    assert_eq!(refused["hostKey"], Value::Null);
    let told = connect(&world, json!({"url": url, "hostKey": known}));
    ssh.allow(&[text(&told, "deployKey")]);
    assert_eq!(check(&world)["error"], Value::Null);

    // Another key of the same type, and one of another type.
    let mut known = known;
    for kind in ["ed25519", "ecdsa"] {
        ssh.renew_host_key(kind);
        let new = ssh.fingerprint();
        let both = format!("{new}, and not {known}");
        for refused in [check(&world), connect(&world, json!({"url": url}))] {
            assert!(text(&refused, "error").contains(&both), "{refused}");
            assert!(text(&refused, "error").contains(&format!("--host-key {new}")), "{refused}");
            assert_eq!(refused["hostKey"], json!(known));
        }
        let accepted = connect(&world, json!({"url": url, "hostKey": new}));
        assert_eq!((&accepted["error"], &accepted["hostKey"]), (&Value::Null, &json!(new)));
        assert_eq!(accepted["deployKey"], told["deployKey"]);
        assert_eq!(connect(&world, json!({"url": url}))["hostKey"], json!(new));
        known = new;
    }
}

#[test]
fn a_machine_without_ssh_says_so() {
    let test = "a_machine_without_ssh_says_so";
    if !requires::programs(test, &["git"]) {
        return;
    }
    let programs = tempfile::tempdir().unwrap();
    for name in ["git", "nice", "sh"] {
        let path = std::env::var_os("PATH").unwrap();
        let mut all = std::env::split_paths(&path).map(|folder| folder.join(name));
        let found = all.find(|program| program.exists()).unwrap();
        std::os::unix::fs::symlink(found, programs.path().join(name)).unwrap();
    }
    let Some(world) = World::with(test, &[("PATH", programs.path().to_str().unwrap())]) else {
        return;
    };
    let refused = connect(&world, json!({"url": "git@git.example.com:team/app.git"}));
    assert!(text(&refused, "error").starts_with("ssh cannot be run"), "{refused}");
    assert_eq!(refused["url"], "ssh://git@git.example.com/team/app.git");
}

#[test]
fn an_address_is_an_address_and_nothing_else() {
    let Some((ssh, world)) = world("an_address_is_an_address_and_nothing_else") else { return };
    let url = ssh.url(&world.git);
    for hostile in [
        "ssh://-oProxyCommand=touch${IFS}pwned/app.git",
        "ssh://-oProxyCommand=x@127.0.0.1/app.git",
        "ssh://git@-oProxyCommand=x/app.git",
        "ssh://a b@127.0.0.1/app.git",
        "ssh://git@%h/app.git",
        "ssh://git@127.0.0.1:22:22/app.git",
        "ssh://git@127.0.0.1:x/app.git",
        "ssh://git@127.0.0.1/app.git\nProxyCommand x",
        "ssh://git@127.0.0.1/$(touch pwned)",
        "ssh://git:secret@127.0.0.1/app.git",
        "git@-oProxyCommand=x:app.git",
    ] {
        let refused = try_connect(&world, &world.app, json!({"url": hostile}));
        assert_eq!(refused.refusal(), (400, 142), "{hostile:?}");
    }
    let fingerprint = ssh.fingerprint();
    for (params, problem) in [
        (json!({"url": url, "token": "t0ken"}), "deploy key"),
        (json!({"url": url, "installationId": "7"}), "deploy key"),
        (json!({"url": world.git.url, "hostKey": fingerprint}), "ssh addresses"),
    ] {
        let refused = try_connect(&world, &world.app, params);
        assert_eq!(refused.refusal(), (400, 142));
        assert!(refused.body.to_string().contains(problem), "{}", refused.body);
    }

    // The internal network is reached only where the operator allows it, at that port.
    for inside in ["ssh://git@127.0.0.1/app.git", "git@localhost:app.git", "ssh://10.0.0.1:2222/a"]
    {
        let refused = connect(&world, json!({"url": inside}));
        assert!(text(&refused, "error").contains("SVC_GIT_PRIVATE_HOSTS"), "{refused}");
        assert_eq!(refused["hostKey"], Value::Null);
    }

    // Only the connected repository has a key.
    let image = json!({"name": "mine", "repository": "registry.example.com/team/name"});
    let superadmin = world.service.administrator();
    let image = world.service.call(Some(&superadmin), "registerDockerImage", image).ok();
    let source = json!({"git": {"url": url}});
    let params = json!({"imageId": image["id"], "version": "1.0.0", "source": source});
    let refused = world.service.call(Some(&superadmin), "triggerDockerBuild", params);
    assert_eq!(refused.refusal(), (400, 142));
    assert!(refused.body.to_string().contains("no deploy key"), "{}", refused.body);
}

#[test]
fn a_runner_builds_from_an_ssh_repository_and_nobody_sees_the_key() {
    let test = "a_runner_builds_from_an_ssh_repository_and_nobody_sees_the_key";
    let Some((ssh, mut world)) = world(test) else { return };
    // The command looks for the key in the folder of its build. The pattern does not find itself.
    let sample = fixture("sample.apk");
    let command = format!(
        "if grep -rIl 'OPENSSH [P]RIVATE' ..; then exit 9; fi; test ! -e ../ssh && \
         ! env | grep SSH && cp {} app.apk",
        sample.display()
    );
    let commit = world.git.commit(&[config(&command)]);
    let told = connect(&world, json!({"url": ssh.url(&world.git)}));
    let public = text(&told, "deployKey").to_owned();
    ssh.allow(&[&public]);
    assert_eq!(check(&world)["error"], Value::Null);

    let mut runner = world.runner("pine", &["--once"]);
    let build = world.trigger();
    let made = world.until(&build["id"], "succeeded", 60);
    assert_eq!(made["commit"], json!(commit));
    let artifact = world.call("svc_getArtifact", json!({"artifactId": made["artifactId"]}));
    assert_eq!(artifact["state"], "verified");
    assert_eq!(artifact["provenance"]["repository"], told["url"]);
    assert!(runner.child.wait().unwrap().success(), "{}", runner.log());
    let log = [world.log(&build["id"]), runner.log()].concat();

    // Whoever runs builds gets the key, and nobody else.
    let build = world.trigger();
    let claim = json!({"runner": "0123456789abcdefghij", "name": "oak", "labels": ["android"],
        "appIds": [world.app]});
    let claimed = world.service.call(Some(&world.token), "svc_claimBuild", claim).ok();
    assert_eq!(claimed["job"]["buildId"], build["id"]);
    let access = &claimed["job"]["ssh"];
    let private = text(access, "privateKey");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(public_half(private, folder.path()), public);
    assert!(text(access, "hostKey").starts_with("ssh-ed25519 AAAA"));
    assert_eq!(claimed["job"]["token"], Value::Null);

    let replies = [
        world.call("svc_getRepository", json!({"appId": world.app})).to_string(),
        world.call("getApp", json!({"appId": world.app})).to_string(),
        world.build(&build["id"]).to_string(),
    ]
    .concat();
    world.service.stop();
    let data = world.service.data();
    assert!(holds(&data, public.as_bytes()), "the search finds what lies in a file");
    let known = [log, replies, world.service.log()].concat();
    for line in private.lines().filter(|line| line.len() >= 16) {
        assert!(!known.contains(line), "{known}");
        assert!(!holds(&data, line.as_bytes()), "the key lies in a file");
    }
}
