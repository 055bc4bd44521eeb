//! A service with all its stores, and an app that is known in each of them.

use super::{
    apple::{self, Apple, ISSUER_ID, KEY_ID},
    google::{self, Google},
    service::{Person, Service, eventually, fixture, sha256},
};
use serde_json::{Value, json};
use std::process::Output;

pub const APP: &str = "com.example.svcsample";
pub const ANDROID: &str = "1:4711:android:0a1b2c3d4e5f6789";
pub const IOS: &str = "1:4711:ios:0a1b2c3d4e5f6789";
/// The targets that are stores.
pub const STORES: [&str; 4] =
    ["app-store", "google-play", "testflight", "firebase-app-distribution"];

pub struct Stores {
    pub google: Google,
    pub apple: Apple,
    pub service: Service,
    pub ada: Person,
    pub app: Value,
}

impl Stores {
    /// `None` where a program that the test needs is missing.
    pub fn new(test: &str) -> Option<Stores> {
        if !google::is_here(test) || !apple::is_here(test) {
            return None;
        }
        Stores::with(|settings| Some(Service::start_with(settings)))
    }

    /// Like [`new`](Stores::new), with a service of so many nodes.
    pub fn on_nodes(test: &str, count: usize) -> Option<Stores> {
        if !google::is_here(test) || !apple::is_here(test) {
            return None;
        }
        Stores::with(|settings| Service::on_nodes_with(test, count, settings))
    }

    fn with(start: impl FnOnce(&[(&str, &str)]) -> Option<Service>) -> Option<Stores> {
        let (google, apple) = (Google::start(), Apple::start());
        let service = start(&[
            ("SVC_GOOGLE_PLAY_URL", &google.play),
            ("SVC_FIREBASE_URL", &google.firebase),
            ("SVC_GOOGLE_TOKEN_URL", &google.token),
            ("SVC_APP_STORE_CONNECT_URL", &apple.api),
        ])?;
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let before = json!([{"name": "1.0", "versionCodes": ["10"], "status": "completed"}]);
        google
            .tell(&json!({"do": "playApp", "packageName": APP, "tracks": {"production": before}}));
        for id in [ANDROID, IOS] {
            google.tell(&json!({"do": "firebaseApp", "id": id, "groups": ["friends"]}));
        }
        let apple_id = apple.add_app(APP);
        apple.tell(&json!({"do": "settings", "app": apple_id, "partSize": 1 << 20, "saysEncryption": true}));
        let released = json!({
            "do": "version", "app": apple_id, "version": "1.0",
            "state": "READY_FOR_DISTRIBUTION", "locales": {"en-US": {"whatsNew": "First."}},
        });
        apple.tell(&released);
        apple.tell(&json!({"do": "group", "app": apple_id, "name": "friends"}));
        Some(Stores { google, apple, service, ada, app })
    }

    pub fn call(&self, function: &str, params: Value) -> Value {
        self.service.call(Some(&self.ada), function, params).ok()
    }

    /// Runs the command line as Ada.
    pub fn svc(&self, args: &[&str]) -> Output {
        self.service.cli_with(args, &self.variables(), "")
    }

    /// Runs the command line as Ada, and returns its reply.
    pub fn reply(&self, args: &[&str]) -> Value {
        self.service.cli_json(args, &self.variables())
    }

    fn variables(&self) -> [(&str, &str); 3] {
        [
            ("SVC_API_URL", &self.service.url),
            ("SVC_APP_ID", self.app.as_str().unwrap()),
            ("SVC_TOKEN", ""),
        ]
    }

    /// Signs in, and stores the keys of all stores with the command line.
    pub fn store_keys(&self) {
        let application = self.service.application_id.clone();
        let login = ["login", "--email", &self.ada.email, "--password-stdin", "--application-id"];
        let login = [&login[..], &[&application, "--api-url", &self.service.url]].concat();
        let done = self.service.cli_with(&login, &[], "correct horse\n");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let file = |name: &str, text: &str| {
            let path = self.service.home.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let google = file("key.json", &self.google.key_file());
        let apple = file(&format!("AuthKey_{KEY_ID}.p8"), &self.apple.private_key);
        for kind in ["googleServiceAccount", "firebaseServiceAccount"] {
            self.reply(&["credential", "set", kind, &google]);
        }
        self.reply(&["credential", "set", "appStoreConnectKey", &apple, "--issuer-id", ISSUER_ID]);
    }

    /// Uploads the files of a version, of which Google knows what is in them, and makes a release.
    /// `suffix` is empty or names the later version.
    pub fn release(&self, version: &str, code: u32, suffix: &str) -> Value {
        let mut artifacts = Vec::new();
        for kind in ["aab", "ipa"] {
            let name = format!("sample{suffix}.{kind}");
            let bytes = std::fs::read(fixture(&name)).unwrap();
            let content = json!({
                "do": "content", "sha256": sha256(&bytes), "packageName": APP, "versionCode": code,
            });
            self.google.tell(&content);
            artifacts.push(self.service.upload(&self.ada, &self.app, &name, version)["id"].clone());
        }
        let release = json!({"appId": self.app, "artifactIds": artifacts, "channel": "production"});
        self.call("svc_createRelease", release)["id"].clone()
    }

    pub fn get(&self, release: &Value) -> Value {
        self.call("svc_getRelease", json!({"releaseId": release}))
    }

    /// The publications of a release in a target.
    pub fn publications(&self, release: &Value, target: &str) -> Vec<Value> {
        let release = self.get(release);
        let all = release["publications"].as_array().unwrap().iter();
        all.filter(|publication| publication["target"] == target).cloned().collect()
    }

    /// Asks the stores until each publication of a release is in this state.
    pub fn reaches(&self, release: &Value, state: &str) {
        eventually(&format!("each publication is {state}"), || {
            let now = self.call("svc_checkRelease", json!({"releaseId": release}));
            let publications = now["publications"].as_array().unwrap();
            let failed = publications.iter().find(|p| p["state"] == "failed");
            assert!(failed.is_none() || state == "failed", "{failed:?}");
            publications.iter().all(|p| p["state"] == state)
        });
    }

    /// Asks the stores until the publications of a release in a target are in this state.
    pub fn reaches_in(&self, release: &Value, target: &str, state: &str) {
        eventually(&format!("{target} is {state}"), || {
            self.call("svc_checkRelease", json!({"releaseId": release}));
            self.publications(release, target).iter().all(|p| p["state"] == state)
        });
    }

    /// The releases of the production track in Google Play.
    pub fn track(&self) -> Value {
        self.google.seen(APP)["tracks"]["production"].clone()
    }

    /// A list of what Apple has.
    pub fn at_apple(&self, list: &str) -> Vec<Value> {
        self.apple.state()[list].as_array().unwrap().clone()
    }

    /// Fails if a request or an answer was not as the descriptions of the stores say, or if the
    /// store of the service is not sound.
    pub fn check(mut self) {
        self.google.check();
        self.apple.check();
        self.service.stop();
        self.service.check();
    }
}
