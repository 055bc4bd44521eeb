//! Backup, restore and check by an operator.

use crate::support::service::{Person, Service};
use data_encoding::HEXLOWER;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Output,
};

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

/// The files below a folder that others than their user may read or write.
fn shared_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.metadata().unwrap().permissions().mode() & 0o077 != 0 {
            found.push(entry.path());
        }
        if entry.file_type().unwrap().is_dir() {
            found.extend(shared_files(&entry.path()));
        }
    }
    found
}

#[test]
fn what_the_service_writes_only_its_user_reads() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    service.upload(&ada, &app, "sample.apk", "1.4.2");
    service.stop();
    assert!(service.admin(&["backup", "data/run/b.gz"]).status.success());
    assert_eq!(shared_files(&service.data()), Vec::<PathBuf>::new());
}

#[test]
fn sixteen_callers_with_the_token_make_one_first_administrator() {
    let mut service = Service::start();
    let token = service.first_start_token().unwrap();
    let params = |i: usize, token: &str| json!({"token": token, "email": format!("a{i}@example.com"), "password": "correct horse"});
    let make =
        |i, token: &str| service.call(None, "svc_createFirstAdministrator", params(i, token));
    assert_eq!(make(0, "svc_fs_wrong").status, 401);
    // People who register before change nothing.
    service.register_free("early");
    service.stop();
    service.boot();
    assert_eq!(service.first_start_token(), Some(token.clone()));
    let make =
        |i, token: &str| service.call(None, "svc_createFirstAdministrator", params(i, token));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..16)
            .map(|i| {
                scope.spawn({
                    let make = &make;
                    let token = &token;
                    move || make(i, token).status
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 15, "{statuses:?}");
    // From the next start on, nothing asks for one.
    service.stop();
    service.boot();
    assert_eq!(service.first_start_token(), None);
    let again = service.call(None, "svc_createFirstAdministrator", params(20, &token));
    assert_eq!(again.status, 401);
}

#[test]
fn a_backup_brings_everything_back() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();

    // The commands refuse the data of a running server.
    for args in [&["backup", "b.gz"][..], &["check"]] {
        let refused = service.admin(args);
        assert_eq!(refused.status.code(), Some(1));
        assert!(said(&refused).contains("in use by another svc"), "{}", said(&refused));
    }
    let second = service.program(&["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(!second.status.success() && said(&second).contains("in use"), "{}", said(&second));

    service.stop();
    let backup = service.admin(&["backup", "b.gz"]);
    assert!(backup.status.success(), "{}", said(&backup));
    assert!(said(&service.admin(&["backup", "b.gz"])).contains("there already"));
    let into = service.admin(&["restore", "b.gz"]);
    assert!(
        !into.status.success() && said(&into).contains("new data directory"),
        "{}",
        said(&into)
    );

    // A truncated backup leaves no store behind.
    let bytes = std::fs::read(service.home.join("b.gz")).unwrap();
    std::fs::write(service.home.join("cut.gz"), &bytes[..bytes.len() / 2]).unwrap();
    service.set_store_aside();
    let cut = service.admin(&["restore", "cut.gz"]);
    assert!(!cut.status.success() && !service.data().join("store").exists(), "{}", said(&cut));

    let restored = service.admin(&["restore", "b.gz"]);
    assert!(restored.status.success(), "{}", said(&restored));
    service.check();
    service.boot();
    let found = service.call(Some(&ada), "svc_getProject", json!({"projectId": project["id"]}));
    assert_eq!(found.ok(), project, "the session is good, and the project is there");
}

#[test]
fn the_platform_is_given_and_taken_where_its_data_lies() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let watch =
        |service: &Service| service.call(Some(&ada), "svc_admin_getActors", json!({})).status;
    assert_eq!(watch(&service), 403);
    let refused = service.admin(&["superadmin", &ada.email]);
    assert!(!refused.status.success() && said(&refused).contains("in use"), "{}", said(&refused));
    service.stop();
    let unknown = service.admin(&["superadmin", "bob@example.com"]);
    assert!(!unknown.status.success() && said(&unknown).contains("register"), "{}", said(&unknown));
    for (args, status) in [
        (&["superadmin", "ADA@example.com"][..], 200),
        (&["superadmin", &ada.email, "--revoke"], 403),
    ] {
        let done = service.admin(args);
        assert!(done.status.success() && said(&done).contains(&ada.id), "{}", said(&done));
        service.check();
        service.boot();
        assert_eq!(watch(&service), status);
        service.stop();
    }
}

/// The line of the log after a start that fails.
fn refused(service: &Service) -> String {
    let ended = service.command(&[]).stderr(std::process::Stdio::piped()).output().unwrap();
    assert!(!ended.status.success());
    said(&ended)
}

/// Writes a backup again, with one record changed.
fn change_record(backup: &Path, key: &str, change: impl Fn(&mut Value)) {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(backup).unwrap()).read_to_string(&mut text).unwrap();
    let key = format!("{} ", HEXLOWER.encode(key.as_bytes()));
    let lines = text.lines().map(|line| match line.strip_prefix(&key) {
        None => line.to_owned(),
        Some(row) => {
            let row = HEXLOWER.decode(row.as_bytes()).unwrap();
            let (header, content) = row.split_at(10);
            let mut content = serde_json::from_slice(content).unwrap();
            change(&mut content);
            let row = [header, content.to_string().as_bytes()].concat();
            format!("{key}{}", HEXLOWER.encode(&row))
        }
    });
    let text: Vec<String> = lines.collect();
    let mut file = GzEncoder::new(std::fs::File::create(backup).unwrap(), Compression::fast());
    file.write_all((text.join("\n") + "\n").as_bytes()).unwrap();
    file.finish().unwrap();
}

#[test]
fn a_store_starts_only_with_its_own_keys_and_with_no_older_program() {
    let mut service = Service::start();
    let ada = service.register("ada");
    service.stop();
    let keys = service.data().join("secrets/keys.json");
    let own = std::fs::read(&keys).unwrap();

    // A store that was restored on a new machine, without its key file.
    std::fs::remove_file(&keys).unwrap();
    let told = refused(&service);
    assert!(told.contains("secrets/keys.json is missing"), "{told}");
    assert!(!keys.exists(), "no new keys are made");

    for (field, name) in [
        ("applicationId", "the application id"),
        ("signingKey", "the signing key"),
        ("encryptionKey", "the encryption key"),
    ] {
        let mut other: Value = serde_json::from_slice(&own).unwrap();
        other[field] = "another".repeat(10).into();
        std::fs::write(&keys, other.to_string()).unwrap();
        let told = refused(&service);
        assert!(told.contains(&format!("{name} of the key file is not")), "{told}");
    }
    std::fs::write(&keys, own).unwrap();

    // A later version of the program wrote the store.
    let backup = service.home.join("later.gz");
    assert!(service.admin(&["backup", "later.gz"]).status.success());
    change_record(&backup, "installation/this", |record| record["shape"] = 1_000.into());
    let aside = service.set_store_aside();
    assert!(service.admin(&["restore", "later.gz"]).status.success());
    let told = refused(&service);
    assert!(told.contains("is older: start that version or a newer one"), "{told}");

    service.put_back(aside);
    service.boot();
    assert_eq!(service.call(Some(&ada), "getCurrentUser", json!({})).status, 200);
}

/// A store with a record of every kind.
fn fill(service: &Service) {
    let ada = service.register("ada");
    let bob = service.register("bob");
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params).ok();
    let organization = call("createOrganization", json!({"name": "Shop"}))["id"].clone();
    let invite = |email: &str| {
        let params = json!({"organizationId": organization, "email": email, "role": "client"});
        call("inviteMember", params)["acceptToken"].clone()
    };
    invite("eve@example.com");
    let token = json!({"token": invite(&bob.email)});
    service.call(Some(&bob), "acceptInvitation", token).ok();
    let (_, app) = service.project_with_app(&ada, Some(&organization));
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2");
    let open =
        json!({"appId": app, "platform": "android", "fileName": "b.apk", "version": "2.0.0"});
    assert_eq!(service.post(Some(&ada), "upload-url", &open).status, 201);
    let draft = json!({"appId": app, "artifactIds": [artifact["id"]], "version": "1.4.2",
        "channel": "production"});
    let release = service.try_call(Some(&ada), "svc_createRelease", draft, Some("once"));
    let release = release.unwrap().ok()["id"].clone();
    call("svc_publishRelease", json!({"releaseId": release, "targets": ["ota"]}));
    let params = json!({"name": "ci", "scopes": ["artifact:upload"], "appId": app});
    let ci = service.with_token(&ada, params);
    assert_eq!(service.post(Some(&ci), "upload-url", &open).status, 201);
    service.call(None, "requestPasswordReset", json!({"email": bob.email})).ok();
    // Instances wait for a container engine, which does not exist here.
    let backend = json!({"projectId": call("getApp", json!({"appId": app}))["projectId"],
        "appId": app, "name": "Backend", "env": {"GREETING": "hello"}});
    call("svc_createBackendInstance", backend);
    call("svc_scheduleBackups", json!({"appId": app, "cron": "30 3 * * *", "verify": true}));
    let source = json!({"templateVersion": "1.0.2"});
    call("triggerDeployment", json!({"appId": app, "source": source}));
    let image = call("getDockerImage", json!({"name": "parse-server"}))["id"].clone();
    let git = json!({"git": {"url": "https://git.example.com/app.git"}});
    let build = json!({"imageId": image, "version": "10.0.0", "source": git});
    service.call(Some(&service.administrator()), "triggerDockerBuild", build).ok();
}

fn stores() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/stores")
}

/// This version reads the stores of earlier versions. When the shape of a record changes, its
/// `SCHEMA` changes too, and `NEW_STORE=<name> cargo test … a_store_of_every` adds a store of the
/// new shape. Existing stores are never changed.
#[test]
fn a_store_of_every_earlier_shape_is_read() {
    if let Ok(name) = std::env::var("NEW_STORE") {
        let mut service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
        fill(&service);
        service.stop();
        let file = stores().join(name).with_extension("svc.gz");
        let written = service.admin(&["backup", file.to_str().unwrap()]);
        assert!(written.status.success(), "{}", said(&written));
    }
    let mut read = 0;
    for store in std::fs::read_dir(stores()).unwrap().map(|entry| entry.unwrap().path()) {
        if store.extension().is_none_or(|extension| extension != "gz") {
            continue;
        }
        let mut service = Service::start();
        service.stop();
        service.set_store_aside();
        // A backup does not hold the bytes of artifacts, which may also be in a bucket.
        let _ = std::fs::remove_dir_all(service.data().join("artifacts"));
        let restored = service.admin(&["restore", store.to_str().unwrap()]);
        assert!(restored.status.success(), "{}", said(&restored));
        service.check();
        service.boot();
        let nobody =
            Person { id: String::new(), email: "ada@example.com".into(), token: String::new() };
        let ada = service.sign_in(&nobody, "correct horse");
        let call = |function: &str, params: Value| service.call(Some(&ada), function, params).ok();
        let project = call("svc_getProjects", json!({}))["items"][0]["id"].clone();
        let app = call("listApps", json!({"projectId": project}))["items"][0]["id"].clone();
        let of_app = json!({"appId": app});
        assert_eq!(call("svc_getArtifacts", of_app.clone())["items"].as_array().unwrap().len(), 3);
        let verified = json!({"appId": app, "state": "verified"});
        assert_eq!(call("svc_getArtifacts", verified)["items"].as_array().unwrap().len(), 1);
        let latest = json!({"appId": app, "channel": "production", "platform": "android"});
        let latest = service.call(None, "svc_getLatestRelease", latest).ok();
        assert_eq!(latest["release"]["version"], "1.4.2", "{latest}");
        let tokens = call("svc_getDeployTokens", of_app.clone());
        assert!(tokens["items"][0]["lastUsedAt"].is_string(), "{tokens}");
        // Stores have instances from the second shape on.
        if !store.ends_with("1.svc.gz") {
            let instances = call("svc_getBackendInstances", json!({"projectId": project}));
            let instance = &instances["items"][0];
            // The store does not hold the key of the sealed value.
            assert_eq!(instance["env"], json!({"GREETING": "••••••••"}), "{instance}");
            let schedule = call("svc_getBackupSchedule", of_app.clone());
            assert_eq!(
                (&schedule["cron"], &schedule["verify"]),
                (&json!("30 3 * * *"), &json!(true))
            );
            // New instances get the catalogue's new version; those of before keep theirs.
            assert_eq!(instance["templateVersion"], "1.0.0", "{instance}");
            let template = call("getTemplate", json!({"templateId": instance["templateId"]}));
            assert_eq!(template["currentVersion"], "1.0.2", "{template}");
            let deployments = call("listDeployments", of_app);
            assert_eq!(deployments["items"][0]["instanceId"], instance["id"], "{deployments}");
        }
        // Its store names artifacts whose bytes nobody has.
        service.kill();
        read += 1;
    }
    assert!(read > 0, "no store was read");
}
