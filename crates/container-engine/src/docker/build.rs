//! Builds with the builder that is part of every daemon, beside all containers: only what the service itself
//! wrote.

use super::{
    body::map,
    daemon::{BUILD_IDLE, Daemon},
    errors::DaemonFailure,
    images,
    lines::Lines,
    produce::produce,
};
use crate::{BuildEvent, BuildSpec, Built, EngineError};
use bollard::{
    BollardRequest, body_try_stream, models::BuildInfo, query_parameters::BuildImageOptionsBuilder,
};
use bytes::Bytes;
use futures_core::stream::BoxStream;
use std::io;
use tokio::sync::mpsc::Sender;

type Sends = Sender<Result<BuildEvent, EngineError>>;

/// What the steps of a build reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// What containers usually reach.
    Usual,
    /// Nothing. The base image may bring steps of its own.
    None,
}

/// Builds an image. Dropping the stream closes the connection, and the daemon then ends the build.
pub(super) async fn build(
    daemon: &Daemon,
    spec: BuildSpec,
    network: Network,
    context: BoxStream<'static, io::Result<Bytes>>,
) -> Result<BoxStream<'static, Result<BuildEvent, EngineError>>, EngineError> {
    let client = daemon.client().await.map_err(|failure| failure.about("builder"))?;
    let daemon = daemon.clone();
    Ok(produce(|sends| async move {
        let last = match follow(&daemon, client, &spec, network, context, &sends).await {
            Ok(image) => Ok(BuildEvent::Built(Built { image })),
            Err(error) => Err(error),
        };
        let _ = sends.send(last).await;
    }))
}

/// Passes on the output of a build, and returns the id of the image.
async fn follow(
    daemon: &Daemon,
    client: bollard::Docker,
    spec: &BuildSpec,
    network: Network,
    context: BoxStream<'static, io::Result<Bytes>>,
    sends: &Sends,
) -> Result<String, EngineError> {
    let options = BuildImageOptionsBuilder::default()
        .dockerfile(&spec.dockerfile)
        .t(&spec.tag)
        .buildargs(&map(&spec.args))
        .labels(&map(&spec.labels))
        .rm(true)
        .forcerm(true);
    let options = match network {
        Network::Usual => options,
        Network::None => options.networkmode("none"),
    };
    let options = options.build();
    let memory = spec.memory;
    let client = client.with_request_modifier(move |request| with_memory(request, memory));
    let mut parts = client.build_image(options, None, Some(body_try_stream(context)));
    let mut said = Said::default();
    while let Some(part) = daemon.next(BUILD_IDLE, &mut parts).await {
        let part = part.map_err(DaemonFailure::about_build)?;
        for line in said.take(part) {
            // The receiver is gone: the task is about to be aborted.
            let _ = sends.send(Ok(BuildEvent::Line(line))).await;
        }
    }
    if let Some(line) = said.lines.rest() {
        let _ = sends.send(Ok(BuildEvent::Line(line))).await;
    }
    // A stream that was cut off ends like a complete one, and an older image may have the name.
    let Some(made) = said.image else {
        let cut_off = DaemonFailure::Unreachable("the build was cut off".to_owned());
        daemon.heed(&cut_off);
        return Err(cut_off.about("builder"));
    };
    match images::find(daemon, &spec.tag).await? {
        Some(image) if image.id == made => Ok(made),
        _ => Err(EngineError::Conflict(format!(
            "the name {} was given to another image than was built for it",
            spec.tag
        ))),
    }
}

/// Bollard's own parameter cannot exceed two gibibytes.
fn with_memory(mut request: BollardRequest, memory: u64) -> BollardRequest {
    let limited = format!("{}&memory={memory}&memswap={memory}", request.uri());
    if let Ok(uri) = limited.parse() {
        *request.uri_mut() = uri;
    }
    request
}

/// What the daemon's builder says.
#[derive(Default)]
struct Said {
    lines: Lines,
    image: Option<String>,
}

impl Said {
    fn take(&mut self, part: BuildInfo) -> Vec<String> {
        if let Some(id) = part.aux.and_then(|aux| aux.id) {
            self.image = Some(id);
        }
        let stream = part.stream.unwrap_or_default();
        let mut lines = self.lines.take(stream.as_bytes());
        // A pull repeats its status with a progress bar.
        if let Some(status) = part.status.filter(|_| part.progress_detail.is_none()) {
            lines.push(part.id.map_or(status.clone(), |id| format!("{id}: {status}")));
        }
        lines.retain(|line| !line.is_empty());
        lines
    }
}
