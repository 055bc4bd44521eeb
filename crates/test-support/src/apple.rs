//! App Store Connect for tests: `tests/support/apple/apple.mjs`.

use super::{requires, rig::Rig};
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Command, Stdio},
};

/// The id of a team's key with the role App Manager.
pub const KEY_ID: &str = "MANAGER001";
/// The id of a team's key with the role Developer.
pub const DEVELOPER_KEY_ID: &str = "DEVELOPER1";
/// The id of a person's key with the role App Manager. It has no issuer.
pub const PERSONAL_KEY_ID: &str = "PERSON0001";
pub const ISSUER_ID: &str = "57246542-96fe-1a63-e053-0824d011072a";

pub struct Apple {
    rig: Rig,
    /// The address of the App Store Connect API.
    pub api: String,
    /// The private key of all keys, as PEM text.
    pub private_key: String,
}

impl Apple {
    /// App Store Connect without any app, for which there are three keys.
    pub fn start() -> Apple {
        let private_key = private_key();
        let public_key = public_key(&private_key);
        let key = |id: &str, issuer: Option<&str>, role: &str| json!({"keyId": id, "issuerId": issuer, "publicKey": public_key, "role": role});
        let rig = Rig::start("apple", "apple.mjs", &[]);
        let ready = rig.ask(&json!({"keys": [
            key(KEY_ID, Some(ISSUER_ID), "APP_MANAGER"),
            key(DEVELOPER_KEY_ID, Some(ISSUER_ID), "DEVELOPER"),
            key(PERSONAL_KEY_ID, None, "APP_MANAGER"),
        ]}));
        let ready: Value = serde_json::from_str(&ready).unwrap();
        Apple { rig, api: ready["api"].as_str().unwrap().to_owned(), private_key }
    }

    /// Sends a command, and returns the answer. `settings` says how Apple treats an app, such as
    /// `{"do": "settings", "app": …, "verdict": "REJECTED"}`; all of them are in `fake.mjs`, all
    /// commands in `apple.mjs`. `fail` breaks requests, as `front.mjs` says.
    pub fn tell(&self, command: &Value) -> Value {
        self.rig.tell(command)
    }

    /// What Apple has: `apps`, `uploads`, `files`, `builds`, `groups`, `versions`, `submissions`, and the
    /// `requests` that it got.
    pub fn state(&self) -> Value {
        self.tell(&json!({"do": "state"}))
    }

    /// Creates an app, and returns its id.
    pub fn add_app(&self, bundle_id: &str) -> String {
        let app = json!({"do": "app", "bundleId": bundle_id, "name": "Demo"});
        self.tell(&app)["id"].as_str().unwrap().to_owned()
    }

    /// Fails if a request or an answer was not as Apple's description says.
    pub fn check(&self) {
        assert_eq!(self.state()["violations"], json!([]));
    }
}

impl Drop for Apple {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.rig.ask(&json!({"do": "state"})));
        }
    }
}

/// Whether the tests with Apple can run here. If not, prints which test is left out.
pub fn is_here(test: &str) -> bool {
    requires::programs(test, &["openssl"]) && requires::node_packages(test, "apple")
}

/// A new EC P-256 key in PKCS#8, as PEM text.
fn private_key() -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    let made = openssl.stderr(Stdio::null()).output().unwrap();
    assert!(made.status.success());
    String::from_utf8(made.stdout).unwrap()
}

fn public_key(private_key: &str) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["pkey", "-pubout"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = openssl.spawn().unwrap();
    child.stdin.take().unwrap().write_all(private_key.as_bytes()).unwrap();
    let made = child.wait_with_output().unwrap();
    assert!(made.status.success());
    String::from_utf8(made.stdout).unwrap()
}
