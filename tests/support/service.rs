//! A service for one test: the real program in an empty directory, on a free port.

use crate::support::ports::free_port;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The program under test.
pub const SVC: &str = env!("CARGO_BIN_EXE_svc");

/// A running service.
pub struct Service {
    pub home: PathBuf,
    pub url: String,
    pub application_id: String,
    pub http: reqwest::blocking::Client,
    settings: Vec<(String, String)>,
    child: Option<Child>,
    port: u16,
    dashboard_port: u16,
    /// A session of the first administrator, for what tests need of it.
    administrator: OnceLock<Person>,
    _home: Option<tempfile::TempDir>,
}

/// The status and the JSON of an answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub headers: reqwest::header::HeaderMap,
}

impl Answer {
    /// The reply of a function. Asserts that the call succeeded.
    pub fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body["result"].clone()
    }

    /// The status and the code of a refusal.
    pub fn refusal(&self) -> (u16, i64) {
        let code = self.body["code"].as_i64().unwrap_or_else(|| panic!("no code in {}", self.body));
        assert!(self.body["error"].as_str().is_some_and(|e| !e.is_empty()), "{}", self.body);
        (self.status, code)
    }
}

/// A person who is signed in.
#[derive(Clone)]
pub struct Person {
    pub id: String,
    pub email: String,
    pub token: String,
}

impl Service {
    /// Starts a service in a new empty directory.
    pub fn start() -> Service {
        Self::start_with(&[])
    }

    /// Starts a service in a new empty directory, with these settings. `{port}` in a setting stands for
    /// the port of the service.
    pub fn start_with(settings: &[(&str, &str)]) -> Service {
        let home = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut service = Service {
            home: home.path().to_owned(),
            url: format!("http://127.0.0.1:{port}"),
            application_id: String::new(),
            http: reqwest::blocking::Client::builder().timeout(LONGEST).build().unwrap(),
            settings: settings
                .iter()
                .map(|(name, value)| {
                    ((*name).to_owned(), value.replace("{port}", &port.to_string()))
                })
                .collect(),
            child: None,
            port,
            dashboard_port: free_port(),
            administrator: OnceLock::new(),
            _home: Some(home),
        };
        std::fs::create_dir(service.temporary()).unwrap();
        service.boot();
        let keys: Value = serde_json::from_slice(
            &std::fs::read(service.data().join("secrets/keys.json")).unwrap(),
        )
        .unwrap();
        service.application_id = keys["applicationId"].as_str().unwrap().to_owned();
        service
    }

    /// Sets a variable for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// The address of the dashboard.
    pub fn dashboard(&self) -> String {
        format!("http://localhost:{}", self.dashboard_port)
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.home.join("data/run")
    }

    /// The folder for the temporary files of the service.
    fn temporary(&self) -> PathBuf {
        self.home.join("temporary")
    }

    /// The program as `boot` starts it, under these programs.
    pub fn command(&self, under: &[&str]) -> Command {
        let log =
            std::fs::File::options().create(true).append(true).open(self.home.join("log")).unwrap();
        let mut words = under.iter().chain(&[SVC, "serve"]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(&self.home).stdin(Stdio::null());
        command.env("SVC_LISTEN", format!("127.0.0.1:{}", self.port)).env("SVC_LOG", "info");
        command.env("SVC_DASHBOARD_LISTEN", format!("127.0.0.1:{}", self.dashboard_port));
        // Only tests of containers use the engine of this machine.
        command.env("SVC_DOCKER_HOST", "unix:///nonexistent/docker.sock");
        command.env("TMPDIR", self.temporary());
        command.envs(self.settings.iter().cloned()).stdout(log.try_clone().unwrap()).stderr(log);
        command
    }

    /// Starts the program and waits until it is ready.
    pub fn boot(&mut self) {
        self.child = Some(self.command(&[]).spawn().unwrap());
        let begun = Instant::now();
        while !self.is_ready() {
            let exited = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(
                exited.is_none() && begun.elapsed() < LONGEST,
                "not ready: {exited:?}\n{}",
                self.last_words()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn is_ready(&self) -> bool {
        let answer = self.http.get(format!("{}/readyz", self.url)).send();
        answer.is_ok_and(|answer| answer.status() == 200)
    }

    /// The printed line with this text.
    pub fn printed(&self, text: &str) -> String {
        let log = self.log();
        let line = log.lines().find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("no {text} in {log}")).trim().to_owned()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// The last lines of the log, without the calls that succeeded.
    pub fn last_words(&self) -> String {
        let log = self.log();
        let telling = log.lines().filter(|line| !line.contains("code=0"));
        let mut last: Vec<_> = telling.rev().take(40).collect();
        last.reverse();
        last.join("\n")
    }

    /// Ends the service with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    pub fn runs(&self) -> bool {
        self.child.is_some()
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal without waiting.
    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Sends SIGTERM, and waits for the end.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let stopped =
            Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(stopped.success());
        assert!(child.wait().unwrap().success(), "{}", self.last_words());
    }

    /// Calls a function as this person, or without credentials.
    pub fn call(&self, who: Option<&Person>, function: &str, params: Value) -> Answer {
        self.try_call(who, function, params, None)
            .unwrap_or_else(|e| panic!("{function}: {e}\n{}", self.last_words()))
    }

    /// Posts to an artifact endpoint as this person, or without credentials.
    pub fn post(&self, who: Option<&Person>, path: &str, body: &Value) -> Answer {
        let mut request =
            self.http.post(format!("{}/api/v1/artifacts/{path}", self.url)).json(body);
        if let Some(person) = who {
            request = if person.token.starts_with("svc_dt_") {
                request.bearer_auth(&person.token)
            } else {
                request.header("X-Backend-Session-Token", &person.token)
            };
        }
        Self::answer(request.send().unwrap()).unwrap()
    }

    /// Like [`call`](Service::call), but the connection may break.
    pub fn try_call(
        &self,
        who: Option<&Person>,
        function: &str,
        params: Value,
        once: Option<&str>,
    ) -> reqwest::Result<Answer> {
        let mut request =
            self.http.post(format!("{}/backend/functions/{function}", self.url)).json(&params);
        request = request.header("X-Backend-Application-Id", &self.application_id);
        if let Some(person) = who {
            request = if person.token.starts_with("svc_dt_") {
                request.bearer_auth(&person.token)
            } else {
                request.header("X-Backend-Session-Token", &person.token)
            };
        }
        if let Some(once) = once {
            request = request.header("X-Backend-Request-Id", once);
        }
        Self::answer(request.send()?)
    }

    /// Reads an answer.
    pub fn answer(response: reqwest::blocking::Response) -> reqwest::Result<Answer> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text()?;
        let body = serde_json::from_str(&text)
            .unwrap_or_else(|_| panic!("{status} is not JSON: {text:?}"));
        Ok(Answer { status, body, headers })
    }

    /// The token of the link that the server prints until it has an administrator.
    pub fn first_start_token(&self) -> Option<String> {
        let file = std::fs::read(self.data().join("secrets/first-start.json")).ok()?;
        let first: Value = serde_json::from_slice(&file).unwrap();
        first["token"].as_str().map(str::to_owned)
    }

    /// A new session of the first administrator, who is made if there is none.
    pub fn administrator(&self) -> Person {
        let mut first = administrator();
        if let Some(token) = self.first_start_token() {
            first["token"] = token.into();
            let made = self.call(None, "svc_createFirstAdministrator", first.clone());
            if made.status == 200 {
                return person(&made.ok());
            }
        }
        let signed_in = self.call(None, "loginWithEmail", administrator()).ok();
        person(&signed_in)
    }

    /// Registers an account without a rate limit.
    pub fn register(&self, name: &str) -> Person {
        let email = format!("{name}@example.com");
        let made = self.call(
            None,
            "registerUser",
            json!({"email": email, "password": "correct horse", "name": name}),
        );
        let person = person(&made.ok());
        let tier = json!({"userId": person.id, "tier": "enterprise"});
        let administrator = self.administrator.get_or_init(|| self.administrator());
        let set = self.call(Some(administrator), "svc_admin_setTier", tier.clone());
        if set.status != 200 {
            // The test has ended that session, or changed the store.
            self.call(Some(&self.administrator()), "svc_admin_setTier", tier).ok();
        }
        person
    }

    /// Runs the command line with a configuration folder of this test.
    pub fn cli(&self, args: &[&str]) -> Output {
        self.cli_with(args, &[], "")
    }

    /// Runs the command line with these variables and this input.
    pub fn cli_with(&self, args: &[&str], variables: &[(&str, &str)], input: &str) -> Output {
        use std::io::Write;
        let mut command = Command::new(SVC);
        command.args(args).current_dir(&self.home).env("XDG_CONFIG_HOME", self.home.join("config"));
        command.env_remove("SVC_TOKEN").env_remove("SVC_API_URL").env_remove("SVC_APP_ID");
        command
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs the command line with `--json` and asserts that it succeeds.
    pub fn cli_json(&self, args: &[&str], variables: &[(&str, &str)]) -> Value {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        let output = self.cli_with(&args, variables, "");
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "svc {args:?}\n{out}\n{err}\n{}", self.log());
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("svc {args:?} printed {out}"))
    }

    /// Checks the whole store with `svc admin check`. The service must not run.
    pub fn check(&self) -> String {
        let output =
            Command::new(SVC).args(["admin", "check"]).current_dir(&self.home).output().unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{text}");
        text
    }
}

impl Service {
    /// Registers an account with the rate limit of the free tier.
    pub fn register_free(&self, name: &str) -> Person {
        let email = format!("{name}@example.com");
        let params = json!({"email": email, "password": "correct horse", "name": name});
        person(&self.call(None, "registerUser", params).ok())
    }

    /// The same person with a new deploy token instead of a session.
    pub fn with_token(&self, maker: &Person, params: Value) -> Person {
        let made = self.call(Some(maker), "svc_createDeployToken", params).ok();
        Person { token: made["token"].as_str().unwrap().to_owned(), ..maker.clone() }
    }

    /// Signs the person in again.
    pub fn sign_in(&self, person: &Person, password: &str) -> Person {
        let params = json!({"email": person.email, "password": password});
        self::person(&self.call(None, "loginWithEmail", params).ok())
    }

    pub fn master_key(&self) -> String {
        let keys = std::fs::read(self.data().join("secrets/keys.json")).unwrap();
        let keys: Value = serde_json::from_slice(&keys).unwrap();
        keys["masterKey"].as_str().unwrap().to_owned()
    }

    /// An HTTP client that calls from this loopback address.
    pub fn client_at(address: [u8; 4]) -> reqwest::blocking::Client {
        let client = reqwest::blocking::Client::builder().timeout(LONGEST);
        client.local_address(std::net::IpAddr::from(address)).build().unwrap()
    }

    /// A call of a function, which the caller may change and must send.
    pub fn request(
        &self,
        client: &reqwest::blocking::Client,
        function: &str,
        params: &Value,
    ) -> reqwest::blocking::RequestBuilder {
        let address = format!("{}/backend/functions/{function}", self.url);
        client.post(address).json(params).header("X-Backend-Application-Id", &self.application_id)
    }

    /// Makes a project with one app in an organization. Returns their ids.
    pub fn project_with_app(&self, who: &Person, organization: Option<&Value>) -> (Value, Value) {
        let mut params = json!({"name": "Shop"});
        if let Some(organization) = organization {
            params["organizationId"] = organization.clone();
        }
        let project = self.call(Some(who), "svc_createProject", params).ok();
        let params = json!({"name": "Shop", "projectId": project["id"]});
        let app = self.call(Some(who), "createApp", params).ok();
        (project["id"].clone(), app["id"].clone())
    }

    /// Uploads a fixture and has it verified. Returns the artifact.
    pub fn upload(&self, who: &Person, app: &Value, file: &str, version: &str) -> Value {
        let id = self.send(who, app, file, Some(version));
        let bytes = std::fs::read(fixture(file)).unwrap();
        let verified =
            self.post(Some(who), &format!("{id}/finalize"), &json!({"sha256": sha256(&bytes)}));
        assert_eq!(verified.status, 201, "{}", verified.body);
        verified.body
    }

    /// Uploads a fixture without finalizing it. Returns the id of the artifact.
    pub fn send(&self, who: &Person, app: &Value, file: &str, version: Option<&str>) -> String {
        let platform = if file.ends_with(".ipa") { "ios" } else { "android" };
        let mut opening = json!({"appId": app, "platform": platform, "fileName": file});
        if let Some(version) = version {
            opening["version"] = json!(version);
        }
        let opened = self.post(Some(who), "upload-url", &opening);
        assert_eq!(opened.status, 201, "{}", opened.body);
        let bytes = std::fs::read(fixture(file)).unwrap();
        let put = self.http.put(opened.body["uploadUrl"].as_str().unwrap()).body(bytes).send();
        assert_eq!(put.unwrap().status(), 200);
        opened.body["artifactId"].as_str().unwrap().to_owned()
    }
}

/// Whether a file below the folder contains these bytes.
pub fn holds(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, bytes);
        }
        memchr::memmem::find(&std::fs::read(path).unwrap_or_default(), bytes).is_some()
    })
}

/// How long anything is waited for: much takes long on a busy machine.
const LONGEST: Duration = Duration::from_secs(180);

/// Waits until `holds` is true, for at most [`LONGEST`].
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONGEST, "{what}: not within {} s", LONGEST.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Who the first administrator of tests is.
pub fn administrator() -> Value {
    json!({"email": "admin@localhost", "password": "a password of tests"})
}

pub fn person(signed_in: &Value) -> Person {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Person {
        id: text(&signed_in["user"]["id"]),
        email: text(&signed_in["user"]["email"]),
        token: text(&signed_in["sessionToken"]),
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.last_words());
            self.kill();
        } else {
            self.leaves_nothing();
        }
    }
}

impl Service {
    /// Stops the service, and asserts that it leaves a consistent store, and neither processes nor temporary
    /// files.
    pub fn leaves_nothing(&mut self) {
        if self.child.is_none() {
            return;
        }
        self.stop();
        self.check();
        // A process that was killed takes a moment to be gone.
        let begun = Instant::now();
        while !processes_of(&self.home).is_empty() && begun.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let processes = processes_of(&self.home);
        assert!(processes.is_empty(), "processes outlive the service: {processes:#?}");
        let files: Vec<_> = std::fs::read_dir(self.temporary()).unwrap().collect();
        assert!(files.is_empty(), "temporary files outlive the service: {files:#?}");
    }
}

/// The command lines of the processes that work in a folder, or have it in their command line.
fn processes_of(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let processes = entries.filter_map(|entry| {
        let process = entry.unwrap().path();
        let words = std::fs::read(process.join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_in_it =
            std::fs::read_link(process.join("cwd")).is_ok_and(|at| at.starts_with(folder));
        (is_in_it || words.contains(folder.to_str().unwrap())).then_some(words)
    });
    processes.collect()
}

/// A file of `data/fixtures`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/fixtures").join(name)
}

/// SHA-256 in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    HEXLOWER.encode(&sha2::Sha256::digest(bytes))
}
