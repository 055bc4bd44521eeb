//! A service for one test: the real program in an empty directory, on a free port.

mod calls;
mod leftovers;
mod nodes;
mod store_of;

pub use calls::{Answer, Person, administrator, person};

use crate::support::{ports::free_port, requires};
use data_encoding::HEXLOWER;
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{OnceLock, atomic::AtomicBool},
    time::{Duration, Instant},
};
use test_support::{network::Place, postgres};

/// With this variable, every service has its store in a database: `make test-postgres`.
const ON_POSTGRES: &str = "TEST_ON_POSTGRES";

/// The program under test.
pub const SVC: &str = env!("CARGO_BIN_EXE_svc");

/// Whether services have their store in a database. If so, prints that this test is left out, because it is
/// about the folder of the store.
pub fn has_no_folder(test: &str) -> bool {
    let has_none = std::env::var_os(ON_POSTGRES).is_some() || nodes::wanted().is_some();
    if has_none {
        requires::left_out(test, "the store is in no folder");
    }
    has_none
}

/// A running service.
pub struct Service {
    pub home: PathBuf,
    pub url: String,
    pub application_id: String,
    pub http: reqwest::blocking::Client,
    settings: Vec<(String, String)>,
    child: Option<Child>,
    /// The nodes, if it has several. Then `child` is none of them.
    cluster: Option<nodes::Cluster>,
    port: u16,
    dashboard_port: u16,
    /// A session of the first administrator, for what tests need of it.
    administrator: OnceLock<Person>,
    /// Whether the test leaves work to owners on purpose.
    leaves_work: AtomicBool,
    _home: Option<tempfile::TempDir>,
}

impl Service {
    /// Starts a service in a new empty directory.
    pub fn start() -> Service {
        Self::start_with(&[])
    }

    /// Starts a service in a new empty directory, with these settings. `{port}` in a setting stands for
    /// the port of the service.
    pub fn start_with(settings: &[(&str, &str)]) -> Service {
        let mut service = Self::unstarted(settings);
        service.boot();
        service.learn_its_id();
        service
    }

    fn learn_its_id(&mut self) {
        let keys = std::fs::read(self.data().join("secrets/keys.json")).unwrap();
        let keys: Value = serde_json::from_slice(&keys).unwrap();
        self.application_id = keys["applicationId"].as_str().unwrap().to_owned();
    }

    /// A service in a new empty directory, with these settings, which nobody has started.
    pub fn unstarted(settings: &[(&str, &str)]) -> Service {
        let mut service = Self::alone(settings);
        if let Some(count) = nodes::wanted() {
            service.spread(count);
        }
        service
    }

    /// Like [`unstarted`](Service::unstarted), and one process in any case.
    pub fn alone(settings: &[(&str, &str)]) -> Service {
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
            cluster: None,
            port,
            dashboard_port: free_port(),
            administrator: OnceLock::new(),
            leaves_work: AtomicBool::new(false),
            _home: Some(home),
        };
        std::fs::create_dir(service.temporary()).unwrap();
        if std::env::var_os(ON_POSTGRES).is_some() && !service.has("SVC_STORE") {
            service.set("SVC_STORE", &postgres::new_store("a service").unwrap());
        }
        service
    }

    fn has(&self, setting: &str) -> bool {
        self.settings.iter().any(|(name, _)| name == setting)
    }

    /// Takes a variable away for the next start.
    pub fn unset(&mut self, name: &str) {
        self.settings.retain(|(known, _)| known != name);
    }

    /// Sets a variable for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
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

    /// The folder with the rows of the store, or with their copy.
    pub fn rows(&self) -> PathBuf {
        self.data().join(if self.has("SVC_STORE") { "copy" } else { "store" })
    }

    /// The folder for the temporary files of the service.
    fn temporary(&self) -> PathBuf {
        self.home.join("temporary")
    }

    /// The program as `boot` starts it, under these programs.
    pub fn command(&self, under: &[&str]) -> Command {
        self.command_of(0, under)
    }

    fn command_of(&self, node: usize, under: &[&str]) -> Command {
        let own = (Place::here(), self.port, self.dashboard_port);
        let node_of = |cluster: &nodes::Cluster| {
            let node = &cluster.nodes[node];
            (node.place.clone(), node.port, node.dashboard_port)
        };
        let (place, port, dashboard_port) = self.cluster.as_ref().map_or(own, node_of);
        let address = &place.address;
        let log =
            std::fs::File::options().create(true).append(true).open(self.home.join("log")).unwrap();
        let mut words = under.iter().chain(&[SVC, "serve"]);
        let mut command = place.command(words.next().unwrap());
        command.args(words).current_dir(self.home_of(node)).stdin(Stdio::null());
        command.env("SVC_LISTEN", format!("{address}:{port}")).env("SVC_LOG", "info");
        command.env("SVC_DASHBOARD_LISTEN", format!("{address}:{dashboard_port}"));
        // Only tests of containers use the engine of this machine.
        command.env("SVC_DOCKER_HOST", "unix:///nonexistent/docker.sock");
        command.env("TMPDIR", self.temporary());
        command.envs(self.settings.iter().cloned()).stdout(log.try_clone().unwrap()).stderr(log);
        command
    }

    /// Starts the program and waits until it is ready.
    pub fn boot(&mut self) {
        if self.cluster.is_some() {
            return self.boot_nodes();
        }
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
        self.end_nodes("KILL");
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    pub fn runs(&self) -> bool {
        self.process().is_some()
    }

    /// The process of the service, or of its first node.
    fn process(&self) -> Option<&Child> {
        let first = self.cluster.as_ref().and_then(|cluster| cluster.nodes[0].child.as_ref());
        self.child.as_ref().or(first)
    }

    pub fn pid(&self) -> u32 {
        self.process().unwrap().id()
    }

    /// Sends a signal without waiting.
    pub fn signal(&self, name: &str) {
        let id = self.pid().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Sends SIGTERM, and waits for the end.
    pub fn stop(&mut self) {
        self.end_nodes("TERM");
        let Some(mut child) = self.child.take() else { return };
        let stopped =
            Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(stopped.success());
        assert!(child.wait().unwrap().success(), "{}", self.last_words());
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
        let store = self.settings.iter().filter(|(name, _)| name == "SVC_STORE").cloned();
        command
            .envs(store)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that reads no input may have ended.
        if let Err(e) = child.stdin.take().unwrap().write_all(input.as_bytes()) {
            assert_eq!(e.kind(), std::io::ErrorKind::BrokenPipe, "{e}");
        }
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

    /// The program with these arguments, on the data of this service and with its settings.
    pub fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(SVC);
        command.args(args).current_dir(&self.home).envs(self.settings.iter().cloned());
        command
    }

    /// Runs `svc admin` on the data of this service.
    pub fn admin(&self, args: &[&str]) -> Output {
        self.program(&[&["admin"], args].concat()).output().unwrap()
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

/// How long anything is waited for: on a busy machine, all else goes before a build, which may take minutes.
pub const LONGEST: Duration = Duration::from_secs(600);

/// Waits until `holds` is true, for at most [`LONGEST`].
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONGEST, "{what}: not within {} s", LONGEST.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
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
