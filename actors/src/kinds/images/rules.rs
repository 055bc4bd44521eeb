//! The rules of a registered image. What is kept is what is shown.

use crate::{
    runtime::{
        ref_count::Uses,
        resource::{Input, Kept, Moment, Never, Resource, Retry, Step, no_effects},
    },
    world::World,
};
use contract::{
    Description, Fault, ImageId, Patch, VersionName,
    images::{DockerImage, DockerImageVersion, ImageVersionState},
    text::{ImageDigest, ImageRepository, Reason, Slug},
};
use futures_util::future::LocalBoxFuture;
use std::sync::Arc;
use store::Change;

/// The registered images.
#[derive(Debug, Clone, Copy)]
pub struct Images;

/// How many versions an image may have.
const MOST_VERSIONS: usize = 500;

/// What can be asked of an image.
#[derive(Debug, Clone)]
pub enum Command {
    /// Register it.
    Create(Box<DockerImage>),
    /// Change it.
    Update {
        /// Replaces the name.
        name: Option<Slug>,
        /// Replaces the repository.
        repository: Option<ImageRepository>,
        /// Patches the description.
        description: Patch<Description>,
    },
    /// Add a version.
    AddVersion(Box<DockerImageVersion>),
    /// A version that came without a digest is this one.
    Resolve(VersionName, ImageDigest),
    /// Let nothing new start from a version.
    Deprecate(VersionName, Option<Reason>),
    /// Remove it, where no template version uses it.
    Delete,
}

/// The claim of a name.
pub fn name_claim(name: &Slug) -> String {
    format!("name/{name}")
}

impl Resource for Images {
    const KIND: &'static str = "image";
    type Id = ImageId;
    type State = DockerImage;
    type Command = Command;
    type Effect = Never;
    type Outcome = Never;

    fn step(
        at: &Moment<Self>,
        state: Option<&DockerImage>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault> {
        match (state, input) {
            (None, Input::Command(Command::Create(image))) => Ok(Step::put(*image)),
            (None, Input::Command(_)) => Err(Fault::NotFound("image")),
            (Some(image), Input::Command(command)) => take(image.clone(), at, command),
            (_, Input::Outcome(never)) => match never {},
        }
    }

    fn index(_: &DockerImage) -> Vec<String> {
        vec!["all".into()]
    }

    fn claims(image: &DockerImage) -> Vec<String> {
        vec![name_claim(&image.name)]
    }

    fn taken(_: &str) -> Fault {
        Fault::Exists("an image of this name is registered already".into())
    }

    fn perform(
        effect: Never,
        _: ImageId,
        _: Arc<Kept<Self>>,
        _: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Never, Retry>> {
        no_effects(effect)
    }
}

fn take(
    mut image: DockerImage,
    at: &Moment<Images>,
    command: Command,
) -> Result<Step<Images>, Fault> {
    match command {
        Command::Create(_) => return Err(Fault::Exists("this image exists already".into())),
        Command::Update { name, repository, description } => {
            image.name = name.unwrap_or(image.name);
            image.repository = repository.unwrap_or(image.repository);
            description.apply(&mut image.description);
        }
        Command::AddVersion(version) => {
            if image.versions.iter().any(|known| known.version == version.version) {
                return Err(Fault::Exists(format!(
                    "{} has a version {} already",
                    image.name, version.version
                )));
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
            let unused = Change::new().require_absent::<Uses>(&at.id.to_string());
            return Ok(Step::remove().also(unused));
        }
    }
    image.updated_at = at.now;
    Ok(Step::put(image))
}

fn find<'a>(
    image: &'a mut DockerImage,
    version: &VersionName,
) -> Result<&'a mut DockerImageVersion, Fault> {
    let found = image.versions.iter_mut().find(|known| known.version == *version);
    found.ok_or(Fault::NotFound("version of this image"))
}
