//! Connections with malformed, slow or several requests.

use crate::support::service::{Answer, Person, Service, eventually};
use serde_json::{Value, json};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

/// Sends bytes on a new connection and returns the answer.
fn raw(service: &Service, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The answer may come, and the connection may end, before all bytes are sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut block = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut block) {
        answer.extend_from_slice(&block[..n]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status and the code of the last answer on a connection.
fn last(answer: &str) -> (u16, i64) {
    let start = answer.rfind("HTTP/1.1 ").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let (head, body) = answer[start..].split_once("\r\n\r\n").unwrap();
    let status = head[9..12].parse().unwrap();
    let json: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("not JSON: {answer:?}"));
    assert!(json["error"].as_str().is_some_and(|e| !e.is_empty()), "{answer}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{answer}");
    assert!(head.to_lowercase().contains("application/json"), "{answer}");
    (status, json["code"].as_i64().unwrap())
}

/// The status of the last answer on a connection.
fn last_status(answer: &str) -> u16 {
    let start = answer.rfind("HTTP/1.1 ").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    answer[start + 9..start + 12].parse().unwrap()
}

#[test]
fn what_is_no_request_is_refused_and_ends_its_connection() {
    let service = &Service::start();
    let get =
        |more: &str| format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{more}\r\n\r\n").into_bytes();
    std::thread::scope(|threads| {
        let slow = threads.spawn(|| raw(service, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "));
        let long = get(&format!("X-Long: {}", "x".repeat(300_000)));
        let many = get(&(0..200).map(|n| format!("X-{n}: 1")).collect::<Vec<_>>().join("\r\n"));
        let earlier = [get("X-Fine: 1"), long.clone()].concat();
        for (what, bytes, expected) in [
            ("a header that is too long", &long[..], 431),
            ("too many headers", &many, 431),
            ("the same after a good request", &earlier, 431),
            ("no HTTP", b"hello\r\n\r\n", 400),
            ("another protocol", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
            ("a bad length", &get("Content-Length: abc"), 400),
            ("two lengths", &get("Content-Length: 1\r\nContent-Length: 2"), 400),
            ("a header that is none", &get("no colon"), 400),
            ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        ] {
            assert_eq!(last_status(&raw(service, bytes)), expected, "{what}");
        }
        // The head of this request is valid, and the service refuses its body.
        let broken = b"POST /backend/functions/getApp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        assert_eq!(last(&raw(service, broken)), (400, 142), "broken chunks");
        assert_eq!(last_status(&slow.join().unwrap()), 408, "headers that do not come");
    });
    let twice = [get("X: 1"), get("Connection: close")].concat();
    assert_eq!(raw(service, &twice).matches("{\"status\":\"ok\"}").count(), 2);
}

#[test]
fn who_sends_all_before_it_reads_gets_its_refusal() {
    let service = Service::start();
    for path in ["/backend/functions/getCurrentUser", "/api/v1/artifacts/upload-url"] {
        let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let body = vec![b'x'; 20 << 20];
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap_or_else(|e| panic!("{path}: reset while it sends: {e}"));
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(last(&String::from_utf8(answer).unwrap()), (415, 142), "{path}");
    }
}

/// Raises this process's limit of open files to the maximum.
fn open_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

fn connect(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// A person's call from this address.
fn call_from(service: &Service, address: [u8; 4], who: &Person) -> Answer {
    let client = Service::client_at(address);
    let request = service.request(&client, "getCurrentUser", &json!({}));
    let request = request.header("X-Backend-Session-Token", &who.token);
    Service::answer(request.send().unwrap()).unwrap()
}

#[test]
fn who_announces_bodies_and_sends_none_keeps_nobody_out() {
    open_many_files();
    let service = Service::start();
    let ada = service.register("ada");
    let head = format!(
        "POST /backend/functions/getCurrentUser HTTP/1.1\r\nHost: x\r\n\
         X-Backend-Application-Id: {}\r\nContent-Length: 10\r\n\r\n",
        service.application_id
    );
    let slow: Vec<_> = (0..4200)
        .map(|_| {
            let mut stream = connect(&service);
            // The service may have closed the connection.
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    for _ in 0..20 {
        let answer = call_from(&service, [127, 0, 0, 2], &ada);
        assert_eq!(answer.status, 200, "{}", answer.body);
        // A client at the same address that has a connection and sends quickly is not affected.
        service.call(Some(&ada), "getCurrentUser", json!({})).ok();
    }
    // The service refuses most of them at once, because one address may not have so many.
    let mut waiting = 0;
    for mut stream in slow {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0; 12]);
        waiting += usize::from(read.is_err_and(|e| e.kind() == ErrorKind::WouldBlock));
    }
    assert!(waiting < 2000, "{waiting} are waited for");
}

#[test]
fn one_address_does_not_take_all_connections() {
    let service = Service::start_with(&[("SVC_MAX_CONNECTIONS", "40")]);
    let ada = service.register("ada");
    let get = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..60 {
        let mut stream = connect(&service);
        let _ = stream.write_all(get);
        if stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {
            open.push(stream);
        }
    }
    assert!((4..=8).contains(&open.len()), "{} of 40 are of one address", open.len());
    assert_eq!(call_from(&service, [127, 0, 0, 2], &ada).status, 200);
    // A closed connection is free again.
    drop(open);
    eventually("the address may connect", || {
        let mut stream = connect(&service);
        stream.write_all(get).is_ok() && stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0)
    });
}

#[test]
fn many_clients_of_a_trusted_proxy_share_its_address() {
    let settings = [("SVC_MAX_CONNECTIONS", "40"), ("SVC_TRUSTED_PROXIES", "127.0.0.1")];
    let service = Service::start_with(&settings);
    let mut open = Vec::new();
    while open.len() < 35 {
        let mut stream = connect(&service);
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0), "{} are open", open.len());
        open.push(stream);
    }
}
