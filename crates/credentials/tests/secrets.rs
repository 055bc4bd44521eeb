//! Nothing that is printed, logged or stored tells a password or a private key.

use std::fmt::Debug;

use credentials::{Refusal, UploadedFiles};
use data_encoding::{BASE64, HEXLOWER, HEXUPPER};
use serde_json::json;
use test_support::credential_files::ios::{APP_STORE, folder};
use test_support::credential_files::{Folder, now};

const PASSWORD: &str = "correct horse battery staple";
const KEY_PASSWORD: &str = "Tr0ub4dor&3";

/// Everything that this crate says about uploads.
#[derive(Default)]
struct Said(String);

impl Said {
    fn add(&mut self, what: impl Debug) {
        self.0 += &format!("{what:?}\n{what:#?}\n");
    }

    fn refusal(&mut self, refusal: &Refusal) {
        self.add(refusal);
        self.0 += &format!("{refusal} {}\n", refusal.code());
    }

    fn of(&mut self, upload: UploadedFiles) {
        self.add(upload);
        match credentials::open(upload, now()) {
            Ok(opened) => {
                self.add(&opened);
                self.0 += &serde_json::to_string(&opened.facts).unwrap();
                for warning in opened.warnings {
                    self.0 += &format!("{warning} {}\n", warning.code());
                }
            }
            Err(refusal) => self.refusal(&refusal),
        }
    }

    /// Panics if any eight bytes of the secret were said, as they are or in an encoding.
    fn must_not_contain(&self, secret: &[u8]) {
        assert!(secret.len() >= 8);
        for part in secret.windows(8) {
            // DER of all keys has runs of zeros and well-known identifiers: they are no secret.
            if part.iter().filter(|byte| **byte == 0).count() > 2 {
                continue;
            }
            let decimal = format!("{part:?}");
            let forms = [
                HEXLOWER.encode(part),
                HEXUPPER.encode(part),
                BASE64.encode(&part[..6]),
                decimal.trim_matches(['[', ']']).to_owned(),
                String::from_utf8_lossy(part).into_owned(),
            ];
            for form in forms {
                assert!(!self.0.contains(&form), "{form} was said");
            }
        }
    }
}

#[test]
fn nothing_tells_a_secret() {
    let folder = folder();
    folder.sh(&format!(
        "openssl pkcs12 -export -inkey distribution.key -in distribution.pem -out ios.p12 -passout 'pass:{PASSWORD}'
         openssl pkcs12 -export -inkey distribution.key -in development.pem -out bad.p12 -passout 'pass:{PASSWORD}' || true
         openssl pkcs12 -export -keypbe NONE -certpbe NONE -inkey distribution.key -in distribution.pem \
             -out plain.p12 -passout 'pass:{PASSWORD}'
         openssl pkcs8 -topk8 -nocrypt -in distribution.key -outform DER -out key.der
         openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.p8
         openssl pkcs8 -topk8 -nocrypt -in key.p8 -outform DER -out p8.der"
    ));
    let mut said = Said::default();
    let profile = APP_STORE.sign(&folder);
    let plain = folder.read("plain.p12");
    for p12 in [&folder.read("ios.p12"), &plain, &plain[..1500], &folder.read("key.der")] {
        for password in [PASSWORD, KEY_PASSWORD] {
            said.of(UploadedFiles::IosSigning { p12, password, profile: &profile });
            said.of(UploadedFiles::IosSigning { p12, password, profile: p12 });
            for (alias, key_password) in [(None, None), (Some("1"), Some(KEY_PASSWORD))] {
                said.of(UploadedFiles::AndroidKeystore {
                    keystore: p12,
                    password,
                    alias,
                    key_password,
                });
            }
        }
    }
    let pem = folder.read("distribution.key");
    let p8 = folder.read("key.p8");
    for p8 in [&p8[..], &pem, &p8[..100], &plain] {
        for id in
            [None, Some("2X9R4HXF34"), Some(std::str::from_utf8(&p8[..10]).unwrap_or_default())]
        {
            said.of(UploadedFiles::AppStoreConnectKey {
                p8,
                file_name: None,
                key_id: id,
                issuer_id: id,
            });
        }
    }
    let pem = String::from_utf8(pem).unwrap();
    for key in [pem.clone(), pem.replace("BEGIN", "START")] {
        for email in ["a@b.iam.gserviceaccount.com", &key] {
            let json = json!({
                "type": "service_account", "project_id": "p", "private_key_id": "1",
                "private_key": key, "client_email": email,
            });
            said.of(UploadedFiles::GoogleServiceAccount { json: json.to_string().as_bytes() });
        }
    }
    said.of(UploadedFiles::GoogleServiceAccount { json: json!(pem).to_string().as_bytes() });
    said.of(UploadedFiles::GoogleServiceAccount {
        json: json!({"type": pem}).to_string().as_bytes(),
    });

    assert!(said.0.contains("com.example.app") && said.0.contains("gserviceaccount"), "{}", said.0);
    said.must_not_contain(PASSWORD.as_bytes());
    said.must_not_contain(KEY_PASSWORD.as_bytes());
    // The public half of a key is in the certificate, and no secret.
    let rsa = folder.read("key.der");
    said.must_not_contain(&rsa[rsa.len() / 4..]);
    let ec = folder.read("p8.der");
    said.must_not_contain(&ec[36..68]);
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    said.must_not_contain(&body.as_bytes()[40..]);
    let _: Folder = folder;
}
