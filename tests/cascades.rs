//! A deleted resource is hidden from everyone at once, and soon removed from the disk, also after
//! crashes.

use crate::support::service::{Person, Service, eventually};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use std::{io::Read, path::Path};

/// A project with a child of every kind.
struct Tree {
    project: Value,
    app: Value,
    artifact: Value,
    release: Value,
    token: Person,
    download: String,
}

fn plant(service: &Service, who: &Person, organization: &Value) -> Tree {
    let (project, app) = service.project_with_app(who, Some(organization));
    let artifact = service.upload(who, &app, "sample.apk", "1.4.2")["id"].clone();
    let call = |function: &str, params: Value| service.call(Some(who), function, params).ok();
    let release = json!({"appId": app, "artifactIds": [artifact], "version": "1.4.2", "channel": "production"});
    let release = call("svc_createRelease", release)["id"].clone();
    call("svc_publishRelease", json!({"releaseId": release, "targets": ["ota"]}));
    let scopes = ["artifact:upload", "release:create", "release:publish"];
    let token = service.with_token(who, json!({"name": "ci", "appId": app, "scopes": scopes}));
    let download = call("svc_getArtifactDownloadUrl", json!({"artifactId": artifact}));
    let download = download["url"].as_str().unwrap().to_owned();
    Tree { project, app, artifact, release, token, download }
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| {
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| if path.is_dir() { files(&path) } else { 1 })
            .sum()
    })
}

fn assert_gone(service: &Service, who: &Person, tree: &Tree) {
    for (function, params) in [
        ("svc_getProject", json!({"projectId": tree.project})),
        ("svc_updateProject", json!({"projectId": tree.project, "name": "Late"})),
        ("svc_deleteProject", json!({"projectId": tree.project})),
        ("createApp", json!({"projectId": tree.project, "name": "Late"})),
        ("listApps", json!({"projectId": tree.project})),
        ("getApp", json!({"appId": tree.app})),
        (
            "svc_createDeployToken",
            json!({"name": "late", "appId": tree.app, "scopes": ["artifact:upload"]}),
        ),
        ("svc_getArtifact", json!({"artifactId": tree.artifact})),
        ("svc_getRelease", json!({"releaseId": tree.release})),
        ("svc_publishRelease", json!({"releaseId": tree.release, "targets": ["ota"]})),
        (
            "svc_getLatestRelease",
            json!({"appId": tree.app, "channel": "production", "platform": "android"}),
        ),
    ] {
        let refused = service.call(Some(who), function, params);
        assert_eq!(refused.refusal(), (404, 101), "{function}: {}", refused.body);
    }
    let downloaded = Service::answer(service.http.get(&tree.download).send().unwrap()).unwrap();
    assert_eq!(downloaded.refusal(), (404, 101), "its bytes are still served");
    let uploading = service.http.post(format!("{}/api/v1/artifacts/upload-url", service.url));
    let uploading = uploading.bearer_auth(&tree.token.token).json(
        &json!({"appId": tree.app, "platform": "android", "fileName": "a.apk", "version": "1"}),
    );
    let (status, code) = Service::answer(uploading.send().unwrap()).unwrap().refusal();
    assert!([(404, 101), (401, 119)].contains(&(status, code)), "{status} {code}");
}

fn await_removal(service: &Service, trees: &[Tree]) {
    eventually("the bytes are removed", || files(&service.data().join("artifacts")) == 0);
    for tree in trees {
        eventually("the token ends", || {
            let params = json!({"artifactId": tree.artifact});
            service.call(Some(&tree.token), "svc_getArtifact", params).refusal() == (401, 119)
        });
    }
}

/// The store has no row, index entry or claim of the deleted resources.
fn assert_no_rest(service: &mut Service) {
    service.stop();
    service.check();
    let backup = service.home.join("backup");
    let written = service.cli(&["admin", "backup", backup.to_str().unwrap()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let hex = |text: &str| HEXLOWER.encode(text.as_bytes());
    let mut rows = String::new();
    let packed = std::fs::File::open(backup).unwrap();
    flate2::read::MultiGzDecoder::new(packed).read_to_string(&mut rows).unwrap();
    assert!(rows.contains(&hex("account/")), "the index begins with the kind");
    for kind in ["project", "app", "artifact", "release", "token", "token-use", "hold", "current"] {
        let about = hex(&format!("{kind}/"));
        let left = rows.lines().find(|row| {
            let mut parts = row.split(' ');
            let (tree, key) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            tree == kind || ["index", "claims"].contains(&tree) && key.starts_with(&about)
        });
        assert_eq!(left, None, "something of a {kind} is left");
    }
}

#[test]
fn a_deleted_project_takes_everything_with_it() {
    let mut service = Service::start();
    let (ada, bob) = (service.register("ada"), service.register("bob"));
    let call =
        |who: &Person, function: &str, params: Value| service.call(Some(who), function, params);
    let acme = call(&ada, "createOrganization", json!({"name": "Acme"})).ok()["id"].clone();
    let invited = json!({"organizationId": acme, "email": bob.email, "role": "admin"});
    let token = call(&ada, "inviteMember", invited).ok()["acceptToken"].clone();
    call(&bob, "acceptInvitation", json!({"token": token})).ok();

    let trees = [plant(&service, &ada, &acme), plant(&service, &ada, &acme)];
    let [first, second] = &trees;
    // A pending upload, whose address is valid for an hour.
    let opened = service.http.post(format!("{}/api/v1/artifacts/upload-url", service.url));
    let opened = opened.bearer_auth(&first.token.token).json(
        &json!({"appId": first.app, "platform": "android", "fileName": "b.apk", "version": "2", "size": 1000}),
    );
    let opened = Service::answer(opened.send().unwrap()).unwrap().body["uploadUrl"].clone();
    let part = |range: &str, bytes: usize| {
        let put = service.http.put(opened.as_str().unwrap()).header("Content-Range", range);
        Service::answer(put.body(vec![0; bytes]).send().unwrap()).unwrap()
    };
    assert_eq!(part("bytes 0-499/1000", 500).status, 202);
    assert_eq!(
        (files(&service.data().join("artifacts")), files(&service.data().join("staging"))),
        (2, 1)
    );

    let deleted = call(&ada, "svc_deleteProject", json!({"projectId": first.project})).ok();
    assert_eq!(
        deleted["deleted"],
        json!({
            "apps": 1, "instances": 0, "backups": 0, "deployments": 0, "builds": 0, "artifacts": 2,
            "releases": 1, "credentials": 0, "deployTokens": 1, "checkouts": 0, "subscriptions": 0,
        })
    );
    let admin = service.administrator();
    for who in [&ada, &bob, &admin] {
        assert_gone(&service, who, first);
    }
    assert_eq!(part("bytes 500-999/1000", 500).refusal(), (404, 101));
    eventually("the bytes are removed", || {
        files(&service.data().join("artifacts")) == 1 && files(&service.data().join("staging")) == 0
    });
    assert_eq!(
        call(&ada, "getApp", json!({"appId": second.app})).status,
        200,
        "the other project stays"
    );
    assert_eq!(service.http.get(&second.download).send().unwrap().status(), 200);

    call(&ada, "deleteOrganization", json!({"organizationId": acme, "cascade": true})).ok();
    for who in [&ada, &bob, &admin] {
        assert_gone(&service, who, second);
    }
    await_removal(&service, &trees);
    let reads = || call(&ada, "getCurrentUser", json!({})).ok()["role"] == "client";
    eventually("the organization is gone", reads);
    assert_no_rest(&mut service);
}

#[test]
fn a_deletion_that_a_kill_interrupts_goes_on() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let acme =
        service.call(Some(&ada), "createOrganization", json!({"name": "Acme"})).ok()["id"].clone();
    for round in 0..10 {
        let tree = plant(&service, &ada, &acme);
        let delete =
            || service.call(Some(&ada), "svc_deleteProject", json!({"projectId": tree.project}));
        if round % 2 == 0 {
            delete().ok();
        } else {
            // The app is deleted first, so that the project finds its removal under way.
            service.call(Some(&ada), "deleteApp", json!({"appId": tree.app})).ok();
            assert_eq!(delete().ok()["deleted"]["apps"].as_u64().map(|n| n <= 1), Some(true));
        }
        std::thread::sleep(std::time::Duration::from_millis(round * 4));
        service.kill();
        service.boot();
        assert_gone(&service, &ada, &tree);
        await_removal(&service, &[tree]);
    }
    eventually("no project is left", || {
        let empty = service.call(Some(&ada), "deleteOrganization", json!({"organizationId": acme}));
        assert!(empty.status == 200 || empty.refusal() == (409, 119), "{empty:?}");
        empty.status == 200
    });
    assert_no_rest(&mut service);
}

#[test]
fn a_project_is_never_left_behind_by_its_organization() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let (mut stayed, mut went) = (0, 0);
    for round in 0..24_u64 {
        let acme = call("createOrganization", json!({"name": "Acme"})).ok()["id"].clone();
        let cascade = round % 3 == 0;
        let end = || {
            let params = json!({"organizationId": acme, "cascade": cascade});
            let once = format!("end {round}");
            service.try_call(Some(&ada), "deleteOrganization", params, Some(&once)).unwrap()
        };
        let (ended, made) = std::thread::scope(|threads| {
            let ending = threads.spawn(|| {
                std::thread::sleep(std::time::Duration::from_micros(round * 400));
                end()
            });
            let made: Vec<_> = (0..4)
                .map(|_| call("svc_createProject", json!({"name": "Shop", "organizationId": acme})))
                .filter(|answer| answer.status == 200 || answer.refusal() != (404, 101))
                .map(|answer| answer.ok()["id"].clone())
                .collect();
            (ending.join().unwrap(), made)
        });
        let repeated = end();
        assert_eq!((repeated.status, &repeated.body), (ended.status, &ended.body), "round {round}");
        let read = call("getOrganization", json!({"organizationId": acme}));
        if ended.status == 200 {
            went += 1;
            assert_eq!(read.refusal(), (404, 101), "round {round}");
            for project in &made {
                let read = call("svc_getProject", json!({"projectId": project}));
                assert_eq!(read.refusal(), (404, 101), "round {round}: {ended:?}");
            }
        } else {
            stayed += 1;
            assert_eq!(ended.refusal(), (409, 119));
            assert_eq!(read.status, 200);
            for project in &made {
                assert_eq!(call("svc_getProject", json!({"projectId": project})).status, 200);
            }
        }
    }
    assert!(stayed > 0 && went > 0, "{stayed} stayed, {went} went: the race was not run");
    service.stop();
    service.check();
}
