//! What a program in the container of a build said.

use super::Sends;
use crate::{
    BuildEvent, EngineError, Output,
    docker::lines::{LONGEST, Lines},
};
use futures_core::stream::BoxStream;
use futures_util::StreamExt;

/// Lines that are remembered.
const REMEMBERED: usize = 20;

/// A program that has ended.
#[derive(Default)]
pub(super) struct Ended {
    /// Its exit code.
    pub code: i64,
    /// The last lines of its output.
    pub printed: Vec<String>,
    /// The last lines of its output and of its errors.
    said: Vec<String>,
}

impl Ended {
    /// Reads the output of a program until it ends. The lines go to `sends`.
    pub async fn after(
        mut output: BoxStream<'static, Result<Output, EngineError>>,
        sends: Option<&Sends>,
    ) -> Result<Ended, EngineError> {
        let mut ended = Ended::default();
        let (mut out, mut err) = (Lines::default(), Lines::default());
        while let Some(part) = output.next().await {
            let (printed, complained) = match part? {
                Output::Out(bytes) => (out.take(&bytes), Vec::new()),
                Output::Err(bytes) => (Vec::new(), err.take(&bytes)),
                Output::Exit(code) => {
                    ended.code = code;
                    (out.rest().into_iter().collect(), err.rest().into_iter().collect())
                }
            };
            printed.iter().for_each(|line| remember(&mut ended.printed, line));
            for line in printed.into_iter().chain(complained) {
                remember(&mut ended.said, &line);
                if let Some(sends) = sends {
                    // The receiver is gone: the task is about to be aborted.
                    let _ = sends.send(Ok(BuildEvent::Line(line))).await;
                }
            }
        }
        Ok(ended)
    }

    /// Whether one of the last lines has these words.
    pub fn says(&self, words: &str) -> bool {
        self.said.iter().any(|line| line.contains(words))
    }

    /// Its last error, or else its last line.
    pub fn last_words(&self) -> String {
        let said = self.said.iter().rev();
        let error = said.clone().find_map(|line| line.strip_prefix("Error: "));
        let mut words = error.or(said.map(String::as_str).next()).unwrap_or_default().to_owned();
        words.truncate(words.floor_char_boundary(LONGEST / 8));
        words
    }
}

fn remember(lines: &mut Vec<String>, line: &str) {
    if lines.len() == REMEMBERED {
        lines.remove(0);
    }
    lines.push(line.to_owned());
}
