//! A GitHub for tests: `tests/support/github/github.mjs`.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Mutex,
};

pub const INSTALLATION: u64 = 77;

pub struct Github {
    child: Child,
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
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
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/github");
        let mut node = Command::new("node");
        node.arg("github.mjs").current_dir(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let talk = Mutex::new((input, output));
        let mut github = Github { child, talk, api: String::new(), folder };
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
        let mut talk = self.talk.lock().unwrap();
        let (input, output) = &mut *talk;
        writeln!(input, "{command}").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["error"], Value::Null, "{command}: {answer}");
        answer
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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
