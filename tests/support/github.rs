//! A GitHub for tests: `tests/support/github/github.mjs`.

use super::rig::Rig;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

pub const INSTALLATION: u64 = 77;

pub struct Github {
    rig: Rig,
    /// The address of the API.
    pub api: String,
    folder: tempfile::TempDir,
}

impl Github {
    /// A GitHub with the repository `acme/app`, where an App of this key is installed. A report to
    /// the service is signed with `webhook_secret` by default.
    pub fn start() -> Github {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        let mut openssl = Command::new("openssl");
        openssl.args(["genrsa", "-traditional", "-out"]).arg(&key).arg("2048");
        assert!(openssl.stderr(Stdio::null()).status().unwrap().success());
        let rig = Rig::start("github", "github.mjs", &[]);
        let mut github = Github { rig, api: String::new(), folder };
        let config = json!({
            "appId": 4711,
            "privateKey": std::fs::read_to_string(github.key()).unwrap(),
            "installationId": INSTALLATION,
            "webhookSecret": "of the app",
        });
        let ready = github.tell(&config);
        github.api = ready["api"].as_str().unwrap().to_owned();
        github
    }

    /// The private key of the App.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// Sends a command, and returns the answer.
    pub fn tell(&self, command: &Value) -> Value {
        self.rig.tell(command)
    }

    pub fn runs(&self) -> Vec<Value> {
        self.tell(&json!({"do": "state"}))["runs"].as_array().unwrap().clone()
    }

    /// How many requests had this method and a path with this part.
    pub fn requests(&self, method: &str, part: &str) -> usize {
        let state = self.tell(&json!({"do": "state"}));
        let requests = state["requests"].as_array().unwrap().iter();
        let is_one = |request: &&Value| {
            request["method"] == method && request["path"].as_str().unwrap().contains(part)
        };
        requests.filter(is_one).count()
    }

    /// Fails if a request or an answer was not as the description of GitHub's API says.
    pub fn check(&self) {
        let state = self.tell(&json!({"do": "state"}));
        assert_eq!(state["violations"], json!([]));
    }
}

impl Drop for Github {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.tell(&json!({"do": "state"})));
        }
    }
}
