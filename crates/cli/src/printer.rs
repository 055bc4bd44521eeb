//! Prints everything. Replies go to standard output. Notes, progress, and failures without `--json`
//! go to standard error.

use crate::failure::Failure;
use console::{Alignment, Term, measure_text_width, pad_str};
use contract::{Timestamp, apps::Platform};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::{
    fmt::{self, Display},
    io::{self, Write},
    time::Duration,
};

/// Prints for a person or for a program.
pub struct Printer {
    json: bool,
    quiet: bool,
}

impl Printer {
    /// `json` prints for programs; `quiet` omits notes and progress.
    pub fn new(json: bool, quiet: bool) -> Self {
        Printer { json, quiet }
    }

    /// Prints the reply of a command: as JSON for a program, as the text of `human` for a person.
    pub fn reply<T: Serialize, H: Display>(
        &self,
        reply: &T,
        human: impl FnOnce(&T) -> H,
    ) -> Result<(), Failure> {
        let text = if self.json {
            serde_json::to_string(reply).map_err(|error| {
                Failure::local(format!("the reply is not JSON: {error}"), "run it without --json")
            })?
        } else {
            human(reply).to_string()
        };
        write_out(&text)
    }

    /// Prints text that is the same for people and programs.
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        write_out(text)
    }

    /// Prints a remark that is not part of the reply.
    pub fn note(&self, text: impl Display) {
        if !self.quiet {
            write_error(&text);
        }
    }

    /// Prints why a command failed.
    pub fn failure(&self, failure: &Failure) {
        match failure {
            // The reply already told a program.
            Failure::Told { .. } if self.json => {}
            failure if self.json => {
                let body = serde_json::to_string(&failure.body()).unwrap_or_default();
                // A failure to write cannot be reported.
                let _ = write_out(&body);
            }
            failure => write_error(&format_args!("error: {failure}\nhint: {}", failure.hint())),
        }
    }

    /// A progress bar up to `total` bytes, visible only on a terminal.
    pub fn progress(&self, what: &'static str, total: u64) -> ProgressBar {
        let watched = !self.quiet && console::user_attended_stderr();
        let target =
            if watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let template = "{msg:9} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let bar = bar.with_style(style).with_message(what);
        if watched {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        bar
    }

    /// Asks a person at a terminal.
    pub fn ask(&self, question: &str) -> Result<String, Failure> {
        prompt(question, Term::read_line)
    }

    /// Asks a person at a terminal for a secret, without echo.
    pub fn ask_secret(&self, question: &str) -> Result<String, Failure> {
        prompt(question, Term::read_secure_line)
    }
}

fn prompt(question: &str, read: fn(&Term) -> io::Result<String>) -> Result<String, Failure> {
    let term = Term::stderr();
    let hint = "give --email, and the password with --password-stdin";
    if !term.is_term() {
        return Err(Failure::usage(format!("there is no terminal to ask for: {question}"), hint));
    }
    let answer = term.write_str(&format!("{question}: ")).and_then(|()| read(&term));
    answer.map_err(|error| Failure::usage(format!("{question}: {error}"), hint))
}

/// Prints a text. A closed pipe is not a failure: `head` closes it after the first lines.
fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::local(format!("standard output: {error}"), "check where the output goes"))
        }
        _ => Ok(()),
    }
}

fn write_error(text: &dyn Display) {
    // A failure to write cannot be reported.
    let _ = writeln!(io::stderr(), "{text}");
}

/// A list for people: one line for each item, in columns.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        Table { rows: vec![headings.map(str::to_owned).to_vec()] }
    }

    pub fn row<const N: usize>(mut self, cells: [String; N]) -> Self {
        self.rows.push(cells.map(|cell| on_one_line(&cell)).to_vec());
        self
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_columns(f, &self.rows)
    }
}

/// One object for people: a line for each field.
pub struct Fields(Vec<Vec<String>>);

impl Fields {
    pub fn new() -> Self {
        Fields(Vec::new())
    }

    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        self.0.push(vec![name.to_owned(), on_one_line(&value.to_string())]);
        self
    }

    /// Adds a field, if it has a value.
    pub fn with_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_columns(f, &self.0)
    }
}

fn write_columns(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = measure_text_width(cell).max(*width);
        }
    }
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| pad_str(cell, *width, Alignment::Left, None));
        writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Replaces control characters, so that foreign text can neither break a table nor control a
/// terminal.
fn on_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The name of a value on the wire, such as `ios` or `partiallyPublished`.
pub fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// An optional value as a cell.
pub fn cell<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A time to the minute, in UTC.
pub fn moment(at: Timestamp) -> String {
    at.to_string().chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

pub fn platforms(platforms: &[Platform]) -> String {
    platforms.iter().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_width_of_characters() {
        let table = Table::new(["ID", "NAME", "X"])
            .row(["1".into(), "日本".into(), "a".into()])
            .row(["22".into(), "b".into(), "c".into()]);
        assert_eq!(table.to_string(), "ID  NAME  X\n1   日本  a\n22  b     c\n");
    }

    #[test]
    fn text_of_others_cannot_steer_the_terminal() {
        let fields = Fields::new().with("name", "a\u{1b}[31m\nb");
        assert_eq!(fields.to_string(), "name  a [31m b\n");
    }

    #[test]
    fn words_and_moments_are_those_of_the_wire() {
        assert_eq!(word(&contract::releases::ReleaseState::RolledBack), "rolledBack");
        assert_eq!(moment(Timestamp::from_millis(0)), "1970-01-01 00:00");
    }
}
