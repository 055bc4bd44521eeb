//! Cross-origin calls from browsers.

use crate::support::service::Service;
use reqwest::Method;

#[test]
fn browsers_can_read_every_answer() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let text = |headers: &reqwest::header::HeaderMap, name: &str| {
        headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    for (method, path, content_type, status, code) in [
        (Method::POST, "functions/getCurrentUser", "text/plain", 401, 119),
        (Method::POST, "functions/nope", "application/json", 401, 119),
        (Method::GET, "functions/getCurrentUser", "text/plain", 405, 142),
        (Method::POST, "functions/getCurrentUser", "multipart/form-data", 415, 142),
        (Method::POST, "functions/getCurrentUser", "text/plain; charset=latin1", 415, 142),
        (Method::POST, "nothing/here", "text/plain", 404, 101),
        (Method::GET, "functions/a/b", "text/plain", 404, 101),
        (Method::DELETE, "login", "text/plain", 405, 142),
        (Method::GET, "users/me", "text/plain", 401, 119),
    ] {
        let url = format!("{}/backend/{path}", service.url);
        let request =
            service.http.request(method.clone(), url).header("Content-Type", content_type);
        let request = request.header("Origin", "https://shop.example.com").body("{}");
        let answer = Service::answer(request.send().unwrap()).unwrap();
        let headers = &answer.headers;
        assert_eq!(answer.refusal(), (status, code), "{method} {path} {content_type}");
        assert_eq!(text(headers, "access-control-allow-origin"), "*", "{path}");
        assert_eq!(text(headers, "vary"), "Origin", "{path}");
        let exposed = text(headers, "access-control-expose-headers");
        for name in
            ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"]
        {
            assert!(exposed.contains(name) && headers.contains_key(name), "{path} {name}");
        }
        assert!(exposed.contains("Retry-After"));
        assert!(!headers.contains_key("location"));
    }
    for path in ["backend/functions/getCurrentUser", "backend/login", "api/v1/artifacts/upload-url"]
    {
        let request = service.http.request(Method::OPTIONS, format!("{}/{path}", service.url));
        let request = request
            .header("Origin", "https://shop.example.com")
            .header("Access-Control-Request-Method", "POST")
            .header("Access-Control-Request-Headers", "x-parse-request-id");
        let answer = request.send().unwrap();
        assert!([200, 204].contains(&answer.status().as_u16()), "{path}");
        let headers = answer.headers();
        assert_eq!(text(headers, "access-control-allow-origin"), "*");
        for method in ["GET", "HEAD", "POST", "PUT"] {
            assert!(text(headers, "access-control-allow-methods").contains(method));
        }
        assert!(!text(headers, "access-control-max-age").is_empty());
        assert!(!text(headers, "x-ratelimit-remaining").is_empty(), "{path}");
        let allowed = text(headers, "access-control-allow-headers").to_lowercase();
        for name in [
            "x-parse-request-id",
            "x-backend-session-token",
            "content-type",
            "authorization",
            "content-range",
            "content-digest",
            "idempotency-key",
        ] {
            assert!(allowed.split(", ").any(|a| a == name), "{path} {name} {allowed}");
        }
    }
}

#[test]
fn only_configured_origins_are_let_in() {
    let service =
        Service::start_with(&[("SVC_CORS_ORIGINS", "https://a.example,https://shop.example.com")]);
    let allowed = |origin: &str| {
        let request = service.http.post(format!("{}/backend/functions/nope", service.url));
        let answer = request.header("Origin", origin).send().unwrap();
        assert_eq!(answer.headers()["vary"], "Origin");
        answer.headers().get("access-control-allow-origin").map(|o| o.to_str().unwrap().to_owned())
    };
    assert_eq!(allowed("https://shop.example.com").as_deref(), Some("https://shop.example.com"));
    assert_eq!(allowed("https://evil.example.com"), None);
    assert_eq!(allowed("null"), None);
}
