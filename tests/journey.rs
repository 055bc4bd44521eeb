//! From an account to a published release and a rollback, only through the command line and HTTP.

use crate::support::service::{Service, fixture, sha256};
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

#[test]
fn from_an_account_to_a_published_release_and_back() {
    let service = Service::start();
    let application_id = service.cli(&["admin", "application-id"]).stdout;
    let application_id = String::from_utf8(application_id).unwrap();
    let login = ["--api-url", &service.url, "--application-id", application_id.trim()];
    let enter = |command: &'static str, email: &str| {
        let place = [command].into_iter().chain(login).chain(["--email", email]);
        let args: Vec<_> = place.chain(["--password-stdin", "--json"]).collect();
        let entered = service.cli_with(&args, &[], "correct horse");
        (entered.status.code(), serde_json::from_slice::<Value>(&entered.stdout).unwrap())
    };
    let (code, registered) = enter("register", "ada@example.com");
    assert_eq!(code, Some(0), "{registered}");
    let (code, again) = enter("register", "ada@example.com");
    assert_eq!((code, &again["code"]), (Some(1), &json!(137)), "{again}");
    let (code, signed_in) = enter("login", "Ada@Example.com");
    assert_eq!(code, Some(0), "{signed_in}");
    assert_eq!(service.cli_json(&["whoami"], &[])["id"], registered["user"]["id"]);

    let call = |function: &str, params: Value| {
        service.cli_json(&["call", function, &params.to_string()], &[])
    };
    // The id alone, for scripts.
    let id = |args: &[&str]| {
        let output = service.cli(&[args, &["--output", "id"]].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let organization = call("createOrganization", json!({"name": "Acme"}));
    let project = id(&["project", "create", "Shop", "--organization", text(&organization["id"])]);
    let app = id(&["app", "create", "Shop", "--project", &project]);
    assert_eq!(id(&["apps"]), app);
    let app = app.as_str();
    let scopes = ["--scope", "artifact:upload", "--scope", "release:create"];
    let token = service
        .cli_json(&[&["token", "create", "--name", "ci", "--app", app][..], &scopes].concat(), &[]);
    let ci = [("SVC_TOKEN", text(&token["token"])), ("SVC_APP_ID", app)];

    // A CI job publishes the first versions of all three kinds.
    let publish = |file: &str, version: &str, channel: &str| {
        let path = fixture(file);
        let args = ["publish", path.to_str().unwrap(), "--channel", channel, "--auto-publish"];
        let published = service.cli_json(&args, &ci);
        assert_eq!(published["release"]["version"], version);
        published
    };
    for (file, kind, channel) in [
        ("sample.apk", "apk", "production"),
        ("sample.aab", "aab", "store"),
        ("sample.ipa", "ipa", "ios"),
    ] {
        let published = publish(file, "1.4.2", channel);
        let artifact = &published["artifact"];
        assert_eq!(artifact["kind"], kind);
        assert_eq!(artifact["identifier"], "com.example.svcsample");
        assert_eq!(artifact["buildNumber"], "42");
        assert_eq!((&artifact["state"], &artifact["trust"]), (&json!("verified"), &json!("token")));
        assert_eq!(artifact["sha256"], sha256(&std::fs::read(fixture(file)).unwrap()));
        assert_eq!(published["release"]["state"], "published");
        let page = text(&published["release"]["publications"][0]["url"]);
        let html = service.http.get(page).send().unwrap().text().unwrap();
        assert!(html.contains("<svg") && html.contains("1.4.2"), "{html}");
    }
    let first = publish("sample.apk", "1.4.2", "production")["release"].clone();
    let second = publish("sample-1.5.0.apk", "1.5.0", "production")["release"].clone();
    assert_ne!(first["id"], second["id"]);

    // Anyone finds the latest release, and the download has the uploaded bytes.
    let latest = || {
        service.call(None, "svc_getLatestRelease", json!({"appId": app, "channel": "production", "platform": "android", "currentVersion": "1.4.2"})).ok()
    };
    let found = latest();
    assert_eq!((&found["release"]["id"], &found["updateAvailable"]), (&second["id"], &json!(true)));
    let downloaded = service.http.get(text(&found["downloadUrl"])).send().unwrap();
    assert_eq!(
        downloaded.headers()["etag"].to_str().unwrap(),
        format!("\"{}\"", text(&found["artifact"]["sha256"]))
    );
    let bytes = downloaded.bytes().unwrap();
    assert_eq!(sha256(&bytes), text(&found["artifact"]["sha256"]));
    assert_eq!(bytes, std::fs::read(fixture("sample-1.5.0.apk")).unwrap());
    let part = service
        .http
        .get(text(&found["downloadUrl"]))
        .header("Range", "bytes=100-199")
        .send()
        .unwrap();
    assert_eq!((part.status().as_u16(), part.bytes().unwrap()), (206, bytes.slice(100..200)));

    // iOS asks for the manifest, which names the file.
    let ios = service
        .call(
            None,
            "svc_getLatestRelease",
            json!({"appId": app, "channel": "ios", "platform": "ios"}),
        )
        .ok();
    let manifest = service
        .http
        .get(format!("{}/manifest.plist", text(&ios["installUrl"])))
        .send()
        .unwrap()
        .text()
        .unwrap();
    let manifest: plist::Value = plist::from_bytes(manifest.as_bytes()).unwrap();
    let item = manifest.as_dictionary().unwrap()["items"].as_array().unwrap()[0]
        .as_dictionary()
        .unwrap()
        .clone();
    let url =
        item["assets"].as_array().unwrap()[0].as_dictionary().unwrap()["url"].as_string().unwrap();
    assert_eq!(
        sha256(&service.http.get(url).send().unwrap().bytes().unwrap()),
        text(&ios["artifact"]["sha256"])
    );

    // A rollback to the version before. The rolled back release cannot be rolled back again.
    let back = service.cli_json(&["release", "rollback", text(&second["id"])], &[]);
    assert_eq!((&back["id"], &back["state"]), (&first["id"], &json!("published")));
    assert_eq!(latest()["release"]["id"], first["id"]);
    let taken_back = service.cli_json(
        &["call", "svc_getRelease", &json!({"releaseId": second["id"]}).to_string()],
        &[],
    );
    assert_eq!(
        (&taken_back["state"], &taken_back["rolledBackTo"]),
        (&json!("rolledBack"), &first["id"])
    );
    let again = service.cli_with(&["release", "rollback", text(&second["id"]), "--json"], &[], "");
    assert_eq!(again.status.code(), Some(1));
    let refusal: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(refusal["code"], 119, "{refusal}");
}

#[test]
fn files_that_are_not_what_they_say_are_refused_with_a_reason() {
    let service = Service::start();
    let ada = service.register("ada");
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();
    let app = service
        .call(Some(&ada), "createApp", json!({"name": "Shop", "projectId": project["id"]}))
        .ok();
    let upload = |file: &str, name: &str, version: &str| {
        let bytes = std::fs::read(fixture(file)).unwrap();
        let session =
            |r: reqwest::blocking::RequestBuilder| r.header("X-Backend-Session-Token", &ada.token);
        let platform = if name.ends_with(".ipa") { "ios" } else { "android" };
        let opened = session(service.http.post(format!("{}/api/v1/artifacts/upload-url", service.url)))
            .json(&json!({"appId": app["id"], "platform": platform, "fileName": name, "version": version}));
        let opened = Service::answer(opened.send().unwrap()).unwrap();
        assert_eq!(opened.status, 201, "{}", opened.body);
        let put =
            service.http.put(text(&opened.body["uploadUrl"])).body(bytes.clone()).send().unwrap();
        assert_eq!(Service::answer(put).unwrap().status, 200);
        let finalize = format!(
            "{}/api/v1/artifacts/{}/finalize",
            service.url,
            text(&opened.body["artifactId"])
        );
        Service::answer(
            session(service.http.post(finalize))
                .json(&json!({"sha256": sha256(&bytes)}))
                .send()
                .unwrap(),
        )
        .unwrap()
    };
    for (file, name, version, reason) in [
        ("sample-tampered.apk", "app.apk", "1.4.2", "changed after signing"),
        ("sample-truncated.apk", "app.apk", "1.4.2", "cut off"),
        ("sample-aab-renamed.apk", "app.apk", "1.4.2", "App Bundle"),
        ("sample.apk", "app.ipa", "1.4.2", "ipa"),
        ("sample.apk", "app.apk", "9.9.9", "expected 9.9.9, got 1.4.2"),
    ] {
        let refused = upload(file, name, version);
        assert_eq!(refused.refusal(), (422, 142), "{file}: {}", refused.body);
        assert!(text(&refused.body["error"]).contains(reason), "{file}: {}", refused.body);
    }
    assert_eq!(upload("sample.apk", "app.apk", "1.4.2").status, 201);
    // The app has a known signer after this upload.
    let stranger = upload("sample-unsigned.apk", "app.apk", "1.4.2");
    assert_eq!(stranger.refusal(), (422, 142));
    assert!(text(&stranger.body["error"]).contains("not signed"), "{}", stranger.body);
}
