//! A real container engine for tests, with real images in a registry of this machine. Where there is
//! none, tests say so by their name and are left out.

use crate::service::Service;
use std::{
    collections::BTreeMap,
    io::Write,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// What there is for all tests of this process.
pub struct Engine {
    /// Where the registry listens.
    pub registry: String,
    /// The images as they were built, by name.
    pub images: BTreeMap<String, String>,
    _registry: Child,
    _folder: tempfile::TempDir,
}

/// The images of the shipped catalogue, as the registry has them: repository, tag, and the built
/// image that stands for it.
const SHIPPED: [(&str, &str, &str, &str); 5] = [
    ("postgres", "postgres", "15", "postgresql"),
    ("parseplatform/parse-server", "parse-server", "9.10.0", "parse-server"),
    ("127.0.0.1:5000/vendure-server", "vendure-server", "3.5.6", "vendure-server"),
    ("127.0.0.1:5000/vendure-dashboard", "vendure-dashboard", "3.5.6", "vendure-dashboard"),
    ("127.0.0.1:5000/storefront", "storefront", "1.0.0", "storefront"),
];

/// What is deployed later: tag of `parse-server`, and the built image.
const LATER: [(&str, &str); 2] = [("2", "parse-server-2"), ("sick", "parse-server-sick")];

/// The engine; or none, and the test is left out.
pub fn engine(test: &str) -> Option<&'static Engine> {
    static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();
    match ENGINE.get_or_init(Engine::bring_up) {
        Ok(engine) => Some(engine),
        Err(why) => {
            // Not by the macro: the output of tests that pass is not shown.
            let _ = writeln!(std::io::stderr(), "left out: {test} because {why}");
            None
        }
    }
}

/// Runs docker's client; what it printed.
pub fn docker(args: &[&str]) -> String {
    let done = Command::new("docker").args(args).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "docker {args:?}: {}", text(&done.stderr));
    text(&done.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn run(command: &mut Command) -> Result<Output, String> {
    command.stdin(Stdio::null()).output().map_err(|e| e.to_string())
}

impl Engine {
    fn bring_up() -> Result<Engine, String> {
        let answers =
            run(Command::new("docker").args(["version", "--format", "{{.Server.Version}}"]));
        if !answers.is_ok_and(|done| done.status.success()) {
            return Err("no container engine answers".into());
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images/build.sh");
        let built = run(&mut Command::new(script))?;
        if !built.status.success() {
            return Err(format!("its images cannot be built: {}", text(&built.stderr)));
        }
        let printed = text(&built.stdout);
        let images = printed.lines().filter_map(|line| line.split_once(' '));
        let images: BTreeMap<String, String> =
            images.map(|(name, reference)| (name.to_owned(), reference.to_owned())).collect();
        let (child, folder, registry) = start_registry()?;
        let engine = Engine { registry, images, _registry: child, _folder: folder };
        for (_, repository, tag, image) in SHIPPED {
            engine.publish(image, repository, tag);
        }
        for (tag, image) in LATER {
            engine.publish(image, "parse-server", tag);
        }
        Ok(engine)
    }

    /// Puts a built image into the registry; its name there.
    pub fn publish(&self, image: &str, repository: &str, tag: &str) -> String {
        let name = format!("{}/{repository}:{tag}", self.registry);
        docker(&["tag", &self.images[image], &name]);
        docker(&["push", "--quiet", &name]);
        docker(&["rmi", &name]);
        name
    }

    /// A service that runs containers, with the shipped catalogue.
    pub fn service(&self, settings: &[(&str, &str)]) -> Installed {
        let mirrors =
            SHIPPED.map(|(of, repository, ..)| format!("{of}={}/{repository}", self.registry));
        let mirrors = mirrors.join(",");
        let socket = std::env::var("DOCKER_HOST");
        let socket = socket.unwrap_or_else(|_| "unix:///var/run/docker.sock".into());
        let mut all = vec![
            ("SVC_DOCKER_HOST", socket.as_str()),
            ("SVC_IMAGE_MIRRORS", &mirrors),
            ("SVC_WATCH_INTERVAL", "1"),
            ("SVC_ANONYMOUS_TIER", "enterprise"),
        ];
        // Later ones win.
        all.extend(settings);
        Installed(Service::start_with(&all))
    }
}

/// Debian's registry, on a free port, in an empty folder.
fn start_registry() -> Result<(Child, tempfile::TempDir, String), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let root = folder.path().join("registry");
    let config = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"{address}\"}}\n",
        root.display()
    );
    let path = folder.path().join("config.yml");
    std::fs::write(&path, config).map_err(|e| e.to_string())?;
    let mut command = Command::new("docker-registry");
    command.arg("serve").arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|_| "docker-registry is missing".to_owned())?;
    let begun = Instant::now();
    while std::net::TcpStream::connect(&address).is_err() {
        if begun.elapsed() > Duration::from_secs(10) {
            return Err("docker-registry does not start".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((child, folder, address))
}

/// A way to the engine that can be cut, as if the engine was stopped.
pub struct Cuttable {
    /// Where a service finds it.
    pub address: String,
    open: std::sync::Arc<std::sync::atomic::AtomicBool>,
    _folder: tempfile::TempDir,
}

impl Cuttable {
    pub fn new() -> Cuttable {
        use std::{
            io,
            os::unix::net::{UnixListener, UnixStream},
            sync::{Arc, atomic::AtomicBool},
            thread::spawn,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("docker.sock");
        let (listener, open) =
            (UnixListener::bind(&path).unwrap(), Arc::new(AtomicBool::new(true)));
        let is_open = open.clone();
        spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = UnixStream::connect("/var/run/docker.sock") else { continue };
                let ends = [near, far];
                for (from, to) in [(0, 1), (1, 0)] {
                    let mut from = ends[from].try_clone().unwrap();
                    let mut to = ends[to].try_clone().unwrap();
                    spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
                let is_open = is_open.clone();
                spawn(move || {
                    while is_open.load(std::sync::atomic::Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    let _ = ends.map(|end| end.shutdown(std::net::Shutdown::Both));
                });
            }
        });
        Cuttable { address: format!("unix://{}", path.display()), open, _folder: folder }
    }

    /// Cuts it, or opens it again. Connections that are open are cut.
    pub fn set_open(&self, open: bool) {
        self.open.store(open, std::sync::atomic::Ordering::SeqCst);
    }
}

/// A service whose containers, networks and volumes go with it.
pub struct Installed(pub Service);

impl std::ops::Deref for Installed {
    type Target = Service;
    fn deref(&self) -> &Service {
        &self.0
    }
}

impl std::ops::DerefMut for Installed {
    fn deref_mut(&mut self) -> &mut Service {
        &mut self.0
    }
}

impl Installed {
    /// What the engine has of this installation, or of one instance of it.
    pub fn objects(&self, instance: Option<&str>) -> Vec<String> {
        let filter = match instance {
            Some(id) => format!("label=svc.instance={id}"),
            None => format!("label=svc.installation={}", self.application_id),
        };
        let lists: [&[&str]; 3] = [
            &["ps", "--all", "--quiet", "--filter"],
            &["network", "ls", "--quiet", "--filter"],
            &["volume", "ls", "--quiet", "--filter"],
        ];
        let list = |args: &[&str]| docker(&[args, &[filter.as_str()]].concat());
        lists
            .iter()
            .flat_map(|args| list(args).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        self.0.kill();
        let filter = format!("label=svc.installation={}", self.0.application_id);
        let sweep = "docker ps -aq --filter $F | xargs -r docker rm -fv; \
            docker network ls -q --filter $F | xargs -r docker network rm; \
            docker volume ls -q --filter $F | xargs -r docker volume rm; \
            docker images -q --filter $F | sort -u | xargs -r docker rmi -f";
        let _ = Command::new("sh").args(["-c", sweep]).env("F", filter).output();
    }
}
