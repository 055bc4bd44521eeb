//! How far the upload of a build has come. Pure.

use contract::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far the upload of a build has come. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UploadProgress {
    pub(crate) app: Option<AppRecord>,
    /// Apple has neither an upload nor a build of this version and build number, so that an upload
    /// that appears without a file is the one that this publication opens.
    pub(crate) opens: bool,
    /// Apple's id of the upload.
    pub(crate) id: Option<String>,
    /// How often the upload that another publication opened was looked at.
    pub(crate) waited: u32,
    pub(crate) place: Option<FileReservation>,
    /// The places that cannot be used any more.
    pub(crate) spent: Vec<String>,
    /// Apple was told that the file is complete.
    pub(crate) committed: bool,
    /// Apple has the file whole.
    pub(crate) delivered: bool,
    pub(crate) build: Option<BuildRecord>,
    /// Apple processed the build, and knows about its encryption.
    pub(crate) is_usable: bool,
    /// Where the upload stands, in Apple's words.
    pub(crate) words: Option<String>,
    /// Why Apple refused the file for good.
    pub(crate) failure: Option<String>,
}

/// The app in App Store Connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppRecord {
    pub id: String,
    pub name: String,
    /// The language in which the app is shown where it has no other.
    pub language: String,
}

/// A place for the file, and what is to be sent there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileReservation {
    /// Apple's id of the file.
    pub id: String,
    pub parts: Vec<FilePart>,
    /// How many parts were sent.
    pub sent: usize,
}

/// A part of the file, and how Apple wants it. Address and headers give access to the place for a
/// while, so the `Debug` output leaves them out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FilePart {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub offset: u64,
    pub length: u64,
}

impl FileReservation {
    /// Whether the parts make up a file of this size.
    #[cfg(feature = "clients")]
    pub(crate) fn covers(&self, size: u64) -> bool {
        let end = |next: u64, part: &FilePart| {
            (part.offset == next).then(|| next.checked_add(part.length)).flatten()
        };
        let mut parts: Vec<&FilePart> = self.parts.iter().collect();
        parts.sort_by_key(|part| part.offset);
        parts.into_iter().try_fold(0, end) == Some(size)
    }
}

impl fmt::Debug for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part({}+{})", self.offset, self.length)
    }
}

/// A build in App Store Connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildRecord {
    pub id: String,
    /// When testers can no longer use it: 90 days after the upload.
    pub expires_at: Option<Timestamp>,
}

impl UploadProgress {
    /// Whether Apple may have the whole file, so that a build comes of it without further steps.
    pub(crate) fn is_sent(&self) -> bool {
        self.committed || self.build.is_some()
    }

    /// Whether all parts were sent.
    #[cfg(feature = "clients")]
    pub(crate) fn has_sent_parts(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.sent >= place.parts.len())
    }
}
