//! The documents of the App Store Connect API (JSON:API), as far as they count here. A field that
//! Apple leaves out is like one that is null.

use contract::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::HashMap;

/// A document about one resource.
#[derive(Deserialize)]
pub(crate) struct One<A> {
    pub data: Resource<A>,
    #[serde(default)]
    included: Vec<Resource<Value>>,
}

/// A document about a list of resources.
#[derive(Deserialize)]
pub(crate) struct Many<A> {
    pub data: Vec<Resource<A>>,
}

#[derive(Deserialize)]
pub(crate) struct Resource<A> {
    #[serde(rename = "type")]
    kind: String,
    pub id: String,
    pub attributes: A,
    #[serde(default = "HashMap::new")]
    relationships: HashMap<String, Relationship>,
}

#[derive(Deserialize)]
struct Relationship {
    #[serde(default)]
    data: Option<Value>,
}

impl<A> One<A> {
    /// The first resource of a kind that came along.
    pub fn included<T: DeserializeOwned>(&self, kind: &str) -> Option<(&str, T)> {
        let found = self.included.iter().find(|resource| resource.kind == kind)?;
        Some((&found.id, serde_json::from_value(found.attributes.clone()).ok()?))
    }
}

impl<A> Resource<A> {
    /// The id of the resource that a relationship names.
    pub fn related(&self, name: &str) -> Option<&str> {
        self.relationships.get(name)?.data.as_ref()?.get("id")?.as_str()
    }
}

/// Attributes that do not count.
#[derive(Deserialize)]
pub(crate) struct Anything {}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppAttributes {
    pub name: Option<String>,
    pub bundle_id: Option<String>,
    pub primary_locale: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct BuildUpload {
    #[serde(default)]
    pub state: UploadState,
}

#[derive(Deserialize, Default)]
pub(crate) struct UploadState {
    pub state: Option<String>,
    #[serde(default)]
    pub errors: Vec<Detail>,
}

/// A problem with an upload.
#[derive(Deserialize)]
pub(crate) struct Detail {
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub description: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildUploadFile {
    pub file_name: Option<String>,
    pub file_size: Option<u64>,
    pub source_file_checksums: Option<Checksums>,
    pub asset_delivery_state: Option<UploadState>,
    #[serde(default)]
    pub upload_operations: Option<Vec<UploadOperation>>,
}

#[derive(Deserialize)]
pub(crate) struct Checksums {
    pub file: Option<Checksum>,
}

#[derive(Deserialize)]
pub(crate) struct Checksum {
    pub hash: Option<String>,
    pub algorithm: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UploadOperation {
    pub method: String,
    pub url: String,
    pub offset: u64,
    pub length: u64,
    #[serde(default)]
    pub request_headers: Vec<Header>,
}

#[derive(Deserialize)]
pub(crate) struct Header {
    pub name: String,
    pub value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Build {
    pub expiration_date: Option<Timestamp>,
    #[serde(default)]
    pub expired: Option<bool>,
    pub processing_state: Option<String>,
    pub uses_non_exempt_encryption: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildBetaDetail {
    pub auto_notify_enabled: Option<bool>,
    pub internal_build_state: Option<String>,
    pub external_build_state: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BetaGroup {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub is_internal_group: Option<bool>,
    #[serde(default)]
    pub has_access_to_all_builds: Option<bool>,
    #[serde(default)]
    pub public_link: Option<String>,
}

/// Release notes of a build or of a version, and what else a version needs in each language.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Localization {
    #[serde(default)]
    pub locale: String,
    pub whats_new: Option<String>,
    pub description: Option<String>,
    pub keywords: Option<String>,
    pub support_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Version {
    #[serde(default)]
    pub version_string: String,
    pub app_version_state: Option<String>,
    pub release_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PhasedRelease {
    pub phased_release_state: Option<String>,
    pub current_day_number: Option<u32>,
}

#[derive(Deserialize)]
pub(crate) struct ReviewSubmission {
    pub state: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct BetaAppReviewSubmission {}
