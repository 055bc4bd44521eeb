//! The requests of the Google Play Developer API v3 that a publication needs.
//!
//! Source: Google's discovery document `androidpublisher.v3.json`.

use super::{
    progress::Lifecycle,
    refusal::{Stop, stop},
    track::TrackRelease,
};
use crate::{
    RemoteError, ServiceAccount,
    google::{Google, GoogleRefusal},
};
use contract::artifacts::ArtifactKind;
use remote::{RemoteResponse, Repeat};
use reqwest::{Client, RequestBuilder, Url, header::CONTENT_LENGTH};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use std::time::Duration;

/// How long Google may take to check or commit an edit: it looks into the files.
const COMMITTED_WITHIN: Duration = Duration::from_secs(60);

/// The edits of one app, with one key.
pub(super) struct Edits<'a> {
    pub google: &'a Google,
    pub account: &'a ServiceAccount,
    /// The address of the API, without a slash at the end.
    pub address: &'a str,
    pub package: &'a str,
}

#[derive(Deserialize)]
struct Edit {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    default_language: Option<String>,
}

/// A track with its releases.
#[derive(Deserialize)]
pub(super) struct Track {
    #[serde(default)]
    pub track: String,
    #[serde(default)]
    pub releases: Vec<TrackRelease>,
}

#[derive(Deserialize)]
struct Tracks {
    #[serde(default)]
    tracks: Vec<Track>,
}

/// A file that Google has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Uploaded {
    pub version_code: u64,
    /// Of a bundle.
    #[serde(default)]
    sha256: Option<String>,
    /// Of a package.
    #[serde(default)]
    binary: Option<Binary>,
}

#[derive(Debug, Deserialize)]
struct Binary {
    sha256: Option<String>,
}

impl Uploaded {
    pub fn sha256(&self) -> Option<&str> {
        let of_package = || self.binary.as_ref()?.sha256.as_deref();
        self.sha256.as_deref().or_else(of_package)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UploadedFiles {
    bundles: Vec<Uploaded>,
    apks: Vec<Uploaded>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Summaries {
    releases: Vec<Summary>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Summary {
    active_artifacts: Vec<Artifact>,
    release_lifecycle_state: Option<Lifecycle>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Artifact {
    version_code: u64,
}

/// Google wants the length even of a body that is empty.
fn empty_post(http: &Client, url: &Url) -> RequestBuilder {
    http.post(url.clone()).header(CONTENT_LENGTH, 0)
}

impl Edits<'_> {
    /// An address of the API. `rest` is what follows the package name.
    pub fn url(&self, prefix: &[&str], rest: &[&str]) -> Result<Url, RemoteError> {
        let wrong = || RemoteError::Refused(format!("{} is no web address", self.address));
        let mut url = Url::parse(self.address).map_err(|_| wrong())?;
        url.path_segments_mut()
            .map_err(|()| wrong())?
            .pop_if_empty()
            .extend(prefix)
            .extend(["androidpublisher", "v3", "applications", self.package])
            .extend(rest);
        Ok(url)
    }

    pub async fn send(
        &self,
        repeat: Repeat,
        build: impl Fn(&Client) -> RequestBuilder + Send + Sync,
    ) -> Result<RemoteResponse, Stop> {
        let answer = self.google.send(self.account, repeat, build).await?;
        // 308: an upload is not complete.
        match answer.is_ok() || answer.status == 308 {
            true => Ok(answer),
            false => Err(stop(&GoogleRefusal::of(&answer))),
        }
    }

    async fn get<T: DeserializeOwned>(&self, rest: &[&str]) -> Result<T, Stop> {
        let url = self.url(&[], rest)?;
        Ok(self.send(Repeat::Harmless, |http| http.get(url.clone())).await?.read()?)
    }

    /// Opens an edit. It ends an earlier one of the same account.
    pub async fn insert(&self) -> Result<String, Stop> {
        let url = self.url(&[], &["edits"])?;
        let build = |http: &Client| http.post(url.clone()).json(&json!({}));
        Ok(self.send(Repeat::Harmless, build).await?.read::<Edit>()?.id)
    }

    pub async fn delete(&self, edit: &str) -> Result<(), Stop> {
        let url = self.url(&[], &["edits", edit])?;
        self.send(Repeat::Harmless, |http| http.delete(url.clone())).await.map(drop)
    }

    /// The default language of the app.
    pub async fn language(&self, edit: &str) -> Result<Option<String>, Stop> {
        Ok(self.get::<Details>(&["edits", edit, "details"]).await?.default_language)
    }

    pub async fn tracks(&self, edit: &str) -> Result<Vec<Track>, Stop> {
        Ok(self.get::<Tracks>(&["edits", edit, "tracks"]).await?.tracks)
    }

    pub async fn track(&self, edit: &str, track: &str) -> Result<Vec<TrackRelease>, Stop> {
        Ok(self.get::<Track>(&["edits", edit, "tracks", track]).await?.releases)
    }

    /// Replaces the releases of a track.
    pub async fn put_track(
        &self,
        edit: &str,
        track: &str,
        releases: &[TrackRelease],
    ) -> Result<(), Stop> {
        let url = self.url(&[], &["edits", edit, "tracks", track])?;
        let body = json!({"track": track, "releases": releases});
        let build = |http: &Client| http.put(url.clone()).json(&body);
        self.send(Repeat::Harmless, build).await.map(drop)
    }

    /// The bundles and the packages that Google has of the app.
    pub async fn files(&self, edit: &str) -> Result<Vec<(ArtifactKind, Uploaded)>, Stop> {
        let bundles = self.get::<UploadedFiles>(&["edits", edit, "bundles"]).await?.bundles;
        let apks = self.get::<UploadedFiles>(&["edits", edit, "apks"]).await?.apks;
        let bundles = bundles.into_iter().map(|it| (ArtifactKind::Aab, it));
        Ok(bundles.chain(apks.into_iter().map(|it| (ArtifactKind::Apk, it))).collect())
    }

    /// Lets Google check an edit.
    pub async fn validate(&self, edit: &str) -> Result<(), Stop> {
        let url = self.url(&[], &["edits", &format!("{edit}:validate")])?;
        let build = |http: &Client| empty_post(http, &url).timeout(COMMITTED_WITHIN);
        self.send(Repeat::Harmless, build).await.map(drop)
    }

    /// Makes the changes of an edit. `cancel_review`: reviews of other changes begin anew;
    /// otherwise the commit is refused while there are any.
    pub async fn commit(
        &self,
        edit: &str,
        cancel_review: bool,
        not_sent_for_review: bool,
    ) -> Result<(), Stop> {
        let mut url = self.url(&[], &["edits", &format!("{edit}:commit")])?;
        let behavior =
            if cancel_review { "CANCEL_IN_REVIEW_AND_SUBMIT" } else { "ERROR_IF_IN_REVIEW" };
        url.query_pairs_mut().append_pair("changesInReviewBehavior", behavior);
        if not_sent_for_review {
            url.query_pairs_mut().append_pair("changesNotSentForReview", "true");
        }
        let build = |http: &Client| empty_post(http, &url).timeout(COMMITTED_WITHIN);
        self.send(Repeat::AfterALook, build).await.map(drop)
    }

    /// Where the review of a version has come. `None`: the list of the track does not have it.
    pub async fn lifecycle(&self, track: &str, code: u64) -> Result<Option<Lifecycle>, Stop> {
        let list = self.get::<Summaries>(&["tracks", track, "releases"]).await?.releases;
        let is_it = |it: &Summary| it.active_artifacts.iter().any(|it| it.version_code == code);
        let found = list.into_iter().find(is_it);
        Ok(found.map(|it| it.release_lifecycle_state.unwrap_or(Lifecycle::Unspecified)))
    }
}
