//! Keys of App Store Connect and of Google service accounts.

use credentials::{AppStoreConnectKey, Facts, KeyKind, UploadedFiles, Warning};
use serde_json::{Value, json};
use test_support::credential_files::{Folder, code, open};

const KEY_ID: &str = "2X9R4HXF34";
const ISSUER: &str = "57246542-96fe-1a63-e053-0824d011072a";

fn p8(bytes: &[u8]) -> UploadedFiles<'_> {
    UploadedFiles::AppStoreConnectKey {
        p8: bytes,
        file_name: None,
        key_id: Some(KEY_ID),
        issuer_id: Some(ISSUER),
    }
}

/// Keys of several kinds, in PEM.
fn folder() -> Folder {
    let folder = Folder::default();
    folder.sh("openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out p256.pem
         openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out p384.pem
         openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem 2>&1
         openssl ec -in p256.pem -out sec1.pem 2>&1
         openssl rsa -traditional -in rsa.pem -out pkcs1.pem 2>&1
         openssl pkcs8 -topk8 -in p256.pem -passout pass:p -out encrypted.pem
         openssl pkey -in p256.pem -pubout -out public.pem
         openssl pkcs8 -topk8 -nocrypt -in p256.pem -outform DER -out p256.der
         sed 's/$/\\r/' p256.pem > windows.pem");
    folder
}

#[test]
fn a_key_of_app_store_connect_is_read() {
    let folder = folder();
    for name in ["p256.pem", "windows.pem"] {
        let opened = open(p8(&folder.read(name))).unwrap();
        let expected = AppStoreConnectKey {
            key_id: KEY_ID.to_owned(),
            issuer_id: Some(ISSUER.to_owned()),
            key: KeyKind::Ec { bits: 256 },
        };
        assert_eq!(opened.facts, Facts::AppStoreConnectKey(expected));
        assert_eq!((opened.facts.expires_at(), opened.warnings), (None, vec![]));
    }
    let bytes = folder.read("p256.pem");
    let own = UploadedFiles::AppStoreConnectKey {
        p8: &bytes,
        file_name: Some("AuthKey_2X9R4HXF34.p8"),
        key_id: None,
        issuer_id: Some(" "),
    };
    let opened = open(own).unwrap();
    assert_eq!(opened.warnings, [Warning::NoIssuerId]);
    assert!(matches!(opened.facts, Facts::AppStoreConnectKey(key) if key.key_id == KEY_ID));
}

#[test]
fn other_keys_than_those_of_app_store_connect_are_told() {
    let folder = folder();
    let cases = [
        ("p384.pem", "notP256", "P-256"),
        ("rsa.pem", "notP256", "P-256"),
        ("sec1.pem", "notAP8", "EC PRIVATE KEY"),
        ("encrypted.pem", "notAP8", "ENCRYPTED PRIVATE KEY"),
        ("public.pem", "notAP8", "PUBLIC KEY"),
        ("p256.der", "notAP8", "a private key"),
    ];
    for (name, code, word) in cases {
        let refusal = open(p8(&folder.read(name))).unwrap_err();
        assert_eq!(refusal.code(), code, "{name}");
        assert!(refusal.to_string().contains(word), "{refusal}");
    }
    let text = String::from_utf8(folder.read("p256.pem")).unwrap();
    let start: String = text.lines().take(2).collect();
    assert_eq!(code(p8(start.as_bytes())), "notAP8");
    assert_eq!(code(p8(text.replace('\n', "\\n").as_bytes())), "notAP8");
    assert_eq!(code(p8(b"")), "notAP8");
}

fn service_account(private_key: &str) -> Value {
    json!({
        "type": "service_account",
        "project_id": "example-project",
        "private_key_id": "0123456789abcdef0123456789abcdef01234567",
        "private_key": private_key,
        "client_email": "publisher@example-project.iam.gserviceaccount.com",
        "client_id": "103456789012345678901",
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": "https://oauth2.googleapis.com/token",
        "universe_domain": "googleapis.com"
    })
}

fn judge(json: &Value) -> Result<Facts, &'static str> {
    let json = json.to_string();
    let upload = UploadedFiles::GoogleServiceAccount { json: json.as_bytes() };
    open(upload).map(|opened| opened.facts).map_err(|refusal| refusal.code())
}

#[test]
fn a_service_account_is_read() {
    let folder = folder();
    let text = |name| String::from_utf8(folder.read(name)).unwrap();
    let good = service_account(&text("rsa.pem"));
    let Ok(Facts::GoogleServiceAccount(facts)) = judge(&good) else { panic!() };
    assert_eq!(facts.client_email, "publisher@example-project.iam.gserviceaccount.com");
    assert_eq!(facts.project_id, "example-project");
    assert_eq!(facts.client_id.as_deref(), Some("103456789012345678901"));

    for field in ["type", "project_id", "private_key_id", "private_key", "client_email"] {
        let mut without = good.clone();
        without.as_object_mut().unwrap().remove(field);
        assert_eq!(judge(&without), Err("missingField"), "{field}");
    }
    for email in
        ["jane@example.com", "@x.iam.gserviceaccount.com", "nobody", "a@b@c.gserviceaccount.com"]
    {
        let mut other = good.clone();
        other["client_email"] = json!(email);
        assert_eq!(judge(&other), Err("badEmail"), "{email}");
    }
    for key in [text("p256.pem"), text("pkcs1.pem"), text("public.pem"), "key".to_owned()] {
        assert_eq!(judge(&service_account(&key)), Err("badServiceAccountKey"), "{key}");
    }
}

#[test]
fn other_files_of_google_are_told() {
    let cases = [
        (r#"{"installed": {"client_id": "1"}}"#, "an OAuth client"),
        (r#"{"web": {"client_id": "1"}}"#, "an OAuth client"),
        (r#"{"type": "authorized_user", "refresh_token": "1"}"#, "the log-in of a person"),
        (r#"{"type": "external_account"}"#, "workload identity"),
        (r#"{"project_info": {}, "client": []}"#, "google-services.json"),
        ("<?xml version='1.0'?><plist><dict/></plist>", "GoogleService-Info.plist"),
        ("-----BEGIN PRIVATE KEY-----", "PEM"),
        ("[]", "unknown format"),
        (r#"{"type": "#, "is damaged"),
        (r#"{"type": 7}"#, "is damaged"),
    ];
    for (json, word) in cases {
        let upload = UploadedFiles::GoogleServiceAccount { json: json.as_bytes() };
        let refusal = open(upload).unwrap_err();
        assert!(refusal.to_string().contains(word), "{refusal}");
    }
}
