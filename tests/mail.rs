//! Mail, through a real mail server.

use crate::support::{
    requires,
    service::{Service, eventually},
};
use serde_json::json;
use std::{
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A mail server that keeps what it gets as files.
struct MailServer(Child);

impl MailServer {
    fn start(port: u16, folder: &Path) -> MailServer {
        let mut command = Command::new("aiosmtpd");
        command.args(["-n", "-l", &format!("127.0.0.1:{port}")]);
        command.args(["-c", "aiosmtpd.handlers.Mailbox"]).arg(folder);
        let server = MailServer(command.stdin(Stdio::null()).spawn().unwrap());
        eventually("the mail server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        server
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_forgotten_password_is_replaced_by_mail() {
    if !requires::programs("a_forgotten_password_is_replaced_by_mail", &["aiosmtpd"]) {
        return;
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let service = Service::start_with(&[
        ("SVC_MAIL_URL", &format!("smtp://127.0.0.1:{port}")),
        ("SVC_MAIL_FROM", "Shop <shop@example.com>"),
    ]);
    let ada = service.register("ada");
    let reset = || service.call(None, "requestPasswordReset", json!({"email": ada.email}));
    assert_eq!(reset().ok(), json!({}), "whether mail goes out is no business of who asks");
    eventually("the operator is told that it did not", || service.log().contains("was not sent"));

    let folder = service.home.join("mail");
    let _server = MailServer::start(port, &folder);
    reset().ok();
    let mail = || {
        let new = std::fs::read_dir(folder.join("new")).ok()?.next()?.ok()?;
        std::fs::read_to_string(new.path()).ok().filter(|mail| !mail.is_empty())
    };
    eventually("the mail arrives", || mail().is_some());
    let mail = mail().unwrap();
    for line in
        ["From: Shop <shop@example.com>", "To: ada@example.com", "Subject: Your new password"]
    {
        assert!(mail.contains(line), "{mail}");
    }
    let (_, after) = mail.split_once("with this token:").unwrap();
    let token = after.split_whitespace().next().unwrap();
    assert!(!service.log().contains(token), "the token is for the person, not for the log");
    let params = json!({"token": token, "newPassword": "another horse"});
    service.call(None, "resetPassword", params).ok();
    service.sign_in(&ada, "another horse");
}
