//! The unmodified client library of the Parse wire style, and the requests of browsers.

use crate::support::{
    requires,
    service::{Service, eventually},
};
use reqwest::blocking::RequestBuilder;
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Output},
};

/// Runs a program in the folder of the library.
pub fn run(command: &mut Command) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/parse-client");
    command.current_dir(folder).output().unwrap()
}

fn printed(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Installs the library if it is missing. Returns whether it is there; if not, reports which test
/// is left out.
pub fn installed(test: &str) -> bool {
    requires::node_packages(test, "parse-client")
}

#[test]
fn the_parse_javascript_library_works_unmodified() {
    if !installed("the_parse_javascript_library_works_unmodified") {
        return;
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

/// A request with a body in the form of the library.
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
    // With a browser's form of HTTP Basic, and with the credential headers of other libraries.
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
fn the_log_says_what_a_session_route_did() {
    let service = Service::start();
    let ada = service.register("ada");
    let route = |method: reqwest::Method, path: &str, body: Value| {
        let request = service.http.request(method, format!("{}/backend/{path}", service.url));
        let request = request.header("X-Parse-Application-Id", &service.application_id);
        let request = request.header("X-Parse-Session-Token", &ada.token).json(&body);
        Service::answer(request.send().unwrap()).unwrap()
    };
    let session = route(reqwest::Method::GET, "sessions/me", json!({}));
    assert_eq!(
        (session.status, &session.body["sessionToken"], &session.body["user"]["objectId"]),
        (200, &json!(ada.token), &json!(ada.id))
    );
    // The schema of the reply names every field.
    let document = service.http.get(format!("{}/openapi.json", service.url)).send().unwrap();
    let schema = document.json::<Value>().unwrap()["components"]["schemas"]["ParseSession"].take();
    for field in session.body.as_object().unwrap().keys() {
        assert!(schema["properties"].get(field).is_some(), "{field} is not in {schema}");
    }
    for field in schema["required"].as_array().unwrap() {
        assert!(session.body.get(field.as_str().unwrap()).is_some(), "{field} is missing");
    }
    let changed =
        route(reqwest::Method::PUT, &format!("users/{}", ada.id), json!({"name": "Ada L."}));
    assert_eq!(changed.status, 200, "{}", changed.body);
    let refused = route(reqwest::Method::PUT, "users/me", json!({"name": "Ada L."}));
    assert_eq!(refused.refusal(), (405, 142));
    eventually("both are in the log", || {
        let log = service.log();
        let said = |function: &str| {
            log.lines().any(|line| {
                line.contains(&format!("function=\"{function}\"")) && line.contains(&ada.id)
            })
        };
        said("currentSession") && said("changeUser")
    });
}
