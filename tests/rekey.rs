//! `svc admin rekey`: every secret is sealed with a new key, and nothing is lost on the way.

use crate::support::{
    credentials::said,
    git::Git,
    load::together,
    requires,
    service::{Person, Service},
};
use actors::installation::fingerprint;
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::{process::Stdio, time::Duration};

const TOKEN: &str = "svc-s3cret-t0ken";

/// A service with a secret of each kind: of an instance, a repository and a credential.
struct World {
    // Ends first, while what it talks to is there.
    service: Service,
    _git: Git,
    ada: Person,
    app: Value,
    /// What the instance's secrets were at the start.
    secrets: Value,
    credential: Value,
}

impl World {
    fn new(test: &str) -> Option<World> {
        if !requires::programs(test, &["git", "python3"]) {
            return None;
        }
        let git = Git::serve();
        git.commit(&[("README.md", "an app".into())]);
        git.set("token", TOKEN);
        let service = Service::start_with(&[("SVC_GIT_PRIVATE_HOSTS", &git.host)]);
        let ada = service.register("ada");
        let (project, app) = service.project_with_app(&ada, None);
        let call = |function: &str, params: Value| service.call(Some(&ada), function, params).ok();
        let backend = json!({"projectId": project, "appId": app, "name": "Backend",
            "env": {"GREETING": "hello"}});
        call("svc_createBackendInstance", backend);
        let secrets = call("svc_getInstanceSecrets", json!({"appId": app}));
        let connected =
            call("svc_connectRepository", json!({"appId": app, "url": git.url, "token": TOKEN}));
        assert_eq!(connected["error"], Value::Null, "{connected}");
        let credential = call("svc_setCredential", token(&app, &git.host));
        let world = World { _git: git, service, ada, app, secrets, credential };
        assert_eq!(world.opened(), [true; 3]);
        Some(world)
    }

    /// Whether the secrets of the instance, of the repository and of the credential are opened.
    fn opened(&self) -> [bool; 3] {
        let call = |function: &str, params: Value| {
            let answer = self.service.call(Some(&self.ada), function, params);
            (answer.status == 200).then(|| answer.body["result"].clone())
        };
        let of_app = json!({"appId": self.app});
        let instance = call("svc_getInstanceSecrets", of_app.clone());
        let repository = call("svc_checkRepository", of_app);
        let checked = call("svc_checkCredential", json!({"credentialId": self.credential["id"]}));
        [
            instance.is_some_and(|secrets| secrets == self.secrets),
            repository.is_some_and(|repository| repository["error"].is_null()),
            checked.is_some_and(|checked| checked["check"]["ok"] == true),
        ]
    }

    fn keys(&self) -> Value {
        let file = std::fs::read(self.service.data().join("secrets/keys.json")).unwrap();
        serde_json::from_slice(&file).unwrap()
    }

    fn write_keys(&self, keys: &Value) {
        std::fs::write(self.service.data().join("secrets/keys.json"), keys.to_string()).unwrap();
    }

    fn succeeds(&self, args: &[&str]) -> String {
        let done = self.service.admin(args);
        assert!(done.status.success(), "{}", said(&done));
        said(&done)
    }
}

fn token(app: &Value, host: &str) -> Value {
    json!({"appId": app, "kind": "repositoryHost", "name": host,
        "data": BASE64.encode(TOKEN.as_bytes())})
}

#[test]
fn secrets_open_with_the_new_key_only() {
    let Some(mut world) = World::new("secrets_open_with_the_new_key_only") else { return };
    let refused = world.service.admin(&["rekey"]);
    assert!(!refused.status.success() && said(&refused).contains("in use"), "{}", said(&refused));
    world.service.stop();
    let old = world.keys();
    world.succeeds(&["backup", "before.gz"]);
    let told = world.succeeds(&["rekey"]);
    assert!(told.contains("sealed ") && !told.contains("sealed 0 "), "{told}");
    let new = world.keys();
    assert_ne!(new["encryptionKey"], old["encryptionKey"]);
    assert_eq!(new["olderEncryptionKeys"], Value::Null, "the old key is forgotten");
    for field in ["applicationId", "masterKey", "signingKey"] {
        assert_eq!(new[field], old[field]);
    }
    world.service.check();
    world.service.boot();
    assert_eq!(world.opened(), [true; 3]);

    // The old key opens nothing any more, so the server does not start with it.
    world.service.stop();
    world.write_keys(&old);
    let refused = world.service.command(&[]).stderr(Stdio::piped()).output().unwrap();
    assert!(
        said(&refused).contains("the encryption key of the key file is not"),
        "{}",
        said(&refused)
    );

    // A backup from before opens with the file from before.
    world.service.set_store_aside();
    world.succeeds(&["restore", "before.gz"]);
    world.service.boot();
    assert_eq!(world.opened(), [true; 3]);
}

#[test]
fn an_interrupted_run_goes_on() {
    let Some(mut world) = World::new("an_interrupted_run_goes_on") else { return };
    let apps: Vec<Value> =
        (0..4).map(|_| world.service.project_with_app(&world.ada, None).1).collect();
    together(16, |n| {
        for host in 0..12 {
            let params = token(&apps[n % 4], &format!("h{host}-{n}.example.com"));
            world.service.call(Some(&world.ada), "svc_setCredential", params).ok();
        }
    });
    world.service.stop();
    let old = world.keys();
    let mut rekey = world.service.program(&["admin", "rekey"]);
    rekey.stdout(Stdio::null());
    let mut rekey = || rekey.spawn().unwrap();
    let mut begun = rekey();
    while world.keys()["olderEncryptionKeys"].is_null() {
        assert!(begun.try_wait().unwrap().is_none(), "it ended without an older key");
    }
    begun.kill().unwrap();
    begun.wait().unwrap();
    let between = world.keys();
    assert_eq!(between["olderEncryptionKeys"], json!([old["encryptionKey"]]));

    // Until the command is given again, both keys open.
    world.service.boot();
    assert_eq!(world.opened(), [true; 3]);
    world.service.stop();

    // Each next run is killed a little later, until one comes to its end: it forgets the older key. A run
    // that is killed after that has ended, too, and another one would make another key.
    let ends_within = |time: u64| {
        let mut next = rekey();
        std::thread::sleep(Duration::from_millis(time));
        next.kill().unwrap();
        next.wait().unwrap();
        world.keys()["olderEncryptionKeys"].is_null()
    };
    assert!((0..5_000).map(|n| n * 2).any(ends_within));
    let after = world.keys();
    assert_eq!(after["encryptionKey"], between["encryptionKey"]);
    assert_eq!(after["olderEncryptionKeys"], Value::Null);
    world.service.check();
    world.service.boot();
    assert_eq!(world.opened(), [true; 3]);
}

#[test]
fn the_signing_key_and_the_master_key_are_renewed() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2")["id"].clone();
    let address = |service: &Service| {
        let params = json!({"artifactId": artifact});
        let given = service.call(Some(&ada), "svc_getArtifactDownloadUrl", params).ok();
        given["url"].as_str().unwrap().to_owned()
    };
    let downloads = |service: &Service, url: &str| service.http.get(url).send().unwrap().status();
    let overview = |service: &Service, master_key: &str| {
        let request = service.request(&service.http, "svc_admin_getActors", &json!({}));
        let answer = request.header("X-Backend-Master-Key", master_key).send().unwrap();
        Service::answer(answer).unwrap().status
    };
    let keys = |service: &Service| -> Value {
        let file = std::fs::read(service.data().join("secrets/keys.json")).unwrap();
        serde_json::from_slice(&file).unwrap()
    };
    let rekey = |service: &Service, options: &[&str]| {
        let done = service.admin(&[&["rekey"], options].concat());
        assert!(done.status.success(), "{}", said(&done));
        said(&done)
    };
    let (given, old, old_master) = (address(&service), keys(&service), service.master_key());
    assert_eq!((downloads(&service, &given).as_u16(), overview(&service, &old_master)), (200, 200));

    service.stop();
    let told = rekey(&service, &["--signing-key", "--master-key"]);
    for word in ["downloads", "svc_getRepositoryWebhook", "master key"] {
        assert!(told.contains(word) && !told.contains("sealed"), "{told}");
    }
    let new = keys(&service);
    assert_eq!(new.as_object().unwrap().len(), 4, "nothing of the old keys is left");
    for field in ["signingKey", "masterKey"] {
        assert_ne!(new[field], old[field]);
        assert!(!told.contains(new[field].as_str().unwrap()), "{told}");
    }
    for field in ["applicationId", "encryptionKey"] {
        assert_eq!(new[field], old[field]);
    }
    service.check();
    service.boot();
    assert_eq!(downloads(&service, &given).as_u16(), 401);
    assert_eq!(overview(&service, &old_master), 401);
    assert_eq!(overview(&service, &service.master_key()), 200);
    let given = address(&service);
    assert_eq!(downloads(&service, &given).as_u16(), 200, "the session stays, and signs anew");

    // Interrupted after the new key file and before the store knows it: the server starts with the
    // new key, and the command goes on, whatever it is asked for.
    service.stop();
    let file = service.data().join("secrets/keys.json");
    let mut between = keys(&service);
    between["signingKey"] = "s".repeat(64).into();
    std::fs::write(&file, between.to_string()).unwrap();
    let refused = service.command(&[]).stderr(Stdio::piped()).output().unwrap();
    assert!(
        said(&refused).contains("the signing key of the key file is not"),
        "{}",
        said(&refused)
    );
    between["olderSigningKey"] = fingerprint(new["signingKey"].as_str().unwrap()).into();
    std::fs::write(&file, between.to_string()).unwrap();
    service.boot();
    assert_eq!(downloads(&service, &given).as_u16(), 401);
    service.stop();
    let told = rekey(&service, &["--master-key"]);
    assert!(told.contains("signing key"), "{told}");
    assert_eq!(keys(&service)["signingKey"], between["signingKey"]);
    assert_eq!(keys(&service).as_object().unwrap().len(), 4);
    service.check();
    service.boot();
}

#[test]
fn a_lost_key_is_not_replaced_while_something_is_sealed() {
    let repository = json!({"token": TOKEN, "url": "https://git.invalid/a"});
    let credential = token(&Value::Null, "git.example.com");
    for (function, mut params) in
        [("svc_connectRepository", repository), ("svc_setCredential", credential)]
    {
        let mut service = Service::start();
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let file = service.data().join("secrets/keys.json");
        let lose_key = |service: &mut Service| -> Value {
            service.stop();
            let mut keys: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            keys.as_object_mut().unwrap().remove("encryptionKey");
            std::fs::write(&file, keys.to_string()).unwrap();
            keys
        };
        params["appId"] = app;
        service.call(Some(&ada), function, params).ok();
        let lost = lose_key(&mut service);
        for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["admin", "rekey"]] {
            let refused = service.program(args).output().unwrap();
            let told = said(&refused);
            assert!(!refused.status.success() && told.contains("encryption key"), "{told}");
            let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            assert_eq!(kept, lost, "{function}: the file is as it was");
        }
    }
}
