//! A service with a git repository and runners.

use super::{
    git::Git,
    requires,
    service::{Person, SVC, Service},
};
use serde_json::{Value, json};
use std::{
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A configuration whose build runs this command and makes `app.apk`.
pub fn config(command: &str) -> (&'static str, String) {
    let config = json!({
        "platforms": ["android"],
        "build": {"android": {"production": command}},
        "artifact": {"android": {"production": "app.apk"}},
    });
    (".svc/config.json", config.to_string())
}

pub struct World {
    // Ends first, while what it talks to is there.
    pub service: Service,
    pub git: Git,
    pub ada: Person,
    pub app: Value,
    /// The organization of the app.
    pub organization: Value,
    /// A token of a runner.
    pub token: Person,
}

impl World {
    /// `None` where a program that the test needs is missing.
    pub fn new(test: &str) -> Option<World> {
        World::with(test, &[])
    }

    pub fn with(test: &str, settings: &[(&str, &str)]) -> Option<World> {
        if !requires::programs(test, &["git", "python3"]) {
            return None;
        }
        let git = Git::serve();
        let private = [("SVC_GIT_PRIVATE_HOSTS", git.host.as_str())];
        let service = Service::start_with(&[&private[..], settings].concat());
        let ada = service.register("ada");
        let (project, app) = service.project_with_app(&ada, None);
        let project = service.call(Some(&ada), "svc_getProject", json!({"projectId": project}));
        let organization = project.ok()["organizationId"].clone();
        let scopes = ["build:run", "artifact:upload"];
        let token = service.with_token(&ada, json!({"name": "runner", "scopes": scopes}));
        Some(World { git, service, ada, app, organization, token })
    }

    pub fn call(&self, function: &str, params: Value) -> Value {
        self.service.call(Some(&self.ada), function, params).ok()
    }

    pub fn connect(&self) {
        let token = "s3cret-of-the-host";
        self.git.set("token", token);
        let params =
            json!({"appId": self.app, "url": self.git.url, "branch": "main", "token": token});
        let connected = self.call("svc_connectRepository", params);
        assert_eq!(connected["error"], Value::Null, "{connected}");
    }

    /// Signs the command line in as Ada.
    pub fn sign_in(&self) {
        let args = ["login", "--email", &self.ada.email, "--password-stdin"];
        let settings = [
            ("SVC_API_URL", self.service.url.as_str()),
            ("SVC_APPLICATION_ID", &self.service.application_id),
        ];
        let done = self.service.cli_with(&args, &settings, "correct horse");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    pub fn trigger(&self) -> Value {
        self.call("svc_triggerBuild", json!({"appId": self.app, "platform": "android"}))
    }

    pub fn build(&self, id: &Value) -> Value {
        self.call("svc_getBuild", json!({"buildId": id}))
    }

    /// Waits until a build is in this state.
    pub fn until(&self, id: &Value, state: &str, within: u64) -> Value {
        let begun = Instant::now();
        loop {
            let build = self.build(id);
            if build["state"] == state {
                return build;
            }
            let late = begun.elapsed() > Duration::from_secs(within);
            assert!(!late, "not {state}: {build}\n{}", self.log(id));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn log(&self, id: &Value) -> String {
        let page = self.call("svc_getBuildLogs", json!({"buildId": id}));
        let lines = page["lines"].as_array().unwrap().iter();
        lines.map(|line| format!("{}\n", line["text"].as_str().unwrap())).collect()
    }

    pub fn runner(&self, name: &str, more: &[&str]) -> Runner {
        let folder = open_folder();
        let mut command = Command::new(SVC);
        command.args(["runner", "--labels", "linux,android", "--name", name, "--work-dir"]);
        command.arg(folder.path().join("work")).args(more).current_dir(folder.path());
        command.args(["--app", self.app.as_str().unwrap()]);
        command.env("SVC_TOKEN", &self.token.token).env("SVC_API_URL", &self.service.url);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        Runner { child, folder }
    }
}

/// A folder that every user of this machine may use: builds of a runner that is root run as another
/// one.
pub fn open_folder() -> tempfile::TempDir {
    let everybody = std::fs::Permissions::from_mode(0o777);
    let folder = tempfile::Builder::new().permissions(everybody.clone()).tempdir().unwrap();
    // The mask of the process may have narrowed them.
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    folder
}

pub struct Runner {
    pub child: Child,
    pub folder: tempfile::TempDir,
}

impl Runner {
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// The folders of builds.
    pub fn work(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("work"));
        entries.unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("{}", self.log());
        }
    }
}
