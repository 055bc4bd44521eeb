//! `svc deploy`: folders that the command line sends, and archives that strangers make.

use crate::{
    instances::{backend, deployed},
    support::{
        engine::{Installed, docker, engine},
        load::under_load,
        service::{Answer, Person, Service, sha256},
    },
};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Output,
};

/// A folder in the home of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(service: &Service, name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = Folder(service.home.join(name));
        for (path, content) in files {
            folder.write(path, content);
        }
        folder
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

fn sign_in(service: &Service, who: &Person) {
    let Service { url, application_id, .. } = service;
    let login = ["login", "--api-url", url, "--application-id", application_id];
    let login = [&login[..], &["--email", &who.email, "--password-stdin"]].concat();
    let signed_in = service.cli_with(&login, &[], "correct horse");
    assert!(signed_in.status.success(), "{signed_in:?}");
}

/// Runs `svc deploy` with `--json`. Returns the exit code, the deployment and the notes.
fn deploy(service: &Service, app: &Value, folder: &str) -> (Option<i32>, Value, String) {
    deploy_with(service, app, folder, &[])
}

fn deploy_with(
    service: &Service,
    app: &Value,
    folder: &str,
    options: &[&str],
) -> (Option<i32>, Value, String) {
    let command = ["deploy", folder, "--app", app.as_str().unwrap(), "--json"];
    let Output { status, stdout, stderr } = service.cli(&[&command[..], options].concat());
    let notes = String::from_utf8(stderr).unwrap();
    let reply = serde_json::from_slice(&stdout);
    (status.code(), reply.unwrap_or_else(|e| panic!("{e}: {notes}")), notes)
}

const MAIN: &str = "
    const slugify = require('slugify');
    const { words } = require('./words.json');
    Parse.Cloud.define('version', () => slugify(words));
    Parse.Cloud.define('secrets', () => require('fs').existsSync(__dirname + '/../.env'));
    Parse.Cloud.define('page', () => require('fs').readFileSync(__dirname + '/../public/a.txt', 'utf8'));
";

/// A Dockerfile that reads an argument and a secret.
const READS: &str = "ARG COLOUR
COPY cloud cloud
RUN --mount=type=secret,id=SLACK_URL,mode=0444 \\
    echo \"the colour is $COLOUR, the secret is $(cat /run/secrets/SLACK_URL)\"
RUN test ! -s /run/secrets/SLACK_URL
";

fn package(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/folders");
    fs::read_to_string(folder.join(file)).unwrap()
}

fn run(service: &Installed, who: &Person, app: &Value, function: &str) -> Value {
    let params = json!({"appId": app, "functionName": function});
    service.call(Some(who), "svc_runCloudFunction", params).ok()
}

#[test]
fn a_folder_is_deployed_with_nothing_prepared() {
    let Some(engine) = engine("a_folder_is_deployed_with_nothing_prepared") else { return };
    let service = engine.service(&[]);
    let (ada, _, instance) = backend(&service);
    let app = &instance["appId"];
    sign_in(&service, &ada);
    let version = |service: &Installed| run(service, &ada, app, "version");
    let shop = Folder::new(
        &service,
        "shop",
        &[
            ("cloud/main.js", MAIN),
            ("cloud/words.json", r#"{"words": "the first"}"#),
            ("public/a.txt", "a page"),
            ("package.json", &package("package.json")),
            ("package-lock.json", &package("package-lock.json")),
            ("node_modules/slugify/index.js", "throw 'from this machine'"),
            (".env", "SECRET=1"),
        ],
    );
    let (code, first, notes) = deploy(&service, app, shop.path());
    assert_eq!((code, &first["state"]), (Some(0), &json!("live")), "{first}\n{notes}");
    assert!(notes.contains("sent 5 files"), "{notes}");
    assert!(notes.contains("npm \"$command\"") && notes.contains("requests go to"), "{notes}");
    assert_eq!(version(&service), "the-first");
    assert_eq!(run(&service, &ada, app, "secrets"), json!(false));
    assert_eq!(run(&service, &ada, app, "page"), "a page");

    // The next version replaces it without a failed request, and a rollback brings the first back.
    shop.write("cloud/words.json", r#"{"words": "the second"}"#);
    let health = format!("{}/parse/health", instance["url"].as_str().unwrap());
    under_load(
        |client| client.get(&health),
        || {
            let (code, second, notes) = deploy(&service, app, shop.path());
            assert_eq!((code, &second["state"]), (Some(0), &json!("live")), "{second}\n{notes}");
            assert_eq!(second["previousDeploymentId"], first["id"]);
            assert_eq!(version(&service), "the-second");
            let back = service.call(Some(&ada), "rollbackDeployment", json!({"appId": app})).ok();
            let back = deployed(&service, &ada, &back);
            assert_eq!((&back["state"], &back["imageRef"]), (&json!("live"), &first["imageRef"]));
        },
    );
    assert_eq!(version(&service), "the-first");

    // Code that does not start fails with its own words, and the version before serves on.
    let broken =
        Folder::new(&service, "broken", &[("cloud/main.js", "throw new Error('it broke')")]);
    let (code, failed, notes) = deploy(&service, app, broken.path());
    assert_eq!((code, &failed["state"]), (Some(1), &json!("failed")), "{failed}");
    assert!(notes.contains("it broke"), "{notes}");
    let unknown = r#"{"dependencies": {"slugify": "0.0.0-nowhere"}}"#;
    broken.write("package.json", unknown);
    let (code, failed, notes) = deploy(&service, app, broken.path());
    assert_eq!((code, &failed["state"]), (Some(1), &json!("failed")), "{failed}");
    assert!(notes.contains("No matching version found for slugify"), "{notes}");
    assert_eq!(version(&service), "the-first");

    // A Dockerfile in the folder is used. Cloud code after it stands on the image of the template.
    let own = Folder::new(
        &service,
        "own",
        &[
            ("Dockerfile", &format!("FROM {}\n{READS}", engine.base("parse-server"))),
            ("cloud/main.js", "Parse.Cloud.define('version', () => 'own')"),
        ],
    );
    let options = ["--build-arg", "COLOUR=teal", "--build-secret", "SLACK_URL"];
    let (code, live, notes) = deploy_with(&service, app, own.path(), &options);
    assert_eq!((code, version(&service)), (Some(0), json!("own")), "{live}\n{notes}");
    assert!(notes.contains("the colour is teal, the secret is ••••••••"), "{notes}");
    let history = ["history", "--no-trunc", live["imageRef"].as_str().unwrap()];
    assert!(!notes.contains("s3cret") && !docker(&history).contains("s3cret"), "{notes}");
    // Neither is for what has no Dockerfile, and a secret is a variable that there is.
    for (folder, option, value, told) in [
        (own.path(), "--build-secret", "NONE", "the service has no such variable"),
        (shop.path(), "--build-secret", "SLACK_URL", "needs a Dockerfile"),
        (shop.path(), "--build-arg", "COLOUR=teal", "needs a Dockerfile"),
    ] {
        let (code, refused, _) = deploy_with(&service, app, folder, &[option, value]);
        assert_eq!(code, Some(1), "{refused}");
        assert!(refused.to_string().contains(told), "{refused}");
    }
    let (code, live, notes) = deploy(&service, app, shop.path());
    assert_eq!((code, version(&service)), (Some(0), json!("the-second")), "{live}\n{notes}");
    assert!(notes.contains("has these files already"), "{notes}");

    // Cloud code without packages needs no program for its build.
    let plain = "Parse.Cloud.define('version', () => 'plain')";
    let plain = Folder::new(&service, "plain", &[("cloud/main.js", plain)]);
    let (code, live, notes) = deploy(&service, app, plain.path());
    assert_eq!((code, version(&service)), (Some(0), json!("plain")), "{live}\n{notes}");

    // Other cloud code is named by a variable, so that of the folder would not run.
    let env = json!({"PARSE_SERVER_CLOUD": "/parse-server/cloud/main.js"});
    let source = json!({"templateVersion": instance["templateVersion"]});
    let params = json!({"appId": app, "source": source, "env": env});
    let named = service.call(Some(&ada), "triggerDeployment", params).ok();
    assert_eq!(deployed(&service, &ada, &named)["state"], "live");
    let (code, refused, _) = deploy(&service, app, plain.path());
    assert_eq!((code, &refused["code"]), (Some(1), &json!(119)), "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("PARSE_SERVER_CLOUD"), "{refused}");
}

/// Packs entries, each a regular file.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// Asks for the address of an archive.
fn open(service: &Service, who: Option<&Person>, app: &Value, hash: &str, size: usize) -> Answer {
    let path = format!("../apps/{}/sources", app.as_str().unwrap());
    service.post(who, &path, &json!({"sha256": hash, "size": size}))
}

fn put(service: &Service, address: &str, body: &[u8]) -> Answer {
    Service::answer(service.http.put(address).body(body.to_vec()).send().unwrap()).unwrap()
}

#[test]
fn archives_are_checked_and_acknowledged_ones_survive_a_kill() {
    let mut service = Service::start();
    let (ada, eve) = (service.register("ada"), service.register("eve"));
    let (_, app) = service.project_with_app(&ada, None);
    let code: (&str, &[u8]) = ("cloud/main.js", b"// nothing");
    let whole = archive(&[code]);
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..64 {
        bomb.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let nothing = archive(&[("main.js", b"")]);
    for (body, why) in [
        (&whole[..whole.len() - 3], "not a whole tar.gz"),
        (b"PK", "not a whole tar.gz"),
        (&archive(&[code, ("/etc/passwd", b"")]), "not allowed"),
        (&archive(&[code, ("../../store/x", b"")]), "not allowed"),
        (&archive(&[code, code]), "twice"),
        (&bomb.finish().unwrap(), "unpacks to more"),
        (&nothing, "neither cloud/main.js nor a Dockerfile"),
    ] {
        let opened = open(&service, Some(&ada), &app, &sha256(body), body.len());
        assert_eq!(opened.status, 200, "{}", opened.body);
        let address = opened.body["uploadUrl"].as_str().unwrap();
        let refused = put(&service, address, body);
        assert_eq!(refused.refusal(), (400, 142), "{why}: {}", refused.body);
        assert!(refused.body.to_string().contains(why), "{why}: {}", refused.body);
    }

    let hash = sha256(&whole);
    let opened = open(&service, Some(&ada), &app, &hash, whole.len());
    let address = opened.body["uploadUrl"].as_str().unwrap().to_owned();
    assert_eq!(put(&service, &address, &nothing).refusal(), (400, 142), "another hash");
    let large = vec![0; (64 << 20) + 1];
    assert_eq!(open(&service, Some(&ada), &app, &hash, large.len()).refusal(), (413, 142));
    let chunked = reqwest::blocking::Body::new(std::io::Cursor::new(large));
    // The service may close the connection before it has read all.
    if let Ok(answer) = service.http.put(&address).body(chunked).send() {
        assert_eq!(answer.status(), 413);
    }
    let other = address.replace(&hash, &"0".repeat(64));
    assert_eq!(put(&service, &other, &whole).refusal(), (401, 119));
    assert_eq!(open(&service, Some(&eve), &app, &hash, 1).refusal(), (404, 101));
    assert_eq!(open(&service, None, &app, &hash, 1).refusal(), (401, 119));
    let folders = service.data().join("folders");
    assert!(fs::read_dir(folders.join("partial")).unwrap().next().is_none(), "nothing is left");

    let stored = put(&service, &address, &whole);
    service.kill();
    assert_eq!((stored.status, &stored.body["sha256"]), (200, &json!(hash)), "{}", stored.body);
    fs::write(folders.join("partial/left"), "by a crash").unwrap();
    service.boot();
    let known = open(&service, Some(&ada), &app, &hash, whole.len());
    assert_eq!((known.status, &known.body["uploadUrl"]), (200, &Value::Null), "{}", known.body);
    assert!(!folders.join("partial/left").exists());

    // A deployment needs an instance; the command line says so, and refuses an empty folder itself.
    sign_in(&service, &ada);
    let folder = Folder::new(&service, "shop", &[("cloud/main.js", "// nothing")]);
    let (code, refused, _) = deploy(&service, &app, folder.path());
    assert_eq!((code, &refused["code"]), (Some(1), &json!(101)), "{refused}");
    let empty = Folder::new(&service, "empty", &[("main.js", "")]);
    let (code, refused, _) = deploy(&service, &app, empty.path());
    assert_eq!((code, &refused["code"]), (Some(2), &json!(142)), "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("neither cloud/main.js"), "{refused}");
}
