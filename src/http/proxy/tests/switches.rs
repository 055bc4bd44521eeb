//! Upstreams that change between two requests.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

#[test]
fn a_request_that_found_nobody_is_whole_for_the_next_place() {
    let (gone, upstream) = (Upstream::new().address, Upstream::new());
    let proxy = Proxy::with(Limits::default(), &[gone, upstream.address]);
    let mut client =
        proxy.send("POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    let mut server = upstream.accept();
    server.head();
    client.send("def");
    assert_eq!(server.bytes(6), "abcdef");
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert!(client.head().starts_with("HTTP/1.1 200 "));

    let proxy = Proxy::with(Limits::default(), &[gone]);
    let mut client = proxy.get("/");
    assert!(client.head().starts_with("HTTP/1.1 502 "));
    assert_eq!(client.bytes(12), "NotConnected");
}

#[test]
fn a_switch_between_two_places_fails_no_request() {
    let (old, new) = (Upstream::new(), Upstream::new());
    let proxy = Proxy::with(Limits::default(), &[old.address, new.address]);
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    let mut client = proxy.get("/");
    let mut server = old.accept();
    server.head();
    server.send(format!("{ok}o"));
    client.head();
    assert_eq!(client.bytes(1), "o");
    drop((server, old));
    thread::sleep(Duration::from_millis(20));
    client.send("POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    let mut server = new.accept();
    server.head();
    assert_eq!(server.bytes(1), "x");
    server.send(format!("{ok}n"));
    assert!(client.head().starts_with("HTTP/1.1 200 "));
    assert_eq!(client.bytes(1), "n");
}

/// A server that answers every request with its name. When it stops, it completes started answers
/// and closes idle connections.
struct Server {
    address: SocketAddr,
    stops: Arc<AtomicBool>,
}

impl Server {
    fn start() -> Server {
        let Upstream { address, listener } = Upstream::new();
        let stops = Arc::new(AtomicBool::new(false));
        let stop = stops.clone();
        listener.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            while !stop.load(Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let stop = stop.clone();
                        thread::spawn(move || answer_all(stream, &stop));
                    }
                    Err(_) => thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        Server { address, stops }
    }
}

fn answer_all(stream: TcpStream, stop: &AtomicBool) {
    let mut peer = Peer::new(stream);
    let name = peer.stream.local_addr().unwrap().port().to_string();
    while !stop.load(Relaxed) {
        peer.stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        match peer.stream.peek(&mut [0]) {
            Ok(0) => return,
            Ok(_) => {
                peer.stream.set_read_timeout(Some(WITHIN)).unwrap();
                peer.head();
                peer.bytes(4);
                thread::sleep(Duration::from_millis(2));
                let length = name.len();
                peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}"));
            }
            Err(_) => {}
        }
    }
}

#[test]
fn switches_under_load_fail_no_request() {
    let mut live = Server::start();
    let proxy = &Proxy::with(Limits::default(), &[live.address]);
    let (is_over, answered) = (&AtomicBool::new(false), &[const { AtomicUsize::new(0) }; 8]);
    let counts = || answered.each_ref().map(|count| count.load(Relaxed));
    thread::scope(|threads| {
        for answered in answered {
            threads.spawn(move || {
                let mut client = proxy.connect();
                while !is_over.load(Relaxed) {
                    client.send(
                        "POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
                    );
                    let head = client.head();
                    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                    client.bytes(lines(&head)[1]["content-length: ".len()..].parse().unwrap());
                    answered.fetch_add(1, Relaxed);
                }
            });
        }
        for _ in 0..10 {
            thread::sleep(Duration::from_millis(50));
            let next = Server::start();
            *proxy.to.lock().unwrap() = vec![next.address];
            // A client's request may be on its way to the old server. The one after it goes to the next.
            let (before, begun) = (counts(), Instant::now());
            let is_switched =
                || counts().iter().zip(before).all(|(now, before)| *now >= before + 2);
            while !is_switched() && begun.elapsed() < WITHIN {
                thread::sleep(Duration::from_millis(1));
            }
            live.stops.store(true, Relaxed);
            live = next;
        }
        is_over.store(true, Relaxed);
    });
    live.stops.store(true, Relaxed);
    assert!(counts().iter().sum::<usize>() > 100);
}
