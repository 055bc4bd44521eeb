//! Credentials on the wire: where a request may carry them, and which one counts.

use crate::{
    support::service::{Answer, eventually},
    wire::{Wire, send},
};

#[test]
fn credentials_are_looked_at_in_their_order() {
    let wire = Wire::start();
    let service = &wire.service;
    let path = "/backend/functions/getCurrentUser";
    let call = |function: &str, body: &str, headers: &[(&str, &str)]| {
        let path = format!("/backend/functions/{function}");
        let mut request = wire.plain("POST", &path).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(request, &path)
    };
    let app = ("X-Backend-Application-Id", service.application_id.as_str());
    let session = ("X-Backend-Session-Token", wire.ada.token.as_str());
    let stale = ("X-Backend-Session-Token", "r:0123456789abcdef0123456789abcdef");
    let master_key = service.master_key();
    let master = ("X-Backend-Master-Key", master_key.as_str());

    for (what, function, body, headers, expected) in [
        ("no application id", "getCurrentUser", "{}", &[session][..], (401, 119)),
        (
            "a wrong application id",
            "getCurrentUser",
            "{}",
            &[("X-Backend-Application-Id", "x"), session],
            (401, 119),
        ),
        ("application id before the name", "noSuchFunction", "{}", &[session], (401, 119)),
        ("application id before validation", "createOrganization", "[", &[session], (401, 119)),
        ("name before session", "noSuchFunction", "{}", &[app, stale], (400, 141)),
        ("session before validation", "createOrganization", "{}", &[app, stale], (401, 119)),
        ("no session before validation", "createOrganization", "{}", &[app], (401, 119)),
        (
            "no session before the object",
            "getApp",
            r#"{"appId":"app_01J9ZQ8F5W7V3T6M2K4N8R0P1S"}"#,
            &[app],
            (401, 119),
        ),
        ("validation before standing", "svc_admin_setTier", "{}", &[app, session], (400, 142)),
        ("standing", "svc_admin_getActors", "{}", &[app, session], (403, 403)),
        (
            "a wrong master key",
            "getCurrentUser",
            "{}",
            &[app, session, ("X-Backend-Master-Key", "x")],
            (401, 119),
        ),
        (
            "a wrong JavaScript key",
            "getCurrentUser",
            "{}",
            &[app, session, ("X-Backend-Javascript-Key", "x")],
            (401, 119),
        ),
        (
            "a session that is not text",
            "getCurrentUser",
            r#"{"_SessionToken":{"$ne":1}}"#,
            &[app],
            (401, 119),
        ),
        (
            "a master key that is not text",
            "getCurrentUser",
            r#"{"_MasterKey":true}"#,
            &[app, session],
            (401, 119),
        ),
        (
            "an unknown token",
            "svc_getArtifacts",
            "{}",
            &[app, ("Authorization", "Bearer svc_dt_x")],
            (401, 119),
        ),
    ] {
        let refused = call(function, body, headers);
        assert_eq!(refused.refusal(), expected, "{what}: {}", refused.body);
    }
    let basic = {
        let pair = format!("{}:javascript-key=a key", service.application_id);
        format!("Basic {}", data_encoding::BASE64.encode(pair.as_bytes()))
    };
    let in_body = format!(
        r#"{{"_ApplicationId":"{}","_SessionToken":"{}","_JavaScriptKey":"a key"}}"#,
        app.1, session.1
    );
    let wins = r#"{"_ApplicationId":"x","_SessionToken":"x"}"#;
    for (what, body, headers) in [
        ("headers", "{}", &[app, session][..]),
        ("the JavaScript key", "{}", &[app, session, ("X-Backend-Javascript-Key", "a key")]),
        (
            "the library's headers",
            "{}",
            &[("X-Parse-Application-Id", app.1), ("X-Parse-Session-Token", session.1)],
        ),
        ("the body", &in_body, &[]),
        ("a header wins over the body", wins, &[app, session]),
        ("Basic", "{}", &[("Authorization", &basic), session]),
        ("the client key", "{}", &[app, session, ("X-Parse-Client-Key", "a key")]),
    ] {
        assert_eq!(call("getCurrentUser", body, headers).status, 200, "{what}");
    }

    // Unlimited callers are told so, also on errors and unknown addresses.
    let unlimited = |answer: &Answer| {
        ["x-ratelimit-limit", "x-ratelimit-remaining"]
            .iter()
            .all(|name| answer.headers[*name] == "2147483647")
    };
    assert!(unlimited(&call("svc_admin_getActors", "{}", &[app, master])));
    assert!(unlimited(&call("getApp", "{}", &[app, master])));
    let lost =
        wire.plain("GET", "/backend/nothing").header(app.0, app.1).header(master.0, master.1);
    assert!(unlimited(&send(lost, "/backend/nothing")));
    assert!(!unlimited(&call("svc_getLatestRelease", "{}", &[app])));

    // The request id is the id from the client, or a new one.
    let id_of = |answer: &Answer| answer.headers["x-request-id"].to_str().unwrap().to_owned();
    let named = |path: &str, id: &str| {
        id_of(&send(wire.plain("POST", path).header("X-Request-Id", id), path))
    };
    for path in [path, "/backend/nothing", "/api/v1/artifacts/upload-url", "/nothing"] {
        assert_eq!(named(path, "mine-1"), "mine-1", "{path}");
    }
    let long = "x".repeat(500);
    let made = [named(path, "two words"), named(path, &long), named(path, ""), named(path, "mine")];
    assert!(
        made[..3].iter().all(|id| (8..=64).contains(&id.len()) && id != "two words"),
        "{made:?}"
    );
    assert!(made[0] != made[1] && made[1] != made[2]);
    eventually("the log has the id", || service.log().contains("mine-1"));
}
