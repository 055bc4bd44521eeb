//! Creates, starts, stops and removes containers.

use super::{
    body,
    daemon::{CHANGE, Daemon, LOOK},
    errors::DaemonFailure,
    view,
};
use crate::{Container, ContainerSpec, EngineError, Phase};
use bollard::{
    models::ContainerInspectResponse,
    query_parameters::{
        CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
    },
};
use std::time::Duration;

/// The daemon removes containers in the background: how often that is checked, and the pause in
/// between.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(200);
/// How often the daemon may choose another port. Each time it tries ten.
const CHOICES: u32 = 8;

pub(super) async fn find(daemon: &Daemon, name: &str) -> Result<Option<Container>, EngineError> {
    Ok(inspect(daemon, name).await?.map(|found| view::container(found, daemon.publishes_at)))
}

pub(super) async fn inspect(
    daemon: &Daemon,
    name: &str,
) -> Result<Option<ContainerInspectResponse>, EngineError> {
    let answer =
        daemon.ask(LOOK, |client| async move { client.inspect_container(name, None).await }).await;
    match answer {
        Ok(container) => Ok(Some(container)),
        Err(failure) if failure.is(404) => Ok(None),
        Err(failure) => Err(failure.about(format_args!("container {name}"))),
    }
}

pub(super) async fn ensure(
    daemon: &Daemon,
    spec: &ContainerSpec,
) -> Result<Container, EngineError> {
    for _ in 0..LOOKS {
        let Some(found) = inspect(daemon, &spec.name).await? else {
            match create(daemon, spec).await? {
                Creation::Done => {}
                // Another request created the container in between, or it is not fully removed.
                Creation::NameIsTaken => pause().await,
            }
            continue;
        };
        let networks = found.network_settings.as_ref().and_then(|all| all.networks.clone());
        let container = view::container(found, daemon.publishes_at);
        let is_same = container.spec_hash() == Some(spec.hash().as_str());
        match container.phase {
            // The container is being removed.
            Phase::Between => pause().await,
            Phase::Running if is_same => return Ok(container),
            Phase::Running => return Err(conflict(spec, "runs, and is not of this spec")),
            Phase::Created | Phase::Exited { .. } => {
                // Somebody else uses a name of ours.
                if container.spec_hash().is_none() {
                    return Err(conflict(spec, "is not ours"));
                }
                let joined = networks.unwrap_or_default().remove(&spec.network);
                let joined = joined.and_then(|network| network.network_id).unwrap_or_default();
                if is_same && (joined.is_empty() || is_network(daemon, spec, &joined).await?) {
                    return Ok(container);
                }
                remove(daemon, &spec.name).await?;
            }
        }
    }
    Err(EngineError::Unreachable(format!("the container {} is neither there nor gone", spec.name)))
}

fn conflict(spec: &ContainerSpec, what: &str) -> EngineError {
    EngineError::Conflict(format!("the container {} {what}", spec.name))
}

/// Whether the spec's network still has this id. A container keeps the id of the network that it
/// first joined, and never starts again if another network takes the name.
async fn is_network(daemon: &Daemon, spec: &ContainerSpec, id: &str) -> Result<bool, EngineError> {
    let network = &spec.network;
    let answer =
        daemon.ask(LOOK, |client| async move { client.inspect_network(network, None).await }).await;
    match answer {
        Ok(found) => Ok(found.id.as_deref() == Some(id)),
        Err(failure) => Err(failure.about(format_args!("network {network}"))),
    }
}

enum Creation {
    Done,
    NameIsTaken,
}

async fn create(daemon: &Daemon, spec: &ContainerSpec) -> Result<Creation, EngineError> {
    // The daemon would create missing volumes itself, without labels, and report a missing network
    // only at the start.
    let network = &spec.network;
    daemon
        .ask(LOOK, |client| async move { client.inspect_network(network, None).await })
        .await
        .map_err(|failure| failure.about(format_args!("network {network}")))?;
    for mount in &spec.mounts {
        let volume = &mount.volume;
        daemon
            .ask(LOOK, |client| async move { client.inspect_volume(volume).await })
            .await
            .map_err(|failure| failure.about(format_args!("volume {volume}")))?;
    }
    let options = CreateContainerOptionsBuilder::default().name(&spec.name).build();
    let body = body::of(spec, daemon.publishes_at);
    let answer = daemon
        .ask(CHANGE, |client| async move { client.create_container(Some(options), body).await })
        .await;
    match answer {
        Ok(_) => Ok(Creation::Done),
        Err(failure) if failure.is(409) => Ok(Creation::NameIsTaken),
        Err(failure) if failure.is(404) => Err(failure.about_image(&spec.image)),
        Err(failure) => Err(failure.about(format_args!("container {}", spec.name))),
    }
}

/// Starts a container. If the port that the daemon chose belongs to another program, asks the
/// daemon to choose again: it gives up by itself after ten ports.
pub(super) async fn start(daemon: &Daemon, name: &str) -> Result<(), EngineError> {
    let start =
        || daemon.ask(CHANGE, |client| async move { client.start_container(name, None).await });
    let mut answer = start().await;
    for _ in 0..CHOICES {
        match &answer {
            Err(failure) if failure.is_taken_port() => answer = start().await,
            _ => break,
        }
    }
    answer.map_err(|failure| {
        if failure.is(404) && failure.says("network") {
            failure.about(format_args!("network for the container {name}"))
        } else {
            failure.about(format_args!("container {name}"))
        }
    })
}

pub(super) async fn stop(daemon: &Daemon, name: &str, grace: Duration) -> Result<(), EngineError> {
    let seconds = i32::try_from(body::whole_seconds(grace)).unwrap_or(i32::MAX);
    let options = StopContainerOptionsBuilder::default().t(seconds).build();
    let limit = grace.saturating_add(LOOK);
    let answer = daemon
        .ask(limit, |client| async move { client.stop_container(name, Some(options)).await })
        .await;
    unless_gone(answer, name)
}

#[allow(clippy::disallowed_methods, reason = "another program is waited for")]
async fn pause() {
    tokio::time::sleep(PAUSE).await;
}

/// Kills and removes a container, with its anonymous volumes.
pub(super) async fn remove(daemon: &Daemon, name: &str) -> Result<(), EngineError> {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    for _ in 0..LOOKS {
        let options = options.clone();
        let answer = daemon
            .ask(CHANGE, |client| async move { client.remove_container(name, Some(options)).await })
            .await;
        match answer {
            Err(failure) if failure.is(409) && failure.says("in progress") => pause().await,
            answer => return unless_gone(answer, name),
        }
    }
    Err(EngineError::Unreachable(format!("the container {name} is being removed, and does not go")))
}

fn unless_gone(answer: Result<(), DaemonFailure>, name: &str) -> Result<(), EngineError> {
    match answer {
        Err(failure) if !failure.is(404) => Err(failure.about(format_args!("container {name}"))),
        _ => Ok(()),
    }
}
