//! Containers that live no longer than whoever started them.
//!
//! The main program of such a container reads its input until the end. The input is a connection of this
//! process, so it ends with this process and with its machine, and the daemon then removes the container
//! and its unnamed volumes by itself. What goes wrong with that, the next look finds.

use super::caches::Taken;
use crate::{
    EngineError, Labels,
    docker::{
        containers,
        daemon::{CHANGE, Daemon, LOOK},
        errors::DaemonFailure,
        exec, objects,
    },
};
use bollard::{
    container::{AttachContainerResults, LogOutput},
    models::{ContainerCreateBody, HostConfig},
    query_parameters::{AttachContainerOptionsBuilder, CreateContainerOptionsBuilder},
};
use futures_util::StreamExt;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    time::{Instant, timeout_at},
};

/// How long the main program may take to say its first line. It may have to make a file system.
const FIRST_LINE: Duration = Duration::from_secs(60);
/// What passes: a device that another program has for a moment.
const PASSING: &str = "no loop device is free";

/// The names of the containers that this process has.
#[derive(Clone, Default)]
pub(super) struct Tethers(Arc<Mutex<HashSet<String>>>);

impl Tethers {
    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes containers with these labels that an earlier process left.
    pub async fn remove_others(&self, daemon: &Daemon, labels: &Labels) -> Result<(), EngineError> {
        for name in objects::containers(daemon, labels).await? {
            if !self.names().contains(&name) {
                tracing::warn!(name, "the container of an earlier build is removed");
                containers::remove(daemon, &name).await?;
            }
        }
        Ok(())
    }
}

/// A running container. Dropping the value removes it.
pub(super) struct Tethered {
    /// `None` once somebody removes the container.
    own: Option<Own>,
    /// Behind a lock only because its halves cannot be shared.
    connection: Mutex<Option<AttachContainerResults>>,
}

/// What is given back when the container is gone.
struct Own {
    daemon: Daemon,
    name: String,
    tethers: Tethers,
    /// The disk that the container uses.
    _cache: Option<Taken>,
    /// The value may be dropped outside of the runtime.
    runtime: Handle,
}

impl Own {
    async fn remove(self) {
        if let Err(e) = containers::remove(&self.daemon, &self.name).await {
            tracing::warn!(error = %e, "the container of a build was not removed yet");
        }
        self.tethers.names().remove(&self.name);
    }
}

impl Drop for Tethered {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            let runtime = own.runtime.clone();
            runtime.spawn(own.remove());
        }
    }
}

impl Tethered {
    /// Creates and starts a container, whose main program must end with its input.
    pub async fn start(
        daemon: &Daemon,
        tethers: &Tethers,
        image: &str,
        body: ContainerCreateBody,
        cache: Option<Taken>,
    ) -> Result<Tethered, EngineError> {
        let name = format!("svc-build-{}", exec::secret()?);
        tethers.names().insert(name.clone());
        let own = Own {
            daemon: daemon.clone(),
            name: name.clone(),
            tethers: tethers.clone(),
            _cache: cache,
            runtime: Handle::current(),
        };
        // From here on it is removed, wherever this stops.
        let tethered = Tethered { own: Some(own), connection: Mutex::default() };
        let host = HostConfig { auto_remove: Some(true), ..body.host_config.unwrap_or_default() };
        let body = ContainerCreateBody {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(true),
            stdin_once: Some(true),
            host_config: Some(host),
            ..body
        };
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        daemon
            .ask(CHANGE, |client| async move { client.create_container(Some(options), body).await })
            .await
            .map_err(|failure| match failure.is(404) {
                true => failure.about_image(image),
                false => failure.about("container of a build"),
            })?;
        let about = |failure: DaemonFailure| failure.about("container of a build");
        let name = name.as_str();
        let options = AttachContainerOptionsBuilder::default();
        let options = options.stream(true).stdin(true).stdout(true).stderr(true).build();
        let attached = daemon
            .ask(LOOK, |client| async move { client.attach_container(name, Some(options)).await });
        let connection = attached.await.map_err(about)?;
        daemon
            .ask(CHANGE, |client| async move { client.start_container(name, None).await })
            .await
            .map_err(about)?;
        *tethered.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        Ok(tethered)
    }

    pub fn name(&self) -> &str {
        self.own.as_ref().map_or("", |own| &own.name)
    }

    /// The first line of the main program. If it ends without one, the error is what it said instead.
    pub async fn line(&mut self) -> Result<String, EngineError> {
        let until = Instant::now() + FIRST_LINE;
        let mut errors = String::new();
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        let cut_off =
            || EngineError::Unreachable("the container of a build was cut off".to_owned());
        let output = &mut connection.as_mut().ok_or_else(cut_off)?.output;
        loop {
            let Ok(part) = timeout_at(until, output.next()).await else {
                return Err(EngineError::Unreachable(format!(
                    "the container of a build said nothing for {} s",
                    FIRST_LINE.as_secs()
                )));
            };
            match part {
                Some(Ok(LogOutput::StdOut { message })) => {
                    return Ok(String::from_utf8_lossy(&message).trim().to_owned());
                }
                Some(Ok(other)) => errors.push_str(&String::from_utf8_lossy(&other.into_bytes())),
                None if !errors.is_empty() && !errors.contains(PASSING) => {
                    let why = errors.trim().to_owned();
                    return Err(EngineError::Refused(format!("builds cannot be isolated: {why}")));
                }
                Some(Err(_)) | None => return Err(cut_off()),
            }
        }
    }

    /// Removes the container, and waits until it is gone.
    pub async fn end(mut self) {
        if let Some(own) = self.own.take() {
            own.remove().await;
        }
    }
}
