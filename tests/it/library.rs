//! The client library of the Parse wire, unmodified; and what browsers need besides.

use crate::{needs, service::Service};
use reqwest::{Method, blocking::RequestBuilder};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Output},
};

fn run(command: &mut Command) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library");
    command.current_dir(folder).output().unwrap()
}

fn printed(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

#[test]
fn the_parse_javascript_library_works_unmodified() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/node_modules/parse");
    let programs = if library.exists() { &["node"][..] } else { &["node", "npm"] };
    if !needs::programs("the_parse_javascript_library_works_unmodified", programs) {
        return;
    }
    if !library.exists() {
        let installed = run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit"]));
        assert!(installed.status.success(), "{}", printed(&installed));
    }
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let tested = run(Command::new("node")
        .args(["--test", "--test-timeout=60000"])
        .env("URL", &service.url)
        .env("APP_ID", &service.application_id)
        .env("MASTER_KEY", service.master_key()));
    let printed = printed(&tested);
    assert!(tested.status.success(), "{printed}");
    assert!(!printed.contains("tests 0"), "{printed}");
}

/// A body as the library posts it.
fn posted(service: &Service, path: &str, body: &Value) -> RequestBuilder {
    let url = format!("{}/backend/{path}", service.url);
    let request = service.http.post(url).header("Origin", "https://shop.example.com");
    request.header("Content-Type", "text/plain").body(body.to_string())
}

#[test]
fn credentials_in_a_body_are_text_and_stay_out_of_the_parameters() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let ada = service.register("ada");
    let body = |more: Value| {
        let mut body = json!({"_ApplicationId": service.application_id, "_ClientVersion": "js8.6.0",
            "_InstallationId": "any", "_context": {"deep": [1]}, "_method": "POST"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let call = |path: &str, more: Value| {
        Service::answer(posted(&service, path, &body(more)).send().unwrap()).unwrap()
    };
    let mine = call("functions/getCurrentUser", json!({"_SessionToken": ada.token})).ok();
    assert_eq!(mine["id"], ada.id);
    for path in ["functions/getCurrentUser", "users/me", "logout", "classes/_User/any"] {
        let more = match path {
            "users/me" => json!({"_method": "GET"}),
            "classes/_User/any" => json!({"_method": "PUT"}),
            _ => json!({}),
        };
        for key in ["_SessionToken", "_ApplicationId", "_JavaScriptKey", "_MasterKey"] {
            for bad in [json!({"$regex": "r:.*"}), json!([ada.token]), json!(1), json!(true)] {
                let mut more = more.clone();
                more[key] = bad;
                assert_eq!(call(path, more.clone()).refusal(), (401, 119), "{path} {more}");
            }
        }
    }
    for method in ["GET", "put", "Delete"] {
        let refused = call("functions/getCurrentUser", json!({"_method": method}));
        assert_eq!(refused.refusal(), (405, 142), "{method}");
        assert!(refused.headers.contains_key("x-ratelimit-remaining"));
    }
    // By a browser's form of HTTP Basic, and with the credentials of other libraries' headers.
    let url = format!("{}/backend/functions/getCurrentUser", service.url);
    let basic =
        service.http.post(&url).basic_auth(&service.application_id, Some("javascript-key=any"));
    let basic = basic.header("X-Parse-Session-Token", &ada.token).send().unwrap();
    assert_eq!(Service::answer(basic).unwrap().ok()["id"], ada.id);
    let query = format!("_ApplicationId={}&_SessionToken={}", service.application_id, ada.token);
    let get = service.http.get(format!("{}/backend/users/me?{query}", service.url));
    let refused = Service::answer(get.send().unwrap()).unwrap();
    assert_eq!(refused.refusal(), (401, 119), "credentials in an address do not count");
    let header =
        posted(&service, "functions/getCurrentUser", &body(json!({"_SessionToken": "r:0"})));
    let header = header.header("X-Parse-Session-Token", &ada.token).send().unwrap();
    assert_eq!(Service::answer(header).unwrap().ok()["id"], ada.id, "a header wins over the body");
}

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
        assert!(text(headers, "access-control-allow-methods").contains("POST"));
        assert!(!text(headers, "access-control-max-age").is_empty());
        assert!(!headers.contains_key("x-ratelimit-limit"), "{path}: preflights are not counted");
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
    let service = Service::start_with(&[("SVC_CORS_ORIGINS", "https://shop.example.com")]);
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
