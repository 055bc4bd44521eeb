//! Every declared function, under random and hostile bodies.

use crate::support::{
    declared::{declared, parameters, scene},
    service::{Answer, Service, administrator},
};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A body that a function should not accept.
fn hostile(random: &mut fastrand::Rng, valid: &Map<String, Value>, kind: usize) -> Vec<u8> {
    let junk = |random: &mut fastrand::Rng| match random.u8(..14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(1e308),
        4 => json!(u64::MAX),
        5 => json!(""),
        6 => json!("\u{0}\u{1}\u{7f}\u{202e}\u{feff}\u{1f480}"),
        7 => json!("../../../../etc/passwd"),
        8 => json!("x".repeat(100_000)),
        9 => json!([]),
        10 => json!([[[[null]]]]),
        11 => json!({"__type": "Date", "iso": "+999999-99-99T99:99:99Z"}),
        12 => json!({"$gt": ""}),
        _ => json!("prj_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
    };
    let mut params = valid.clone();
    let field = valid.keys().nth(random.usize(..valid.len().max(1))).cloned();
    let field = field.unwrap_or_else(|| "name".into());
    match kind {
        0 => {
            params.insert(field, junk(random));
        }
        1 => {
            params.remove(&field);
        }
        2 => {
            params.insert("x".repeat(random.usize(1..5000)), junk(random));
        }
        3 => {
            for value in params.values_mut() {
                *value = junk(random);
            }
        }
        4 => {
            let key = [
                "_SessionToken",
                "_MasterKey",
                "_ApplicationId",
                "_JavaScriptKey",
                "_method",
                "_",
                "_context",
            ];
            params.insert(key[random.usize(..key.len())].into(), junk(random));
        }
        5 => {
            params.insert(field, json!([junk(random), valid.values().next()]));
        }
        6 => return [b"{\"a\":".repeat(random.usize(50..80)), b"1".to_vec()].concat(),
        7 => return b"[".repeat(1 << 20),
        8 => {
            let mut body = serde_json::to_vec(&params).unwrap();
            let at = random.usize(..body.len());
            body[at] = random.u8(..);
            return body;
        }
        9 => {
            let body = serde_json::to_vec(&params).unwrap();
            return body[..random.usize(..body.len())].to_vec();
        }
        10 => return format!("{{\"{field}\":\"\\ud800\"}}").into_bytes(),
        11 => return (0..1 << 20).map(|_| random.u8(..)).collect(),
        _ => {
            let text: String = std::iter::repeat_with(|| random.char(..)).take(2000).collect();
            params.insert(field, json!(text));
        }
    }
    serde_json::to_vec(&params).unwrap()
}

const KINDS: usize = 13;

#[test]
fn nothing_that_anyone_sends_breaks_a_function() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let scene = scene(&service);
    let functions = declared(&service);
    let master = service.master_key();
    let mut superadmin = scene.superadmin.clone();
    let first = administrator();
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let (begun, mut sent) = (Instant::now(), 0);
    while sent == 0 || begun.elapsed() < Duration::from_secs(8) {
        // The functions of failpoints break things on purpose, so they are not called.
        for function in functions.iter().filter(|f| !f.name.starts_with("svc_test_")) {
            let valid = parameters(&scene, function);
            for kind in 0..KINDS {
                let large = kind == 7 || kind == 11;
                if large && sent > 0 && random.u8(..8) > 0 {
                    continue;
                }
                let body = hostile(&mut random, &valid, kind);
                let shown = String::from_utf8_lossy(&body[..body.len().min(2000)]).into_owned();
                let address = format!("{}/backend/functions/{}", service.url, function.name);
                let mut request = service.http.post(address).body(body);
                request = request.header("X-Backend-Application-Id", &service.application_id);
                request = match random.u8(..4) {
                    0 => request.header("X-Backend-Master-Key", &master),
                    1 => request.bearer_auth(&scene.token.token),
                    _ => request.header("X-Backend-Session-Token", &superadmin.token),
                };
                if random.bool() {
                    request = request
                        .header("X-Backend-Request-Id", format!("hostile {}", random.u8(..)));
                }
                let answer = Service::answer(request.send().unwrap()).unwrap();
                check(&function.name, &answer, &shown);
                sent += 1;
            }
            // A random call may have been valid and have ended the session.
            if service.call(Some(&superadmin), "getCurrentUser", json!({})).status != 200 {
                let signed_in = service.call(None, "loginWithEmail", first.clone()).ok();
                superadmin.token = signed_in["sessionToken"].as_str().unwrap().to_owned();
            }
        }
    }
    let actors = service.call(Some(&superadmin), "svc_admin_getActors", json!({"limit": 200})).ok();
    for actor in actors["items"].as_array().unwrap() {
        assert_eq!((&actor["restarts"], &actor["lastPanic"]), (&json!(0), &Value::Null), "{actor}");
        assert_eq!(actor["state"], "running", "{actor}");
    }
    let log = service.log();
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
    assert!(service.http.get(format!("{}/readyz", service.url)).send().unwrap().status() == 200);
    println!("{sent} calls of {} functions", functions.len());
}

fn check(function: &str, answer: &Answer, sent: &str) {
    // This service has no container engine, and some answers say so.
    let engine_is_away = answer.status == 503
        && answer.body["error"].as_str().is_some_and(|error| error.contains("container engine"));
    assert!(
        answer.status < 500 && answer.status != 424 || engine_is_away,
        "{function} {sent}: {} {}",
        answer.status,
        answer.body
    );
    if answer.status != 200 {
        answer.refusal();
        let error = answer.body["error"].as_str().unwrap();
        let leaks = [
            "panicked",
            env!("CARGO_MANIFEST_DIR"),
            "src/",
            ".rs:",
            "RUST_BACKTRACE",
            "data/run",
            "sled",
        ];
        assert!(!leaks.iter().any(|leak| error.contains(leak)), "{function}: {error}");
        assert!(
            answer.body.to_string().len() < 100_000,
            "{function}: an error of {} bytes",
            answer.body.to_string().len()
        );
    }
}
