//! Images on this machine and in registries.

use super::{
    body::whole_seconds,
    daemon::{CHANGE, Daemon, LOOK, TRANSFER_IDLE},
    objects,
    reference::Reference,
    view,
};
use crate::{EngineError, Image, Labels, RegistryLogin};
use bollard::{
    auth::DockerCredentials,
    models::{ImageInspect, ImageSummary},
    query_parameters::{
        CreateImageOptionsBuilder, ListImagesOptionsBuilder, PruneBuildOptionsBuilder,
        PushImageOptionsBuilder, RemoveImageOptionsBuilder, TagImageOptionsBuilder,
    },
};
use contract::Timestamp;
use futures_util::StreamExt;
use std::{collections::HashMap, time::Duration};

/// The daemon's name for an image without a name.
const NAMELESS: &str = "<none>";

pub(super) async fn find(daemon: &Daemon, reference: &str) -> Result<Option<Image>, EngineError> {
    let answer =
        daemon.ask(LOOK, |client| async move { client.inspect_image(reference).await }).await;
    match answer {
        Ok(found) => Ok(Some(image(found))),
        Err(failure) if failure.is(404) => Ok(None),
        Err(failure) => Err(failure.about(format_args!("image {reference}"))),
    }
}

fn image(found: ImageInspect) -> Image {
    let created_at = found.created.as_deref().and_then(view::moment);
    Image {
        id: found.id.unwrap_or_default(),
        tags: tagged(found.repo_tags.unwrap_or_default()),
        digests: named(found.repo_digests.unwrap_or_default()),
        labels: view::labels(found.config.and_then(|config| config.labels)),
        size: found.size.and_then(|size| size.try_into().ok()).unwrap_or_default(),
        created_at: created_at.unwrap_or(Timestamp::from_millis(0)),
    }
}

fn listed(found: ImageSummary) -> Image {
    Image {
        id: found.id,
        tags: tagged(found.repo_tags),
        digests: named(found.repo_digests),
        labels: view::labels(Some(found.labels)),
        size: found.size.try_into().unwrap_or_default(),
        created_at: Timestamp::from_millis(found.created.saturating_mul(1000)),
    }
}

/// Docker 28 with containerd's store also says here by which digest an image was pulled.
fn tagged(names: Vec<String>) -> Vec<String> {
    named(names).into_iter().filter(|name| !name.contains('@')).collect()
}

fn named(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| !name.contains(NAMELESS));
    names
}

pub(super) async fn resolve(
    daemon: &Daemon,
    reference: &str,
    login: Option<&RegistryLogin>,
) -> Result<String, EngineError> {
    let login = credentials(reference, login);
    let found = daemon
        .ask(
            CHANGE,
            |client| async move { client.inspect_registry_image(reference, Some(login)).await },
        )
        .await
        .map_err(|failure| failure.about_image(reference))?;
    found.descriptor.digest.ok_or_else(|| EngineError::NoImage {
        image: reference.to_owned(),
        why: "its registry gives it no digest".to_owned(),
    })
}

pub(super) async fn ensure(
    daemon: &Daemon,
    reference: &str,
    login: Option<&RegistryLogin>,
) -> Result<Image, EngineError> {
    if let Some(image) = find(daemon, reference).await? {
        return Ok(image);
    }
    let no_image =
        |why: &str| EngineError::NoImage { image: reference.to_owned(), why: why.to_owned() };
    if Reference::is_id(reference) {
        return Err(no_image("it is not on this machine, and registries do not know it by its id"));
    }
    let Reference { repository, version } = Reference::of(reference);
    let options = CreateImageOptionsBuilder::default().from_image(repository).tag(version).build();
    let client = daemon.client().await.map_err(|failure| failure.about_image(reference))?;
    let login = Some(credentials(reference, login));
    let mut parts = client.create_image(Some(options), None, login).boxed();
    while let Some(part) = daemon.next(TRANSFER_IDLE, &mut parts).await {
        part.map_err(|failure| failure.about_image(reference))?;
    }
    // A stream that was cut off ends like a complete one.
    let image = find(daemon, reference).await?;
    image.ok_or_else(|| EngineError::Unreachable(format!("{reference} was not pulled to its end")))
}

fn credentials(reference: &str, login: Option<&RegistryLogin>) -> DockerCredentials {
    let Some(login) = login else { return DockerCredentials::default() };
    DockerCredentials {
        username: Some(login.username.clone()),
        password: Some(login.password.clone()),
        serveraddress: Some(Reference::of(reference).registry().to_owned()),
        ..DockerCredentials::default()
    }
}

pub(super) async fn tag(
    daemon: &Daemon,
    reference: &str,
    repository: &str,
    tag: &str,
) -> Result<(), EngineError> {
    let options = TagImageOptionsBuilder::default().repo(repository).tag(tag).build();
    daemon
        .ask(LOOK, |client| async move { client.tag_image(reference, Some(options)).await })
        .await
        .map_err(|failure| failure.about(format_args!("image {reference}")))
}

pub(super) async fn push(
    daemon: &Daemon,
    repository: &str,
    tag: &str,
    login: Option<&RegistryLogin>,
) -> Result<String, EngineError> {
    let reference = format!("{repository}:{tag}");
    let options = PushImageOptionsBuilder::default().tag(tag).build();
    let client = daemon.client().await.map_err(|failure| failure.about_image(&reference))?;
    let login = Some(credentials(repository, login));
    let mut parts = client.push_image(repository, Some(options), login).boxed();
    let mut digest = None;
    while let Some(part) = daemon.next(TRANSFER_IDLE, &mut parts).await {
        let part = part.map_err(|failure| failure.about_image(&reference))?;
        let said = part.status.as_deref().and_then(|status| pushed_digest(status, tag));
        digest = said.or(digest);
    }
    digest.ok_or_else(|| EngineError::Unreachable(format!("{reference} was not pushed to its end")))
}

/// From the last line of a push: `1: digest: sha256:… size: 528`.
fn pushed_digest(status: &str, tag: &str) -> Option<String> {
    let (digest, _) = status.strip_prefix(tag)?.strip_prefix(": digest: ")?.split_once(' ')?;
    Some(digest.to_owned())
}

pub(super) async fn list(daemon: &Daemon, labels: &Labels) -> Result<Vec<Image>, EngineError> {
    let filters = objects::filters(labels);
    let options = ListImagesOptionsBuilder::default().filters(&filters).digests(true).build();
    let found = daemon
        .ask(LOOK, |client| async move { client.list_images(Some(options)).await })
        .await
        .map_err(|failure| failure.about("list of images"))?;
    Ok(found.into_iter().map(listed).collect())
}

pub(super) async fn remove(daemon: &Daemon, reference: &str) -> Result<(), EngineError> {
    let options = RemoveImageOptionsBuilder::default().force(false).noprune(false).build();
    let answer = daemon
        .ask(
            CHANGE,
            |client| async move { client.remove_image(reference, Some(options), None).await },
        )
        .await;
    match answer {
        Err(failure) if !failure.is(404) => Err(failure.about(format_args!("image {reference}"))),
        _ => Ok(()),
    }
}

pub(super) async fn prune(daemon: &Daemon, unused_for: Duration) -> Result<u64, EngineError> {
    let age = format!("{}s", whole_seconds(unused_for));
    let filters = HashMap::from([("until", vec![age])]);
    let options = PruneBuildOptionsBuilder::default().all(true).filters(&filters).build();
    let pruned = daemon
        .ask(TRANSFER_IDLE, |client| async move { client.prune_build(Some(options)).await })
        .await
        .map_err(|failure| failure.about("cache of builds"))?;
    Ok(pruned.space_reclaimed.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_push_is_in_its_last_line() {
        let line = "v1: digest: sha256:abc size: 528";
        assert_eq!(pushed_digest(line, "v1").as_deref(), Some("sha256:abc"));
        assert_eq!(pushed_digest(line, "v"), None);
        assert_eq!(pushed_digest("v1: Pushed", "v1"), None);
    }

    #[test]
    fn an_image_without_a_name_has_none() {
        assert!(named(vec!["<none>:<none>".to_owned(), "<none>@<none>".to_owned()]).is_empty());
    }
}
