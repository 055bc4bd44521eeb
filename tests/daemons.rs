//! Engines that a test may take away: a way to the shared one that can be cut, and a daemon of the
//! test's own.

use std::{
    fs::File,
    io::Write,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

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

/// A Docker daemon that only one test uses. It leaves the rules of this machine's firewall alone, and
/// has a bridge of its own and the usual pool of addresses: without these, it would remove the bridge
/// of the machine's daemon when it starts.
pub struct Daemon {
    /// Where a service finds it.
    pub address: String,
    folder: tempfile::TempDir,
    child: Option<Child>,
}

const BRIDGE: &str = "svc-test-bridge";

impl Daemon {
    /// Starts one; or says which test is left out because it cannot be.
    pub fn start(test: &str) -> Option<Daemon> {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("unix://{}/docker.sock", folder.path().display());
        let mut daemon = Daemon { address, folder, child: None };
        ip(&["link", "add", "name", BRIDGE, "type", "bridge"]);
        let has_bridge = ip(&["address", "replace", "10.212.0.1/24", "dev", BRIDGE]);
        if has_bridge && daemon.boot() {
            return Some(daemon);
        }
        // Not by the macro: the output of tests that pass is not shown.
        let log = daemon.log();
        let why = log.lines().last().unwrap_or("no bridge can be made for a daemon of its own");
        let _ = writeln!(std::io::stderr(), "left out: {test} because {why}");
        None
    }

    /// Starts it again; whether it answers. One that was killed finds so much left behind that it
    /// may give up at first: then it is started once more, as a service manager does.
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
        command.arg(format!("--bridge={BRIDGE}"));
        command.args(["--iptables=false", "--ip-forward=false"]);
        command.arg("--ip-masq=false");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Ends it with this signal, and waits for its end. When it is asked to end, it first ends its
    /// containers.
    pub fn end(&mut self, signal: &str) {
        let Some(mut child) = self.child.take() else { return };
        let id = child.id().to_string();
        let _ = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        let _ = child.wait();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that was killed has left its containers running.
        if self.child.is_none() {
            self.boot();
        }
        let all = "docker -H $H ps -aq | xargs -r docker -H $H rm -fv; \
            docker -H $H network ls -q --filter type=custom | xargs -r docker -H $H network rm";
        let _ = Command::new("sh").args(["-c", all]).env("H", &self.address).output();
        self.end("TERM");
        // What one that was killed had mounted is mounted still.
        let data = self.folder.path().join("data");
        let _ = Command::new("umount").args(["--recursive", "--lazy"]).arg(data).output();
        ip(&["link", "delete", BRIDGE]);
    }
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|done| done.status.success())
}
