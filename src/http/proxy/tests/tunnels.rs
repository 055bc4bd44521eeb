//! Upgraded connections.

use super::*;

const ASK: &str = "GET /instances/i1/live HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const AGREE: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Both ends of an upgraded connection.
fn tunnel(limits: Limits) -> (Proxy, Peer, Peer) {
    let upstream = Upstream::new();
    let proxy = Proxy::with(limits, &[upstream.address]);
    // Bytes may follow both heads at once.
    let mut client = proxy.send(&format!("{ASK}early"));
    let mut server = upstream.accept();
    let head = server.head();
    assert!(head.contains("connection: upgrade\r\n") && head.contains("upgrade: websocket\r\n"));
    assert!(head.contains("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), "{head}");
    assert!(server.is_quiet(), "nothing is sent to an upstream that has not agreed");
    server.send(format!("{AGREE}hello"));
    assert_eq!(
        lines(&client.head()),
        [
            "http/1.1 101 switching protocols",
            "connection: upgrade",
            "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=",
            "upgrade: websocket",
            "via: 1.1 svc",
        ]
    );
    assert_eq!(client.bytes(5), "hello");
    assert_eq!(server.bytes(5), "early");
    (proxy, client, server)
}

#[test]
fn bytes_go_both_ways_until_the_upstream_ends() {
    let (_proxy, mut client, mut server) = tunnel(Limits::default());
    for word in ["\u{81}a", "\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
        client.send(word);
        assert_eq!(server.bytes(word.len()), word);
        server.send(word);
        assert_eq!(client.bytes(word.len()), word);
    }
    server.send("bye");
    drop(server);
    let begun = Instant::now();
    assert_eq!(client.rest(), "bye");
    assert!(begun.elapsed() < Duration::from_secs(2), "the client is not told late");
}

#[test]
fn an_upstream_may_go_on_when_the_client_has_ended() {
    let (_proxy, mut client, mut server) = tunnel(Limits::default());
    client.send("last");
    client.finish();
    assert_eq!(server.rest(), "last");
    thread::sleep(Duration::from_millis(100));
    server.send("more");
    assert_eq!(client.bytes(4), "more");
    drop(server);
    assert_eq!(client.rest(), "");
}

#[test]
fn a_client_that_breaks_off_ends_it() {
    let (_proxy, client, mut server) = tunnel(Limits::default());
    server.send("unread");
    thread::sleep(Duration::from_millis(100));
    // Closing a socket with unread bytes resets the connection.
    drop(client);
    assert_eq!(server.rest(), "");
}

#[test]
fn much_goes_both_ways_at_once() {
    const SIZE: usize = 32 << 20;
    let (_proxy, client, server) = tunnel(Limits::default());
    let copy = |peer: &Peer| (peer.stream.try_clone().unwrap(), peer.stream.try_clone().unwrap());
    let threads = [copy(&client), copy(&server)].map(|(mut reads, mut writes)| {
        // Each side sends more than all buffers hold before it reads.
        let sender = thread::spawn(move || {
            for _ in 0..SIZE / (64 << 10) {
                writes.write_all(&[b'x'; 64 << 10]).unwrap();
            }
        });
        let reader = thread::spawn(move || {
            let mut block = vec![0; 64 << 10];
            let mut left = SIZE;
            while left > 0 {
                left -= reads.read(&mut block).unwrap();
            }
        });
        [sender, reader]
    });
    threads.into_iter().flatten().for_each(|thread| thread.join().unwrap());
}

#[test]
fn one_side_that_does_not_read_does_not_stop_the_other_way() {
    let (_proxy, mut client, mut server) = tunnel(Limits::default());
    let sent = Arc::new(Mutex::new(0));
    let (count, mut floods) = (sent.clone(), server.stream.try_clone().unwrap());
    thread::spawn(move || {
        while let Ok(n) = floods.write(&[b'x'; 64 << 10]) {
            *count.lock().unwrap() += n;
        }
    });
    assert!(requests::settled(&sent) < 24 << 20);
    client.send("ping");
    assert_eq!(server.bytes(4), "ping");
}

#[test]
fn quiet_tunnels_end() {
    let tunnel_limit = Duration::from_millis(1000);
    let (_proxy, mut client, mut server) =
        tunnel(Limits { tunnel: tunnel_limit, ..Limits::default() });
    for _ in 0..6 {
        thread::sleep(tunnel_limit / 4);
        client.send("x");
        assert_eq!(server.bytes(1), "x", "either direction keeps it open");
    }
    assert_eq!(client.rest(), "");
    assert_eq!(server.rest(), "");
}

#[test]
fn an_upstream_may_refuse() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    for framing in
        ["Content-Length: 2\r\n\r\nno", "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"]
    {
        let mut client = proxy.send(&format!("{ASK}early"));
        let mut server = upstream.accept();
        server.head();
        server.send(format!("HTTP/1.1 403 Forbidden\r\n{framing}"));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 403 ") && head.contains("connection: close"), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
        assert_eq!(client.bytes(2), "no");
        client.finish();
        assert_eq!(client.rest(), "");
    }
    let mut client = proxy.send(ASK);
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 426 Upgrade Required\r\nUpgrade: x\r\nContent-Length: 0\r\n\r\n");
    assert!(client.head().contains("upgrade: x\r\n"));
}

#[test]
fn what_only_looks_like_an_upgrade_is_none() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let ask = |method: &str, fields: &str| {
        proxy.send(&format!("{method} /instances/i1/ HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"))
    };
    for (method, fields) in [
        ("GET", "Connection: upgrade\r\nUpgrade: h2c"),
        ("GET", "Upgrade: websocket"),
        ("POST", "Connection: upgrade\r\nUpgrade: websocket"),
        ("GET", "Connection: close, upgrade\r\nUpgrade: websocket"),
    ] {
        let mut client = ask(method, fields);
        let mut server = upstream.accept();
        let head = server.head();
        assert!(!head.contains("upgrade") && !head.contains("connection:"), "{head}");
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi");
        client.head();
        assert_eq!(client.bytes(2), "hi");
    }
    let _client = proxy.send(&ASK.replace("HTTP/1.1", "HTTP/1.0"));
    assert!(!upstream.accept().head().contains("upgrade:"));
    let fields = "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3";
    assert!(ask("GET", fields).head().starts_with("HTTP/1.1 400 "));
}
