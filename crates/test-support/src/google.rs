//! Google Play and Firebase App Distribution for tests: `tests/support/google/google.mjs`.

use super::{requires, rig::Rig};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The e-mail address of the service account that Google knows at the start.
pub const CLIENT_EMAIL: &str = "publisher@acme.iam.gserviceaccount.com";
pub const PRIVATE_KEY_ID: &str = "0123456789abcdef0123456789abcdef01234567";

pub struct Google {
    rig: Rig,
    /// The address of the Google Play Developer API.
    pub play: String,
    /// The address of Firebase App Distribution.
    pub firebase: String,
    /// Where access tokens are issued.
    pub token: String,
    /// The private key of the service account, as PEM text.
    pub private_key: String,
}

impl Google {
    /// Google without any app, for which there is one service account.
    pub fn start() -> Google {
        let private_key = private_key();
        let account = json!({
            "clientEmail": CLIENT_EMAIL,
            "privateKeyId": PRIVATE_KEY_ID,
            "privateKey": private_key,
        });
        let rig = Rig::start("google", "google.mjs", &[]);
        let ready = rig.ask(&json!({"accounts": [account]}));
        let ready: Value = serde_json::from_str(&ready).unwrap();
        let address = |name: &str| ready[name].as_str().unwrap().to_owned();
        let (play, firebase, token) = (address("play"), address("firebase"), address("token"));
        Google { rig, play, firebase, token, private_key }
    }

    /// The key file of the service account, as the Google Cloud console offers it. Its address for
    /// tokens is one where nobody listens.
    pub fn key_file(&self) -> String {
        let file = json!({
            "type": "service_account",
            "project_id": "acme",
            "private_key_id": PRIVATE_KEY_ID,
            "private_key": self.private_key,
            "client_email": CLIENT_EMAIL,
            "client_id": "104000000000000000000",
            "auth_uri": "http://127.0.0.1:9/auth",
            "token_uri": "http://127.0.0.1:9/token",
        });
        file.to_string()
    }

    /// Sends a command, and returns the answer.
    pub fn tell(&self, command: &Value) -> Value {
        self.rig.tell(command)
    }

    /// What Google has seen: `play` by package name, `firebase` by app id, `tokens`, `requests`.
    pub fn state(&self) -> Value {
        self.tell(&json!({"do": "state"}))
    }

    /// What Google has seen of an app: a package name, or the id of an app in Firebase.
    pub fn seen(&self, app: &str) -> Value {
        self.tell(&json!({"do": "app", "name": app}))["app"].clone()
    }

    /// Fails if a request or an answer was not as Google's description says.
    pub fn check(&self) {
        assert_eq!(self.tell(&json!({"do": "violations"}))["violations"], json!([]));
    }
}

impl Drop for Google {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.rig.ask(&json!({"do": "state"})));
        }
    }
}

/// Whether the tests with Google can run here. If not, prints which test is left out.
pub fn is_here(test: &str) -> bool {
    requires::programs(test, &["python3", "openssl"]) && requires::node_packages(test, "google")
}

/// A new RSA key, as PEM text.
pub fn private_key() -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
    let made = openssl.stderr(Stdio::null()).output().unwrap();
    assert!(made.status.success());
    String::from_utf8(made.stdout).unwrap()
}
