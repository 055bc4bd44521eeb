//! Builds with the builder that is part of every daemon.

use super::{
    body::map,
    daemon::{BUILD_IDLE, Daemon, LOOK},
    errors::DaemonFailure,
    images,
    produce::produce,
};
use crate::{BuildEvent, BuildSpec, Built, EngineError};
use anstream::adapter::strip_str;
use bollard::{
    BollardRequest, body_try_stream, models::BuildInfo, query_parameters::BuildImageOptionsBuilder,
};
use bytes::Bytes;
use futures_core::stream::BoxStream;
use std::io;
use tokio::sync::mpsc::Sender;

/// Bytes of a line that are passed on.
const LONGEST: usize = 16 << 10;

type Sends = Sender<Result<BuildEvent, EngineError>>;

/// Builds an image. Dropping the stream closes the connection, and the daemon then ends the build.
pub(super) async fn build(
    daemon: &Daemon,
    spec: BuildSpec,
    context: BoxStream<'static, io::Result<Bytes>>,
) -> Result<BoxStream<'static, Result<BuildEvent, EngineError>>, EngineError> {
    // Reports an unreachable daemon at once.
    daemon
        .ask(LOOK, |client| async move { client.ping().await })
        .await
        .map_err(|failure| failure.about("builder"))?;
    let client = daemon.client().await.map_err(|failure| failure.about("builder"))?;
    let daemon = daemon.clone();
    Ok(produce(|sends| async move {
        let last = match follow(&daemon, client, &spec, context, &sends).await {
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
    let options = if spec.pull { options.pull("true") } else { options }.build();
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
    if let Some(line) = said.rest() {
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

/// Assembles the output of a build into lines. A line longer than [`LONGEST`] is cut off at once: a
/// step may print a line that never ends.
#[derive(Default)]
struct Said {
    begun: String,
    /// The line was cut off, and goes on.
    is_cut: bool,
    image: Option<String>,
}

impl Said {
    fn take(&mut self, part: BuildInfo) -> Vec<String> {
        if let Some(id) = part.aux.and_then(|aux| aux.id) {
            self.image = Some(id);
        }
        let mut lines = Vec::new();
        for piece in part.stream.iter().flat_map(|text| text.split_inclusive('\n')) {
            let (text, is_end) = piece.strip_suffix('\n').map_or((piece, false), |t| (t, true));
            lines.extend(self.add(text));
            if is_end {
                lines.extend(self.rest());
                self.is_cut = false;
            }
        }
        // A pull repeats its status with a progress bar.
        if let Some(status) = part.status.filter(|_| part.progress_detail.is_none()) {
            lines.push(part.id.map_or(status.clone(), |id| format!("{id}: {status}")));
        }
        lines.retain(|line| !line.is_empty());
        lines
    }

    /// Adds a piece of a line. Returns the line if it is cut off here.
    fn add(&mut self, text: &str) -> Option<String> {
        if self.is_cut {
            return None;
        }
        let room = LONGEST - self.begun.len();
        self.begun.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        self.is_cut = text.len() > room;
        if self.is_cut { self.rest() } else { None }
    }

    fn rest(&mut self) -> Option<String> {
        let begun = std::mem::take(&mut self.begun);
        Some(plain(begun.trim_end_matches('\r'))).filter(|line| !line.is_empty())
    }
}

/// Removes colours, cursor movements and links: a log is plain text.
fn plain(line: &str) -> String {
    strip_str(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_lines() {
        let mut said = Said::default();
        let piece = |text: &str| BuildInfo { stream: Some(text.to_owned()), ..<_>::default() };
        assert!(said.take(piece("Step 1/2 : FROM x")).is_empty());
        assert_eq!(said.take(piece("\n ---> 1\r\n\nla")), ["Step 1/2 : FROM x", " ---> 1"]);
        assert_eq!(said.rest().as_deref(), Some("la"));
        assert_eq!(said.rest(), None);
        assert_eq!(said.take(piece("\u{1b}[91mwarning\n\u{1b}[0m3\n")), ["warning", "3"]);
        let link = "\u{1b}[2K\u{1b}[1Gsee \u{1b}]8;;https://example.com\u{7}notes\u{1b}]8;;\u{7}\n";
        assert_eq!(said.take(piece(link)), ["see notes"]);
    }

    #[test]
    fn a_line_that_never_ends_is_cut_off_and_takes_no_memory() {
        let mut said = Said::default();
        let piece = |text: &str| BuildInfo { stream: Some(text.to_owned()), ..<_>::default() };
        // Characters of three bytes, which do not divide the limit.
        let endless = "\u{20ac}".repeat(10_000);
        let mut lines = Vec::new();
        for _ in 0..1_000 {
            lines.extend(said.take(piece(&endless)));
            assert!(said.begun.len() <= LONGEST, "{}", said.begun.len());
        }
        assert_eq!(lines, ["\u{20ac}".repeat(LONGEST / 3)]);
        assert_eq!(said.take(piece("the end of it\nthe next\n")), ["the next"]);
        let whole = "x".repeat(LONGEST);
        assert_eq!(said.take(piece(&format!("{whole}\n"))), [whole]);
    }
}
