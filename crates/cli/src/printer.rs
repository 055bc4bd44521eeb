//! Prints everything. Replies go to standard output. Notes, progress, and failures without `--json`
//! go to standard error.

use crate::failure::Failure;
use console::{Alignment, Term, measure_text_width, pad_str};
use contract::{Timestamp, apps::Platform};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use std::{
    fmt::{self, Display},
    io::{self, Write},
    time::Duration,
};

/// Prints for a person or for a program.
pub struct Printer {
    reply: Form,
    quiet: bool,
}

/// The form of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// For a person.
    Text,
    Json,
    /// Only this field.
    Field(String),
}

impl Printer {
    /// `quiet` omits notes and progress.
    pub fn new(reply: Form, quiet: bool) -> Self {
        Printer { reply, quiet }
    }

    /// Prints the reply of a command. `human` is its text for a person.
    pub fn reply<T: Serialize, H: Display>(
        &self,
        reply: &T,
        human: impl FnOnce(&T) -> H,
    ) -> Result<(), Failure> {
        let unfit = |error| {
            Failure::local(format!("the reply is not JSON: {error}"), "run it without --json")
        };
        match &self.reply {
            Form::Text => write_out(&human(reply).to_string()),
            Form::Json => write_out(&serde_json::to_string(reply).map_err(unfit)?),
            Form::Field(field) => {
                write_out(&values(&serde_json::to_value(reply).map_err(unfit)?, field)?)
            }
        }
    }

    /// Prints text that is the same for people and programs.
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        write_out(text)
    }

    /// Whether a person reads the replies.
    pub fn is_for_people(&self) -> bool {
        self.reply == Form::Text
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
            Failure::Told { .. } if self.reply == Form::Json => {}
            failure if self.reply == Form::Json => {
                let body = serde_json::to_string(&failure.body()).unwrap_or_default();
                // A failure to write cannot be reported.
                let _ = write_out(&body);
            }
            failure => match failure.hint() {
                hint if hint.is_empty() => write_error(&format_args!("error: {failure}")),
                hint => write_error(&format_args!("error: {failure}\nhint: {hint}")),
            },
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

/// The values of a field, each on its line. The field may be inside of others, as in `release.id`.
/// Of a list, the field of each item counts.
fn values(reply: &Value, field: &str) -> Result<String, Failure> {
    let items = reply.get("items").and_then(Value::as_array);
    let pointer = format!("/{}", field.replace('.', "/"));
    let value = |item: &Value| match item.pointer(&pointer) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) => Ok(String::new()),
        Some(value) => Ok(value.to_string()),
        None => Err(Failure::usage(
            format!("the reply has no field {field}"),
            format!("its fields are {}", names(item)),
        )),
    };
    match items {
        Some(items) => Ok(items.iter().map(value).collect::<Result<Vec<_>, _>>()?.join("\n")),
        None => value(reply),
    }
}

fn names(value: &Value) -> String {
    let names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    names.collect::<Vec<_>>().join(", ")
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

impl Table {
    /// Adds a row whose cells have colours, and come from [`on_one_line`] where others wrote them.
    pub fn coloured<const N: usize>(mut self, cells: [String; N]) -> Self {
        self.rows.push(cells.to_vec());
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

    /// These fields, and then others.
    pub fn and(mut self, others: Fields) -> Self {
        self.0.extend(others.0);
        self
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
pub fn on_one_line(text: &str) -> String {
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
    fn a_field_is_found_in_a_reply_and_in_each_item_of_a_list() {
        let release = serde_json::json!({"id": "rel_1", "release": {"id": "x"}, "notes": null});
        assert_eq!(values(&release, "id").unwrap(), "rel_1");
        assert_eq!(values(&release, "release.id").unwrap(), "x");
        assert_eq!(values(&release, "notes").unwrap(), "");
        let list = serde_json::json!({"items": [{"id": "a"}, {"id": "b"}], "nextCursor": null});
        assert_eq!(values(&list, "id").unwrap(), "a\nb");
        let failure = values(&release, "name").unwrap_err();
        assert!(failure.hint().contains("id, notes, release"), "{}", failure.hint());
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
