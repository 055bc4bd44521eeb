//! The rules of a registered image. Callers see the stored state as it is.

use crate::runtime::{
    ref_count::RefCount,
    resource::{Moment, Resource, Step, Unique, without_effects},
};
use contract::{
    Description, Fault, Patch, VersionName,
    images::{DockerImage, DockerImageVersion, ImageVersionState},
    text::{ImageDigest, ImageRepository, Reason, Slug},
};
use store::{Change, Entries};

#[derive(Debug, Clone, Copy)]
pub struct Images;

/// How many versions an image may have.
const MOST_VERSIONS: usize = 500;

#[derive(Debug, Clone)]
pub enum Command {
    Update {
        /// `None` leaves the name.
        name: Option<Slug>,
        /// `None` leaves the repository.
        repository: Option<ImageRepository>,
        description: Patch<Description>,
    },
    AddVersion(Box<DockerImageVersion>),
    /// Pin a version without a digest to this digest.
    Resolve(VersionName, ImageDigest),
    /// Refuse new uses of a version.
    Deprecate(VersionName, Option<Reason>),
    /// Delete the image. Refused while a template version uses it.
    Delete,
}

store::entries! {
    pub enum ImageIndex of Images {
        All = "all",
    }
}

store::claims! {
    pub enum ImageClaim of Images {
        Name { name: Slug } = "name",
    }
}

impl Resource for Images {
    type New = DockerImage;
    type State = DockerImage;
    type Command = Command;
    without_effects!();

    fn create(_: &Moment<Self>, image: DockerImage) -> Result<Step<Self>, Fault> {
        Ok(Step::put(image))
    }

    fn on_command(
        image: DockerImage,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        on_command(image, at, command)
    }

    fn index(_: &DockerImage) -> Entries<Self> {
        Entries::default().and(ImageIndex::All)
    }

    fn claims(image: &DockerImage) -> Vec<Unique<Self>> {
        let taken = || {
            Fault::Exists(
                "an image of this name is registered already; change it with updateDockerImage"
                    .into(),
            )
        };
        vec![Unique::new(ImageClaim::Name { name: image.name.clone() }, taken)]
    }
}

fn on_command(
    mut image: DockerImage,
    at: &Moment<Images>,
    command: Command,
) -> Result<Step<Images>, Fault> {
    match command {
        Command::Update { name, repository, description } => {
            image.name = name.unwrap_or(image.name);
            image.repository = repository.unwrap_or(image.repository);
            description.apply(&mut image.description);
        }
        Command::AddVersion(version) => {
            if image.versions.iter().any(|known| known.version == version.version) {
                return Err(has_version(&image, &version.version));
            }
            if image.versions.len() >= MOST_VERSIONS {
                return Err(Fault::NotNow(format!(
                    "an image has at most {MOST_VERSIONS} versions; register another one"
                )));
            }
            image.versions.push(*version);
        }
        Command::Resolve(version, digest) => {
            let version = find(&mut image, &version)?;
            if version.digest.is_some() {
                return Ok(Step::keep());
            }
            version.digest = Some(digest);
            return Ok(Step::put(image));
        }
        Command::Deprecate(version, reason) => {
            let version = find(&mut image, &version)?;
            version.state = ImageVersionState::Deprecated;
            version.deprecation_reason = reason;
        }
        Command::Delete => {
            let unused = Change::new().require_absent::<RefCount>(&at.id.to_string());
            return Ok(Step::remove().also(unused));
        }
    }
    image.updated_at = at.now;
    Ok(Step::put(image))
}

/// The refusal of a version that the image has already.
pub fn has_version(image: &DockerImage, version: &VersionName) -> Fault {
    Fault::Exists(format!(
        "{} has a version {version} already; versions never change, so choose another one",
        image.name
    ))
}

fn find<'a>(
    image: &'a mut DockerImage,
    version: &VersionName,
) -> Result<&'a mut DockerImageVersion, Fault> {
    let found = image.versions.iter_mut().find(|known| known.version == *version);
    found.ok_or(Fault::NotFound("version of this image"))
}
