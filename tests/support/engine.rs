//! A real container engine for tests, with real images in a registry of this machine. Without an
//! engine, tests report their names and are left out.

use crate::support::{
    ports::free_port,
    requires,
    service::{Service, eventually},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The engine and the registry of all tests of this process.
pub struct Engine {
    /// The address of the registry.
    pub registry: String,
    /// The references of the built images, by name.
    pub images: BTreeMap<String, String>,
    /// The npm registry of this machine, for recipes.
    npm_registry: String,
    _registry: Child,
    folder: tempfile::TempDir,
}

/// The pulled images of the shipped catalogue: the name in the catalogue, the repository and the tag in
/// the registry, and the built image that stands for it.
const SHIPPED: [(&str, &str, &str, &str); 2] = [
    ("postgres", "postgres", "15", "postgresql"),
    ("parseplatform/parse-server", "parse-server", "9.10.1-alpha.13", "parse-server"),
];

/// The built image that shipped recipes build upon.
const RECIPE_BASE: &str = "recipe-base";
/// The built image from which that of isolated builds is made.
const BUILDER_BASE: &str = "builder-base";

/// Base images of the tests. Builds ask the registry for them, even if the engine has them.
const BASES: [&str; 2] = ["parse-server", "toolbox"];

/// Other versions for deployments: the tag of `parse-server`, and the built image. `9.10.0` is only a
/// name: it has known security advisories.
const OTHERS: [(&str, &str); 3] =
    [("9.10.0", "parse-server"), ("2", "parse-server-2"), ("sick", "parse-server-sick")];

/// The engine, or `None` if the test is left out.
pub fn engine(test: &str) -> Option<&'static Engine> {
    static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();
    match ENGINE.get_or_init(Engine::bring_up) {
        Ok(engine) => Some(engine),
        Err(why) => {
            requires::left_out(test, why);
            None
        }
    }
}

/// The address of the engine.
pub fn engine_host() -> String {
    std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".into())
}

/// Runs the `docker` client and returns its output.
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
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/images/build.sh");
        let built = run(&mut Command::new(script))?;
        if !built.status.success() {
            return Err(format!("its images cannot be built: {}", text(&built.stderr)));
        }
        let printed = text(&built.stdout);
        let images = printed.lines().filter_map(|line| line.split_once(' '));
        let images: BTreeMap<String, String> =
            images.map(|(name, reference)| (name.to_owned(), reference.to_owned())).collect();
        let npm = run(Command::new("npm").args(["config", "get", "registry"]))?;
        let npm_registry = text(&npm.stdout);
        forget_registries();
        let (child, folder, registry) = start_registry()?;
        let engine = Engine { registry, images, npm_registry, _registry: child, folder };
        for (_, repository, tag, image) in SHIPPED {
            engine.publish(image, repository, tag);
        }
        for (tag, image) in OTHERS {
            engine.publish(image, "parse-server", tag);
        }
        for image in BASES {
            engine.publish(image, &format!("base-{image}"), "1");
        }
        Ok(engine)
    }

    /// The name of this base image for a Dockerfile.
    pub fn base(&self, image: &str) -> String {
        assert!(BASES.contains(&image), "{image}");
        format!("{}/base-{image}:1", self.registry)
    }

    /// Pushes a built image to the registry and returns its name there.
    pub fn publish(&self, image: &str, repository: &str, tag: &str) -> String {
        let name = format!("{}/{repository}:{tag}", self.registry);
        docker(&["tag", &self.images[image], &name]);
        docker(&["push", "--quiet", &name]);
        docker(&["rmi", &name]);
        name
    }

    /// Removes a repository from the registry.
    pub fn lose(&self, repository: &str) {
        let all = self.folder.path().join("registry/docker/registry/v2/repositories");
        std::fs::remove_dir_all(all.join(repository)).unwrap();
    }

    /// Starts a service with this engine and the shipped catalogue.
    pub fn service(&self, settings: &[(&str, &str)]) -> Installed {
        self.with_settings(settings, |all| Installed(Service::start_with(all)))
    }

    /// Like [`service`](Engine::service), on so many nodes. `None`: this test is left out.
    pub fn service_on_nodes(
        &self,
        test: &str,
        count: usize,
        settings: &[(&str, &str)],
    ) -> Option<Installed> {
        self.with_settings(settings, |all| Service::on_nodes_with(test, count, all).map(Installed))
    }

    fn with_settings<T>(
        &self,
        settings: &[(&str, &str)],
        start: impl FnOnce(&[(&str, &str)]) -> T,
    ) -> T {
        let mirrors =
            SHIPPED.map(|(of, repository, ..)| format!("{of}={}/{repository}", self.registry));
        let mirrors = mirrors.join(",");
        let host = engine_host();
        let reached = format!("{},{}", self.registry, host_and_port(&self.npm_registry));
        let mut all = vec![
            ("SVC_BUILDER_BASE_IMAGE", self.images[BUILDER_BASE].as_str()),
            ("SVC_BUILD_PRIVATE_HOSTS", &reached),
            ("SVC_DOCKER_HOST", host.as_str()),
            ("SVC_IMAGE_MIRRORS", &mirrors),
            ("SVC_RECIPE_BASE_IMAGE", &self.images[RECIPE_BASE]),
            ("SVC_RECIPE_NPM_REGISTRY", &self.npm_registry),
            ("SVC_WATCH_INTERVAL", "1"),
            ("SVC_ANONYMOUS_TIER", "enterprise"),
        ];
        // The last value of a setting counts.
        all.extend(settings);
        start(&all)
    }

    /// Like [`service`](Engine::service), with a public URL that containers and this machine reach.
    pub fn service_for_containers(&self, settings: &[(&str, &str)]) -> Installed {
        let public = format!("http://{}:{{port}}", address_for_containers());
        let reached = [("SVC_LISTEN", "0.0.0.0:{port}"), ("SVC_PUBLIC_URL", public.as_str())];
        self.service(&[&reached[..], settings].concat())
    }
}

/// The host and the port of an address. The registry of this machine may be on its internal network.
fn host_and_port(url: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    format!("{}:{}", url.host_str().unwrap(), url.port_or_known_default().unwrap())
}

/// This machine's address in the engine's default network. Until its second start an engine does not
/// name it, so the kernel is asked which address it sends from.
pub fn address_for_containers() -> IpAddr {
    let format = "{{(index .IPAM.Config 0).Subnet}}";
    let subnet = docker(&["network", "inspect", "bridge", "--format", format]);
    let network: Ipv4Addr = subnet.split('/').next().unwrap().parse().unwrap();
    let neighbour = Ipv4Addr::from_bits(network.to_bits() + 2);
    // This sends nothing.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    socket.connect((neighbour, 9)).unwrap();
    socket.local_addr().unwrap().ip()
}

/// Removes the names of images from registries of earlier runs.
fn forget_registries() {
    let format = "{{.Repository}}:{{.Tag}}\n{{.Repository}}@{{.Digest}}";
    for name in docker(&["images", "--digests", "--format", format]).lines() {
        let registry = name.split('/').next().filter(|host| host.starts_with("127.0.0.1:"));
        if registry.is_some_and(|host| std::net::TcpStream::connect(host).is_err()) {
            let _ = run(Command::new("docker").args(["rmi", name]));
        }
    }
}

/// Debian's registry, on a free port, in an empty folder.
fn start_registry() -> Result<(Child, tempfile::TempDir, String), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let root = folder.path().join("registry");
    let config = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"{address}\"}}\n",
        root.display()
    );
    let path = folder.path().join("config.yml");
    std::fs::write(&path, config).map_err(|e| e.to_string())?;
    if !run(Command::new("docker-registry").arg("--version")).is_ok_and(|r| r.status.success()) {
        return Err("docker-registry is missing".into());
    }
    // Rust drops no static values, so the shell ends the registry when this process has ended.
    let serve = "docker-registry serve \"$0\" & read _; kill $!";
    let mut command = Command::new("sh");
    command.args(["-c", serve]).arg(path).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|e| e.to_string())?;
    let begun = Instant::now();
    while std::net::TcpStream::connect(&address).is_err() {
        if begun.elapsed() > Duration::from_secs(10) {
            return Err("docker-registry does not start".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((child, folder, address))
}

/// A service. Dropping it removes its containers, networks and volumes.
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
    /// The engine's containers, networks and volumes of this installation, or of one instance.
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

    /// Waits until so many objects are left, of this installation or of one instance.
    pub fn has_objects(&self, instance: Option<&str>, count: usize) {
        let begun = Instant::now();
        while self.objects(instance).len() != count {
            if begun.elapsed() > Duration::from_secs(60) {
                let format = "{{.Names}} {{.Image}} {{.Status}} {{.Labels}}";
                let label = format!("label=svc.installation={}", self.application_id);
                let all = docker(&["ps", "--all", "--filter", &label, "--format", format]);
                let found = self.objects(instance);
                panic!(
                    "{} objects, not {count}: {found:?}, of these containers:\n{all}",
                    found.len()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Installed {
    /// Waits until the service knows all of its containers.
    fn knows_its_containers(&self) {
        eventually("the service knows its containers", || {
            let answer = self.http.get(format!("{}/readyz", self.url)).send().unwrap();
            let engine = answer.json::<Value>().unwrap()["checks"]["engine"].take();
            engine["ok"] == false || engine["orphans"] == 0
        });
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _removed = Objects { of: self.0.application_id.clone() };
        if std::thread::panicking() || !self.0.runs() {
            return self.0.kill();
        }
        self.knows_its_containers();
        self.0.leaves_nothing();
    }
}

/// The containers, networks, volumes and images of an installation. Dropping the value removes them.
struct Objects {
    /// The application id.
    of: String,
}

impl Drop for Objects {
    fn drop(&mut self) {
        let filter = format!("label=svc.installation={}", self.of);
        // The layers of recipes stay, so that the next build takes a moment.
        let sweep = "docker ps -aq --filter $F | xargs -r docker rm -fv; \
            docker network ls -q --filter $F | xargs -r docker network rm; \
            docker ps -aq --filter $W | xargs -r docker rm -fv; \
            docker network ls -q --filter $W | xargs -r docker network rm; \
            docker volume ls -q --filter $F | xargs -r docker volume rm; \
            docker volume ls -q --filter $C | xargs -r docker volume rm; \
            docker images --filter $F --filter 'reference=svc/recipes/*' --format '{{.Repository}}:{{.Tag}}' \
            | xargs -r docker rmi -f --no-prune; \
            docker images -q --filter $F | sort -u | xargs -r docker rmi -f";
        let caches = format!("label=svc.builds={}", self.of);
        let walls = format!("label=svc.walls={}", self.of);
        let mut sh = Command::new("sh");
        sh.args(["-c", sweep]).env("F", filter).env("C", caches).env("W", walls);
        let _ = sh.output();
    }
}

/// Makes a template with these services and returns its id. Each service names a built image, and
/// optionally its repository in the registry.
pub fn template(service: &Installed, engine: &Engine, services: Value) -> Value {
    let admin = service.administrator();
    let call = |function: &str, params: Value| service.call(Some(&admin), function, params).ok();
    let image = |name: &str, image: &str| {
        let reference = engine.publish(image, name, "1");
        let repository = reference.rsplit_once(':').unwrap().0;
        let made = call("registerDockerImage", json!({"name": name, "repository": repository}));
        call("addDockerImageVersion", json!({"imageId": made["id"], "version": "1"}));
        made["id"].clone()
    };
    let mut services = services;
    for service in services.as_array_mut().unwrap() {
        let built = service["image"].as_str().unwrap().to_owned();
        let shared = format!("test-{built}");
        let repository = service["repository"].as_str().unwrap_or(&shared).to_owned();
        let fields = service.as_object_mut().unwrap();
        fields.remove("image");
        fields.remove("repository");
        fields.insert("imageId".into(), image(&repository, &built));
        fields.insert("imageVersion".into(), json!("1"));
    }
    let made = json!({"name": "Test", "slug": "test", "kind": "backend", "category": "test"});
    let id = call("createTemplate", made)["id"].clone();
    let version = json!({"templateId": id, "version": "1.0.0", "services": services});
    call("addTemplateDockerVersion", version);
    call("updateTemplateStatus", json!({"templateId": id, "status": "published"}));
    id
}
