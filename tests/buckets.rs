//! Artifacts in an S3 bucket, served by a test server.

use crate::support::{
    bucket::Bucket,
    service::{Service, fixture, sha256},
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A service that keeps its artifacts in this bucket.
fn service_with(bucket: &Bucket) -> Service {
    let settings = bucket.settings();
    Service::start_with(&settings.each_ref().map(|(name, value)| (*name, value.as_str())))
}

/// The expected file of an artifact.
fn object(bucket: &Bucket, artifact: &Value) -> PathBuf {
    bucket.object(artifact["id"].as_str().unwrap())
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn none() -> Vec<PathBuf> {
    Vec::new()
}

#[test]
fn verified_bytes_are_kept_in_the_bucket_and_nowhere_else() {
    let bucket = Bucket::start();
    let service = service_with(&bucket);
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = std::fs::read(fixture("sample.apk")).unwrap();
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2");
    assert_eq!(std::fs::read(object(&bucket, &artifact)).unwrap(), bytes);
    assert_eq!(files_in(&service.data().join("staging")), none());
    assert!(!service.data().join("artifacts").exists());

    let id = json!({"artifactId": artifact["id"]});
    let found = service.call(Some(&ada), "svc_getArtifactDownloadUrl", id.clone()).ok();
    let get = || service.http.get(found["url"].as_str().unwrap());
    let whole = get().send().unwrap().bytes().unwrap();
    assert_eq!(sha256(&whole), artifact["sha256"]);
    for (range, expected) in
        [("bytes=100-199", &bytes[100..200]), ("bytes=-5", &bytes[bytes.len() - 5..])]
    {
        let part = get().header("Range", range).send().unwrap();
        assert_eq!((part.status().as_u16(), part.bytes().unwrap().as_ref()), (206, expected));
    }

    service.call(Some(&ada), "svc_deleteArtifact", id).ok();
    crate::support::service::eventually("the object is removed", || {
        !object(&bucket, &artifact).exists()
    });
    assert_eq!(get().send().unwrap().status(), 404);
}

#[test]
fn refused_bytes_never_reach_the_bucket() {
    let bucket = Bucket::start();
    let service = service_with(&bucket);
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = std::fs::read(fixture("sample-tampered.apk")).unwrap();
    let post = |path: &str, body: &Value| service.post(Some(&ada), path, body);
    let opening =
        json!({"appId": app, "platform": "android", "fileName": "a.apk", "version": "1.4.2"});
    let opened = post("upload-url", &opening).body;
    let put = service.http.put(opened["uploadUrl"].as_str().unwrap()).body(bytes.clone());
    assert_eq!(put.send().unwrap().status(), 200);
    let path = format!("{}/finalize", opened["artifactId"].as_str().unwrap());
    let refused = post(&path, &json!({"sha256": sha256(&bytes)}));
    assert_eq!(refused.refusal(), (422, 142));
    assert_eq!(files_in(&service.data().join("staging")), none());
    let objects = files_in(&bucket.objects());
    assert_eq!(objects, none());
}

#[test]
fn while_the_bucket_is_away_nothing_is_finalized_and_nothing_is_lost() {
    let mut bucket = Bucket::start();
    let service = service_with(&bucket);
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let kept = service.upload(&ada, &app, "sample.apk", "1.4.2");
    let bytes = std::fs::read(fixture("sample-1.5.0.apk")).unwrap();
    let post = |path: &str, body: &Value| service.post(Some(&ada), path, body);
    let opening =
        json!({"appId": app, "platform": "android", "fileName": "a.apk", "version": "1.5.0"});

    bucket.go_away();
    let opened = post("upload-url", &opening).body;
    let put = service.http.put(opened["uploadUrl"].as_str().unwrap()).body(bytes.clone());
    assert_eq!(put.send().unwrap().status(), 200, "bytes are taken while the bucket is away");
    let path = format!("{}/finalize", opened["artifactId"].as_str().unwrap());
    let finalize = json!({"sha256": sha256(&bytes)});
    let begun = Instant::now();
    let away = post(&path, &finalize);
    assert_eq!(away.refusal(), (503, 100), "{}", away.body);
    assert!(away.headers.contains_key("retry-after"));
    assert!(away.body["error"].as_str().unwrap().contains("artifact store"), "{}", away.body);
    let id = json!({"artifactId": kept["id"]});
    let found = service.call(Some(&ada), "svc_getArtifactDownloadUrl", id).ok();
    let download = service.http.get(found["url"].as_str().unwrap()).send().unwrap();
    assert_eq!(Service::answer(download).unwrap().refusal(), (503, 100));
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    let pending = json!({"artifactId": opened["artifactId"]});
    assert_eq!(service.call(Some(&ada), "svc_getArtifact", pending).ok()["state"], "pending");

    // A bucket that accepts connections and does not answer counts as unreachable.
    let silent = std::net::TcpListener::bind(bucket.address).unwrap();
    let begun = Instant::now();
    assert_eq!(post(&path, &finalize).refusal(), (503, 100));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    drop(silent);

    bucket.come_back();
    let finalized = post(&path, &finalize);
    assert_eq!((finalized.status, &finalized.body["state"]), (201, &json!("verified")));
    assert_eq!(std::fs::read(object(&bucket, &finalized.body)).unwrap(), bytes);
    let download = service.http.get(found["url"].as_str().unwrap()).send().unwrap();
    assert_eq!(sha256(&download.bytes().unwrap()), kept["sha256"]);
}
