//! A real mail server, and what is in its mails.

use super::service::eventually;
use std::{
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A mail server that keeps mails as files.
pub struct MailServer(Child);

impl MailServer {
    /// Starts one that keeps its mails in this folder.
    pub fn start(port: u16, folder: &Path, options: &[&str]) -> MailServer {
        let mut command = Command::new("aiosmtpd");
        command.args(["-n", "-l", &format!("127.0.0.1:{port}")]).args(options);
        command.args(["-c", "aiosmtpd.handlers.Mailbox"]).arg(folder);
        let server = MailServer(command.stdin(Stdio::null()).spawn().unwrap());
        eventually("the mail server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        server
    }
}

/// The first mail with this subject in the folder of a [`MailServer`].
pub fn arrived(folder: &Path, subject: &str) -> String {
    let line = format!("Subject: {subject}");
    let mail = || {
        let new = std::fs::read_dir(folder.join("new")).ok()?;
        let mails = new.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
        mails.into_iter().find(|mail| mail.contains(&line))
    };
    eventually("the mail arrives", || mail().is_some());
    mail().unwrap()
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The link in a mail, as a mail program shows it: long lines are sent in parts, and some characters
/// in another spelling.
pub fn link(mail: &str) -> String {
    let whole = mail.replace("\r\n", "\n").replace("=\n", "").replace("=3D", "=");
    let found = whole.split_whitespace().find(|word| word.contains("?token="));
    found.unwrap_or_else(|| panic!("no link in {mail}")).to_owned()
}
