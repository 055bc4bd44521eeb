//! The requests of the Firebase App Distribution API v1 that a publication needs.
//!
//! Source: Google's discovery document `firebaseappdistribution.v1.json`; for the headers of an
//! upload, the client of the Firebase command line.

use super::progress::FirebaseRelease;
use crate::{
    AppFile, FirebaseApp, ReadAt, RemoteError, ServiceAccount,
    google::{Google, GoogleRefusal},
};
use http_body_util::channel::Channel;
use remote::{RemoteResponse, Repeat};
use reqwest::{
    Body, Client, RequestBuilder, Url,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use std::{io, time::Duration};

/// How much of a file is in memory at a time, twice.
const PIECE: u64 = 1 << 20;
const MOST_PAGES: usize = 5;

/// One app of Firebase, with one key.
pub(super) struct Requests<'a> {
    pub google: &'a Google,
    pub account: &'a ServiceAccount,
    /// The address of the API, without a slash at the end.
    pub address: &'a str,
    /// The id of the app.
    pub app: &'a str,
}

#[derive(Deserialize)]
struct Operation {
    name: String,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    error: Option<OperationError>,
    #[serde(default)]
    response: Option<UploadResponse>,
}

#[derive(Deserialize)]
struct OperationError {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct UploadResponse {
    #[serde(default)]
    result: String,
    release: ReleaseDocument,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReleaseDocument {
    name: String,
    testing_uri: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AabInfo {
    #[serde(default)]
    integration_state: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Groups {
    #[serde(default)]
    groups: Vec<NamedGroup>,
    #[serde(default)]
    next_page_token: String,
}

#[derive(Deserialize)]
struct NamedGroup {
    name: String,
}

/// What became of an upload.
#[derive(Debug)]
pub(super) enum Processed {
    NotYet,
    /// The service has forgotten it.
    Forgotten,
    /// With whether Firebase had the same bytes before.
    Release(FirebaseRelease, bool),
    Refused(String),
}

/// How long the upload of a file may take: 256 KiB a second, and two minutes.
pub(super) fn upload_within(size: u64) -> Duration {
    Duration::from_secs(120 + size / (256 << 10))
}

impl Requests<'_> {
    /// The project of the app. The second part of the app's id is its number.
    fn project(&self) -> String {
        format!("projects/{}", self.app.split(':').nth(1).unwrap_or_default())
    }

    /// The resource name of the app.
    fn app_name(&self) -> String {
        format!("{}/apps/{}", self.project(), self.app)
    }

    fn url(&self, path: &str) -> Result<Url, RemoteError> {
        Url::parse(&format!("{}{path}", self.address))
            .map_err(|_| RemoteError::Refused(format!("{} is no web address", self.address)))
    }

    async fn send(
        &self,
        build: impl Fn(&Client) -> RequestBuilder + Send + Sync,
    ) -> Result<RemoteResponse, Failed> {
        let answer = self.google.send(self.account, Repeat::Harmless, build).await?;
        understood(answer)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failed> {
        let url = self.url(path)?;
        Ok(self.send(|http| http.get(url.clone())).await?.read()?)
    }

    /// How app bundles of the app reach Google Play, such as `INTEGRATED`.
    pub async fn aab_state(&self) -> Result<String, Failed> {
        let path = format!("/v1/{}/aabInfo", self.app_name());
        Ok(self.get::<AabInfo>(&path).await?.integration_state)
    }

    /// Fails if the app does not exist.
    pub async fn look(&self) -> Result<(), Failed> {
        let url = self.url(&format!("/v1/{}/releases?pageSize=1", self.app_name()))?;
        self.send(|http| http.get(url.clone())).await.map(drop)
    }

    /// The aliases of the groups of the project.
    pub async fn groups(&self) -> Result<Vec<String>, Failed> {
        let (mut aliases, mut page) = (Vec::new(), String::new());
        for _ in 0..MOST_PAGES {
            let mut url = self.url(&format!("/v1/{}/groups", self.project()))?;
            url.query_pairs_mut().append_pair("pageSize", "1000");
            if !page.is_empty() {
                url.query_pairs_mut().append_pair("pageToken", &page);
            }
            let found: Groups = self.send(|http| http.get(url.clone())).await?.read()?;
            let names = found.groups.iter().filter_map(|group| group.name.rsplit('/').next());
            aliases.extend(names.map(str::to_owned));
            page = found.next_page_token;
            if page.is_empty() {
                break;
            }
        }
        Ok(aliases)
    }

    /// Sends the file, and returns the name of its processing. The same bytes make no second
    /// release.
    pub async fn upload(&self, file: &AppFile, content: &dyn ReadAt) -> Result<String, Failed> {
        let url = self.url(&format!("/upload/v1/{}/releases:upload", self.app_name()))?;
        let (mut sender, body) = Channel::<bytes::Bytes, io::Error>::new(1);
        let name: String = url::form_urlencoded::byte_serialize(file.name.as_bytes()).collect();
        let build = |http: &Client| {
            http.post(url)
                .timeout(upload_within(file.size))
                .header("X-Goog-Upload-Protocol", "raw")
                // A plus sign would stand for itself here.
                .header("X-Goog-Upload-File-Name", name.replace('+', "%20"))
                .header(CONTENT_TYPE, "application/octet-stream")
                .header(CONTENT_LENGTH, file.size)
                .body(Body::wrap(body))
        };
        let feed = async {
            let mut offset = 0;
            while offset < file.size {
                let piece = match content.read(offset, PIECE.min(file.size - offset)).await {
                    Ok(piece) => piece,
                    Err(error) => {
                        let why = format!("The file cannot be read: {error}");
                        sender.abort(error);
                        return Some(why);
                    }
                };
                offset += PIECE.min(file.size - offset);
                // The request is over, and its answer says why.
                if sender.send_data(piece).await.is_err() {
                    break;
                }
            }
            drop(sender);
            None
        };
        let (unread, sent) = tokio::join!(feed, self.google.send_once(self.account, build));
        if let Some(why) = unread {
            return Err(RemoteError::Busy { why, after: Duration::from_secs(10) }.into());
        }
        Ok(understood(sent?)?.read::<Operation>()?.name)
    }

    pub async fn processed(&self, operation: &str) -> Result<Processed, Failed> {
        let operation: Operation = match self.get(&format!("/v1/{operation}")).await {
            Err(Failed::Refusal(failure)) if failure.status == 404 => {
                return Ok(Processed::Forgotten);
            }
            other => other?,
        };
        Ok(match (operation.done, operation.error, operation.response) {
            (false, ..) => Processed::NotYet,
            (true, Some(error), _) => Processed::Refused(error.message),
            (true, None, Some(UploadResponse { result, release })) => {
                let uploaded = FirebaseRelease { name: release.name, url: release.testing_uri };
                Processed::Release(uploaded, result == "RELEASE_UNMODIFIED")
            }
            (true, None, None) => Processed::Forgotten,
        })
    }

    pub async fn set_notes(&self, release: &str, text: &str) -> Result<(), Failed> {
        let url = self.url(&format!("/v1/{release}?updateMask=release_notes.text"))?;
        let body = json!({"releaseNotes": {"text": text}});
        self.send(|http| http.patch(url.clone()).json(&body)).await.map(drop)
    }

    pub async fn distribute(&self, release: &str, to: &FirebaseApp) -> Result<(), Failed> {
        let url = self.url(&format!("/v1/{release}:distribute"))?;
        let body = json!({
            "groupAliases": to.groups.iter().map(|group| group.as_str()).collect::<Vec<_>>(),
            "testerEmails": to.testers.iter().map(|tester| tester.as_str()).collect::<Vec<_>>(),
        });
        self.send(|http| http.post(url.clone()).json(&body)).await.map(drop)
    }

    /// Deletes a release. It may be gone already.
    pub async fn delete(&self, release: &str) -> Result<(), Failed> {
        let url = self.url(&format!("/v1/{}/releases:batchDelete", self.app_name()))?;
        let body = json!({"names": [release]});
        match self.send(|http| http.post(url.clone()).json(&body)).await {
            Err(Failed::Refusal(failure)) if failure.status == 404 => Ok(()),
            other => other.map(drop),
        }
    }
}

/// Why a request did not come to its end.
#[derive(Debug)]
pub(super) enum Failed {
    /// What Firebase says.
    Refusal(GoogleRefusal),
    Store(RemoteError),
}

impl From<RemoteError> for Failed {
    fn from(error: RemoteError) -> Failed {
        Failed::Store(error)
    }
}

fn understood(answer: RemoteResponse) -> Result<RemoteResponse, Failed> {
    match answer.is_ok() {
        true => Ok(answer),
        false => Err(Failed::Refusal(GoogleRefusal::of(&answer))),
    }
}
