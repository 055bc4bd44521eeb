//! Who may upload, read and delete artifacts, and for how long.

use crate::{
    support::service::{Person, Service, eventually, sha256},
    uploads::{Upload, bytes_of, declared, opening},
};
use serde_json::{Value, json};

#[test]
fn an_address_is_good_for_its_upload_and_its_time() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let upload = Upload::open(&service, &ada, &opening(&app));
    let other = Upload::open(&service, &ada, &opening(&app));
    let (path, query) = upload.url.split_once('?').unwrap();
    let expires: i64 = query.split(['=', '&']).nth(1).unwrap().parse().unwrap();
    let last = if upload.url.ends_with('0') { '1' } else { '0' };
    for forged in [
        path.to_owned(),
        format!("{path}?expires={expires}"),
        upload.url.replace(&expires.to_string(), &(expires + 1).to_string()),
        format!("{}{last}", &upload.url[..upload.url.len() - 1]),
        format!("{}?{}", other.url.split_once('?').unwrap().0, query),
        upload.url.replace("/content?", "/download?"),
    ] {
        let answer = if forged.contains("/download?") {
            service.http.get(&forged)
        } else {
            service.http.put(&forged).body(bytes.clone())
        };
        let answer = Service::answer(answer.send().unwrap()).unwrap();
        assert_eq!(answer.refusal(), (401, 119), "{forged}");
        assert_eq!(service.http.head(&forged).send().unwrap().status(), 401, "{forged}");
    }
    assert_eq!(upload.head().0, "0");
    assert_eq!(upload.put(bytes.clone()).status, 200);
    let verified = upload.finalize(&json!({"sha256": sha256(&bytes)}));
    assert_eq!(verified.status, 201, "{}", verified.body);
    drop(service);

    service = Service::start_with(&[("SVC_UPLOAD_URL_TTL", "5")]);
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let opening = declared(&app, &bytes);
    let upload = Upload::open(&service, &ada, &opening);
    assert_eq!(upload.part(&bytes[..100], 0, bytes.len(), None).status, 202);
    eventually("the address expires", || {
        service.http.head(&upload.url).send().unwrap().status() == 401
    });
    let late = upload.part(&bytes[100..], 100, bytes.len(), None);
    assert_eq!(late.refusal(), (401, 119));
    assert!(late.body["error"].as_str().unwrap().contains("expired"));
}

#[test]
fn a_deploy_token_does_what_its_scopes_and_its_app_allow() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let (_, other) = service.project_with_app(&ada, None);
    let token = |scopes: &[&str], app: &Value| {
        service.with_token(&ada, json!({"name": "ci", "scopes": scopes, "appId": app}))
    };
    let bytes = bytes_of("sample.apk");
    let hash = sha256(&bytes);
    assert_eq!(service.post(None, "upload-url", &opening(&app)).refusal(), (401, 119));
    let releasing = token(&["release:create"], &app);
    let refused = service.post(Some(&releasing), "upload-url", &opening(&app));
    assert_eq!(refused.refusal(), (403, 403));
    assert!(refused.body["error"].as_str().unwrap().contains("artifact:upload"));
    let elsewhere = token(&["artifact:upload"], &other);
    assert_eq!(service.post(Some(&elsewhere), "upload-url", &opening(&app)).refusal(), (404, 101));

    let uploading = token(&["artifact:upload"], &app);
    let upload = Upload::open(&service, &uploading, &opening(&app));
    assert_eq!(upload.put(bytes).status, 200);
    let finalize = |who: &Person, release: Option<Value>| {
        let mut body = json!({"sha256": hash});
        if let Some(release) = release {
            body["createRelease"] = release;
        }
        service.post(Some(who), &format!("{}/finalize", upload.id), &body)
    };
    assert_eq!(finalize(&elsewhere, None).refusal(), (404, 101));
    assert_eq!(finalize(&releasing, None).refusal(), (403, 403));
    let release = json!({"channel": "production"});
    let refused = finalize(&uploading, Some(release.clone()));
    assert_eq!(refused.refusal(), (403, 403));
    assert!(refused.body["error"].as_str().unwrap().contains("release:create"));
    let publishing = token(&["artifact:upload", "release:publish"], &app);
    let publish = json!({"channel": "production", "publish": ["ota"]});
    let refused = finalize(&publishing, Some(publish));
    assert_eq!(refused.refusal(), (403, 403));
    assert!(refused.body["error"].as_str().unwrap().contains("release:create"));
    let both = token(&["artifact:upload", "release:create"], &app);
    assert_eq!(upload.state(), "pending", "refused before anything was verified");

    // A deploy token needs no application id. A wrong application id is refused.
    let read = |application: Option<&str>| {
        let url = format!("{}/backend/functions/svc_getArtifacts", service.url);
        let mut request = service.http.post(url).json(&json!({"appId": app}));
        request = request.bearer_auth(&uploading.token);
        if let Some(application) = application {
            request = request.header("X-Backend-Application-Id", application);
        }
        Service::answer(request.send().unwrap()).unwrap()
    };
    assert_eq!(read(None).ok()["items"][0]["id"], json!(upload.id));
    assert_eq!(read(Some("another")).refusal(), (401, 119));

    let verified = finalize(&both, Some(release.clone()));
    assert_eq!((verified.status, &verified.body["trust"]), (201, &json!("token")));
    assert_eq!(finalize(&both, Some(release)).status, 200);
    let made = service.call(Some(&ada), "svc_getReleases", json!({"appId": app})).ok();
    assert_eq!(made["items"].as_array().unwrap().len(), 1, "the release is made once");
    let publish = json!({"channel": "beta", "publish": ["ota"]});
    assert_eq!(finalize(&both, Some(publish)).status, 200, "it publishes what it makes");
}

#[test]
fn artifacts_of_others_are_not_there_and_held_ones_stay() {
    let service = Service::start();
    let (ada, eve) = (service.register("ada"), service.register("eve"));
    let (_, app) = service.project_with_app(&ada, None);
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2");
    let id = json!({"artifactId": artifact["id"]});
    for function in ["svc_getArtifact", "svc_getArtifactDownloadUrl", "svc_deleteArtifact"] {
        assert_eq!(service.call(Some(&eve), function, id.clone()).refusal(), (404, 101));
    }
    assert_eq!(service.post(Some(&eve), "upload-url", &opening(&app)).refusal(), (404, 101));
    let path = format!("{}/finalize", artifact["id"].as_str().unwrap());
    let finalize = json!({"sha256": artifact["sha256"]});
    assert_eq!(service.post(Some(&eve), &path, &finalize).refusal(), (404, 101));
    assert_eq!(service.post(None, &path, &finalize).refusal(), (401, 119));

    let release = json!({"appId": app, "artifactIds": [artifact["id"]], "version": "1.4.2", "channel": "beta"});
    let release = service.call(Some(&ada), "svc_createRelease", release).ok();
    let refused = service.call(Some(&ada), "svc_deleteArtifact", id.clone());
    assert_eq!(refused.refusal(), (409, 119));
    assert!(refused.body["error"].as_str().unwrap().contains(release["id"].as_str().unwrap()));
    let free = service.upload(&ada, &app, "sample-1.5.0.apk", "1.5.0");
    let free_id = json!({"artifactId": free["id"]});
    let file = service.data().join("artifacts").join(free["id"].as_str().unwrap());
    let found = service.call(Some(&ada), "svc_getArtifactDownloadUrl", free_id.clone()).ok();
    assert!(file.exists());
    service.call(Some(&ada), "svc_deleteArtifact", free_id.clone()).ok();
    eventually("the bytes are removed", || !file.exists());
    let gone = service.http.get(found["url"].as_str().unwrap()).send().unwrap();
    assert_eq!(Service::answer(gone).unwrap().refusal(), (404, 101));
    assert_eq!(service.call(Some(&ada), "svc_getArtifact", free_id).refusal(), (404, 101));
    assert_eq!(service.call(Some(&ada), "svc_getArtifact", id).ok()["state"], "verified");
}
