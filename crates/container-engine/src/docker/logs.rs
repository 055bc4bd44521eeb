//! The output of containers.

use super::{
    daemon::{Daemon, LOOK},
    errors::DaemonFailure,
    view,
};
use crate::{EngineError, LogLine, LogQuery, Stream};
use bollard::{container::LogOutput, query_parameters::LogsOptionsBuilder};
use contract::Timestamp;
use std::collections::VecDeque;
use tokio::time::timeout;

/// Bytes of text in one answer. The oldest lines are left out.
const LONGEST: usize = 1024 * 1024;
/// The limit of reading everything that a container may have logged.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

pub(super) async fn logs(
    daemon: &Daemon,
    name: &str,
    query: LogQuery,
) -> Result<Vec<LogLine>, EngineError> {
    if query.tail == 0 {
        return Ok(Vec::new());
    }
    let mut tail = u64::from(query.tail);
    loop {
        let (seen, lines) = timeout(LIMIT, read(daemon, name, query, tail))
            .await
            .unwrap_or(Err(DaemonFailure::late(LIMIT)))
            .map_err(|failure| failure.about(format_args!("container {name}")))?;
        // The daemon counts the lines of both streams: there may be more of one further back.
        let is_all = query.stream.is_none() || seen < tail;
        if is_all || lines.len() as u64 >= u64::from(query.tail) {
            return Ok(lines);
        }
        tail = tail.saturating_mul(16);
    }
}

/// Reads the last `tail` lines. Returns how many there were, and those that the query wants.
async fn read(
    daemon: &Daemon,
    name: &str,
    query: LogQuery,
    tail: u64,
) -> Result<(u64, Vec<LogLine>), DaemonFailure> {
    let since = query.since.map_or(0, Timestamp::as_seconds);
    let options = LogsOptionsBuilder::default()
        .stdout(true)
        .stderr(true)
        .timestamps(true)
        .since(i32::try_from(since).unwrap_or(i32::MAX))
        .tail(&tail.to_string())
        .build();
    let client = daemon.client().await?;
    let mut parts = client.logs(name, Some(options));
    let mut lines = Lines::new(query);
    while let Some(part) = daemon.next(LOOK, &mut parts).await {
        match part? {
            LogOutput::StdOut { message } => lines.add(Stream::Out, &message),
            LogOutput::StdErr { message } => lines.add(Stream::Err, &message),
            LogOutput::Console { .. } | LogOutput::StdIn { .. } => {
                return Err(DaemonFailure::Unreachable("the log was cut off".to_owned()));
            }
        }
    }
    lines.end();
    let mut kept = Vec::from(lines.kept);
    // The daemon collects the two streams separately, so they may overtake each other.
    kept.sort_by_key(|line| line.at);
    Ok((lines.seen, kept))
}

struct Lines {
    query: LogQuery,
    seen: u64,
    kept: VecDeque<LogLine>,
    length: usize,
    /// Per stream: the beginning of a line whose end has not come. The daemon cuts at 16 KiB.
    begun: [Option<LogLine>; 2],
}

impl Lines {
    fn new(query: LogQuery) -> Lines {
        Lines { query, seen: 0, kept: VecDeque::new(), length: 0, begun: [None, None] }
    }

    /// Adds a timestamp, a space, and a line or a piece of a line.
    fn add(&mut self, stream: Stream, message: &[u8]) {
        let message = String::from_utf8_lossy(message);
        let Some((at, text)) = message.split_once(' ') else { return };
        let Some(at) = view::moment(at) else { return };
        let [out, err] = &mut self.begun;
        let begun = match stream {
            Stream::Out => out,
            Stream::Err => err,
        };
        let mut line = begun.take().unwrap_or(LogLine { at, stream, text: String::new() });
        let is_whole = text.ends_with('\n');
        if line.text.len() < LONGEST {
            line.text.push_str(text.strip_suffix('\n').unwrap_or(text));
        }
        if !is_whole {
            *begun = Some(line);
            return;
        }
        self.keep(line);
    }

    /// The output may end in the middle of a line.
    fn end(&mut self) {
        for line in std::mem::take(&mut self.begun).into_iter().flatten() {
            self.keep(line);
        }
    }

    fn keep(&mut self, line: LogLine) {
        self.seen += 1;
        let is_of_stream = self.query.stream.is_none_or(|stream| stream == line.stream);
        // The daemon is asked in whole seconds.
        let is_late = self.query.since.is_none_or(|since| line.at >= since);
        if !is_of_stream || !is_late {
            return;
        }
        self.length += line.text.len();
        self.kept.push_back(line);
        while self.length > LONGEST || self.kept.len() as u64 > u64::from(self.query.tail) {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.length -= oldest.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: LogQuery = LogQuery { tail: 1000, since: None, stream: None };

    fn texts(lines: Lines) -> Vec<String> {
        lines.kept.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_long_line_comes_in_pieces_and_streams_do_not_mix() {
        let mut lines = Lines::new(QUERY);
        lines.add(Stream::Out, b"2026-01-31T12:00:00.1Z one and ");
        lines.add(Stream::Err, b"2026-01-31T12:00:00.2Z aside\n");
        lines.add(Stream::Out, b"2026-01-31T12:00:00.3Z the same\n");
        assert_eq!(lines.kept.back().unwrap().at.to_string(), "2026-01-31T12:00:00.100Z");
        lines.add(Stream::Err, b"2026-01-31T12:00:00.4Z half a");
        lines.end();
        assert_eq!(texts(lines), ["aside", "one and the same", "half a"]);
    }

    #[test]
    fn the_last_lines_are_kept_and_a_mebibyte_of_text() {
        let mut lines = Lines::new(LogQuery { tail: 2, ..QUERY });
        for text in ["a", "b", "c"] {
            lines.add(Stream::Out, format!("2026-01-31T12:00:00Z {text}\n").as_bytes());
        }
        assert_eq!(lines.seen, 3);
        assert_eq!(texts(lines), ["b", "c"]);

        let mut lines = Lines::new(QUERY);
        let long = "x".repeat(400_000);
        for _ in 0..5 {
            lines.add(Stream::Out, format!("2026-01-31T12:00:00Z {long}\n").as_bytes());
        }
        assert_eq!(texts(lines).len(), 2);
    }

    #[test]
    fn what_is_older_or_of_the_other_stream_is_left_out() {
        let since = view::moment("2026-01-31T12:00:00.5Z");
        let mut lines = Lines::new(LogQuery { since, stream: Some(Stream::Err), ..QUERY });
        lines.add(Stream::Err, b"2026-01-31T12:00:00.4Z old\n");
        lines.add(Stream::Out, b"2026-01-31T12:00:00.6Z other\n");
        lines.add(Stream::Err, b"2026-01-31T12:00:00.6Z this\n");
        lines.add(Stream::Err, b"2026-01-31T12:00:00.7Z \xff\n");
        assert_eq!(texts(lines), ["this", "\u{fffd}"]);
    }
}
