//! Connections that end or stall, on either side and at any time.

use super::*;

fn short(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

const SOON: Duration = Duration::from_millis(1000);

#[test]
fn a_body_that_is_cut_does_not_look_whole() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    for (framing, part) in [
        ("Content-Length: 10\r\n\r\nhello", "hello"),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "5\r\nhello\r\n"),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nwo", "5\r\nhello\r\n"),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n", "5\r\nhello\r\n"),
    ] {
        let mut client = proxy.get("/");
        let mut server = upstream.accept();
        server.head();
        server.send(format!("HTTP/1.1 200 OK\r\n{framing}"));
        client.head();
        assert_eq!(client.bytes(part.len()), part);
        drop(server);
        let rest = client.rest();
        assert!(rest.len() < 10 && !rest.contains("0\r\n"), "{framing}: {rest}");
    }
}

#[test]
fn an_idle_connection_is_used_again_and_ends_soon() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut server = None;
    for body in
        ["Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"]
    {
        // Clients that come one after the other.
        for _ in 0..3 {
            let mut client = proxy.get("/");
            let server = server.get_or_insert_with(|| upstream.accept());
            server.head();
            server.send(format!("HTTP/1.1 200 OK\r\n{body}"));
            client.head();
            client.bytes(body.len() - body.find("\r\n\r\n").unwrap() - 4);
        }
    }
    let begun = Instant::now();
    assert_eq!(server.unwrap().rest(), "");
    assert!(begun.elapsed() < Duration::from_millis(2500));
}

/// A proxy with an idle connection that has carried one request.
fn used() -> (Upstream, Proxy, Peer) {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.get("/");
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    client.head();
    client.bytes(2);
    (upstream, proxy, server)
}

#[test]
fn a_connection_that_ended_while_it_was_idle_fails_no_request() {
    for method in ["GET", "POST"] {
        let (upstream, proxy, server) = used();
        drop(server);
        thread::sleep(Duration::from_millis(20));
        let mut client = proxy.send(&format!(
            "{method} /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
        ));
        let mut server = upstream.accept();
        server.head();
        assert_eq!(server.bytes(3), "abc");
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert!(client.head().starts_with("HTTP/1.1 200 "), "{method}");
    }
}

#[test]
fn an_old_connection_that_ends_under_a_request_costs_it_only_where_it_may_have_been_done() {
    let post = "POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    let put = "PUT /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    let delete = "DELETE /instances/i1/ HTTP/1.1\r\nHost: a\r\n\r\n";
    for (request, is_sent_again) in [(post, false), (put, false), (delete, true)] {
        let (upstream, proxy, mut server) = used();
        let mut client = proxy.send(request);
        server.head();
        drop(server);
        if is_sent_again {
            let mut server = upstream.accept();
            server.head();
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            assert!(client.head().starts_with("HTTP/1.1 200 "), "{request}");
        } else {
            assert!(client.head().starts_with("HTTP/1.1 502 "), "{request}");
            assert_eq!(client.bytes(8), "NoAnswer");
            assert!(!upstream.has_another(), "{request}");
        }
    }

    // The second connection is new, so there is no third attempt.
    let (upstream, proxy, mut server) = used();
    let mut client = proxy.get("/");
    server.head();
    drop(server);
    upstream.accept().head();
    assert!(client.head().starts_with("HTTP/1.1 502 "));
    assert_eq!(client.bytes(8), "NoAnswer");
    assert!(!upstream.has_another());
}

#[test]
fn an_upstream_that_does_not_answer_in_time_is_given_up() {
    let upstream = Upstream::new();
    let proxy = Proxy::with(short(|limits| limits.answer = SOON), &[upstream.address]);
    let mut client = proxy.get("/");
    let mut server = upstream.accept();
    server.head();
    assert!(client.head().starts_with("HTTP/1.1 502 "));
    assert_eq!(client.bytes(7), "TooLate");
    assert_eq!(server.rest(), "", "it learns of it");

    // A client that keeps sending gets more time.
    let mut client =
        proxy.send("POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
    let mut server = upstream.accept();
    server.head();
    for _ in 0..6 {
        thread::sleep(SOON / 4);
        client.send("x");
        assert_eq!(server.bytes(1), "x");
    }
    thread::sleep(SOON / 4);
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert!(client.head().starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_client_that_does_not_send_in_time_is_given_up() {
    let upstream = Upstream::new();
    let proxy = Proxy::with(short(|limits| limits.upload = SOON), &[upstream.address]);
    let mut client =
        proxy.send("POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    let mut server = upstream.accept();
    server.head();
    assert!(client.head().starts_with("HTTP/1.1 502 "));
    assert_eq!(client.bytes(13), "ClientTooSlow");
    assert_eq!(server.rest(), "abc");
}

#[test]
fn an_answer_that_stops_is_given_up_and_one_that_pauses_is_not() {
    let upstream = Upstream::new();
    let proxy = Proxy::with(short(|limits| limits.pause = SOON), &[upstream.address]);
    let mut client = proxy.get("/events");
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.head();
    for _ in 0..6 {
        thread::sleep(SOON / 4);
        server.send("1\r\nx\r\n");
        assert_eq!(client.bytes(6), "1\r\nx\r\n");
    }
    assert_eq!(client.rest(), "");
    assert_eq!(server.rest(), "");
}

#[test]
fn when_a_client_goes_its_request_is_dropped() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let begun = Instant::now();
    // Before the answer.
    let client = proxy.get("/");
    let mut server = upstream.accept();
    server.head();
    drop(client);
    assert_eq!(server.rest(), "");

    // During a silent answer.
    let mut client = proxy.get("/events");
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.head();
    drop(client);
    assert_eq!(server.rest(), "");

    // During a large answer.
    let client = proxy.get("/");
    let mut server = upstream.accept();
    server.head();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n");
    drop(client);
    while server.stream.write(&[b'x'; 64 << 10]).is_ok() {}

    // A client that closes its side counts as disconnected.
    let mut client = proxy.get("/");
    let mut server = upstream.accept();
    server.head();
    client.finish();
    assert_eq!(server.rest(), "");
    assert!(client.rest().ends_with("the client has gone"));

    // During its request.
    let client =
        proxy.send("PUT /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    let mut server = upstream.accept();
    server.head();
    assert_eq!(server.bytes(3), "abc");
    drop(client);
    assert_eq!(server.rest(), "", "and what has come does not look whole");
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_body_that_is_none_is_refused_and_does_not_look_whole() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.send(
        "POST /instances/i1/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
    );
    let mut server = upstream.accept();
    server.head();
    assert_eq!(server.bytes(6), "1\r\na\r\n");
    client.send("zz\r\n");
    assert_eq!(server.rest(), "");
    let all = client.rest();
    assert!(all.starts_with("HTTP/1.1 400 "), "{all}");
}
