//! A service of several nodes behind a balancer: a client never has to know which node answers.

use crate::{
    support::{
        load::{Over, together},
        service::{Answer, Person, Service, eventually, sha256},
    },
    uploads::{bytes_of, declared},
};
use serde_json::{Value, json};
use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

/// Calls a function at a node, past the balancer.
fn call_at(service: &Service, node: usize, who: &Person, function: &str, params: &Value) -> Answer {
    let address = format!("{}/backend/functions/{function}", service.address_of(node));
    let call = service.http.post(address).json(params);
    let call = call.header("X-Backend-Application-Id", &service.application_id);
    Service::answer(call.header("X-Backend-Session-Token", &who.token).send().unwrap()).unwrap()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// An open upload of a file.
struct Upload {
    id: String,
    address: String,
    bytes: Vec<u8>,
}

impl Upload {
    fn open(service: &Service, who: &Person, app: &Value, bytes: Vec<u8>) -> Upload {
        let opened = service.post(Some(who), "upload-url", &declared(app, &bytes));
        assert_eq!(opened.status, 201, "{}", opened.body);
        let text = |name: &str| opened.body[name].as_str().unwrap().to_owned();
        Upload { id: text("artifactId"), address: text("uploadUrl"), bytes }
    }

    fn at(&self, service: &Service, node: usize) -> String {
        self.address.replace(&service.url, &service.address_of(node))
    }

    /// Sends these bytes to a node. Returns the status of the answer.
    fn send(&self, service: &Service, node: usize, range: Range<usize>) -> u16 {
        let said = format!("bytes {}-{}/{}", range.start, range.end - 1, self.bytes.len());
        let part = service.http.put(self.at(service, node)).header("Content-Range", said);
        part.body(self.bytes[range].to_vec()).send().unwrap().status().as_u16()
    }

    /// How many bytes are stored, as a node knows.
    fn offset(&self, service: &Service, node: usize) -> usize {
        let asked = service.http.head(self.at(service, node)).send().unwrap();
        asked.headers()["upload-offset"].to_str().unwrap().parse().unwrap()
    }

    fn finalize(&self, service: &Service, who: &Person) -> Answer {
        let hash = json!({"sha256": sha256(&self.bytes)});
        service.post(Some(who), &format!("{}/finalize", self.id), &hash)
    }

    /// The folder of the bucket with its segments.
    fn segments(&self, service: &mut Service) -> PathBuf {
        service.bucket().object(&format!("staging/{}", self.id))
    }
}

#[test]
fn an_upload_that_begins_at_one_node_goes_on_at_others_and_is_verified_by_any() {
    let Some(mut service) = Service::on_nodes("an upload at several nodes", 3) else { return };
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let upload = Upload::open(&service, &ada, &app, bytes_of("sample.apk"));
    let (whole, third) = (upload.bytes.len(), upload.bytes.len() / 3);
    for (node, range) in [(0, 0..third), (1, third..2 * third)] {
        assert_eq!(upload.send(&service, node, range.clone()), 202);
        // Whoever asks elsewhere learns at once how far it is.
        assert_eq!(upload.offset(&service, 2), range.end);
    }
    assert_eq!(upload.send(&service, 2, 0..10), 409, "nobody writes over what is there");
    assert_eq!(upload.send(&service, 2, 2 * third..whole), 200);

    let folder = upload.segments(&mut service);
    assert_eq!(files_below(&folder).len(), 3);
    let verified = upload.finalize(&service, &ada);
    assert_eq!((verified.status, &verified.body["state"]), (201, &json!("verified")));
    assert_eq!(std::fs::read(service.bucket().object(&upload.id)).unwrap(), upload.bytes);
    assert_eq!(files_below(&folder).len(), 0, "the segments go with the upload");
    let asked = json!({"artifactId": upload.id});
    let found = service.call(Some(&ada), "svc_getArtifactDownloadUrl", asked).ok();
    for node in 0..3 {
        let address =
            found["url"].as_str().unwrap().replace(&service.url, &service.address_of(node));
        let whole = service.http.get(address).send().unwrap().bytes().unwrap();
        assert_eq!(whole, upload.bytes, "from node {node}");
    }
    service.stop();
    for folder in ["data/run/assembled", "node-2/data/run/assembled", "node-3/data/run/assembled"] {
        let folder = service.home.join(folder);
        assert!(folder.is_dir());
        assert_eq!(files_below(&folder), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_file_that_is_sent_to_two_nodes_at_once_is_the_one_that_was_sent() {
    let Some(mut service) = Service::on_nodes("an upload to two nodes at once", 2) else { return };
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let upload = Upload::open(&service, &ada, &app, bytes_of("sample.apk"));
    let send = |writer: usize| {
        let (node, whole) = (writer % 2, upload.bytes.len());
        let mut offset = 0;
        let mut refused = 0;
        while offset < whole {
            let range = offset..whole.min(offset + whole / 8);
            refused += usize::from(upload.send(&service, node, range) >= 400);
            offset = upload.offset(&service, node);
        }
        refused
    };
    let refused = together(16, send).into_iter().sum::<usize>();
    assert!(refused > 0, "nobody was in the way of another");
    let verified = upload.finalize(&service, &ada);
    assert_eq!(verified.body["state"], "verified", "{}", verified.body);
    let left = files_below(&upload.segments(&mut service));
    assert_eq!(left.len(), 0, "{left:?}");
}

/// A large file, of which a bucket that goes away in the middle loses nothing.
#[test]
fn a_large_upload_goes_on_after_the_bucket_was_away() {
    let Some(mut service) = Service::on_nodes("a large upload at several nodes", 2) else { return };
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes: Vec<u8> =
        (0..40_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let upload = Upload::open(&service, &ada, &app, bytes);
    let (first, whole) = (20 << 20, upload.bytes.len());
    let folder = upload.segments(&mut service);
    assert_eq!(upload.send(&service, 0, 0..first), 202);
    assert_eq!(files_below(&folder).len(), 3);
    service.bucket().go_away();
    assert_eq!(upload.send(&service, 1, first..whole), 503);
    assert_eq!(upload.offset(&service, 0), first);
    service.bucket().come_back();
    assert_eq!(upload.send(&service, 1, first..whole), 200);
    assert_eq!(upload.offset(&service, 0), whole);
    // All bytes are what they should be. It is only no app.
    let judged = upload.finalize(&service, &ada);
    assert_eq!(judged.refusal(), (422, 142));
    let why = judged.body["error"].as_str().unwrap();
    assert!(!why.contains("SHA-256") && !why.contains("size"), "{why}");
    eventually("the segments are removed", || files_below(&folder).is_empty());
}

#[test]
fn what_one_node_revokes_no_node_takes_and_a_killed_node_is_not_missed() {
    let Some(mut service) = Service::on_nodes("sessions at several nodes", 3) else { return };
    let ada = service.register("ada");
    for round in 0..10 {
        let session = service.sign_in(&ada, "correct horse");
        let whoami = |node| call_at(&service, node, &session, "getCurrentUser", &json!({}));
        for node in 0..3 {
            assert_eq!(whoami(node).status, 200, "round {round}, node {node}");
        }
        call_at(&service, round % 3, &session, "logout", &json!({})).ok();
        for node in 0..3 {
            let refused = whoami(node);
            assert_eq!(refused.status, 401, "round {round}, node {node}: {}", refused.body);
        }
    }

    // Calls through the balancer while a node is killed. One that was under way may be repeated.
    let (_, app) = service.project_with_app(&ada, None);
    let mut failed = 0;
    for round in 0..60 {
        if round == 20 {
            service.kill_node(1);
        }
        if round == 40 {
            service.boot_node(1);
        }
        let params = json!({"appId": app, "name": format!("Shop {round}")});
        let once = format!("round-{round}");
        let mut tries = 0;
        let made: Value = loop {
            let made = service.try_call(Some(&ada), "updateApp", params.clone(), Some(&once));
            match made {
                Ok(answer) if answer.status == 200 => break answer.ok(),
                other => println!("round {round}: {other:?}"),
            }
            tries += 1;
            failed += 1;
            assert!(tries < 20, "round {round}");
            std::thread::sleep(Duration::from_millis(100));
        };
        assert_eq!(made["name"], format!("Shop {round}"));
    }
    assert!(failed <= 2, "{failed} calls failed");
}

/// Operators see the nodes from any of them, and restart there what is parked at another one.
#[test]
fn an_operator_sees_all_nodes_and_restarts_what_is_parked_at_another() {
    let Some(mut service) = Service::on_nodes("operators of several nodes", 3) else { return };
    let (ada, admin) = (service.register("ada"), service.administrator());
    let overview = |service: &Service, node: usize| {
        call_at(service, node, &admin, "svc_admin_getOverview", &json!({})).ok()
    };
    eventually("the shards are shared", || {
        let nodes = overview(&service, 1)["nodes"].clone();
        let shards: Vec<_> =
            nodes.as_array().unwrap().iter().map(|n| n["shards"].as_u64().unwrap()).collect();
        let answering = nodes.as_array().unwrap().iter().filter(|n| n["answers"] == true).count();
        assert_eq!(answering, 1, "{nodes}");
        shards.len() == 3 && shards.iter().all(|shards| (80..=90).contains(shards))
    });

    let id = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();
    let id = id["id"].clone();
    let update = json!({"projectId": id, "name": "Other"});
    let panic = json!({"projectId": id, "place": "owner", "message": "again"});
    eventually("it is parked", || {
        call_at(&service, 0, &ada, "svc_test_panic", &panic);
        call_at(&service, 0, &ada, "svc_updateProject", &update).status == 503
    });
    let parked = |node: usize| {
        let found = overview(&service, node)["attention"].clone();
        found.as_array().unwrap().iter().any(|entry| entry["subject"] == id)
    };
    eventually("other nodes hear of it", || parked(1) && parked(2));
    let restart = json!({"actorId": id});
    let restarted = call_at(&service, 2, &admin, "svc_admin_restartActor", &restart).ok();
    assert_eq!((&restarted["id"], restarted["node"].is_string()), (&id, true), "{restarted}");
    eventually("it is restarted", || {
        call_at(&service, 0, &ada, "svc_updateProject", &update).status == 200
    });
    eventually("nobody is told of it any more", || !parked(1) && !parked(0));

    service.kill_node(2);
    eventually("the others act for all", || {
        let nodes = overview(&service, 0)["nodes"].clone();
        let nodes = nodes.as_array().unwrap();
        let shards = nodes.iter().map(|node| node["shards"].as_u64().unwrap());
        nodes.len() == 2 && shards.sum::<u64>() == 256
    });
}

/// Nodes are stopped and started one after the other, as in an upgrade. No call fails.
#[test]
fn no_call_fails_while_nodes_are_upgraded() {
    let Some(mut service) = Service::on_nodes("an upgrade of several nodes", 2) else { return };
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let (http, url) = (service.http.clone(), service.url.clone());
    let application = service.application_id.clone();
    let is_over = AtomicBool::new(false);
    let call = |function: &str, params: &Value, once: &str| {
        let call = http.post(format!("{url}/backend/functions/{function}")).json(params);
        let call = call.header("X-Backend-Application-Id", &application);
        let call = call.header("X-Backend-Request-Id", once);
        let answer = call.header("X-Backend-Session-Token", &ada.token).send().unwrap();
        (answer.status().as_u16(), answer.text().unwrap())
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|caller| {
                let (call, is_over, app) = (&call, &is_over, &app);
                scope.spawn(move || {
                    let mut count = 0;
                    while !is_over.load(Relaxed) {
                        let params =
                            json!({"appId": app, "name": format!("Shop {caller} {count}")});
                        let once = format!("{caller}-{count}");
                        let answers = [
                            call("updateApp", &params, &once),
                            call("getCurrentUser", &json!({}), &once),
                        ];
                        for (status, text) in answers {
                            assert_eq!(status, 200, "call {count} of {caller}: {text}");
                        }
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let over = Over(&is_over);
        for node in [0, 1, 0] {
            service.stop_node(node);
            service.boot_node(node);
            // The balancer has to see that it is back.
            std::thread::sleep(Duration::from_secs(1));
        }
        drop(over);
        for caller in callers {
            let count = caller.join().unwrap();
            assert!(count > 20, "{count}");
        }
    });
}

/// A node says what it needs of all nodes before it touches anything.
#[test]
fn a_node_without_a_database_or_a_bucket_does_not_start() {
    let refused = |settings: &[(&str, &str)]| {
        let service = Service::alone(settings);
        let output = service.program(&["serve"]).output().unwrap();
        assert!(!output.status.success());
        assert!(!service.data().join("secrets").exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let nodes = ("SVC_NODES", "several");
    let why = refused(&[nodes]);
    assert!(why.contains("set SVC_STORE"), "{why}");
    let why = refused(&[nodes, ("SVC_STORE", "postgres://svc@localhost/svc")]);
    assert!(why.contains("set SVC_ARTIFACT_STORE"), "{why}");
}
