//! A managed repository on GitHub, and the jobs of its CI.

use super::{
    git::Git,
    github::Github,
    oidc::Issuer,
    requires,
    service::{Answer, Person, Service, fixture},
};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

pub const WORKFLOW: &str =
    include_str!("../../data/fixtures/managed/.github/workflows/svc-build.yml");
pub const CONFIG: &str = ".svc/config.json";
pub const WRAPPER: &str = include_str!("../../ci/wrapper/svc-build.yml");
pub const CENTRAL: &str = include_str!("../../ci/.github/workflows/svc-central.yml");

/// A service with a GitHub App, and a managed repository that only the app may read.
pub struct World {
    // Ends first, while what it talks to is there.
    pub service: Service,
    pub github: Github,
    pub issuer: Issuer,
    pub git: Git,
    /// The address of `acme/app`.
    pub url: String,
    pub ada: Person,
    pub app: Value,
}

impl World {
    /// A managed repository that is connected. `None` where a program that the test needs is missing.
    pub fn new(test: &str) -> Option<World> {
        let programs = ["git", "openssl", "python3", "bash", "curl", "jq"];
        if !requires::programs(test, &programs)
            || !requires::node_packages(test, "oidc")
            || !requires::node_packages(test, "github")
        {
            return None;
        }
        let (github, issuer, git) = (Github::start(), Issuer::start(), Git::serve());
        // Only a token of the installation reads the repository.
        git.set("token", "ghs_4711_*");
        let url = git.also_at("acme/app.git");
        let service = Service::start_with(&[
            ("SVC_GIT_PRIVATE_HOSTS", &git.host),
            ("SVC_GITHUB_URL", &format!("http://{}", git.host)),
            ("SVC_GITHUB_API_URL", &github.api),
            ("SVC_GITHUB_APP_ID", "4711"),
            ("SVC_GITHUB_APP_KEY", github.key().to_str().unwrap()),
            ("SVC_OIDC_ISSUERS", &issuer.url),
            ("SVC_CENTRAL_REPOSITORY", "acme/other@v1"),
        ]);
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let world = World { github, issuer, git, url, service, ada, app };
        let workflow = (".github/workflows/svc-build.yml", WORKFLOW.to_owned());
        world.git.commit(&[("package.json", "{}".into()), workflow]);
        world.commit_config(&world.app.clone());
        world.workflow(json!({"runName": run_name(WRAPPER)}));
        world.github.tell(&json!({"do": "refs", "refs": ["main", "v1"]}));
        Some(world)
    }

    /// Commits a configuration that names this app.
    pub fn commit_config(&self, app: &Value) {
        let config = json!({
            "app": app,
            "repository": "acme/app",
            "platforms": ["android"],
            "build": {"android": {"production": "make", "preview": "make preview"}},
            "artifact": {"android": {"production": "app.aab", "preview": "app.apk"}},
        });
        self.git.commit(&[(CONFIG, config.to_string())]);
        self.github.tell(&json!({"do": "file", "path": CONFIG, "text": config.to_string()}));
    }

    pub fn workflow(&self, more: Value) {
        let mut workflow = json!({
            "do": "workflow", "file": "svc-build.yml",
            "inputs": {"app_id": {"required": true}, "platform": {"required": true}, "profile": {}},
        });
        workflow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.github.tell(&workflow);
    }

    pub fn try_call(&self, function: &str, params: Value) -> Answer {
        let mut all = json!({"appId": self.app});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        self.service.call(Some(&self.ada), function, all)
    }

    pub fn call(&self, function: &str, params: Value) -> Value {
        self.try_call(function, params).ok()
    }

    pub fn connect(&self) -> Value {
        self.call("svc_connectRepository", json!({"url": self.url}))
    }

    pub fn dispatch(&self) -> Value {
        self.call("svc_build_dispatch", json!({"platform": "android"}))
    }

    pub fn build(&self, build: &Value) -> Value {
        let id = json!({"buildId": build["id"]});
        self.service.call(Some(&self.ada), "svc_getBuild", id).ok()
    }

    pub fn until(&self, build: &Value, state: &str) -> Value {
        let begun = Instant::now();
        loop {
            let build = self.build(build);
            if build["state"] == state {
                return build;
            }
            let late = begun.elapsed() > Duration::from_secs(60);
            assert!(!late, "not {state}: {build}\n{}", self.log(&build));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn log(&self, build: &Value) -> String {
        let id = json!({"buildId": build["id"]});
        let page = self.service.call(Some(&self.ada), "svc_getBuildLogs", id).ok();
        let lines = page["lines"].as_array().unwrap().iter();
        lines.map(|line| format!("{}\n", line["text"].as_str().unwrap())).collect()
    }

    /// The run of a build.
    pub fn run_of(&self, build: &Value) -> Value {
        let url = self.build(build)["runUrl"].clone();
        self.github.runs().into_iter().find(|run| run["html_url"] == url).unwrap()
    }

    pub fn fail(&self, path: &str, times: u32, how: Value) {
        self.github.tell(&json!({"do": "fail", "path": path, "times": times, "how": how}));
    }

    /// Tells the service that a run changed.
    pub fn report(&self, run: &Value, action: &str) {
        let hook = self.call("svc_getRepositoryWebhook", json!({}));
        let delivered = self.github.tell(&json!({
            "do": "webhook", "id": run["id"], "action": action,
            "url": hook["url"], "secret": hook["secret"],
        }));
        assert_eq!(delivered["status"], 202);
    }

    /// Runs a script of `ci/` as a step of this run does, without a secret.
    pub fn step(&self, run: &Value, script: &str, folder: &Path, more: &[(&str, &str)]) -> Output {
        let repository = format!("acme/{}", run["repository"].as_str().unwrap());
        let file = run["file"].as_str().unwrap();
        // The claims that the issuer puts into the next tokens.
        let claims = json!({
            "aud": self.service.url, "repository": repository, "repository_id": "1296269",
            "repository_owner_id": "9919", "event_name": "workflow_dispatch",
            "workflow_ref": format!("{repository}/.github/workflows/{file}@refs/heads/main"),
            "run_id": run["id"].to_string(), "run_attempt": "1", "sha": run["head_sha"],
            "ref": "refs/heads/main", "actor": "svc[bot]", "sub": "of no interest",
        });
        self.issuer.token("good", &claims);
        let mut bash = Command::new("bash");
        bash.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("ci").join(script)).env_clear();
        bash.env("PATH", std::env::var_os("PATH").unwrap()).current_dir(folder);
        bash.env("ACTIONS_ID_TOKEN_REQUEST_URL", &self.issuer.endpoint);
        bash.env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-job");
        bash.env("SVC_API_URL", &self.service.url).envs(more.iter().copied());
        bash.output().unwrap()
    }

    pub fn upload(&self, run: &Value) {
        let (file, app) = (fixture("sample.apk"), self.app.as_str().unwrap());
        let variables =
            [("ARTIFACT", file.to_str().unwrap()), ("PLATFORM", "android"), ("SVC_APP_ID", app)];
        succeeded(&self.step(run, "upload/upload.sh", Path::new("/"), &variables));
    }
}

/// The name that a workflow gives to its runs.
pub fn run_name(workflow: &str) -> &str {
    let name = workflow.lines().find_map(|line| line.strip_prefix("run-name: ")).unwrap();
    name.trim_matches('"')
}

/// The output of a step that must have succeeded.
pub fn succeeded(done: &Output) -> String {
    let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(done.status.success(), "{out}{err}");
    format!("{out}{err}")
}
