//! Engines that a test may interrupt: a connection to the shared engine, and a separate daemon.

use crate::support::{engine::engine_host, ports::free_port, requires};
use std::{
    fs::File,
    io,
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex, Weak},
    thread::spawn,
    time::{Duration, Instant},
};

/// A connection to the engine that can be cut, as if the engine had stopped.
pub struct Cuttable {
    /// The value of `SVC_DOCKER_HOST` for a service.
    pub address: String,
    ways: Arc<Mutex<Ways>>,
    _folder: tempfile::TempDir,
}

/// The connections to the engine, each with its near and its far end.
struct Ways {
    are_open: bool,
    connections: Vec<Weak<[UnixStream; 2]>>,
}

impl Cuttable {
    pub fn new() -> Cuttable {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("docker.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let ways = Arc::new(Mutex::new(Ways { are_open: true, connections: Vec::new() }));
        let host = engine_host();
        let engine = host.strip_prefix("unix://").expect("an engine at a socket").to_owned();
        let shared = ways.clone();
        spawn(move || {
            for near in listener.incoming().flatten() {
                let mut ways = shared.lock().unwrap();
                let Ok(far) = UnixStream::connect(&engine) else { continue };
                if !ways.are_open {
                    continue;
                }
                let ends = Arc::new([near, far]);
                ways.connections.retain(|connection| connection.strong_count() > 0);
                ways.connections.push(Arc::downgrade(&ends));
                for (from, to) in [(0, 1), (1, 0)] {
                    let ends = ends.clone();
                    spawn(move || {
                        let _ = io::copy(&mut &ends[from], &mut &ends[to]);
                        let _ = ends[to].shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Cuttable { address: format!("unix://{}", path.display()), ways, _folder: folder }
    }

    /// Opens the way to the engine, or closes it and cuts all connections.
    pub fn set_open(&self, open: bool) {
        let mut ways = self.ways.lock().unwrap();
        ways.are_open = open;
        if !open {
            for ends in ways.connections.drain(..).filter_map(|connection| connection.upgrade()) {
                for end in ends.iter() {
                    let _ = end.shutdown(Shutdown::Both);
                }
            }
        }
    }
}

impl Drop for Cuttable {
    fn drop(&mut self) {
        self.set_open(false);
    }
}

/// A Docker daemon for one test. It does not change the firewall of the machine; the test adds the one rule
/// with which containers of one network reach each other. It has its own bridge and the usual pool of
/// addresses, because otherwise its start would remove the bridge of the machine's daemon.
pub struct Daemon {
    /// The value of `SVC_DOCKER_HOST` for a service.
    pub address: String,
    folder: tempfile::TempDir,
    bridge: String,
    child: Option<Child>,
    /// The port of 127.0.0.1 at which it speaks TLS.
    tls: Option<u16>,
}

impl Daemon {
    /// Starts a daemon, or reports that the test is left out.
    pub fn start(test: &str) -> Option<Daemon> {
        Daemon::start_in(test, tempfile::tempdir().unwrap(), None)
    }

    /// Starts a daemon that also speaks TLS, with those who have a certificate of its authority.
    pub fn start_with_tls(test: &str) -> Option<Daemon> {
        let folder = tempfile::tempdir().unwrap();
        make_certificates(folder.path());
        Daemon::start_in(test, folder, Some(free_port()))
    }

    /// Starts a daemon with a disk of its own, which has so many GiB.
    pub fn start_with_disk(test: &str, size: u32) -> Option<Daemon> {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let make = format!(
            "cd {} && truncate --size {size}G disk && mkfs.ext4 -q -m 0 disk && mkdir data && \
             mount -o loop disk data",
            folder.path().display()
        );
        let made = Command::new("sh").args(["-c", &make]).output().unwrap();
        if made.status.success() {
            return Daemon::start_in(test, folder, None);
        }
        let why = String::from_utf8_lossy(&made.stderr);
        requires::left_out(test, &format!("its disk cannot be made: {}", why.trim()));
        None
    }

    fn start_in(test: &str, folder: tempfile::TempDir, tls: Option<u16>) -> Option<Daemon> {
        let address = format!("unix://{}/docker.sock", folder.path().display());
        // Other tests of this machine have such a bridge too.
        let bridge = format!("svc-test-{:06x}", fastrand::u32(..1 << 24));
        let range = format!("10.212.{}.1/24", fastrand::u8(..));
        ip(&["link", "add", "name", &bridge, "type", "bridge"]);
        let has_bridge = ip(&["address", "replace", &range, "dev", &bridge]);
        let mut daemon = Daemon { address, folder, bridge, child: None, tls };
        daemon.firewall("-I");
        if has_bridge && daemon.boot() {
            return Some(daemon);
        }
        let log = daemon.log();
        let why = log.lines().last().unwrap_or("no bridge can be made for a daemon of its own");
        requires::left_out(test, why);
        None
    }

    /// Starts the daemon and returns whether it answers. A daemon may exit at its first start after
    /// a kill, because of leftovers. Then it is started again, as a service manager does.
    pub fn boot(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let alive =
                self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_none());
            if !alive && self.spawn().is_err() {
                return false;
            }
            let mut info = Command::new("docker");
            info.args(["-H", &self.address, "info"]);
            if info.output().is_ok_and(|done| done.status.success()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    fn spawn(&mut self) -> std::io::Result<()> {
        let at = |name: &str| self.folder.path().join(name);
        let log = File::options().create(true).append(true).open(at("log"))?;
        let mut command = Command::new("dockerd");
        command.arg("--data-root").arg(at("data")).arg("--exec-root").arg(at("exec"));
        command.arg("--pidfile").arg(at("pid")).arg("--host").arg(&self.address);
        command.arg(format!("--bridge={}", self.bridge));
        command.args(["--iptables=false", "--ip-forward=false"]);
        command.arg("--ip-masq=false");
        if let Some(port) = self.tls {
            // Before Docker 23, all daemons of a machine call themselves by one key.
            let key = serde_json::json!({"deprecated-key-path": at("key.json")});
            let of_one = if version().starts_with("20.") { key } else { serde_json::json!({}) };
            std::fs::write(at("config.json"), of_one.to_string())?;
            command.arg("--config-file").arg(at("config.json"));
            command.arg(format!("--host=tcp://127.0.0.1:{port}")).arg("--tlsverify");
            command.arg("--tlscacert").arg(at("ca.pem"));
            command
                .arg("--tlscert")
                .arg(at("server.pem"))
                .arg("--tlskey")
                .arg(at("server-key.pem"));
        }
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Adds the rule of the firewall (`-I`), or removes it (`-D`).
    fn firewall(&self, what: &str) {
        let rule = ["-m", "physdev", "--physdev-is-bridged", "-j", "ACCEPT"];
        let _ = Command::new("iptables").args(["-w", what, "FORWARD"]).args(rule).output();
    }

    /// Sends the signal to the daemon and waits for its end. After SIGTERM, the daemon first stops
    /// its containers.
    pub fn end(&mut self, signal: &str) {
        let Some(mut child) = self.child.take() else { return };
        let id = child.id().to_string();
        let _ = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        let _ = child.wait();
    }

    /// Sends a signal to the daemon, which goes on.
    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("a daemon that runs").id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Takes what its disk has left, until [`free`](Daemon::free).
    pub fn fill(&self) {
        let taken = self.taken();
        std::fs::create_dir_all(&taken).unwrap();
        for (number, size) in ["1G", "64M", "1M", "4K"].into_iter().enumerate() {
            let take = |part: u32| {
                let file = taken.join(format!("{number}-{part}"));
                Command::new("fallocate").args(["--length", size]).arg(file).output().unwrap()
            };
            (0..2000).take_while(|part| take(*part).status.success()).for_each(drop);
        }
    }

    /// Gives back what was taken of its disk.
    pub fn free(&self) {
        std::fs::remove_dir_all(self.taken()).unwrap();
    }

    fn taken(&self) -> PathBuf {
        self.folder.path().join("data/taken")
    }

    /// Where it speaks TLS.
    pub fn tls_address(&self) -> String {
        format!("127.0.0.1:{}", self.tls.expect("a daemon with TLS"))
    }

    /// A file of its certificates: `ca.pem`, `client.pem`, `client-key.pem` or `stranger.pem`.
    pub fn pem(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// Runs the `docker` client with this daemon.
    pub fn docker(&self, args: &[&str]) -> Output {
        Command::new("docker").args(["-H", &self.address]).args(args).output().unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A killed daemon leaves its containers running.
        if self.child.is_none() {
            self.boot();
        }
        let all = "docker -H $H ps -aq | xargs -r docker -H $H rm -fv; \
            docker -H $H network ls -q --filter type=custom | xargs -r docker -H $H network rm";
        let _ = Command::new("sh").args(["-c", all]).env("H", &self.address).output();
        self.end("TERM");
        // Shims of containers that ran when the daemon was killed may remain, and keep what they inherited open.
        let folder = self.folder.path().display().to_string();
        let _ = Command::new("pkill").args(["-KILL", "-f", &folder]).status();
        // The mounts of a killed daemon remain, and that of a network namespace always does.
        let unmount = "umount --lazy exec/netns/*; umount --recursive --lazy data";
        let _ = Command::new("sh").args(["-c", unmount]).current_dir(&self.folder).output();
        ip(&["link", "delete", &self.bridge]);
        self.firewall("-D");
    }
}

/// Makes an authority, the certificates of a server and of a client, and another authority that signed neither.
fn make_certificates(folder: &Path) {
    let make = "printf '[req]\ndistinguished_name=d\n[d]\n' > cnf
        for ca in ca stranger; do
            openssl req -config cnf -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
                -subj /CN=$ca -addext basicConstraints=critical,CA:TRUE -keyout $ca-key.pem -out $ca.pem
        done
        for who in server client; do
            openssl req -config cnf -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$who \
                -keyout $who-key.pem -out $who.csr
            printf 'extendedKeyUsage=%sAuth\nsubjectAltName=IP:127.0.0.1\n' $who > $who.ext
            openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 20 \
                -extfile $who.ext -out $who.pem
        done";
    let made = Command::new("sh").args(["-ec", make]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The version of Docker.
fn version() -> String {
    let told = Command::new("dockerd").arg("--version").output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout);
    told.trim_start_matches("Docker version ").to_owned()
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|done| done.status.success())
}
