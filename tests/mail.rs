//! Mail, through a real mail server.

use crate::support::{
    mail::{MailServer, arrived, link},
    ports::free_port,
    requires,
    service::{Service, eventually},
};
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn a_forgotten_password_is_replaced_by_mail() {
    if !requires::programs("a_forgotten_password_is_replaced_by_mail", &["aiosmtpd"]) {
        return;
    }
    let port = free_port();
    let service = Service::start_with(&[
        ("SVC_MAIL_URL", &format!("smtp://127.0.0.1:{port}")),
        ("SVC_MAIL_FROM", "Shop <shop@example.com>"),
    ]);
    let ada = service.register("ada");
    let reset = || service.call(None, "requestPasswordReset", json!({"email": ada.email}));
    assert_eq!(reset().ok(), json!({}), "whether mail goes out is no business of who asks");
    eventually("the operator is told that it did not", || service.log().contains("was not sent"));

    let folder = service.home.join("mail");
    let _server = MailServer::start(port, &folder, &[]);
    reset().ok();
    let mail = arrived(&folder, "Your new password");
    for line in
        ["From: Shop <shop@example.com>", "To: ada@example.com", "Subject: Your new password"]
    {
        assert!(mail.contains(line), "{mail}");
    }
    let page = format!("{}/reset-password?token=", service.dashboard());
    let link = link(&mail);
    let token = link.strip_prefix(&page).unwrap_or_else(|| panic!("{link}"));
    assert!(!service.log().contains(token), "the token is for the person, not for the log");
    let params = json!({"token": token, "newPassword": "another horse"});
    service.call(None, "resetPassword", params).ok();
    service.sign_in(&ada, "another horse");
}

/// Others reach this service, and nobody has said where they reach its dashboard.
#[test]
fn a_mail_without_an_address_of_the_dashboard_says_what_to_do_with_its_token() {
    let service = Service::start_with(&[("SVC_PUBLIC_URL", "https://svc.example.com")]);
    let ada = service.register("ada");
    let made = service.call(Some(&ada), "createOrganization", json!({"name": "Acme"})).ok();
    let params =
        json!({"organizationId": made["id"], "email": "bob@example.com", "role": "client"});
    let token = service.call(Some(&ada), "inviteMember", params).ok()["acceptToken"].clone();
    service.call(None, "requestPasswordReset", json!({"email": ada.email})).ok();
    eventually("both mails are in the log", || {
        let log = service.log();
        let says = |command: &str| {
            log.contains(&format!("svc call {command} --api-url https://svc.example.com"))
        };
        says("acceptInvitation") && says("resetPassword") && log.contains(token.as_str().unwrap())
    });
    assert!(!service.log().contains("?token=svc_inv_"), "a link leads nowhere");
}

/// A company often signs the certificate of its mail server with its own authority, which is
/// installed on its machines.
#[test]
fn a_mail_server_is_trusted_as_the_system_trusts_it() {
    let name = "a_mail_server_is_trusted_as_the_system_trusts_it";
    if !requires::programs(name, &["aiosmtpd", "openssl"]) {
        return;
    }
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let openssl = |line: &str| {
        let mut command = Command::new("openssl");
        let done = command.current_dir(&files).args(line.split(' ')).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&format!("req -x509 {key} -subj /CN=company -keyout ca.key -out ca.pem"));
    openssl(&format!(
        "req {key} -subj /CN=mail -addext subjectAltName=IP:127.0.0.1 -keyout key -out request"
    ));
    openssl("x509 -req -in request -CA ca.pem -CAkey ca.key -copy_extensions copy -out cert");
    let (port, folder) = (free_port(), files.path().join("mail"));
    let options = ["--smtpscert", &file("cert"), "--smtpskey", &file("key")];
    let _server = MailServer::start(port, &folder, &options);

    let address = format!("smtps://127.0.0.1:{port}");
    let stranger = Service::start_with(&[("SVC_MAIL_URL", &address)]);
    let reset = |service: &Service| {
        let ada = service.register("ada");
        service.call(None, "requestPasswordReset", json!({"email": ada.email})).ok();
    };
    reset(&stranger);
    eventually("an unknown authority is refused", || stranger.log().contains("was not sent"));

    let settings = [("SVC_MAIL_URL", address.as_str()), ("SSL_CERT_FILE", &file("ca.pem"))];
    let service = Service::start_with(&settings);
    reset(&service);
    arrived(&folder, "Your new password");
}

/// Whoever calls claims to have called another host, and a proxy that is trusted passes it on.
#[test]
fn the_link_of_a_mail_leads_to_the_dashboard_whatever_was_called() {
    let service = Service::start_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.1")]);
    let ada = service.register("ada");
    let made = service.call(Some(&ada), "createOrganization", json!({"name": "Acme"})).ok();
    let call = |function: &str, params: Value| {
        let url = format!("{}/backend/functions/{function}", service.url);
        let claims = [
            ("Host", "evil.example"),
            ("X-Forwarded-Host", "evil.example"),
            ("Forwarded", "host=evil.example"),
        ];
        let request = service.http.post(url).json(&params);
        let request = request
            .header("X-Backend-Application-Id", &service.application_id)
            .header("X-Backend-Session-Token", &ada.token);
        let request = claims.iter().fold(request, |r, (name, value)| r.header(*name, *value));
        assert_eq!(request.send().unwrap().status(), 200, "{function}");
    };
    call("requestPasswordReset", json!({"email": ada.email}));
    let email = "bob@example.com";
    call("inviteMember", json!({"organizationId": made["id"], "email": email, "role": "client"}));
    call("svc_changeEmail", json!({"newEmail": email}));
    eventually("all mails are in the log", || {
        ["/reset-password?token=", "/invitations", "/confirm-email?token="]
            .iter()
            .all(|page| service.log().contains(&format!("{}{page}", service.dashboard())))
    });
    assert!(!service.log().contains("://evil.example"), "{}", service.log());
}

/// It takes connections, and says nothing.
#[test]
fn a_silent_mail_server_keeps_nobody_waiting() {
    if !requires::programs("a_silent_mail_server_keeps_nobody_waiting", &["aiosmtpd"]) {
        return;
    }
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let service = Service::start_with(&[
        ("SVC_MAIL_URL", &format!("smtp://127.0.0.1:{port}")),
        ("SVC_MAIL_FROM", "Shop <shop@example.com>"),
    ]);
    let people: Vec<_> = (0..8).map(|n| service.register(&format!("person-{n}"))).collect();
    let reset = |email: &str| {
        service.call(None, "requestPasswordReset", json!({"email": email})).ok();
    };
    let not_sent = || service.log().matches("was not sent").count();
    people.iter().for_each(|person| reset(&person.email));
    service.call(Some(&people[0]), "getCurrentUser", json!({})).ok();
    assert_eq!(not_sent(), 0, "no call waited for the mail server");
    eventually("each mail is given up", || not_sent() == people.len());

    drop(silent);
    let folder = service.home.join("mail");
    let _server = MailServer::start(port, &folder, &[]);
    reset(&people[0].email);
    arrived(&folder, "Your new password");
}
