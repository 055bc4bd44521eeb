//! Container images: what templates are made of, each version tied to one digest.

use crate::{
    Description, ImageId, Page, Timestamp, VersionName,
    page::*,
    patch::Patch,
    text::{ImageDigest, ImageRepository, ImageTag, Query, Reason, Slug},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Container images";

    /// Find registered images by name, repository or description.
    "searchDockerImages": SearchDockerImages {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<DockerImage> { who: Public, effect: Read }

    /// Read an image, by its id or its name.
    "getDockerImage": GetDockerImage {
        /// Exactly one of this and `name`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image_id: Option<ImageId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Slug>,
    } -> DockerImage { who: Public, effect: Read }

    /// Register an image. Versions are added to it afterwards.
    "registerDockerImage": RegisterDockerImage {
        /// What templates and people call it.
        name: Slug,
        /// Where its versions are pulled from.
        repository: ImageRepository,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Description>,
    } -> DockerImage { who: SuperAdmin, effect: Change, errors: [Exists "an image of this name is registered"] }

    /// Change an image. Versions keep the digests that they have.
    "updateDockerImage": UpdateDockerImage {
        image_id: ImageId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Slug>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<ImageRepository>,
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        description: Patch<Description>,
    } -> DockerImage { who: SuperAdmin, effect: Change, errors: [Exists "an image of this name is registered"] }

    /// Delete an image that no template version uses.
    "deleteDockerImage": DeleteDockerImage { image_id: ImageId } -> DeletedDockerImage
    { who: SuperAdmin, effect: Change, errors: [NotNow "a template version uses it"] }

    /// Add a version to an image. What its tag points at is asked of the registry now, and stays
    /// the version's digest whatever becomes of the tag.
    "addDockerImageVersion": AddDockerImageVersion {
        image_id: ImageId,
        version: VersionName,
        /// The version's name where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<ImageTag>,
        /// Where it is given, the tag must point at it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<ImageDigest>,
    } -> DockerImage { who: SuperAdmin, effect: Change,
        errors: [Exists "the image has this version", Invalid "the registry knows no such tag", Unavailable "the registry cannot be asked"] }

    /// Deprecate a version. Instances that run it go on; new ones and deployments of it are refused
    /// with the reason.
    "deprecateDockerImageVersion": DeprecateDockerImageVersion {
        image_id: ImageId,
        version: VersionName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    } -> DockerImage { who: SuperAdmin, effect: Change, errors: [NotFound "the image has no such version"] }
}

records! {
    /// A registered image.
    pub struct DockerImage {
        id: ImageId,
        name: Slug,
        repository: ImageRepository,
        description: Option<Description>,
        /// In the order in which they were added.
        versions: Vec<DockerImageVersion>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// A version of an image.
    pub struct DockerImageVersion {
        version: VersionName,
        tag: ImageTag,
        /// What is run. Null until the version is used for the first time, for those that came with
        /// the service.
        digest: Option<ImageDigest>,
        state: ImageVersionState,
        deprecation_reason: Option<Reason>,
        created_at: Timestamp,
    }

    /// What was deleted.
    pub struct DeletedDockerImage { deleted: ImageId }
}

/// Whether a version of an image may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ImageVersionState {
    /// It may.
    Active,
    /// It runs where it runs, and starts nowhere else.
    Deprecated,
}
