//! Key files that cost much work to open.

use super::{attackers, start};
use crate::{
    Pace, machine,
    outcome::{Explain, Outcome},
    table::Row,
};
use data_encoding::BASE64;
use serde_json::json;
use std::{path::Path, process::Command};

const ACCOUNTS: usize = 3;
/// Uploads at a time of each account.
const UPLOADS: usize = 4;
/// Each of two parts of the file takes twice the rounds, and the code of the whole takes them once. A
/// file may take two million.
const ROUNDS: u32 = 390_000;

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let file = keystore(home.path())?;
    let server = start(home.path(), pace, &[])?;
    let (attackers, visitor) = attackers(&server, ACCOUNTS)?;
    let beside = visitor.beside(&server, pace, |signal| {
        signal.repeat(ACCOUNTS * UPLOADS, |number, _| {
            let (session, app) = attackers.get(number % ACCOUNTS).or_say("an attacker")?;
            let name = format!("upload {number}");
            let params = json!({"appId": app, "kind": "androidKeystore", "name": name,
                "data": file, "password": "a password"});
            server.client.call(Some(session), "svc_setCredential", &params).map(drop)
        })
    })?;
    Ok(beside.rows(&format!("costly key files of {ACCOUNTS} accounts")).into())
}

/// A keystore in base64.
fn keystore(folder: &Path) -> Outcome<String> {
    let script = format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 20000 -keyout upload.key -out upload.pem \
         -subj '/CN=Example App' && openssl pkcs12 -export -inkey upload.key -in upload.pem -out \
         upload.p12 -name upload -iter {ROUNDS} -passout 'pass:a password'"
    );
    let done = Command::new("sh").current_dir(folder).args(["-c", &script]).output();
    let done = done.or_say("openssl")?;
    if !done.status.success() {
        return Err(format!("openssl: {}", String::from_utf8_lossy(&done.stderr)));
    }
    let bytes = std::fs::read(folder.join("upload.p12")).or_say("the keystore")?;
    Ok(BASE64.encode(&bytes))
}
