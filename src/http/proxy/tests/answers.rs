//! What a client receives.

use super::{requests::settled, *};

#[test]
fn a_head_passes_but_for_what_is_of_one_hop() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.get("/");
    let mut server = upstream.accept();
    server.head();
    server.send(
        "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 2\r\nConnection: keep-alive, x-hop\r\n\
         Keep-Alive: timeout=5\r\nX-Hop: 1\r\nProxy-Authenticate: Basic\r\nTrailer: X-T\r\n\
         Upgrade: h2\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nSet-Cookie: __Host-svc-session=s; Secure; Path=/\r\nServer: s\r\nX-Latin: \u{e9}\r\n\
         Location: /x\r\nVia: 1.1 other\r\n\r\nhi",
    );
    assert_eq!(
        lines(&client.head()),
        [
            "http/1.1 418 i'm a teapot",
            "content-length: 2",
            "location: /x",
            "server: s",
            "set-cookie: a=b",
            "set-cookie: c=d",
            "via: 1.1 other",
            "via: 1.1 svc",
            "x-latin: \u{e9}",
        ]
    );
    assert_eq!(client.bytes(2), "hi");
}

#[test]
fn answers_without_a_body_end_with_their_head_and_leave_both_connections_in_use() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.connect();
    let mut server = None;
    for (method, answer, expected) in [
        ("HEAD", "200 OK\r\nContent-Length: 12345", &["content-length: 12345"][..]),
        ("HEAD", "200 OK\r\nTransfer-Encoding: chunked", &[]),
        ("HEAD", "200 OK\r\nContent-Length: 0", &["content-length: 0"]),
        ("HEAD", "404 Not Found", &[]),
        ("GET", "204 No Content", &[]),
        ("GET", "304 Not Modified\r\nContent-Length: 12345", &["content-length: 12345"]),
        ("GET", "304 Not Modified", &[]),
        ("GET", "500 Internal Server Error\r\nContent-Length: 0", &["content-length: 0"]),
        ("POST", "200 OK\r\nContent-Length: 0", &["content-length: 0"]),
    ] {
        client.send(format!("{method} /instances/i1/ HTTP/1.1\r\nHost: a\r\n\r\n"));
        let server = server.get_or_insert_with(|| upstream.accept());
        assert!(server.head().starts_with(method));
        server.send(format!("HTTP/1.1 {answer}\r\n\r\n"));
        let head = client.head();
        let got = lines(&head);
        let (status, rest) = got.split_first().unwrap();
        assert!(answer.to_ascii_lowercase().starts_with(&status[9..]), "{head}");
        assert_eq!(rest, [expected, &["via: 1.1 svc"]].concat(), "{method} {answer}");
        assert!(client.is_quiet());
    }
}

#[test]
fn the_end_of_a_body_is_told_as_the_client_understands_it() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let ask = |version: &str, answer: &str| {
        let mut client = proxy
            .send(&format!("GET /instances/i1/ {version}\r\nHost: a\r\nConnection: close\r\n\r\n"));
        let mut server = upstream.accept();
        assert!(server.head().starts_with("GET / HTTP/1.1\r\n"));
        server.send(answer);
        server.finish();
        let head = client.head();
        let fields = lines(&head).into_iter().skip(1);
        let fields = fields.filter(|line| !line.contains("via") && !line.contains("connection"));
        (fields.collect::<Vec<_>>().join(","), client.rest())
    };
    let is = |head: &str, body: &str| (head.to_owned(), body.to_owned());
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-T: 1\r\n\r\n";
    let (head, body) = ask("HTTP/1.1", chunks);
    assert_eq!(head, "transfer-encoding: chunked");
    assert!(["5\r\nhello\r\n0\r\n\r\n", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"].contains(&&*body));
    assert_eq!(ask("HTTP/1.0", chunks), is("", "hello"));
    let until_the_end = "HTTP/1.0 200 OK\r\n\r\nhello";
    assert_eq!(
        ask("HTTP/1.1", until_the_end),
        is("transfer-encoding: chunked", "5\r\nhello\r\n0\r\n\r\n")
    );
    assert_eq!(ask("HTTP/1.0", until_the_end), is("", "hello"));
    let sized = "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello";
    assert_eq!(ask("HTTP/1.0", sized), is("content-length: 5", "hello"));
}

#[test]
fn an_answer_is_passed_on_while_it_comes_and_no_faster_than_it_is_read() {
    const SIZE: usize = 256 << 20;
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.get("/");
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    assert!(client.head().contains("transfer-encoding: chunked"));
    assert_eq!(client.bytes(10), "5\r\nfirst\r\n");

    let sent = Arc::new(Mutex::new(0));
    let count = sent.clone();
    let sender = thread::spawn(move || {
        let block = format!("10000\r\n{}\r\n", "x".repeat(64 << 10));
        for _ in 0..SIZE / (64 << 10) {
            server.send(&block);
            *count.lock().unwrap() += block.len();
        }
        server.send("0\r\n\r\n");
    });
    let held = settled(&sent);
    assert!(held < 24 << 20, "{held} bytes are held, most of them by the kernel");
    let mut block = vec![0; 1 << 20];
    let (mut got, mut end) = (0, Vec::new());
    while !end.ends_with(b"\r\n0\r\n\r\n") {
        let n = client.stream.read(&mut block).unwrap();
        got += block[..n].iter().filter(|byte| **byte == b'x').count();
        end.extend_from_slice(&block[n.saturating_sub(7)..n]);
    }
    assert_eq!(got, SIZE);
    sender.join().unwrap();
}

#[test]
fn what_comes_before_the_answer_is_not_taken_for_it() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.get("/");
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    assert!(client.is_quiet());
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert!(client.head().starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(client.bytes(2), "hi");
}

#[test]
fn an_answer_may_come_before_the_request_is_whole() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let head = "POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc";
    let mut client = proxy.send(head);
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 413 Payload Too Large\r\nContent-Length: 2\r\n\r\nno");
    let got = client.head();
    assert!(got.starts_with("HTTP/1.1 413 ") && got.contains("connection: close"), "{got}");
    assert_eq!(client.bytes(2), "no");
    server.rest();

    // The upstream answers each part of the body before the next one arrives.
    let head = "POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = proxy.send(head);
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.head();
    for word in ["1\r\na\r\n", "1\r\nb\r\n", "0\r\n\r\n"] {
        client.send(word);
        assert_eq!(server.bytes(word.len()), word);
        server.send(word);
        assert_eq!(client.bytes(word.len()), word);
    }
}

#[test]
fn what_is_no_answer_is_a_fault_and_not_passed_on() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(300_000));
    for (answer, fault) in [
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", "BadAnswer"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            "BadAnswer",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "BadAnswer"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "BadAnswer"),
        (&long, "BadAnswer"),
        ("HTTP/1.1 200 OK\r\nX: ", "NoAnswer"),
    ] {
        let mut client = proxy.send("POST /instances/i1/ HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut server = upstream.accept();
        server.head();
        let _ = server.stream.write_all(answer.as_bytes());
        drop(server);
        assert!(client.head().starts_with("HTTP/1.1 502 "), "{answer:.80}");
        let body = client.read_until(|bytes| (bytes.len() >= fault.len()).then_some(bytes.len()));
        let body = String::from_utf8(body).unwrap();
        assert!(body.starts_with(fault), "{answer:.80}: {body}");
    }
}
