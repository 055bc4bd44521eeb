//! Uploads by well-behaved and by faulty clients.

use crate::support::{
    load::together,
    service::{Answer, Person, Service, fixture, sha256},
};
use data_encoding::BASE64;
use reqwest::blocking::{Body, RequestBuilder};
use serde_json::{Value, json};
use sha2::Digest;
use std::{collections::HashSet, io::Read};

pub fn bytes_of(file: &str) -> Vec<u8> {
    std::fs::read(fixture(file)).unwrap()
}

pub fn opening(app: &Value) -> Value {
    json!({"appId": app, "platform": "android", "fileName": "app.apk", "version": "1.4.2"})
}

/// The opening of an upload with declared size and hash, which can be resumed.
pub fn declared(app: &Value, bytes: &[u8]) -> Value {
    let mut opening = opening(app);
    opening["size"] = json!(bytes.len());
    opening["sha256"] = json!(sha256(bytes));
    opening
}

/// An open upload.
pub struct Upload<'a> {
    pub service: &'a Service,
    who: &'a Person,
    pub id: String,
    pub url: String,
}

impl<'a> Upload<'a> {
    pub fn open(service: &'a Service, who: &'a Person, opening: &Value) -> Upload<'a> {
        let opened = service.post(Some(who), "upload-url", opening);
        assert_eq!((opened.status, &opened.body["offset"]), (201, &json!(0)), "{}", opened.body);
        let text = |name: &str| opened.body[name].as_str().unwrap().to_owned();
        Upload { service, who, id: text("artifactId"), url: text("uploadUrl") }
    }

    pub fn request(&self, body: impl Into<Body>) -> RequestBuilder {
        self.service.http.put(&self.url).body(body)
    }

    /// Sends all bytes in one request.
    pub fn put(&self, body: impl Into<Body>) -> Answer {
        Service::answer(self.request(body).send().unwrap()).unwrap()
    }

    /// Sends bytes as a part that begins at `start`.
    pub fn part(&self, bytes: &[u8], start: usize, total: usize, digest: Option<&[u8]>) -> Answer {
        let range = format!("bytes {start}-{}/{total}", start + bytes.len() - 1);
        let mut request = self.request(bytes.to_vec()).header("Content-Range", range);
        if let Some(of) = digest {
            let digest = BASE64.encode(&sha2::Sha256::digest(of));
            request = request.header("Content-Digest", format!("sha-256=:{digest}:"));
        }
        Service::answer(request.send().unwrap()).unwrap()
    }

    /// The answer of `HEAD`: the offset, the length, and whether the upload is complete.
    pub fn head(&self) -> (String, String, String) {
        let answer = self.service.http.head(&self.url).send().unwrap();
        assert_eq!(answer.status(), 200);
        let text = |name: &str| {
            answer.headers().get(name).map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        (text("upload-offset"), text("upload-length"), text("upload-complete"))
    }

    pub fn finalize(&self, body: &Value) -> Answer {
        self.service.post(Some(self.who), &format!("{}/finalize", self.id), body)
    }

    pub fn state(&self) -> Value {
        let id = json!({"artifactId": self.id});
        self.service.call(Some(self.who), "svc_getArtifact", id).ok()["state"].clone()
    }
}

pub fn said(offset: usize, length: usize, complete: bool) -> (String, String, String) {
    (offset.to_string(), length.to_string(), if complete { "?1" } else { "?0" }.into())
}

#[test]
fn an_upload_goes_on_where_it_stopped_and_counts_once_it_is_verified() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let (total, hash) = (bytes.len(), sha256(&bytes));
    let opening = declared(&app, &bytes);
    let upload = Upload::open(&service, &ada, &opening);
    assert_eq!(upload.head(), said(0, total, false));

    let first = upload.part(&bytes[..3000], 0, total, None);
    assert_eq!((first.status, &first.body["received"]), (202, &json!(3000)));
    assert_eq!(first.headers["upload-offset"], "3000");
    for start in [0, 2999, 3001] {
        let wrong = upload.part(&bytes[start..start + 1000], start, total, None);
        assert_eq!(wrong.refusal(), (409, 119), "{start}");
        assert_eq!(wrong.body["expectedOffset"], 3000, "{start}");
    }
    let damaged = upload.part(&bytes[3000..6000], 3000, total, Some(b"other bytes"));
    assert_eq!(damaged.refusal(), (400, 142));
    assert!(damaged.body["error"].as_str().unwrap().contains("Content-Digest"));
    assert_eq!(upload.head(), said(3000, total, false), "a damaged part is dropped");
    let early = upload.finalize(&json!({"sha256": hash}));
    assert_eq!((early.refusal(), &early.body["offset"]), ((409, 119), &json!(3000)));
    assert_eq!(upload.state(), "pending");

    let (id, url) = (upload.id, upload.url);
    service.stop();
    service.boot();
    let resumed = service.post(Some(&ada), "upload-url", &opening);
    assert_eq!((resumed.status, &resumed.body["artifactId"]), (200, &json!(id)));
    assert_eq!(resumed.body["offset"], 3000);
    let upload = Upload { service: &service, who: &ada, id, url };
    let rest = upload.part(&bytes[3000..], 3000, total, Some(&bytes[3000..]));
    assert_eq!((rest.status, &rest.body["received"]), (200, &json!(total)));
    assert_eq!(upload.head(), said(total, total, true));
    let more = upload.put(bytes.clone());
    assert_eq!(more.refusal(), (409, 119), "a complete upload takes no more bytes");

    let verified = upload.finalize(&json!({"sha256": hash, "size": total}));
    assert_eq!((verified.status, &verified.body["state"]), (201, &json!("verified")));
    let again = upload.finalize(&json!({"sha256": hash}));
    assert_eq!((again.status, &again.body), (200, &verified.body));
    let other = upload.finalize(&json!({"sha256": sha256(b"other bytes")}));
    assert_eq!(other.refusal(), (422, 142));
    let error = other.body["error"].as_str().unwrap();
    assert!(error.contains(&hash) && error.contains(&sha256(b"other bytes")), "{error}");
    assert_eq!(upload.state(), "verified");
    assert_eq!(upload.put(bytes.clone()).refusal(), (409, 119));

    let held = service.post(Some(&ada), "upload-url", &opening);
    assert_eq!((held.status, &held.body["state"]), (200, &json!("verified")));
    assert_eq!(held.body["artifactId"], json!(upload.id));
    assert!(held.body.get("uploadUrl").is_none(), "{}", held.body);
    let (_, another) = service.project_with_app(&ada, None);
    Upload::open(&service, &ada, &declared(&another, &bytes));
    service.call(Some(&ada), "svc_deleteArtifact", json!({"artifactId": upload.id})).ok();
    Upload::open(&service, &ada, &opening);
}

/// Callers that declare the same bytes get the same upload, also at the same moment and in every
/// state of the upload. Only a failed upload makes room for another.
#[test]
fn sixteen_callers_who_declare_the_same_bytes_get_one_upload() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let opening = declared(&app, &bytes);
    let one_of_all = || {
        let answers = together(16, |_| service.post(Some(&ada), "upload-url", &opening));
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        let again = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(made + again, 16, "{answers:?}");
        let all: Vec<_> = answers.iter().map(|answer| &answer.body["artifactId"]).collect();
        assert!(all.iter().all(|id| *id == all[0]), "{all:?}");
        let upload = Upload {
            service: &service,
            who: &ada,
            id: all[0].as_str().unwrap().to_owned(),
            url: answers[0].body["uploadUrl"].as_str().unwrap_or_default().to_owned(),
        };
        (made, upload)
    };
    for round in 0..10 {
        let mut opening = opening.clone();
        opening["sha256"] = json!(sha256(&[round]));
        let answers = together(16, |_| service.post(Some(&ada), "upload-url", &opening));
        let ids: HashSet<_> = answers.iter().map(|a| a.body["artifactId"].to_string()).collect();
        assert_eq!(ids.len(), 1, "round {round}: {answers:?}");
    }
    let (made, spoilt) = one_of_all();
    assert_eq!(made, 1);
    assert_eq!(spoilt.put(vec![7; bytes.len()]).status, 200);
    assert_eq!(spoilt.finalize(&json!({"sha256": sha256(&bytes)})).refusal(), (422, 142));

    let (made, upload) = one_of_all();
    assert_eq!(made, 1, "a rejected upload makes room");
    assert_ne!(upload.id, spoilt.id);
    assert_eq!(upload.put(bytes.clone()).status, 200);
    let verify = together(16, |caller| match caller {
        0 => upload.finalize(&json!({"sha256": sha256(&bytes)})),
        _ => service.post(Some(&ada), "upload-url", &opening),
    });
    assert!(
        verify.iter().all(|answer| answer.body["artifactId"] == json!(upload.id)
            || answer.body["id"] == json!(upload.id)),
        "{verify:?}"
    );
    let (made, held) = one_of_all();
    assert_eq!((made, held.id, held.url.as_str()), (0, upload.id.clone(), ""));

    // Other declarations are other uploads.
    let mut other = opening.clone();
    other["version"] = json!("9.9.9");
    Upload::open(&service, &ada, &other);
    service.call(Some(&ada), "svc_deleteArtifact", json!({"artifactId": upload.id})).ok();
    assert_eq!(one_of_all().0, 1, "a deleted artifact makes room");
}

#[test]
fn the_version_is_the_one_in_the_file_where_none_is_declared() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let mut opening = declared(&app, &bytes);
    opening.as_object_mut().unwrap().remove("version");
    let upload = Upload::open(&service, &ada, &opening);
    let read =
        || service.call(Some(&ada), "svc_getArtifact", json!({"artifactId": upload.id})).ok();
    assert_eq!(read()["version"], Value::Null);
    let found = |version: &str| {
        let params = json!({"appId": app, "version": version});
        let page = service.call(Some(&ada), "svc_getArtifacts", params).ok();
        page["items"].as_array().unwrap().len()
    };
    assert_eq!((found("1.4.2"), upload.put(bytes.clone()).status), (0, 200));
    let verified = upload.finalize(&json!({"sha256": sha256(&bytes)}));
    assert_eq!((verified.status, &verified.body["version"]), (201, &json!("1.4.2")));
    assert_eq!((&read()["version"], found("1.4.2")), (&json!("1.4.2"), 1));
    for request in [opening, declared(&app, &bytes)] {
        let held = service.post(Some(&ada), "upload-url", &request);
        assert_eq!((held.status, &held.body["artifactId"]), (200, &json!(upload.id)));
    }
}

#[test]
fn a_whole_file_starts_over_whatever_is_stored() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let upload = Upload::open(&service, &ada, &opening(&app));
    assert_eq!(upload.part(&[7; 5000], 0, bytes.len(), None).status, 202);
    let whole = upload.put(bytes.clone());
    assert_eq!((whole.status, &whole.body["received"]), (200, &json!(bytes.len())));
    assert_eq!(upload.finalize(&json!({"sha256": sha256(&bytes)})).status, 201);
}

#[test]
fn one_of_many_callers_at_once_verifies_and_all_are_answered() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let hash = sha256(&bytes);
    for round in 0..25 {
        let upload = Upload::open(&service, &ada, &opening(&app));
        assert_eq!(upload.put(bytes.clone()).status, 200);
        let finalize = || upload.finalize(&json!({"sha256": hash}));
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..12).map(|_| scope.spawn(finalize)).collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        });
        let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        let expected: Vec<_> = [200; 11].into_iter().chain([201]).collect();
        assert_eq!(statuses, expected, "round {round}");
        let verified = &answers[0].body;
        assert_eq!(verified["state"], "verified", "round {round}");
        assert!(answers.iter().all(|answer| answer.body == *verified), "round {round}");
        let id = json!({"artifactId": upload.id});
        service.call(Some(&ada), "svc_deleteArtifact", id).ok();
    }
}

#[test]
fn what_is_not_as_declared_is_refused_before_it_is_stored_or_verified() {
    let service = Service::start_with(&[("SVC_MAX_ARTIFACT_BYTES", "20000")]);
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let bytes = bytes_of("sample.apk");
    let hash = json!({"sha256": sha256(&bytes)});

    for lie in [bytes.len() - 1, bytes.len() + 1] {
        let mut lying = declared(&app, &bytes);
        lying["size"] = json!(lie);
        let upload = Upload::open(&service, &ada, &lying);
        let refused = upload.put(bytes.clone());
        assert_eq!(refused.refusal(), (400, 142), "{lie}");
        assert!(refused.body["error"].as_str().unwrap().contains(&lie.to_string()));
        assert_eq!(upload.head(), said(0, lie, false));

        let upload = Upload::open(&service, &ada, &opening(&app));
        assert_eq!(upload.put(bytes.clone()).status, 200);
        let mut lying = hash.clone();
        lying["size"] = json!(lie);
        let refused = upload.finalize(&lying);
        assert_eq!(refused.refusal(), (422, 142), "{lie}");
        let error = refused.body["error"].as_str().unwrap();
        assert!(error.contains(&format!("expected {lie} bytes, got {}", bytes.len())), "{error}");
        assert_eq!(upload.state(), "rejected");
        assert_eq!(upload.finalize(&hash).refusal(), (409, 119), "a new upload is needed");
    }

    let mut empty = declared(&app, b"");
    empty["size"] = json!(0);
    let refused = service.post(Some(&ada), "upload-url", &empty);
    assert_eq!(
        (refused.refusal(), &refused.body["details"][0]["field"]),
        ((400, 142), &json!("size"))
    );
    let upload = Upload::open(&service, &ada, &opening(&app));
    upload.put("");
    assert_eq!(upload.finalize(&json!({"sha256": sha256(b"")})).refusal(), (422, 142));

    let mut large = declared(&app, &bytes);
    large["size"] = json!(20_001);
    assert_eq!(service.post(Some(&ada), "upload-url", &large).refusal(), (413, 142));
    let upload = Upload::open(&service, &ada, &opening(&app));
    assert_eq!(upload.put(vec![0; 20_001]).refusal(), (413, 142));
    assert_eq!(upload.part(&[0; 10], 0, 20_001, None).refusal(), (413, 142));
    let endless = upload.put(Body::new(std::io::repeat(0).take(20_001)));
    assert_eq!(endless.refusal(), (413, 142));
    assert_eq!(upload.head().2, "?0");
    assert_eq!(upload.put(bytes.clone()).status, 200);
    assert_eq!(upload.finalize(&hash).status, 201);
}
