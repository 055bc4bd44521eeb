//! The files with which the programs of OpenSSH reach a host.
//!
//! ssh reads the files of one folder and nothing else of the machine: neither its configuration, nor
//! the keys of its user, nor an agent. The names of these files are constant, so no text of a caller is part
//! of a path.

use contract::{runners::SshAccess, ssh::SshHostKey};
use std::{
    ffi::OsString,
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    net::IpAddr,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

const CONFIG: &str = "config";
const KEY: &str = "key";
const KNOWN_HOSTS: &str = "known_hosts";

/// The name under which the key of the host is known, and which reaches it if the folder has an
/// address.
pub const HOST: &str = "host";

/// The arguments of ssh in the folder.
pub const IN_FOLDER: [&str; 2] = ["-F", CONFIG];

/// The command of git, whose shell adds the arguments. Paths in the configuration are relative.
const COMMAND: &str = "cd \"$SVC_SSH_FOLDER\" && exec ssh -F config";

/// The settings of all connections. ssh_config(5) describes them. A silent server is left after half
/// a minute.
const SETTINGS: &str = "\
HostKeyAlias host
UserKnownHostsFile known_hosts
GlobalKnownHostsFile /dev/null
CheckHostIP no
UpdateHostKeys no
HashKnownHosts no
VerifyHostKeyDNS no
IdentitiesOnly yes
IdentityAgent none
BatchMode yes
PreferredAuthentications publickey
PasswordAuthentication no
ForwardAgent no
ForwardX11 no
ClearAllForwardings yes
PermitLocalCommand no
ProxyCommand none
ControlPath none
ConnectTimeout 20
ServerAliveInterval 15
ServerAliveCountMax 2
LogLevel ERROR
";

/// A folder with all that ssh reads. Only the user of this process may read it.
pub struct SshFolder(PathBuf);

impl SshFolder {
    /// Signs in with the key, to a host with this host key only.
    ///
    /// ssh connects to `address`, or to that of the host if there is none.
    pub fn create(
        path: PathBuf,
        access: &SshAccess,
        address: Option<IpAddr>,
    ) -> io::Result<SshFolder> {
        let folder = SshFolder::with(path, &config("yes", KEY, address))?;
        folder.write(KEY, access.private_key.as_str())?;
        folder.write(KNOWN_HOSTS, &format!("{HOST} {}\n", access.host_key))?;
        Ok(folder)
    }

    /// For a first contact: signs in nowhere, and records the key of whatever answers.
    pub fn create_to_meet(path: PathBuf, address: IpAddr) -> io::Result<SshFolder> {
        SshFolder::with(path, &config("accept-new", "none", Some(address)))
    }

    fn with(path: PathBuf, config: &str) -> io::Result<SshFolder> {
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = SshFolder(path);
        folder.write(CONFIG, config)?;
        Ok(folder)
    }

    fn write(&self, name: &str, content: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(self.0.join(name));
        file?.write_all(content.as_bytes())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The key of the host that ssh met, if it met one.
    pub fn met(&self) -> Option<SshHostKey> {
        let known = std::fs::read_to_string(self.0.join(KNOWN_HOSTS)).ok()?;
        known.lines().find_map(|line| line.split_once(' ')?.1.trim().parse().ok())
    }

    /// The variables of the environment with which git uses the folder.
    pub fn environment(&self) -> [(&'static str, OsString); 4] {
        [
            ("GIT_ALLOW_PROTOCOL", "ssh".into()),
            ("GIT_SSH_COMMAND", COMMAND.into()),
            // git need not find out what kind of program the command is.
            ("GIT_SSH_VARIANT", "ssh".into()),
            ("SVC_SSH_FOLDER", self.0.clone().into_os_string()),
        ]
    }

    /// Removes the folder with the key.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_dir_all(self.0)
    }
}

fn config(trust: &str, identity: &str, address: Option<IpAddr>) -> String {
    let address = address.map_or_else(String::new, |address| format!("HostName {address}\n"));
    format!("{address}StrictHostKeyChecking {trust}\nIdentityFile {identity}\n{SETTINGS}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn access() -> SshAccess {
        let private_key =
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";
        SshAccess {
            private_key: private_key.parse().unwrap(),
            host_key: "ssh-ed25519 AAAA".parse().unwrap(),
        }
    }

    #[test]
    fn only_their_owner_reads_the_files_and_they_go() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("ssh");
        let address = "::1".parse().ok();
        let folder = SshFolder::create(path.clone(), &access(), address).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        for name in [CONFIG, KEY, KNOWN_HOSTS] {
            assert_eq!(mode(&path.join(name)), 0o600, "{name}");
        }
        let config = std::fs::read_to_string(path.join(CONFIG)).unwrap();
        assert!(config.starts_with("HostName ::1\nStrictHostKeyChecking yes\nIdentityFile key\n"));
        assert_eq!(folder.met(), Some(access().host_key));
        folder.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_first_contact_has_no_key() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("ssh");
        let folder = SshFolder::create_to_meet(path.clone(), [127, 0, 0, 1].into()).unwrap();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
        assert_eq!(folder.met(), None);
    }
}
