//! Container images for templates. Each version has a fixed digest.

use crate::{
    Description, ImageId, Page, Timestamp, VersionName, WebUrl,
    page::*,
    patch::Patch,
    text::{ImageDigest, ImageRepository, ImageTag, Query, Reason, Slug},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Container images";

    /// Search registered images by name, repository or description.
    "searchDockerImages": SearchDockerImages {
        /// Return only images that have this text in their name, repository or description, in any
        /// case.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<DockerImage> { who: Public, effect: Read }

    /// Read an image by its id or its name.
    "getDockerImage": GetDockerImage {
        /// Give exactly one of `imageId` and `name`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image_id: Option<ImageId>,
        /// The unique name of the image, such as `parse-server`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("examples" = ["parse-server"]))]
        name: Option<Slug>,
    } -> DockerImage { who: Public, effect: Read }

    /// Register an image. Add versions with `addDockerImageVersion`.
    "registerDockerImage": RegisterDockerImage {
        /// The name of the image in templates and searches. It is unique.
        name: Slug,
        /// The repository from which versions are pulled.
        repository: ImageRepository,
        /// What people should know of the image, at most 2,000 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Description>,
    } -> DockerImage { who: SuperAdmin, effect: Change, errors: [Exists "an image of this name is registered"] }

    /// Change an image. Its versions keep their digests.
    "updateDockerImage": UpdateDockerImage {
        image_id: ImageId,
        /// The new name, which must be unique. Without it, the name stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Slug>,
        /// The repository from which versions are pulled from now on. Without it, the repository
        /// stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<ImageRepository>,
        /// Replaces the description. Null clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        description: Patch<Description>,
    } -> DockerImage { who: SuperAdmin, effect: Change, errors: [Exists "an image of this name is registered"] }

    /// Delete an image that no template version uses.
    "deleteDockerImage": DeleteDockerImage { image_id: ImageId } -> DeletedDockerImage
    { who: SuperAdmin, effect: Change, errors: [NotNow "a template version uses it"] }

    /// Add a version to an image.
    ///
    /// The service asks the registry for the digest of the tag. The version keeps this digest even
    /// if the tag moves. With a digest alone, the registry must have an image with it.
    "addDockerImageVersion": AddDockerImageVersion {
        image_id: ImageId,
        /// The name of the new version, by which templates and deployments name it.
        version: VersionName,
        /// The default is the name of the version, unless a digest is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<ImageTag>,
        /// The digest of the version. With a tag, the tag must have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<ImageDigest>,
    } -> DockerImage { who: SuperAdmin, effect: Change,
        errors: [Exists "the image has this version", Invalid "the registry knows no such tag or digest", Unavailable "the registry cannot be asked"] }

    /// Deprecate a version of an image.
    ///
    /// Running instances keep it. New instances and deployments with this version are refused with
    /// the reason.
    "deprecateDockerImageVersion": DeprecateDockerImageVersion {
        image_id: ImageId,
        /// The name of the version.
        version: VersionName,
        /// Why it should not be used, as refusals then say. It replaces an earlier reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    } -> DockerImage { who: SuperAdmin, effect: Change, errors: [NotFound "the image has no such version"] }
}

records! {
    /// A registered image.
    pub struct DockerImage {
        id: ImageId,
        /// The unique name of the image in templates and searches.
        name: Slug,
        /// The repository of the versions. Those from a recipe are in no registry.
        repository: ImageRepository,
        /// What people should know of the image. Null if nobody wrote it.
        description: Option<Description>,
        /// In the order in which they were added.
        versions: Vec<DockerImageVersion>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// A version of a registered image, under which templates and deployments name it.
    pub struct DockerImageVersion {
        /// The name of the version, unique in its image.
        version: VersionName,
        /// Null for a version that was added by its digest.
        tag: Option<ImageTag>,
        /// The digest that runs. The versions of built-in images have none until their first use, and
        /// those from a recipe never have one.
        digest: Option<ImageDigest>,
        /// The recipe of the program from which the service builds the version on first use. Without
        /// one, the version is pulled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recipe: Option<Slug>,
        /// Whether new instances and deployments may use the version.
        state: ImageVersionState,
        /// Why the version is deprecated. Null if it is not, or nobody said why.
        deprecation_reason: Option<Reason>,
        /// The known security advisories of the version.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        advisories: Vec<Advisory>,
        created_at: Timestamp,
    }

    /// A security advisory that concerns a version of an image.
    pub struct Advisory {
        /// The identifier of the advisory, such as `CVE-2026-100631`.
        id: String,
        /// What an attacker can do.
        summary: String,
        /// The page that describes the advisory.
        url: WebUrl,
        /// The first later version that it does not concern. Null if there is none yet.
        fixed_in: Option<VersionName>,
    }

    /// The image that the call deleted.
    pub struct DeletedDockerImage { deleted: ImageId }
}

/// Whether a version of an image may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ImageVersionState {
    /// The version may be used.
    Active,
    /// The version keeps running, but nothing new may use it.
    Deprecated,
}
