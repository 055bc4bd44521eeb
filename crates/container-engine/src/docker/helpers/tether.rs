//! Containers that live no longer than whoever started them.
//!
//! The main program of such a container reads its input until the end. The input is a connection of this
//! process, so it ends with this process and with its machine, and the daemon then removes the container
//! and its unnamed volumes by itself. What goes wrong with that, the next look finds.

use super::{Helpers, in_use::Taken};
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
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt,
    runtime::Handle,
    time::{Instant, timeout, timeout_at},
};

/// How long the main program may take to say a line. It may have to make a file system.
const LINE: Duration = Duration::from_secs(60);
/// What passes: a device that another program has for a moment.
const PASSING: &str = "no loop device is free";

/// Removes containers with these labels that an earlier process of this node left.
pub(in crate::docker) async fn remove_others(
    helpers: &Helpers,
    labels: &Labels,
) -> Result<(), EngineError> {
    let Helpers { daemon, containers: in_use, .. } = helpers;
    let labels = labels.clone().into_iter().chain([helpers.of_node()]).collect();
    for container in objects::containers(daemon, &labels).await? {
        if !in_use.has(&container.name) {
            tracing::warn!(name = container.name, "the container of an earlier helper is removed");
            containers::remove(daemon, &container.name).await?;
        }
    }
    Ok(())
}

/// A running container. Dropping the value removes it.
pub(in crate::docker) struct Tethered {
    guard: Guard,
    /// Behind a lock only because its halves cannot be shared.
    connection: Mutex<AttachContainerResults>,
}

/// Removes a container when it is dropped, wherever that is.
struct Guard {
    daemon: Daemon,
    /// The container's name, and what it uses.
    holds: Option<(Taken, Option<Taken>)>,
    name: String,
    /// The value may be dropped outside of the runtime.
    runtime: Handle,
}

impl Guard {
    /// Removes the container, and then lets others have what it used. `None`: that was done.
    fn removal(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (holds, daemon) = (self.holds.take()?, self.daemon.clone());
        Some(async move {
            if let Err(e) = containers::remove(&daemon, holds.0.name()).await {
                tracing::warn!(error = %e, "the container of a helper was not removed yet");
            }
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(removal) = self.removal() {
            self.runtime.spawn(removal);
        }
    }
}

impl Tethered {
    /// Creates and starts a container, whose main program must end with its input. `disk` is given back
    /// when the container is gone.
    pub async fn start(
        helpers: &Helpers,
        image: &str,
        body: ContainerCreateBody,
        disk: Option<Taken>,
    ) -> Result<Tethered, EngineError> {
        let Helpers { daemon, containers: in_use, .. } = helpers;
        let name = format!("svc-helper-{}", exec::secret()?);
        // From here on it is removed, wherever this stops.
        let guard = Guard {
            daemon: daemon.clone(),
            holds: in_use.take(&name).map(|taken| (taken, disk)),
            name: name.clone(),
            runtime: Handle::current(),
        };
        let host = HostConfig { auto_remove: Some(true), ..body.host_config.unwrap_or_default() };
        let labels =
            body.labels.unwrap_or_default().into_iter().chain([helpers.of_node()]).collect();
        let body = ContainerCreateBody {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(true),
            stdin_once: Some(true),
            host_config: Some(host),
            labels: Some(labels),
            ..body
        };
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        daemon
            .ask(CHANGE, |client| async move { client.create_container(Some(options), body).await })
            .await
            .map_err(|failure| match failure.is(404) {
                true => failure.about_image(image),
                false => failure.about("container of a helper"),
            })?;
        let about = |failure: DaemonFailure| failure.about("container of a helper");
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
        Ok(Tethered { guard, connection: Mutex::new(connection) })
    }

    pub fn name(&self) -> &str {
        &self.guard.name
    }

    /// Sends the main program a line.
    pub async fn send(&mut self, line: &str) -> Result<(), EngineError> {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        let sent = async {
            connection.input.write_all(format!("{line}\n").as_bytes()).await?;
            connection.input.flush().await
        };
        match timeout(LINE, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(cut_off()),
        }
    }

    /// The next line of the main program. If it ends without one, the error is what it said instead.
    pub async fn line(&mut self) -> Result<String, EngineError> {
        let until = Instant::now() + LINE;
        let mut errors = String::new();
        loop {
            let Ok(part) = timeout_at(until, self.part()).await else {
                return Err(EngineError::Unreachable(format!(
                    "the container of a helper said nothing for {} s",
                    LINE.as_secs()
                )));
            };
            match part? {
                Some(LogOutput::StdOut { message }) => {
                    return Ok(String::from_utf8_lossy(&message).trim().to_owned());
                }
                Some(other) => errors.push_str(&String::from_utf8_lossy(&other.into_bytes())),
                None if !errors.is_empty() && !errors.contains(PASSING) => {
                    return Err(EngineError::Refused(errors.trim().to_owned()));
                }
                None => return Err(cut_off()),
            }
        }
    }

    /// What the main program says before the line `end`, which has to come within this time. What it
    /// complains about is left out.
    pub async fn text(&mut self, end: &str, within: Duration) -> Result<String, EngineError> {
        let said = timeout(within, async {
            let mut said = Vec::new();
            loop {
                match self.part().await? {
                    Some(LogOutput::StdOut { message }) => said.extend_from_slice(&message),
                    Some(_) => continue,
                    None => return Err(cut_off()),
                }
                if let Some(text) = before(end, &said) {
                    return Ok(text);
                }
            }
        });
        said.await.unwrap_or_else(|_| {
            Err(EngineError::Unreachable(format!(
                "the container of a helper was not done within {} s",
                within.as_secs()
            )))
        })
    }

    /// The next part of the main program's output. `None`: there is no more.
    async fn part(&mut self) -> Result<Option<LogOutput>, EngineError> {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        connection.output.next().await.transpose().map_err(|_| cut_off())
    }

    /// Removes the container, and waits until it is gone.
    pub async fn end(mut self) {
        if let Some(removal) = self.guard.removal() {
            removal.await;
        }
    }
}

/// The lines before the line `end`, if that is the last one.
fn before(end: &str, said: &[u8]) -> Option<String> {
    let lines = said.strip_suffix(b"\n")?.strip_suffix(end.as_bytes())?;
    let is_line = lines.is_empty() || lines.ends_with(b"\n");
    is_line.then(|| String::from_utf8_lossy(lines).into_owned())
}

fn cut_off() -> EngineError {
    EngineError::Unreachable("the container of a helper was cut off".to_owned())
}

#[cfg(test)]
mod tests {
    use super::before;

    #[test]
    fn a_text_is_whole_with_its_last_line() {
        assert_eq!(before("end", b"1 a\n2 b\nend\n").as_deref(), Some("1 a\n2 b\n"));
        assert_eq!(before("end", b"end\n").as_deref(), Some(""));
        assert_eq!(before("end", b"1 a\nend"), None);
        assert_eq!(before("end", b"1 a\nno end\n"), None);
        assert_eq!(before("end", b"end\n1 a\n"), None);
        assert_eq!(before("end", b""), None);
    }
}
