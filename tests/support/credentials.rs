//! A service with an app, and files of credentials that `openssl` and `keytool` make.

use super::{
    requires,
    service::{Answer, Person, Service},
};
use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER, HEXUPPER};
use files::{Folder, P256, ios};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    process::Output,
};

pub use test_support::credential_files as files;

pub const KEYSTORE_PASSWORD: &str = "a st0re passw0rd";
pub const HOST_TOKEN: &str = "svc-h0st-t0ken-of-git";

pub struct World {
    pub folder: Folder,
    pub service: Service,
    pub ada: Person,
    pub app: Value,
}

impl World {
    /// A service on which Ada is signed in on the command line. `None` where a program that the test
    /// needs is missing.
    pub fn new(test: &str, settings: &[(&str, &str)]) -> Option<World> {
        if !requires::programs(test, &["openssl", "keytool"]) {
            return None;
        }
        let folder = ios::folder();
        folder.write("app.mobileprovision", ios::APP_STORE.sign(&folder));
        folder.self_signed("upload", P256, "/CN=Example App/O=Example");
        folder.sh(&format!(
            "openssl pkcs12 -export -inkey upload.key -in upload.pem -out upload.p12 -name upload \
             -passout 'pass:{KEYSTORE_PASSWORD}'
             openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 \
             -out AuthKey_ABCDE12345.p8
             openssl genpkey -algorithm RSA -out google.key 2>&1"
        ));
        folder.write("google.json", service_account(&folder));
        folder.write("token", format!("{HOST_TOKEN}\n"));

        let service = Service::start_with(settings);
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let world = World { folder, service, ada, app };
        world.sign_in();
        Some(world)
    }

    fn sign_in(&self) {
        let Service { url, application_id, .. } = &self.service;
        let login = ["login", "--api-url", url, "--application-id", application_id];
        let login = [&login[..], &["--email", &self.ada.email, "--password-stdin"]].concat();
        let signed_in = self.service.cli_with(&login, &[], "correct horse");
        assert!(signed_in.status.success(), "{signed_in:?}");
    }

    /// `svc credential set` of a file of the folder.
    pub fn set(&self, kind: &str, file: &str, more: &[&str], password: Option<&str>) -> Output {
        let (file, app) = (self.path(file), self.app.as_str().unwrap());
        let mut args = vec!["credential", "set", kind, &file, "--app", app, "--json"];
        args.extend(password.map(|_| "--password-stdin"));
        args.extend(more);
        let input = password.map(|password| format!("{password}\n")).unwrap_or_default();
        self.service.cli_with(&args, &[], &input)
    }

    /// The credential that [`set`](World::set) stores.
    pub fn stored(&self, kind: &str, file: &str, more: &[&str], password: Option<&str>) -> Value {
        let done = self.set(kind, file, more, password);
        assert!(done.status.success(), "{}", said(&done));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    /// Stores a credential of each kind.
    pub fn store_all(&self) -> Vec<Value> {
        let profile = self.path("app.mobileprovision");
        let profile = ["--profile", &profile];
        let host = ["--name", "git.example.com"];
        vec![
            self.stored("iosSigning", "distribution.p12", &profile, Some(ios::PASSWORD)),
            self.stored("androidKeystore", "upload.p12", &[], Some(KEYSTORE_PASSWORD)),
            self.stored("appStoreConnectKey", "AuthKey_ABCDE12345.p8", &[], None),
            self.stored("googleServiceAccount", "google.json", &[], None),
            self.stored("firebaseServiceAccount", "google.json", &[], None),
            self.stored("repositoryHost", "token", &host, None),
        ]
    }

    /// The path of a file of the folder.
    pub fn path(&self, file: &str) -> String {
        self.folder.path().join(file).to_str().unwrap().to_owned()
    }

    /// A file of the folder, as functions take it.
    pub fn base64(&self, file: &str) -> String {
        BASE64.encode(&self.folder.read(file))
    }

    /// Calls a function of the app as this person.
    pub fn call_as(&self, who: &Person, function: &str, params: Value) -> Answer {
        let mut all = json!({"appId": self.app});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        self.service.call(Some(who), function, all)
    }

    pub fn call(&self, function: &str, params: Value) -> Value {
        self.call_as(&self.ada, function, params).ok()
    }

    pub fn listed(&self) -> Vec<Value> {
        self.call("svc_getCredentials", json!({}))["items"].as_array().unwrap().clone()
    }

    /// A call of a function about this credential.
    pub fn about(&self, function: &str, credential: &Value) -> Answer {
        let params = json!({"credentialId": credential["id"]});
        self.service.call(Some(&self.ada), function, params)
    }

    /// How many events of a function the audit log has about this object.
    pub fn events(&self, function: &str, of: &Value) -> usize {
        let params = json!({"function": function, "resource": of["id"]});
        let administrator = self.service.administrator();
        let page = self.service.call(Some(&administrator), "svc_admin_getAuditLog", params).ok();
        page["items"].as_array().unwrap().len()
    }

    /// What is secret in the files of [`store_all`](World::store_all), with a name for each.
    pub fn secrets(&self) -> Vec<(String, Vec<u8>)> {
        let mut secrets = vec![
            ("password of the .p12".to_owned(), ios::PASSWORD.into()),
            ("password of the keystore".to_owned(), KEYSTORE_PASSWORD.into()),
            ("token".to_owned(), HOST_TOKEN.into()),
        ];
        for file in ["distribution.p12", "upload.p12"] {
            // Its middle is encrypted, and differs from that of every other file.
            let bytes = self.folder.read(file);
            let middle = bytes.len() / 2;
            secrets.push((file.to_owned(), bytes[middle..middle + 48].to_vec()));
        }
        let keys = ["distribution.key", "upload.key", "AuthKey_ABCDE12345.p8", "google.key"];
        for file in keys {
            let pem = String::from_utf8(self.folder.read(file)).unwrap();
            // The first line tells no more than the kind of key.
            let body: Vec<_> = pem.lines().filter(|line| !line.contains("-----")).collect();
            for (n, line) in body.iter().enumerate().skip(1).filter(|(_, line)| line.len() > 32) {
                secrets.push((format!("line {n} of {file}"), line.as_bytes().to_vec()));
            }
            let key = BASE64.decode(body.concat().as_bytes()).unwrap();
            secrets.push((format!("bytes of {file}"), key[key.len() - 48..].to_vec()));
        }
        secrets
    }
}

/// The key file of a service account, as the Google Cloud console offers it.
fn service_account(folder: &Folder) -> String {
    let account = json!({
        "type": "service_account",
        "project_id": "acme",
        "private_key_id": "0123456789abcdef0123456789abcdef01234567",
        "private_key": String::from_utf8(folder.read("google.key")).unwrap(),
        "client_email": "publisher@acme.iam.gserviceaccount.com",
        "client_id": "104000000000000000000",
        "token_uri": "https://oauth2.googleapis.com/token",
    });
    account.to_string()
}

/// The secret as it may lie in a text or a file: raw, in hex, and in base64 behind any other bytes.
pub fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms =
        vec![secret.to_vec(), HEXLOWER.encode(secret).into(), HEXUPPER.encode(secret).into()];
    for before in 0..3 {
        let whole = &secret[before..];
        let whole = &whole[..whole.len() / 3 * 3];
        forms.push(BASE64_NOPAD.encode(whole).into());
    }
    forms
}

/// The names of the secrets that lie in a file of the service, or in one of these texts.
pub fn leaks(
    service: &Service,
    texts: &[String],
    secrets: &[(String, Vec<u8>)],
) -> BTreeSet<String> {
    let mut places: Vec<_> = texts.iter().map(|text| text.clone().into_bytes()).collect();
    read_all(&service.home, &mut places);
    leaks_in(&places, secrets)
}

/// The names of the secrets that lie in one of these places.
pub fn leaks_in(places: &[Vec<u8>], secrets: &[(String, Vec<u8>)]) -> BTreeSet<String> {
    const BEGINNING: usize = 8;
    let mut by_beginning: HashMap<Vec<u8>, Vec<(&String, Vec<u8>)>> = HashMap::new();
    for (name, secret) in secrets {
        for form in forms(secret) {
            let known = by_beginning.entry(form[..BEGINNING].to_vec()).or_default();
            known.push((name, form));
        }
    }
    let mut found = BTreeSet::new();
    for place in places {
        for (at, window) in place.windows(BEGINNING).enumerate() {
            let known = by_beginning.get(window).into_iter().flatten();
            let here = known.filter(|(_, form)| place[at..].starts_with(form));
            found.extend(here.map(|(name, _)| (*name).clone()));
        }
    }
    found
}

/// The content of every file below a folder, without the zeros at its end: the store keeps 64 MiB of them
/// as a reserve.
fn read_all(folder: &Path, into: &mut Vec<Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => read_all(&path, into),
            false => {
                let Ok(mut bytes) = std::fs::read(path) else { continue };
                bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1));
                into.push(bytes);
            }
        }
    }
}

/// What a program wrote.
pub fn said(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr[..]].concat()).unwrap()
}
