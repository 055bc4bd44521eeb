//! Uploads whose bytes come slowly, break off, or are many.

use crate::{
    support::service::{Service, eventually, sha256},
    uploads::{Upload, bytes_of, declared, opening, said},
};
use data_encoding::BASE64;
use reqwest::blocking::Body;
use serde_json::json;
use std::{
    fs::File,
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

/// Sends the head of a raw request. The caller writes the body.
fn raw(upload: &Upload<'_>, headers: &str) -> TcpStream {
    let address = upload.service.url.strip_prefix("http://").unwrap();
    let path = upload.url.strip_prefix(&upload.service.url).unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "PUT {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n\r\n").unwrap();
    connection
}

#[test]
fn a_broken_connection_keeps_its_bytes_and_lets_the_next_writer_in() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let (half, total) = (bytes.len() / 2, bytes.len());
    let upload = Upload::open(&service, &ada, &opening(&app));
    assert_eq!(upload.part(&[7; 1000], 0, total, None).status, 202);
    let mut broken = raw(&upload, &format!("Content-Length: {total}"));
    broken.write_all(&bytes[..half]).unwrap();
    let staged = service.data().join("staging").join(&upload.id);
    eventually("the first half arrives", || {
        staged.metadata().is_ok_and(|staged| staged.len() == half as u64)
    });
    let second = upload.put(bytes.clone());
    assert_eq!(second.refusal(), (409, 119));
    assert!(second.body["error"].as_str().unwrap().contains("somebody else"), "{}", second.body);
    assert_eq!(upload.head().0, "0", "what was stored is overwritten, and nothing is durable yet");
    drop(broken);
    let stored = half.to_string();
    eventually("what came is kept", || upload.head().0 == stored);
    assert_eq!(upload.head(), said(half, total, false));
    assert_eq!(upload.part(&bytes[half..], half, total, None).status, 200);
    assert_eq!(upload.finalize(&json!({"sha256": sha256(&bytes)})).status, 201);
}

/// Whose bytes are counted has the lock a moment longer, in which the next part may come.
#[test]
fn the_next_writer_waits_a_moment_for_the_lock() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let (half, total) = (bytes.len() / 2, bytes.len());
    let upload = Upload::open(&service, &ada, &opening(&app));
    assert_eq!(upload.part(&bytes[..half], 0, total, None).status, 202);
    let staged = File::open(service.data().join("staging").join(&upload.id)).unwrap();
    staged.lock().unwrap();
    let held = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        drop(staged);
    });
    assert_eq!(upload.part(&bytes[half..], half, total, None).status, 200);
    held.join().unwrap();
}

#[test]
fn a_stream_that_breaks_is_not_taken_for_a_whole_file() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let upload = Upload::open(&service, &ada, &opening(&app));
    let mut broken = raw(&upload, "Transfer-Encoding: chunked");
    write!(broken, "{:x}\r\n", 1000).unwrap();
    broken.write_all(&bytes[..1000]).unwrap();
    write!(broken, "\r\n").unwrap();
    drop(broken);
    eventually("what came is kept", || upload.head().0 == "1000");
    assert_eq!(upload.head().2, "?0");
    let early = upload.finalize(&json!({"sha256": sha256(&bytes[..1000])}));
    assert_eq!(early.refusal(), (409, 119));
    let whole = upload.put(Body::new(std::io::Cursor::new(bytes.clone())));
    assert_eq!((whole.status, &whole.body["received"]), (200, &json!(bytes.len())));
    assert_eq!(upload.finalize(&json!({"sha256": sha256(&bytes)})).status, 201);
}

/// All bytes have arrived, but the request is not complete: a wrong digest may still discard them.
#[test]
fn bytes_of_a_request_that_is_not_over_cannot_be_verified() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let total = 64 << 20;
    let upload = Upload::open(&service, &ada, &opening(&app));
    let wrong = BASE64.encode(&[0; 32]);
    let headers = format!(
        "Transfer-Encoding: chunked\r\nContent-Range: bytes 0-{}/{total}\r\nContent-Digest: sha-256=:{wrong}:",
        total - 1
    );
    let mut connection = raw(&upload, &headers);
    write!(connection, "{total:x}\r\n").unwrap();
    connection.write_all(&vec![7; total]).unwrap();
    write!(connection, "\r\n").unwrap();
    let staged = service.data().join("staging").join(&upload.id);
    eventually("all bytes arrive", || staged.metadata().is_ok_and(|s| s.len() == total as u64));
    assert_eq!(upload.head().0, "0");
    let hash = sha256(&vec![7; total]);
    assert_eq!(upload.finalize(&json!({"sha256": hash})).refusal(), (409, 119));
    write!(connection, "0\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!((upload.state(), upload.head().0.as_str()), (json!("pending"), "0"));
}

/// Resets the memory peak of a process.
fn forget_peak_memory(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

/// The memory peak of a process, in MiB.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn memory_does_not_grow_with_the_file() {
    const SIZE: u64 = 300 << 20;
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let upload = Upload::open(&service, &ada, &opening(&app));
    forget_peak_memory(service.pid());
    let idle = peak_memory(service.pid());
    let whole = upload.put(Body::sized(std::io::repeat(0).take(SIZE), SIZE));
    assert_eq!((whole.status, &whole.body["received"]), (200, &json!(SIZE)));
    let grown = peak_memory(service.pid()) - idle;
    assert!(grown < 64, "{grown} MiB more than the {idle} MiB before");
}

#[test]
fn one_maker_does_not_take_all_places_for_uploads() {
    let service = Service::start();
    let (ada, bob) = (service.register("ada"), service.register("bob"));
    let apps = [(); 2].map(|()| service.project_with_app(&ada, None).1);
    let uploads = apps.iter().flat_map(|app| (0..70).map(move |_| opening(app)));
    let uploads: Vec<_> = uploads.map(|opening| Upload::open(&service, &ada, &opening)).collect();
    let more = Upload::open(&service, &ada, &opening(&apps[0]));
    let slow: Vec<_> = uploads
        .iter()
        .map(|upload| {
            let mut stream = raw(upload, "Content-Length: 1000");
            stream.write_all(b"x").unwrap();
            stream
        })
        .collect();
    eventually("ada's uploads are under way, as far as she may", || {
        // A permitted part would be refused for its wrong start.
        matches!(more.part(b"xx", 5, 10, None).status, 429 | 503)
    });
    let (_, app) = service.project_with_app(&bob, None);
    let bytes = bytes_of("sample.apk");
    let upload = Upload::open(&service, &bob, &declared(&app, &bytes));
    let answer = upload.put(bytes);
    assert_eq!(answer.status, 200, "{}", answer.body);
    drop(slow);
}
