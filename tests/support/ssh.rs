//! An ssh server on this machine: OpenSSH, with its own host key and its own list of keys.

use super::{git::Git, ports::free_port};
use std::{
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Outside of the path of most users.
const SSHD: &str = "/usr/sbin/sshd";
/// What [`Ssh::start`] needs.
pub const PROGRAMS: [&str; 3] = ["ssh", "ssh-keygen", SSHD];

/// A server that lets the user of this process in with the keys of [`Ssh::allow`].
pub struct Ssh {
    folder: tempfile::TempDir,
    /// The host and the port of the server, which are on the internal network.
    pub host: String,
    server: Option<Child>,
}

impl Ssh {
    /// Starts a server that lets nobody in.
    pub fn start() -> Ssh {
        Ssh::start_with("")
    }

    /// Starts a server with these settings too, which lets nobody in.
    pub fn start_with(settings: &str) -> Ssh {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let mut ssh = Ssh { folder, host: format!("127.0.0.1:{port}"), server: None };
        // As root, sshd wants this folder, and Debian makes it only for the service.
        let _ = std::fs::create_dir_all("/run/sshd");
        std::fs::write(ssh.authorized_keys(), "").unwrap();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nAcceptEnv GIT_PROTOCOL\nMaxStartups 100\n{settings}\n",
            ssh.host_key().display(),
            ssh.authorized_keys().display(),
        );
        std::fs::write(ssh.folder.path().join("config"), config).unwrap();
        ssh.renew_host_key("ed25519");
        ssh
    }

    fn host_key(&self) -> PathBuf {
        self.folder.path().join("host_key")
    }

    fn authorized_keys(&self) -> PathBuf {
        self.folder.path().join("authorized_keys")
    }

    /// Starts the server anew with another host key, of this type.
    pub fn renew_host_key(&mut self, kind: &str) {
        self.stop();
        let _ = std::fs::remove_file(self.host_key());
        new_key(kind, &self.host_key());
        self.serve();
    }

    /// Starts the server again, after [`Ssh::stop`].
    pub fn serve(&mut self) {
        let mut sshd = Command::new(SSHD);
        sshd.args(["-D", "-e", "-f"]).arg(self.folder.path().join("config"));
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        self.server = Some(sshd.stdin(Stdio::null()).stderr(log).spawn().unwrap());
        let begun = Instant::now();
        while TcpStream::connect(&self.host).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the server said since its start.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// The fingerprint of the host key, as `ssh-keygen` computes it.
    pub fn fingerprint(&self) -> String {
        let printed = Command::new("ssh-keygen").arg("-lf").arg(self.host_key()).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        printed.split(' ').nth(1).unwrap().to_owned()
    }

    /// Lets in who has one of these keys, to read repositories.
    pub fn allow(&self, keys: &[&str]) {
        let lines: String = keys.iter().map(|key| format!("restrict {key}\n")).collect();
        std::fs::write(self.authorized_keys(), lines).unwrap();
    }

    /// The address of a repository on this machine.
    pub fn url(&self, git: &Git) -> String {
        format!("{}{}", self.address(), git.work().display())
    }

    /// The address of the server, with the user of this process.
    pub fn address(&self) -> String {
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        format!("ssh://{}@{}", String::from_utf8(user).unwrap().trim(), self.host)
    }

    /// The host key, as the service takes it.
    pub fn public_host_key(&self) -> String {
        let line = std::fs::read_to_string(self.host_key().with_extension("pub")).unwrap();
        line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    }

    /// Ends the server, and its connections.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // A connection has a process of its own, which the server leaves behind.
            let own = server.id().to_string();
            let _ = Command::new("kill").args(["-STOP", &own]).status();
            let connections = Command::new("pgrep").args(["-P", &own]).output().unwrap().stdout;
            let connections = String::from_utf8(connections).unwrap();
            let _ = Command::new("kill")
                .arg("-KILL")
                .arg(&own)
                .args(connections.split_whitespace())
                .status();
            let _ = server.wait();
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Makes a key pair of this type: the private half at this path, and the public one beside it.
pub fn new_key(kind: &str, path: &Path) {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", kind, "-N", "", "-C", "", "-f"]).arg(path);
    assert!(keygen.status().unwrap().success());
}

/// The public half of a private key, as `ssh-keygen` computes it.
pub fn public_half(private: &str, folder: &Path) -> String {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let path = folder.join("private_key");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    file.write_all(private.as_bytes()).unwrap();
    let printed = Command::new("ssh-keygen").arg("-yf").arg(&path).output().unwrap();
    std::fs::remove_file(path).unwrap();
    String::from_utf8(printed.stdout).unwrap().trim_end().to_owned()
}
