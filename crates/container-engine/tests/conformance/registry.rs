//! An image registry on this machine, for one test.

use container_engine::RegistryLogin;
use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};
use tempfile::TempDir;

/// The bcrypt hash of the password `~~~???>>>{}`.
const HASH: &str = "$2b$04$50PasiF0h5IvSm0ulIkwMOIjHTQTvEuZMFPzDvEMKDl8fDpkUw0WS";

/// A running `docker-registry` of Debian.
pub struct Registry {
    pub host: String,
    process: Child,
    _folder: TempDir,
}

impl Registry {
    /// `None`: the program is not installed.
    pub fn start(login: Option<&RegistryLogin>) -> Option<Registry> {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let host = format!("127.0.0.1:{port}");
        let path = folder.path().display();
        let auth = login.map_or(String::new(), |login| {
            assert_eq!(login.password, "~~~???>>>{}", "of this one the hash is known");
            let known = format!("{}:{HASH}\n", login.username);
            fs::write(folder.path().join("htpasswd"), known).unwrap();
            format!("auth:\n  htpasswd:\n    realm: test\n    path: {path}/htpasswd\n")
        });
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: \
             {path}/data\nhttp:\n  addr: {host}\n{auth}"
        );
        let file = folder.path().join("config.yml");
        fs::write(&file, config).unwrap();
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = process else {
            let why = "left out: what needs a registry, because docker-registry is missing";
            let _ = writeln!(std::io::stderr(), "{why}");
            return None;
        };
        let registry = Registry { host, process, _folder: folder };
        for _ in 0..100 {
            if TcpStream::connect(&registry.host).is_ok() {
                return Some(registry);
            }
            sleep(Duration::from_millis(100));
        }
        panic!("the registry does not answer");
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}
