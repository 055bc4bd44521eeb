//! What an upstream receives.

use super::*;

#[test]
fn a_head_passes_but_for_what_is_of_one_hop_and_what_is_ours() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let _client = proxy.send(
        "GET /instances/i1/a/..//%2e%2e/%2F?b=%20c&d=[]#e HTTP/1.1\r\n\
         Host: evil\r\nConnection: keep-alive, X-Hop ,\r\nConnection: x-other,Host,X-Forwarded-For\r\n\
         Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nTrailer: X-T\r\n\
         Proxy-Authorization: Basic eA==\r\nX-Hop: 1\r\nX-Other: 2\r\nUpgrade: h2c\r\n\
         X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Port: 1\r\n\
         Forwarded: for=6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nX_Other: x\r\nX-Real-IP: 6.6.6.6\r\nAccept: a\r\nAccept: b\r\n\
         Cookie: c=d; e=f\r\nX-Latin: \u{e9}\r\nX-Empty:\r\n\r\n",
    );
    let got = upstream.accept().head();
    assert_eq!(
        lines(&got),
        [
            "get /a/..//%2e%2e/%2f?b=%20c&d=[] http/1.1",
            "accept: a",
            "accept: b",
            "cookie: c=d; e=f",
            "host: api",
            "x-empty: ",
            "x-forwarded-for: 10.1.1.1, 10.1.1.2",
            "x-forwarded-host: api",
            "x-forwarded-prefix: /instances/i1",
            "x-forwarded-proto: https",
            "x-latin: \u{e9}",
            "x_other: x",
        ]
    );
    assert!(got.starts_with("GET /a/..//%2e%2e/%2F?b=%20c&d=[] HTTP/1.1\r\n"), "{got}");
}

#[test]
fn credentials_of_the_platform_do_not_pass_and_those_of_an_instance_do() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let _client = proxy.send(
        "GET /instances/i1/ HTTP/1.1\r\nHost: a\r\n\
         X-Backend-Master-Key: m\r\nX-BACKEND-SESSION-TOKEN: s\r\nAuthorization: bearer  svc_dt_t\r\n\
         X-Backend-Application-Id: i\r\nX-Parse-Master-Key: pm\r\nX-Parse-Session-Token: ps\r\n\
         X-Parse-Application-Id: pi\r\nX-Parse-REST-API-Key: pr\r\n\r\n",
    );
    let got = lines(&upstream.accept().head());
    let theirs: Vec<_> = got.iter().filter(|line| !line.contains("forwarded")).collect();
    assert_eq!(
        theirs,
        [
            "get / http/1.1",
            "host: api",
            "x-backend-application-id: i",
            "x-parse-application-id: pi",
            "x-parse-master-key: pm",
            "x-parse-rest-api-key: pr",
            "x-parse-session-token: ps",
        ]
    );
    for (sent, passed) in [
        ("__Host-svc-session=s", None),
        ("a=b; __Host-svc-session=s;c=d;__host-svc-note=n", Some("a=b;c=d")),
        ("__Host-other=s;  a=b", Some("__Host-other=s;  a=b")),
    ] {
        let _client = proxy
            .send(&format!("GET /instances/i1/ HTTP/1.1\r\nHost: a\r\nCookie: {sent}\r\n\r\n"));
        let got = upstream.accept().head();
        let cookie = got.lines().find_map(|line| line.strip_prefix("cookie: "));
        assert_eq!(cookie, passed, "{sent}");
    }
    for own in ["Bearer abc", "Basic svc_dt_", "Bearer", "svc_dt_"] {
        let _client = proxy.send(&format!(
            "GET /instances/i1/ HTTP/1.1\r\nHost: a\r\nAuthorization: {own}\r\n\r\n"
        ));
        let got = upstream.accept().head();
        assert!(got.contains(&format!("authorization: {own}\r\n")), "{got}");
    }
}

#[test]
fn no_form_of_a_target_says_whom_to_ask() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    for (asked, expected) in [
        ("http://evil/instances/i1/x", "GET /x HTTP/1.1\r\n"),
        ("http://evil@b:1/instances/i1//evil/x", "GET //evil/x HTTP/1.1\r\n"),
        ("/instances/i1/http://evil/x", "GET /http://evil/x HTTP/1.1\r\n"),
    ] {
        let _client = proxy.send(&format!("GET {asked} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let got = upstream.accept().head();
        assert!(got.starts_with(expected), "{got}");
        assert!(got.contains("host: api\r\n"), "{got}");
    }
    for bad in [
        "GET /instances/i1 HTTP/1.1",
        "GET /instances/i1@evil/ HTTP/1.1",
        "GET /instances/i1?x HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "CONNECT evil:80 HTTP/1.1",
        "CONNECT /instances/i1/ HTTP/1.1",
        "GET /instances/i1/\u{7f} HTTP/1.1",
    ] {
        let got = proxy.send(&format!("{bad}\r\nHost: a\r\n\r\n")).head();
        assert!(got.starts_with("HTTP/1.1 400 "), "{bad}: {got}");
    }
    assert!(!upstream.has_another());
}

#[test]
fn bodies_keep_their_framing() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let ask = |method: &str, more: &str| {
        let mut client = proxy.send(&format!(
            "{method} /instances/i1/ HTTP/1.1\r\nHost: a\r\nConnection: content-length\r\n{more}"
        ));
        let mut server = upstream.accept();
        let head = server.head();
        let framing =
            lines(&head).into_iter().filter(|l| l.contains("-length") || l.contains("-enc"));
        let framing: Vec<_> = framing.collect();
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        assert!(client.head().starts_with("HTTP/1.1 200 "));
        (framing.join(","), server.rest())
    };
    let is = |framing: &str, body: &str| (framing.to_owned(), body.to_owned());
    assert_eq!(ask("POST", "Content-Length: 3\r\n\r\nabc"), is("content-length: 3", "abc"));
    assert_eq!(ask("DELETE", "Content-Length: 3\r\n\r\nabc"), is("content-length: 3", "abc"));
    assert_eq!(ask("POST", "Content-Length: 0\r\n\r\n"), is("content-length: 0", ""));
    assert_eq!(ask("GET", "\r\n"), is("", ""));
    for method in ["POST", "GET"] {
        assert_eq!(
            ask(method, "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"),
            is("transfer-encoding: chunked", "3\r\nabc\r\n0\r\n\r\n")
        );
    }
}

#[test]
fn who_asks_first_whether_a_body_is_wanted_is_told_yes() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.send(
        "PUT /instances/i1/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    );
    assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    let mut server = upstream.accept();
    assert!(!server.head().contains("expect"));
    client.send("abc");
    assert_eq!(server.bytes(3), "abc");
    server.send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nhi");
    assert!(client.head().starts_with("HTTP/1.1 201 Created\r\n"));
    assert_eq!(client.bytes(2), "hi");
}

#[test]
fn a_request_is_passed_on_while_it_comes_and_no_faster_than_it_is_taken() {
    const SIZE: usize = 100 << 20;
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.send(&format!(
        "PUT /instances/i1/ HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\nfirst"
    ));
    let mut server = upstream.accept();
    server.head();
    assert_eq!(server.bytes(5), "first");

    let sent = Arc::new(Mutex::new(5));
    let count = sent.clone();
    let mut sends = client.stream.try_clone().unwrap();
    let sender = thread::spawn(move || {
        let block = [b'x'; 64 << 10];
        loop {
            let left = SIZE - *count.lock().unwrap();
            if left == 0 {
                return;
            }
            let n = sends.write(&block[..left.min(block.len())]).unwrap();
            *count.lock().unwrap() += n;
        }
    });
    let held = settled(&sent);
    assert!(held < 24 << 20, "{held} bytes are held, most of them by the kernel");
    let mut block = vec![0; 1 << 20];
    let mut got = 5;
    while got < SIZE {
        let n = server.stream.read(&mut block).unwrap();
        assert!(n > 0 && block[..n].iter().all(|byte| *byte == b'x'));
        got += n;
    }
    sender.join().unwrap();
    server.send("HTTP/1.1 204 No Content\r\n\r\n");
    assert!(client.head().starts_with("HTTP/1.1 204 "));
}

/// The count, once it no longer changes.
pub fn settled(count: &Mutex<usize>) -> usize {
    let mut before = usize::MAX;
    loop {
        thread::sleep(Duration::from_millis(300));
        let now = *count.lock().unwrap();
        if now == before {
            return now;
        }
        before = now;
    }
}

#[test]
fn requests_that_come_together_are_answered_in_their_order() {
    let upstream = Upstream::new();
    let proxy = Proxy::to(&upstream);
    let one = |path: &str| format!("GET /instances/i1/{path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let post = "POST /instances/i1/b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let mut client = proxy.send(&[&one("a"), post, &one("c")].concat());
    let mut server = upstream.accept();
    for name in ["a", "b", "c"] {
        let head = server.head();
        assert!(head.contains(&format!(" /{name} ")), "{head}");
        if name == "b" {
            assert_eq!(server.bytes(3), "abc");
        }
        assert!(server.is_quiet(), "the next one waits");
        server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{name}"));
        assert!(client.head().starts_with("HTTP/1.1 200 "));
        assert_eq!(client.bytes(1), name);
    }
    assert!(!upstream.has_another(), "one connection is enough");
}
