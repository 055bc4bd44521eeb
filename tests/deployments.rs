//! Deployments and images that are built from git repositories.

use crate::{
    instances::{backend, deployed, made, until},
    support::engine::{Installed, docker, engine, template},
    support::{
        git::Git,
        requires,
        service::{Person, eventually},
        ssh::{self, Ssh},
    },
};
use serde_json::{Value, json};

fn version(service: &Installed, who: &Person, app: &Value) -> Value {
    let params = json!({"appId": app, "functionName": "version"});
    service.call(Some(who), "svc_runCloudFunction", params).ok()
}

#[test]
fn a_repository_is_built_and_serves() {
    let test = "a_repository_is_built_and_serves";
    let Some(engine) = engine(test) else { return };
    if !requires::programs(test, &["git", "python3"]) {
        return;
    }
    let git = Git::serve();
    let service = engine.service(&[("SVC_GIT_PRIVATE_HOSTS", &git.host)]);
    let (ada, _, instance) = backend(&service);
    let app = &instance["appId"];
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let trigger = |source: Value| {
        let params = json!({"appId": app, "source": {"git": source}});
        call("triggerDeployment", params).ok()
    };
    let first = git.commit_version(engine, "one");
    let made = trigger(json!({"url": git.url}));
    // The log can be read while it is written, and it ends.
    let (mut lines, mut cursor) = (Vec::new(), Value::Null);
    eventually("the log ends", || {
        let params = match &cursor {
            Value::Null => json!({"deploymentId": made["id"]}),
            cursor => json!({"deploymentId": made["id"], "cursor": cursor}),
        };
        let page = call("getDeploymentLogs", params).ok();
        let texts = page["lines"].as_array().unwrap().iter();
        lines.extend(texts.map(|line| line["text"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].clone();
        page["done"] == true
    });
    let live = deployed(&service, &ada, &made);
    assert_eq!(live["state"], "live", "{live}");
    assert_eq!(version(&service, &ada, app), "one");
    assert!(lines.contains(&format!("building commit {first}")), "{lines:#?}");
    let whole = lines.len();
    lines.dedup();
    assert!(lines.iter().any(|line| line.starts_with("STEP 2/")) && lines.len() == whole);

    // Deploys a branch, then rolls back to the first version without a build.
    git.run(&["checkout", "--quiet", "-b", "next"]);
    git.commit_version(engine, "two");
    let second = deployed(&service, &ada, &trigger(json!({"url": git.url, "ref": "next"})));
    assert_eq!(second["state"], "live", "{second}");
    assert_eq!(version(&service, &ada, app), "two");
    let back = call("rollbackDeployment", json!({"appId": app})).ok();
    let back = deployed(&service, &ada, &back);
    assert_eq!(
        (&back["imageRef"], version(&service, &ada, app)),
        (&live["imageRef"], json!("one"))
    );

    // A failed build says why, and the live version keeps serving.
    let base = engine.base("toolbox");
    let id = docker(&["inspect", "--format", "{{.Id}}", &engine.images["toolbox"]]);
    let id = id.trim_start_matches("sha256:");
    let metadata = r#"bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128
printf "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n" >&3
head -n 1 <&3
exit 8'"#;
    git.commit(&[
        ("broken/Dockerfile", format!("FROM {base}\nRUN exit 7\n")),
        // What a step asks for behind the walls is refused, and the log says so.
        ("walls/Dockerfile", format!("FROM {base}\nRUN <<END\n{metadata}\nEND\n")),
        // Images that only this machine has belong to others, so builds can use neither their names
        // nor their ids.
        ("name/Dockerfile", format!("FROM {}\n", engine.images["toolbox"])),
        ("id/Dockerfile", format!("FROM {id}\n")),
    ]);
    for (source, why) in [
        (json!({"url": git.url, "ref": "nowhere"}), "no such branch, tag or commit"),
        (
            json!({"url": git.url, "ref": "next", "dockerfile": "none/Dockerfile"}),
            "none/Dockerfile",
        ),
        (json!({"url": git.url, "ref": "next", "dockerfile": "broken/Dockerfile"}), "exit 7"),
        (json!({"url": git.url, "ref": "next", "dockerfile": "walls/Dockerfile"}), "status 8"),
        (json!({"url": git.url, "ref": "next", "dockerfile": "name/Dockerfile"}), ""),
        (json!({"url": git.url, "ref": "next", "dockerfile": "id/Dockerfile"}), ""),
        (json!({"url": "https://localhost:1/app.git"}), "not on the public internet"),
        (json!({"url": "http://git.example.com/app.git"}), "use https"),
    ] {
        let failed = deployed(&service, &ada, &trigger(source.clone()));
        assert_eq!(failed["state"], "failed", "{source}: {failed}");
        assert!(failed["error"].as_str().unwrap().contains(why), "{source}: {failed}");
        if why == "status 8" {
            let log = call("getDeploymentLogs", json!({"deploymentId": failed["id"]})).ok();
            let refused =
                "refused: 169.254.169.254:80: 169.254.169.254 is not on the public internet";
            assert!(log.to_string().contains(refused), "{log}");
        }
    }
    for url in
        ["file:///etc", "https://u:p@example.com/a.git", "ssh://example.com/a", "--upload-pack=x"]
    {
        let source = json!({"git": {"url": url}});
        let refused = call("triggerDeployment", json!({"appId": app, "source": source}));
        assert_eq!(refused.refusal(), (400, 142), "{url}");
    }
    assert_eq!(version(&service, &ada, app), "one");
    let listed = call("listDeployments", json!({"appId": app, "state": "failed"})).ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 8);

    // The connected repository is the default source, and only its token opens it.
    let default = json!({"appId": app, "source": {"git": {}}});
    assert_eq!(call("triggerDeployment", default).refusal(), (400, 142));
    git.set("token", "s3cret");
    let failed = deployed(&service, &ada, &trigger(json!({"url": git.url})));
    assert!(failed["error"].as_str().unwrap().contains("is private"), "{failed}");
    let repository = json!({"appId": app, "url": git.url, "branch": "next", "token": "s3cret"});
    call("svc_connectRepository", repository).ok();
    let third = deployed(&service, &ada, &trigger(json!({})));
    assert_eq!(third["state"], "live", "{third}");
    assert_eq!(version(&service, &ada, app), "two");
    assert_eq!(third["source"], json!({"git": {"url": git.url, "ref": "next"}}));
}

#[test]
fn a_version_of_the_template_brings_all_that_it_says() {
    let test = "a_version_of_the_template_brings_all_that_it_says";
    let Some(engine) = engine(test) else { return };
    let service = engine.service(&[]);
    let server = json!({"role": "server", "image": "web-server", "port": 8080,
        "healthCheck": {"http": "/health"}});
    let template = template(&service, engine, json!([server]));
    let admin = service.administrator();
    let known = service.call(None, "getTemplate", json!({"templateId": template})).ok();
    let mut server = known["versions"][0]["services"][0].clone();
    server["env"] = json!({"WORDS": "the second", "TOKEN": "${secret.later}"});
    let second = json!({"templateId": template, "version": "2.0.0", "services": [server]});
    service.call(Some(&admin), "addTemplateDockerVersion", second).ok();

    let (ada, _, made) =
        made(&service, "svc_createBackendInstance", json!({"templateId": template}));
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let (id, app) = (&made["id"], &made["appId"]);
    let running = until(&service, &ada, id, &["running", "failed"]);
    assert_eq!(
        (&running["state"], &running["templateVersion"]),
        (&json!("running"), &json!("1.0.0"))
    );
    let says = || {
        let logs = call("svc_getInstanceLogs", json!({"appId": app, "tail": 1})).ok();
        logs["lines"][0]["text"].as_str().unwrap().to_owned()
    };
    let deploy = |version: &str| {
        let params = json!({"appId": app, "source": {"templateVersion": version}});
        deployed(&service, &ada, &call("triggerDeployment", params).ok())
    };
    assert_eq!(deploy("1.0.0")["state"], "live");
    assert!(!says().contains("the second"));
    assert_eq!(deploy("2.0.0")["state"], "live");
    let changed = until(&service, &ada, id, &["running"]);
    assert_eq!(changed["templateVersion"], "2.0.0");
    assert!(says().contains("the second"), "{}", says());
    let secrets = call("svc_getInstanceSecrets", json!({"appId": app})).ok();
    assert!(secrets["secrets"]["later"].as_str().is_some_and(|secret| secret.len() >= 32));
    let back = call("rollbackDeployment", json!({"appId": app})).ok();
    assert_eq!(deployed(&service, &ada, &back)["state"], "live");
    assert_eq!(until(&service, &ada, id, &["running"])["templateVersion"], "1.0.0");
    assert!(!says().contains("the second"));

    // A second rollback goes to the version that the instance was created with, and a third one is
    // refused.
    let created = call("rollbackDeployment", json!({"appId": app})).ok();
    assert_eq!(created["source"], json!({"templateVersion": "1.0.0"}), "{created}");
    assert_eq!(deployed(&service, &ada, &created)["state"], "live");
    assert_eq!(call("rollbackDeployment", json!({"appId": app})).refusal(), (409, 119));
    // A rollback can name a version that was rolled back.
    let list = |params: Value| call("listDeployments", params).ok()["items"].clone();
    let all = list(json!({"appId": app, "target": "backend"}));
    let states: Vec<&Value> = all.as_array().unwrap().iter().map(|d| &d["state"]).collect();
    assert_eq!(states, ["live", "rolledBack", "rolledBack", "superseded"], "{all:#}");
    assert_eq!(list(json!({"appId": app, "target": "marketServer"})), json!([]));
    let again = json!({"appId": app, "toDeploymentId": all[2]["id"]});
    let again = deployed(&service, &ada, &call("rollbackDeployment", again).ok());
    assert_eq!(again["state"], "live");
    assert!(says().contains("the second"), "{}", says());
    let serves = json!({"appId": app, "toDeploymentId": again["id"]});
    assert_eq!(call("rollbackDeployment", serves).refusal(), (409, 119));

    let stopped = call("svc_stopBackendInstance", json!({"instanceId": id, "wait": true})).ok();
    assert_eq!(stopped["state"], "stopped");
    let params = json!({"appId": app, "source": {"templateVersion": "2.0.0"}});
    let refused = call("triggerDeployment", params);
    assert_eq!(refused.refusal(), (409, 119));
    assert!(refused.body["error"].as_str().unwrap().contains("start it"), "{}", refused.body);
}

#[test]
fn the_connected_repository_is_deployed_over_ssh() {
    let test = "the_connected_repository_is_deployed_over_ssh";
    let Some(engine) = engine(test) else { return };
    if !requires::programs(test, &["git", "python3"]) || !requires::programs(test, &ssh::PROGRAMS) {
        return;
    }
    let (git, ssh) = (Git::serve(), Ssh::start());
    let service = engine.service(&[("SVC_GIT_PRIVATE_HOSTS", &ssh.host)]);
    let (ada, _, instance) = backend(&service);
    let app = &instance["appId"];
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let trigger =
        |source: Value| call("triggerDeployment", json!({"appId": app, "source": {"git": source}}));
    git.commit_version(engine, "over ssh");
    let url = ssh.url(&git);
    let refused = trigger(json!({"url": url}));
    assert!(refused.body.to_string().contains("no deploy key"), "{}", refused.body);
    let told = call("svc_connectRepository", json!({"appId": app, "url": url})).ok();
    ssh.allow(&[told["deployKey"].as_str().unwrap()]);
    let live = deployed(&service, &ada, &trigger(json!({})).ok());
    assert_eq!(live["state"], "live", "{live}");
    assert_eq!(version(&service, &ada, app), "over ssh");
}

#[test]
fn an_image_is_built_pushed_and_used() {
    let test = "an_image_is_built_pushed_and_used";
    let Some(engine) = engine(test) else { return };
    if !requires::programs(test, &["git", "python3"]) {
        return;
    }
    let git = Git::serve();
    let mut service = engine.service(&[("SVC_GIT_PRIVATE_HOSTS", &git.host)]);
    let (ada, _, instance) = backend(&service);
    let app = &instance["appId"];
    let admin = service.administrator();
    let call = |function: &str, params: Value| service.call(Some(&admin), function, params);
    let repository = format!("{}/built", engine.registry);
    let image =
        call("registerDockerImage", json!({"name": "built", "repository": repository})).ok();
    let build = |version: &str, dockerfile: &str| {
        let source = json!({"git": {"url": git.url}, "dockerfile": dockerfile, "buildArgs": {"GREETING": "hello"}});
        call(
            "triggerDockerBuild",
            json!({"imageId": image["id"], "version": version, "source": source}),
        )
    };
    let status = |job: &Value| call("getBuildJobStatus", json!({"jobId": job["id"]})).ok();
    let ended = |job: &Value| {
        let mut found = Value::Null;
        eventually("the build ends", || {
            found = status(job);
            ["succeeded", "failed", "cancelled"].contains(&found["state"].as_str().unwrap())
        });
        found
    };
    git.commit_version(engine, "built");
    let from = engine.base("toolbox");
    git.commit(&[(
        "slow/Dockerfile",
        format!("FROM {from}\nARG GREETING\nRUN seq 200; echo $GREETING; sleep 300\n"),
    )]);
    let job = build("1.0.0", "Dockerfile").ok();
    let done = ended(&job);
    assert_eq!((&done["state"], &done["progress"]), (&json!("succeeded"), &json!(100)), "{done}");
    let known = service.call(None, "getDockerImage", json!({"name": "built"})).ok();
    assert_eq!(known["versions"][0]["digest"], done["digest"], "{known}");
    assert_eq!(build("1.0.0", "Dockerfile").refusal(), (409, 137));
    // A digest alone is enough, and must be in the registry.
    let by_digest = |digest: &Value| {
        let version = json!({"imageId": image["id"], "version": "pinned", "digest": digest});
        call("addDockerImageVersion", version)
    };
    let refused = by_digest(&json!(format!("sha256:{}", "0".repeat(64))));
    assert_eq!(refused.refusal(), (400, 142), "{}", refused.body);
    assert_eq!(refused.body["details"][0]["field"], "digest", "{}", refused.body);
    let pinned = by_digest(&done["digest"]).ok()["versions"][1].clone();
    assert_eq!((&pinned["tag"], &pinned["digest"]), (&json!(null), &done["digest"]));

    let slow = build("2.0.0", "slow/Dockerfile").ok();
    eventually("it says what it was given", || {
        let said = status(&slow);
        said["log_tail"].is_null() && said["logTail"].as_array().unwrap().contains(&json!("hello"))
    });
    assert_eq!(build("2.0.0", "Dockerfile").refusal(), (409, 137), "one build of a version");
    // The tail no longer holds the third of three steps, but the whole log can be read.
    assert_eq!(status(&slow)["progress"], 60, "{}", status(&slow));
    let listed = call("listBuildJobs", json!({"state": "building"})).ok();
    let listed = listed["items"].as_array().unwrap().iter().map(|j| (&j["id"], &j["progress"]));
    assert_eq!(listed.collect::<Vec<_>>(), [(&slow["id"], &json!(60))]);
    let logs = call("getBuildJobLogs", json!({"jobId": slow["id"]})).ok();
    let said: Vec<&str> =
        logs["lines"].as_array().unwrap().iter().map(|l| l["text"].as_str().unwrap()).collect();
    assert!(said.iter().any(|line| line.starts_with("STEP 1/")) && said.contains(&"hello"));
    assert_eq!(logs["done"], false);
    let rest = json!({"jobId": slow["id"], "cursor": logs["nextCursor"]});
    assert_eq!(call("getBuildJobLogs", rest).ok()["lines"], json!([]));
    call("cancelDockerBuild", json!({"jobId": slow["id"]})).ok();
    assert_eq!(ended(&slow)["state"], "cancelled");
    let failed = ended(&build("3.0.0", "nowhere/Dockerfile").ok());
    assert!(failed["error"].as_str().unwrap().contains("nowhere/Dockerfile"), "{failed}");
    let jobs = call("listBuildJobs", json!({"imageId": image["id"]})).ok();
    assert_eq!(jobs["items"].as_array().unwrap().len(), 3);

    let source = json!({"imageId": image["id"], "version": "1.0.0"});
    let params = json!({"appId": app, "source": source});
    let made = service.call(Some(&ada), "triggerDeployment", params).ok();
    assert_eq!(deployed(&service, &ada, &made)["state"], "live");
    assert_eq!(version(&service, &ada, app), "built");

    // How long builds and deployments may take, and how much of a log is in one reply, are settings.
    service.stop();
    for (setting, least) in [
        ("SVC_IMAGE_BUILD_LIMIT", "1"),
        ("SVC_DEPLOYMENT_LIMIT", "1"),
        ("SVC_MAX_LOG_BYTES", "1024"),
    ] {
        service.set(setting, least);
    }
    service.boot();
    let call = |function: &str, params: Value| service.call(Some(&admin), function, params);
    let source = json!({"git": {"url": git.url}, "dockerfile": "slow/Dockerfile"});
    let params = json!({"imageId": image["id"], "version": "4.0.0", "source": source});
    let slow = call("triggerDockerBuild", params).ok();
    eventually("the build takes too long", || {
        let job = call("getBuildJobStatus", json!({"jobId": slow["id"]})).ok();
        job["state"] == "failed" && job["error"].as_str().unwrap().contains("within a second")
    });
    let source = json!({"git": {"url": git.url, "dockerfile": "slow/Dockerfile"}});
    let params = json!({"appId": app, "source": source});
    let made = service.call(Some(&ada), "triggerDeployment", params).ok();
    let late = deployed(&service, &ada, &made);
    assert_eq!(late["state"], "failed", "{late}");
    assert!(late["error"].as_str().unwrap().contains("within a second"), "{late}");
    eventually("a log of more than the limit is cut", || {
        let asked = json!({"appId": app, "tail": 5000});
        let logs = service.call(Some(&ada), "svc_getInstanceLogs", asked).ok();
        let lines = logs["lines"].as_array().unwrap().iter();
        let bytes: usize = lines.map(|line| line["text"].as_str().unwrap().len()).sum();
        assert!(bytes <= 1024, "{bytes} bytes");
        logs["truncated"] == true
    });
}
