//! One tenant asks for as much work as it can. Another one is served as if it were alone.

use crate::{
    support::{
        credentials::{self, KEYSTORE_PASSWORD},
        git::Git,
        load::together,
        requires,
        service::{Person, Service, eventually, sha256},
    },
    uploads::{Upload, bytes_of, opening},
};
use reqwest::blocking::Client;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{IpAddr, TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// A git server that answers every request and never comes to an end. Counts its connections.
fn trickling() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            counted.fetch_add(1, SeqCst);
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let head = "HTTP/1.1 200 OK\r\nContent-Type: \
                            application/x-git-upload-pack-advertisement\r\n\r\n\
                            001e# service=git-upload-pack\n0000";
                let reference = format!("003d{} refs/heads/main\n", "1".repeat(40));
                let second = reference.repeat(20);
                let mut sent = stream.write_all(head.as_bytes());
                // Faster than a thousand bytes a second, below which git gives a server up.
                while sent.is_ok() {
                    sent = stream.write_all(second.as_bytes());
                    thread::sleep(Duration::from_millis(900));
                }
            });
        }
    });
    (port, count)
}

/// The apps of a person, each in the same organization.
fn apps(service: &Service, who: &Person, count: usize) -> Vec<Value> {
    let (project, _) = service.project_with_app(who, None);
    let make = |n| {
        let params = json!({"projectId": project, "name": format!("App {n}")});
        service.call(Some(who), "createApp", params).ok()["id"].clone()
    };
    (0..count).map(make).collect()
}

#[test]
fn repositories_that_trickle_delay_no_check_of_another_tenant() {
    let test = "repositories_that_trickle_delay_no_check_of_another_tenant";
    if !requires::programs(test, &["git", "python3"]) {
        return;
    }
    let (port, connections) = trickling();
    let git = Git::serve();
    git.commit(&[("README.md", "an app".into())]);
    let hosts = format!("127.0.0.1:{port},localhost:{port},{}", git.host);
    let service = Service::start_with(&[("SVC_GIT_PRIVATE_HOSTS", &hosts)]);
    service.leaves_work("checks at hosts that never end");
    let (mallory, ada) = (service.register("mallory"), service.register("ada"));
    let slow = apps(&service, &mallory, 16);
    let app = apps(&service, &ada, 1).remove(0);
    let checked = |app: &Value| {
        let read = service.call(Some(&mallory), "svc_getRepository", json!({"appId": app}));
        read.status == 200 && read.body["result"]["checking"] == false
    };
    thread::scope(|threads| {
        let flood = threads.spawn(|| {
            together(slow.len(), |n| {
                let host = ["127.0.0.1", "localhost"][n % 2];
                let url = format!("http://{host}:{port}/{n}.git");
                let params = json!({"appId": slow[n], "url": url});
                service.call(Some(&mallory), "svc_connectRepository", params).ok()
            })
        });
        eventually("the slow host has the turns of its tenant", || connections.load(SeqCst) >= 4);
        let params = json!({"appId": app, "url": git.url});
        let connected = service.call(Some(&ada), "svc_connectRepository", params).ok();
        assert_eq!((&connected["checking"], &connected["error"]), (&json!(false), &Value::Null));
        let ended = slow.iter().filter(|app| checked(app)).count();
        assert!(ended <= 8, "{ended} of 16 slow checks ended before that of another tenant");
        // The flood waits in the queue of its own tenant.
        flood.join().unwrap();
    });
    eventually("a host that trickles is given up", || slow.iter().any(checked));
    let first = slow.iter().find(|app| checked(app)).unwrap();
    let read = service.call(Some(&mallory), "svc_getRepository", json!({"appId": first})).ok();
    let error = read["error"].as_str().unwrap();
    assert!(error.contains("did not send what was asked for within 20 s"), "{error}");
}

#[test]
fn costly_key_files_of_one_tenant_delay_no_other() {
    let test = "costly_key_files_of_one_tenant_delay_no_other";
    let Some(world) = credentials::World::new(test, &[]) else { return };
    let export = |iterations: u32, file: &str| {
        world.folder.sh(&format!(
            "openssl pkcs12 -export -inkey upload.key -in upload.pem -out {file} -name upload \
             -iter {iterations} -passout 'pass:{KEYSTORE_PASSWORD}'"
        ));
    };
    // Each of both parts takes twice the iterations, and the code of the whole takes them once.
    export(300_000, "costly.p12");
    export(600_000, "too-costly.p12");
    let keystore = |file: &str, name: &str| {
        json!({
            "kind": "androidKeystore", "data": world.base64(file),
            "password": KEYSTORE_PASSWORD, "name": name,
        })
    };
    let refused = world.call_as(&world.ada, "svc_setCredential", keystore("too-costly.p12", "a"));
    assert_eq!(refused.refusal(), (400, 142));
    assert!(refused.body["error"].as_str().unwrap().contains("2000000 rounds"), "{}", refused.body);

    let bob = world.service.register("bob");
    let app = apps(&world.service, &bob, 1).remove(0);
    overtakes(
        |n| {
            let params = keystore("costly.p12", &format!("costly {n}"));
            let opened = world.call_as(&world.ada, "svc_setCredential", params);
            // The last ones wait for too long in the queue of their own tenant.
            assert!([200, 424].contains(&opened.status), "{}", opened.body);
            opened.status == 200
        },
        || {
            let mut params = keystore("upload.p12", "upload");
            params["appId"] = app;
            world.service.call(Some(&bob), "svc_setCredential", params).ok();
        },
    );
}

/// Does the work of one tenant so many times at once, and that of another one as soon as a first part of it has
/// ended. The other one does not wait for the rest. `flood` returns whether its part was done.
fn overtakes(flood: impl Fn(usize) -> bool + Sync, other: impl FnOnce()) {
    const FLOOD: usize = 16;
    let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|threads| {
        threads.spawn(|| {
            together(FLOOD, |n| {
                begun.fetch_add(1, SeqCst);
                ended.fetch_add(usize::from(flood(n)), SeqCst);
            })
        });
        eventually("the flood has begun", || begun.load(SeqCst) == FLOOD && ended.load(SeqCst) > 0);
        let before = ended.load(SeqCst);
        other();
        // In the order of their arrival, all others would come first. A fair one lets those under way
        // pass, and those that end while the requests travel: on a busy machine they are several.
        let overtook = ended.load(SeqCst) - before;
        assert!(overtook <= FLOOD / 2, "{overtook} of another tenant were done first");
    });
}

/// Whoever checks the signature of such an app inflates all of it.
#[test]
fn apps_that_inflate_to_much_delay_no_app_of_another_tenant() {
    let test = "apps_that_inflate_to_much_delay_no_app_of_another_tenant";
    if !requires::programs(test, &["apksigner", "zip"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/dense-app.sh");
    let made = Command::new(script).arg(folder.path()).arg("157286400").output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let dense = std::fs::read(folder.path().join("dense.apk")).unwrap();
    assert!(dense.len() < 1 << 20, "{}", dense.len());

    let service = Service::start();
    let (mallory, bob) = (service.register("mallory"), service.register("bob"));
    let [of_mallory, of_bob] = [&mallory, &bob].map(|who| apps(&service, who, 1).remove(0));
    let hash = json!({"sha256": sha256(&dense)});
    let sent = |who, app: &Value, bytes: &[u8]| {
        let upload = Upload::open(&service, who, &opening(app));
        assert_eq!(upload.put(bytes.to_vec()).status, 200);
        upload
    };
    let uploads: Vec<_> = (0..16).map(|_| sent(&mallory, &of_mallory, &dense)).collect();
    let small = bytes_of("sample.apk");
    let other = sent(&bob, &of_bob, &small);
    overtakes(
        |n| uploads[n].finalize(&hash).status == 201,
        || assert_eq!(other.finalize(&json!({"sha256": sha256(&small)})).status, 201),
    );
}

/// A connection to the dashboard. It may be refused.
fn connect(service: &Service) -> TcpStream {
    let address = service.dashboard().replace("http://localhost", "127.0.0.1");
    TcpStream::connect(address).unwrap()
}

/// Opens so many connections, and sends these bytes on each.
fn flood(service: &Service, connections: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let open = (0..connections).map(|_| {
        let mut stream = connect(service);
        // The service may have closed the connection, or take no more.
        stream.set_nonblocking(true).unwrap();
        let _ = stream.write(bytes);
        stream
    });
    open.collect()
}

/// The memory of the service in MiB.
fn memory(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn floods_of_one_address_keep_nobody_from_the_dashboard() {
    let limit = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
    let service = Service::start();
    let ada = service.register("ada");
    let host = service.dashboard().trim_start_matches("http://").to_owned();
    let cookie = format!("__Host-svc-session={}", ada.token);
    let post = |path: &str, kind: &str, more: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n\
             Sec-Fetch-Site: same-origin\r\nContent-Type: {kind}\r\nContent-Length: 250000\r\n\
             {more}\r\n"
        )
    };
    let form = "application/x-www-form-urlencoded";
    let files = "multipart/form-data; boundary=x";
    let part = "--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a\"\r\n\r\n";
    let filled = |head: String, bytes: usize| [head.into_bytes(), vec![b'a'; bytes]].concat();
    let other = client_of_pages([127, 0, 0, 2]);
    let before = memory(&service);
    for (what, connections, bytes) in [
        ("half-sent heads", 2_100, format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-").into_bytes()),
        ("unfinished forms", 1_500, filled(post("/sign-in", form, ""), 200 << 10)),
        (
            "unfinished forms of a session",
            1_500,
            filled(post("/organizations", form, &format!("Cookie: {cookie}\r\n")), 200 << 10),
        ),
        (
            "unfinished files",
            1_500,
            filled(post(&format!("/apps/{}/credentials", app_id()), files, "") + part, 200 << 10),
        ),
    ] {
        let open = flood(&service, connections, &bytes);
        for _ in 0..5 {
            let page = other.get(format!("{}/sign-in", service.dashboard())).send().unwrap();
            assert_eq!(page.status(), 200, "{what}");
            assert!(page.text().unwrap().contains("Password"), "{what}");
        }
        // The floods send 300 MB each. The connections of an address hold 64 MiB in buffers of the HTTP
        // library, the bodies as much at the most, and the allocator keeps for a second what was freed.
        let grown = memory(&service).saturating_sub(before);
        assert!(grown < 200, "{what}: {grown} MiB more");
        drop(open);
    }
}

fn app_id() -> &'static str {
    "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S"
}

/// A client of pages that calls from this loopback address.
fn client_of_pages(address: [u8; 4]) -> Client {
    let client = Client::builder().timeout(Duration::from_secs(30));
    let client = client.resolve("localhost", ([127, 0, 0, 1], 0).into());
    client.local_address(IpAddr::from(address)).build().unwrap()
}

/// The sources of the program, without their tests.
fn sources() -> Vec<(String, String)> {
    fn read(root: &Path, folder: &Path, all: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.ends_with("tests") || path.ends_with("tests.rs");
            if path.is_dir() && !is_test {
                read(root, &path, all);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !is_test {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\n#[allow").next().unwrap();
                let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                all.push((name.to_owned(), code.to_owned()));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in ["src", "actors/src", "crates"] {
        read(root, &root.join(folder), &mut all);
    }
    all
}

#[test]
fn the_table_of_what_is_shared_names_every_limit_of_work() {
    // What admits a number of holders at a time, and makes others wait or refuses them.
    let makers = [
        "Semaphore::new(",
        "Semaphore::const_new(",
        "Permits::new(",
        "Budget::new(",
        "tokio::sync::Mutex<",
        "buffer_unordered(",
        "mpsc::channel()",
    ];
    let turns = ["new(", "halved(", "apart(", "two_for_each_processor("];
    let turns = turns.map(|maker| format!("Turns::{maker}"));
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (file, code) in sources() {
        // The types themselves, and what is no part of a running service.
        let elsewhere = ["crates/bench/", "crates/cli/"].iter().any(|of| file.starts_with(of));
        if file == "actors/src/runtime/turns.rs" || elsewhere {
            continue;
        }
        let count = |maker: &str| {
            let made = code.match_indices(maker);
            // Not `OtherTurns::new`.
            let is_word = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric());
            made.filter(|(at, _)| is_word(*at)).count()
        };
        let made: usize =
            makers.iter().copied().chain(turns.iter().map(String::as_str)).map(count).sum();
        if made > 0 {
            found.insert(file, made);
        }
    }
    let page = include_str!("../docs/OPERATING.md");
    let table = page.split("## What tenants share").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [what, by, limit, then, source] = cells[..] else { panic!("{row}") };
        assert!(![what, by, limit, then].contains(&""), "{row}");
        let has_key = ["tenant", "webhook", "address", "account", "the resource"];
        let says_why = by.starts_with("nobody") && by.len() > "nobody".len();
        assert!(says_why || has_key.iter().any(|key| by.starts_with(key)), "{row}");
        *named.entry(source.trim_matches('`').to_owned()).or_default() += 1;
    }
    assert!(found.len() > 8, "the sources were read: {found:?}");
    assert_eq!(
        found, named,
        "left: what the sources make; right: what docs/OPERATING.md names under \
         \"What tenants share\". A new limit of work needs a row there with its key, or with the \
         reason why it has none"
    );
}
