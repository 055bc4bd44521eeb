//! The headers of every answer of the service.

use crate::support::service::{Answer, Service};
use reqwest::{
    Method,
    blocking::{Client, Response},
    header::HeaderMap,
};
use serde_json::{Value, json};

const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"];

/// Paths that the document does not declare.
const UNDECLARED: [&str; 16] = [
    "/",
    "/nothing",
    "/openapi.json",
    "/install/rel_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
    "/install/rel_01J9ZQ8F5W7V3T6M2K4N8R0P1S/manifest.plist",
    "/instances/app_01J9ZQ8F5W7V3T6M2K4N8R0P1S/",
    "/api/v1/backups/bak_01J9ZQ8F5W7V3T6M2K4N8R0P1S/download",
    "/backend/login",
    "/backend/users",
    "/backend/users/me",
    "/backend/sessions/me",
    "/backend/logout",
    "/backend/requestPasswordReset",
    "/backend/health",
    "/backend/classes/_User/usr_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
    "/backend/users/usr_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
];

/// The paths of every function, endpoint and page.
fn paths(service: &Service) -> Vec<String> {
    let document = service.http.get(format!("{}/openapi.json", service.url)).send().unwrap();
    let document: Value = document.json().unwrap();
    let declared = document["paths"].as_object().unwrap().keys().map(|path| {
        let path = path.replace("{artifactId}", "art_01J9ZQ8F5W7V3T6M2K4N8R0P1S");
        if path.starts_with("/functions") { format!("/backend{path}") } else { path }
    });
    declared.chain(UNDECLARED.map(str::to_owned)).collect()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

/// The rate limit in the headers, and the remaining calls.
fn left(headers: &HeaderMap) -> (u64, u64) {
    let number = |name: &str| {
        text(headers, name).parse::<u64>().unwrap_or_else(|_| panic!("{name}: {headers:?}"))
    };
    number("x-ratelimit-reset");
    (number("x-ratelimit-remaining"), number("x-ratelimit-limit"))
}

#[test]
fn every_address_answers_every_method_with_them() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let paths = paths(&service);
    assert!(paths.len() > 120, "{paths:?}");
    for path in &paths {
        for method in METHODS {
            let what = format!("{method} {path}");
            let id = what.replace(['/', ' '], "-");
            let request = service.http.request(
                Method::from_bytes(method.as_bytes()).unwrap(),
                format!("{}{path}", service.url),
            );
            let answer = request
                .header("X-Request-Id", &id)
                .header("Origin", "https://example.com")
                .send()
                .unwrap();
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            assert_eq!(text(&headers, "x-request-id"), id, "{what}");
            assert_eq!(text(&headers, "access-control-allow-origin"), "*", "{what}");
            assert_eq!(text(&headers, "vary"), "Origin", "{what}");
            assert_eq!(text(&headers, "x-content-type-options"), "nosniff", "{what}");
            let exposed = text(&headers, "access-control-expose-headers");
            for name in [
                "X-Request-Id",
                "X-RateLimit-Limit",
                "X-RateLimit-Remaining",
                "X-RateLimit-Reset",
                "Retry-After",
                "Content-Range",
                "Content-Disposition",
            ] {
                assert!(exposed.contains(name), "{what}: {name} is not exposed");
            }
            assert_eq!(left(&headers), (2_147_483_647, 2_147_483_647), "{what}");
            if status >= 400 && method != "HEAD" {
                let body: Value = answer.json().unwrap_or_else(|e| panic!("{what}: {status}: {e}"));
                assert!(body["code"].is_i64() && body["error"].is_string(), "{what}: {body}");
            }
        }
    }
}

#[test]
fn a_browser_may_send_every_header_that_the_service_reads() {
    let service = Service::start();
    let preflight =
        service.http.request(Method::OPTIONS, format!("{}/backend/functions/getApp", service.url));
    let answer = preflight.header("Origin", "https://example.com").send().unwrap();
    assert_eq!(answer.status(), 204);
    let allowed: Vec<_> = text(answer.headers(), "access-control-allow-headers")
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let both = [
        "Application-Id",
        "Session-Token",
        "Javascript-Key",
        "Client-Key",
        "REST-API-Key",
        "Master-Key",
        "Request-Id",
    ];
    let both =
        both.iter().flat_map(|name| [format!("x-backend-{name}"), format!("x-parse-{name}")]);
    let plain = [
        "Authorization",
        "Content-Type",
        "Content-Range",
        "Content-Digest",
        "Idempotency-Key",
        "X-Request-Id",
        "Range",
    ];
    for name in both.chain(plain.map(str::to_owned)).map(|name| name.to_ascii_lowercase()) {
        assert!(allowed.contains(&name), "{name} is not allowed: {allowed:?}");
    }
}

#[test]
fn what_is_not_counted_shows_what_its_caller_has_left() {
    let service = Service::start();
    let (ada, admin) = (service.register_free("ada"), service.administrator());
    service
        .call(Some(&admin), "svc_admin_setTier", json!({"userId": ada.id, "tier": "developer"}))
        .ok();
    let away = Service::client_at([127, 0, 0, 2]);
    let get = |client: &Client, path: &str| client.get(format!("{}{path}", service.url));
    let answered = |answer: Response| left(answer.headers());

    // Calls without credentials count for the address.
    let counted =
        service.request(&away, "requestPasswordReset", &json!({"email": "x@example.com"}));
    assert_eq!(answered(counted.send().unwrap()).1, 60);
    let before = answered(get(&away, "/healthz").send().unwrap());
    assert!(before.0 >= 59 && before.1 == 60, "{before:?}");
    for path in ["/healthz", "/openapi.json", "/readyz", "/metrics", "/install/x"] {
        let seen = answered(get(&away, path).send().unwrap());
        // Of strangers, those that cost work count: each counts once.
        let counted = if ["/healthz", "/openapi.json"].contains(&path) { 0 } else { 3 };
        assert!(seen.0 >= before.0 - counted && seen.1 == 60, "{path}: {seen:?}");
        let preflight = away.request(Method::OPTIONS, format!("{}{path}", service.url));
        assert!(answered(preflight.send().unwrap()).0 >= before.0 - counted, "{path}");
    }

    // Calls with a session count for the account. The master key has no limit.
    let session = get(&away, "/healthz").header("X-Backend-Session-Token", &ada.token);
    assert_eq!(answered(session.send().unwrap()).1, 300);
    let master =
        get(&service.http, "/healthz").header("X-Backend-Master-Key", service.master_key());
    assert_eq!(answered(master.send().unwrap()), (2_147_483_647, 2_147_483_647));

    // Requests to an upload address count for the creator of the artifact.
    let (_, app) = service.project_with_app(&ada, None);
    let opened = service.post(
        Some(&ada),
        "upload-url",
        &json!({"appId": app, "platform": "android", "fileName": "app.apk", "version": "1.4.2"}),
    );
    let url = opened.body["uploadUrl"].as_str().unwrap();
    let left_to_ada = left(&opened.headers).0;
    for answer in [
        away.head(url).send().unwrap(),
        away.put(url).header("Content-Range", "bytes 5-6/10").body("xx").send().unwrap(),
        away.put(url).body("not an app").send().unwrap(),
    ] {
        let (remaining, limit) = answered(answer);
        assert!(remaining >= left_to_ada && limit == 300, "{remaining} of {limit}");
    }
}

/// Asserts that the answer is this refusal.
fn is(answer: &Answer, expected: (u16, i64)) {
    assert_eq!(answer.refusal(), expected, "{}", answer.body);
}

#[test]
fn a_service_behind_https_says_that_it_is_never_asked_otherwise() {
    let strict = |service: &Service| {
        let answer = service.http.get(format!("{}/healthz", service.url)).send().unwrap();
        answer.headers().get("strict-transport-security").cloned()
    };
    assert_eq!(strict(&Service::start()), None);
    let behind = Service::start_with(&[("SVC_PUBLIC_URL", "https://svc.example.com")]);
    assert_eq!(strict(&behind).unwrap(), "max-age=31536000");
}

#[test]
fn the_master_key_passes_by_the_clients_address() {
    let service = Service::start_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.9")]);
    let key = service.master_key();
    let call = |from: [u8; 4], headers: &[(&str, &str)]| {
        let client = Service::client_at(from);
        let mut request = service.request(&client, "svc_admin_getActors", &json!({}));
        request = request.header("X-Backend-Master-Key", &key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Service::answer(request.send().unwrap()).unwrap()
    };
    let (here, proxy, other) = ([127, 0, 0, 1], [127, 0, 0, 9], [127, 0, 0, 5]);
    call(here, &[]).ok();
    call(proxy, &[("X-Forwarded-For", "198.51.100.7, 127.0.0.1")]).ok();
    is(&call(other, &[]), (401, 119));
    is(&call(proxy, &[("X-Forwarded-For", "198.51.100.7")]), (401, 119));
    is(&call(proxy, &[("X-Forwarded-For", "127.0.0.1, 198.51.100.7")]), (401, 119));
    is(
        &call(proxy, &[("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-For", "198.51.100.7")]),
        (401, 119),
    );
    is(&call(proxy, &[("X-Forwarded-For", "127.0.0.1, unknown")]), (401, 119));
    for forwarding in [
        ("X-Forwarded-For", "127.0.0.1"),
        ("Forwarded", "for=127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("Via", "1.1 proxy"),
    ] {
        let refused = call(here, &[forwarding]);
        is(&refused, (401, 119));
        assert!(
            refused.body["error"].as_str().unwrap().contains("SVC_TRUSTED_PROXIES"),
            "{}",
            refused.body
        );
    }
    is(&call(proxy, &[("Forwarded", "for=198.51.100.7")]), (401, 119));
}

#[test]
fn the_dashboard_is_asked_over_https_only_where_it_has_https() {
    for (url, expected) in
        [("https://dashboard.example.com", Some("max-age=31536000")), ("http://localhost:1", None)]
    {
        let service = Service::start_with(&[("SVC_DASHBOARD_URL", url)]);
        let page = service.http.get(format!("{}/sign-in", service.dashboard()));
        let page = page.header("Host", url.split("//").nth(1).unwrap()).send().unwrap();
        assert_eq!(page.status(), 200, "{url}");
        let told = page.headers().get("strict-transport-security");
        assert_eq!(told.map(|value| value.to_str().unwrap()), expected, "{url}");
    }
}
