//! The contract on the wire: the status, the code and the headers of every kind of answer.

use crate::support::service::{Answer, Person, Service};
use reqwest::{Method, blocking::RequestBuilder};
use serde_json::{Value, json};
use std::io::Read;

/// Checks the headers and the body that every answer has.
fn check(answer: &Answer, path: &str) {
    let header = |name: &str| answer.headers.get(name).map(|v| v.to_str().unwrap().to_owned());
    assert_eq!(header("content-type").as_deref(), Some("application/json"), "{path}: {answer:?}");
    assert!(header("x-request-id").is_some_and(|id| !id.is_empty()), "{path}: {answer:?}");
    assert_eq!(header("access-control-allow-origin").as_deref(), Some("*"), "{path}");
    assert_eq!(header("vary").as_deref(), Some("Origin"), "{path}");
    let exposed = header("access-control-expose-headers").unwrap_or_default();
    for name in [
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
        "Retry-After",
        "X-Request-Id",
    ] {
        assert!(exposed.contains(name), "{path}: {name} is not exposed");
    }
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        let value = header(name).unwrap_or_else(|| panic!("{path}: no {name}: {answer:?}"));
        assert!(value.parse::<u64>().is_ok(), "{path}: {name} is {value}");
    }
}

pub fn send(request: RequestBuilder, path: &str) -> Answer {
    let answer = Service::answer(request.send().unwrap()).unwrap();
    check(&answer, path);
    answer
}

pub struct Wire {
    pub service: Service,
    pub ada: Person,
}

impl Wire {
    pub fn start() -> Wire {
        let settings = [("SVC_ANONYMOUS_TIER", "professional"), ("SVC_JAVASCRIPT_KEY", "a key")];
        let service = Service::start_with(&settings);
        let ada = service.register("ada");
        Wire { service, ada }
    }

    pub fn plain(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.service.http.request(method, format!("{}{path}", self.service.url))
    }

    /// A call of Ada with this body.
    pub fn ada(&self, function: &str, body: impl Into<reqwest::blocking::Body>) -> Answer {
        let path = format!("/backend/functions/{function}");
        let request = self.plain("POST", &path).body(body);
        let request = request.header("X-Backend-Application-Id", &self.service.application_id);
        send(request.header("X-Backend-Session-Token", &self.ada.token), &path)
    }
}

#[test]
fn what_is_not_served_is_refused_in_the_same_shape() {
    let wire = Wire::start();
    for path in [
        "/backend",
        "/backend/",
        "/backend/nothing",
        "/backend/functions",
        "/backend/functions/",
        "/backend/functions/getApp/more",
        "/backend/classes/Thing",
        "/api",
        "/api/v1",
        "/api/v2/artifacts",
        "/api/v1/artifacts",
        "/api/v1/artifacts/x/y",
        "/nothing",
        "/backendish",
        "//",
        "/healthz/x",
        "/backend//functions/getApp",
        "/install",
        "/%2e%2e/secrets",
        "/backend/functions/../../readyz/x",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let answer = send(wire.plain(method, path), path);
            assert_eq!(answer.refusal(), (404, 101), "{method} {path}");
        }
    }
    let id = "art_01J9ZQ8F5W7V3T6M2K4N8R0P1S";
    for (path, methods) in [
        (
            "/backend/functions/getCurrentUser",
            &["GET", "PUT", "DELETE", "PATCH", "TRACE", "BREW"][..],
        ),
        ("/backend/functions/noSuchFunction", &["GET"]),
        ("/api/v1/artifacts/upload-url", &["GET", "PUT"]),
        (&format!("/api/v1/artifacts/{id}/finalize"), &["GET", "PUT"]),
        (&format!("/api/v1/artifacts/{id}/content"), &["POST", "DELETE"]),
        (&format!("/api/v1/artifacts/{id}/download"), &["POST"]),
        ("/healthz", &["POST"]),
        ("/readyz", &["DELETE"]),
        ("/metrics", &["POST"]),
        ("/openapi.json", &["PUT"]),
    ] {
        for method in methods {
            assert_eq!(
                send(wire.plain(method, path), path).refusal(),
                (405, 142),
                "{method} {path}"
            );
        }
        let head = wire.plain("HEAD", path).send().unwrap();
        if path.starts_with("/backend") {
            assert_eq!(head.status(), 405, "HEAD {path}");
            assert!(head.headers().contains_key("x-ratelimit-limit"));
        }
        assert_eq!(head.bytes().unwrap().len(), 0);
    }
    assert_eq!(wire.plain("HEAD", "/healthz").send().unwrap().status(), 200);
    let meant = wire.ada("getCurrentUser", r#"{"_method":"DELETE"}"#);
    assert_eq!(meant.refusal(), (405, 142));
    assert_eq!(wire.ada("getCurrentUser", r#"{"_method":"POST"}"#).status, 200);

    // The same address in another spelling.
    assert_eq!(wire.ada("get%43urrentUser", "{}").status, 200);
    let spelled = wire.plain("POST", "/backend/%66unctions/getCurrentUser").body("{}");
    let spelled = spelled.header("X-Backend-Application-Id", &wire.service.application_id);
    let spelled = spelled.header("X-Backend-Session-Token", &wire.ada.token);
    assert_eq!(send(spelled, "/backend/functions/getCurrentUser").status, 200);

    let too_long = "a".repeat(129);
    for name in [
        "1abc",
        "get-app",
        "get.app",
        "get%20App",
        "%ff%fe",
        "%00",
        "get%2FApp",
        "_getApp",
        "é",
        "getApp%0d%0aX",
        &too_long,
    ] {
        assert_eq!(wire.ada(name, "{}").refusal(), (400, 141), "{name}");
    }
    assert_eq!(wire.ada(&"a".repeat(128), "{}").refusal(), (400, 141));
    let unknown = wire.ada("noSuchFunction", "{}");
    assert!(unknown.body["error"].as_str().unwrap().contains("noSuchFunction"), "{}", unknown.body);
}

#[test]
fn a_body_is_json_of_a_bounded_size_and_depth() {
    let wire = Wire::start();
    let padded = |size: usize| format!("{{{}}}", " ".repeat(size - 2));
    assert_eq!(wire.ada("getCurrentUser", padded(1 << 20)).status, 200, "1 MiB is taken");
    assert_eq!(wire.ada("getCurrentUser", padded((1 << 20) + 1)).refusal(), (413, 142));
    let endless = reqwest::blocking::Body::new(std::io::repeat(b' ').take(3 << 20));
    assert_eq!(wire.ada("getCurrentUser", endless).refusal(), (413, 142), "of unknown size");
    assert_eq!(wire.ada("getCurrentUser", "").status, 200, "nothing means {{}}");
    assert_eq!(wire.ada("getCurrentUser", " \r\n\t").status, 200);

    let path = "/backend/functions/getCurrentUser";
    let typed = |kind: &str, body: &'static str| {
        let request = wire.plain("POST", path).header("Content-Type", kind).body(body);
        let request = request.header("X-Backend-Application-Id", &wire.service.application_id);
        send(request.header("X-Backend-Session-Token", &wire.ada.token), path)
    };
    for kind in [
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded; charset=latin1",
        "application/xml",
        "text/xml",
        "text/html",
        "application/octet-stream",
        "application/json; charset=latin1",
        "text/plain; charset=utf-16",
        "application/json; charset=\"ISO-8859-1\"",
        "nonsense",
    ] {
        assert_eq!(typed(kind, "{}").refusal(), (415, 142), "{kind}");
    }
    // The content type of `curl -d`.
    let form = "application/x-www-form-urlencoded";
    assert_eq!(typed(form, " {}").status, 200);
    for body in ["", "name=Ada", "[]"] {
        assert_eq!(typed(form, body).refusal(), (415, 142), "{body}");
    }
    for kind in [
        "application/json",
        "text/plain",
        "text/plain;charset=UTF-8",
        "Application/JSON; Charset=\"utf-8\"",
    ] {
        assert_eq!(typed(kind, "{}").status, 200, "{kind}");
    }

    let nested =
        |depth: usize| format!("{{\"name\":{}1{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    let deep = wire.ada("createOrganization", nested(65));
    assert!(
        deep.refusal() == (400, 142) && deep.body["error"].as_str().unwrap().contains("64"),
        "{}",
        deep.body
    );
    let fits = wire.ada("createOrganization", nested(64));
    assert!(
        fits.refusal() == (400, 142) && fits.body["details"][0]["field"] == "name",
        "{}",
        fits.body
    );
    let bodies: [&[u8]; 14] = [
        b"[]",
        b"null",
        b"1",
        b"\"{}\"",
        b"{",
        b"{}{}",
        b"{\"name\":}",
        b"{\"name\":NaN}",
        b"{'name':1}",
        b"{\"name\":\"\xff\xfe\"}",
        b"{\"name\":\"\\ud800\"}",
        b"\xef\xbb\xbf[",
        b"{\"name\":1,}",
        b"{\"name\":\"a\nb\"}",
    ];
    for body in bodies {
        let refused = wire.ada("createOrganization", body);
        assert_eq!(refused.refusal(), (400, 142), "{:?}", String::from_utf8_lossy(body));
    }

    // A value of the wire's own types must be well-formed.
    let token = |expires: &str| {
        wire.ada(
            "svc_createDeployToken",
            format!(r#"{{"name":"ci","scopes":["artifact:upload"],"expiresAt":{expires}}}"#),
        )
    };
    for expires in [
        r#"{"__type":"Date"}"#,
        r#"{"__type":"Date","iso":5}"#,
        r#"{"__type":"Date","iso":"soon"}"#,
        r#"{"__type":"Nope","iso":"2999-01-31T12:00:00.000Z"}"#,
        r#"{"__type":5}"#,
        r#"{"iso":"2999-01-31T12:00:00.000Z"}"#,
    ] {
        let refused = token(expires);
        assert_eq!(
            (refused.refusal(), &refused.body["details"][0]["field"]),
            ((400, 142), &json!("expiresAt")),
            "{expires}"
        );
    }
    let made = token(r#"{"__type":"Date","iso":"2999-01-31T12:00:00.000Z"}"#).ok();
    assert_eq!(made["deployToken"]["expiresAt"], "2999-01-31T12:00:00.000Z");
    let typed = wire.ada(
        "createOrganization",
        r#"{"name":{"__type":"Date","iso":"2999-01-31T12:00:00.000Z"}}"#,
    );
    assert_eq!(typed.refusal(), (400, 142));

    // Every wrong field is named, and the sent values are not repeated.
    let fields = |answer: &Answer| -> Vec<String> {
        assert_eq!(answer.refusal(), (400, 142));
        let details = answer.body["details"].as_array().unwrap();
        assert!(details.iter().all(|d| d["problem"].as_str().is_some_and(|p| !p.is_empty())));
        let error = answer.body["error"].as_str().unwrap();
        details
            .iter()
            .map(|d| d["field"].as_str().unwrap().to_owned())
            .inspect(|f| assert!(error.contains(f)))
            .collect()
    };
    assert_eq!(fields(&wire.ada("registerUser", "{}")), ["email", "password"]);
    assert_eq!(
        fields(&wire.ada(
            "registerUser",
            r#"{"email":"x@example.com","one":1,"password":"correct horse","two":2}"#
        )),
        ["one", "two"]
    );
    assert_eq!(
        fields(
            &wire.ada(
                "svc_createDeployToken",
                r#"{"name":"x","scopes":["artifact:upload","nope"]}"#
            )
        ),
        ["scopes[1]"]
    );
    let endpoint = |body: Value| {
        let path = "/api/v1/artifacts/upload-url";
        send(
            wire.plain("POST", path).json(&body).header("X-Backend-Session-Token", &wire.ada.token),
            path,
        )
    };
    let all = ["one", "two", "appId", "fileName", "platform"];
    assert_eq!(fields(&endpoint(json!({"one": 1, "two": 2, "platform": "web"}))), all);
    assert_eq!(fields(&endpoint(json!({"version": "1"}))), ["appId", "platform", "fileName"]);
    let secret = wire.ada("registerUser", r#"{"email":"x@example.com","password":123456789}"#);
    assert_eq!(fields(&secret), ["password"]);
    assert!(!secret.body.to_string().contains("123456789"), "{}", secret.body);
    assert!(!wire.service.log().contains("123456789"), "a password is in the log");
    let many: Vec<String> = (0..50_000).map(|n| format!("\"k{n}\":1")).collect();
    let many = wire.ada("createOrganization", format!("{{{}}}", many.join(",")));
    assert!(many.refusal() == (400, 142) && many.body.to_string().len() < 10_000);
    let reserved = format!(
        r#"{{"_ApplicationId":"{}","_anything":{{"a":1}},"name":"Acme"}}"#,
        wire.service.application_id
    );
    wire.ada("createOrganization", reserved).ok();
}
