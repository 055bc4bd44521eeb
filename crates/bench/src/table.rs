//! The report: rows of figures, as Markdown.

use serde::{Deserialize, Serialize};

/// One figure beside its yardstick.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    pub what: String,
    /// The figure of the service, with its unit.
    pub ours: String,
    /// The figure and the name of the yardstick.
    pub yardstick: String,
    /// The service's figure divided by the yardstick's.
    pub ratio: f64,
    /// `None` if the figure has no aim.
    pub aim: Option<Aim>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Aim {
    /// The aim, such as `at least 0.8`.
    pub text: String,
    pub met: bool,
    /// What limits the figure, if the aim is missed.
    pub binds: String,
}

impl Row {
    /// A figure without an aim.
    pub fn new(what: &str, (ours, ours_text): (f64, String), yardstick: (f64, String)) -> Row {
        let ratio = ours / yardstick.0;
        Row { what: what.into(), ours: ours_text, yardstick: yardstick.1, ratio, aim: None }
    }

    /// Sets an aim for the ratio.
    pub fn at_least(self, ratio: f64, binds: &str) -> Row {
        let met = self.ratio >= ratio;
        self.aim(format!("ratio at least {ratio}"), met, binds)
    }

    /// Sets an aim for the ratio of what is better if it is less, such as time and memory.
    pub fn at_most(self, ratio: f64, binds: &str) -> Row {
        let met = self.ratio <= ratio;
        self.aim(format!("ratio at most {ratio}"), met, binds)
    }

    /// Sets another aim.
    pub fn aim(mut self, text: String, met: bool, binds: &str) -> Row {
        self.aim = Some(Aim { text, met, binds: binds.into() });
        self
    }
}

/// A table of rows, followed by the limits of the missed aims.
pub fn rows(rows: &[Row]) -> String {
    let mut text = String::from(
        "| What | Service | Yardstick | Ratio | Aim | Met |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (aim, met) = match &row.aim {
            Some(aim) => (aim.text.as_str(), if aim.met { "yes" } else { "**no**" }),
            None => ("", ""),
        };
        let Row { what, ours, yardstick, ratio, .. } = row;
        text += &format!("| {what} | {ours} | {yardstick} | {ratio:.2} | {aim} | {met} |\n");
    }
    let missed = rows.iter().filter_map(|row| Some((row, row.aim.as_ref()?)));
    for (row, aim) in missed.filter(|(_, aim)| !aim.met) {
        text += &format!("\n{}: {}\n", row.what, aim.binds);
    }
    text
}

/// The content of `BENCHMARKS.md`. Each method is the name of a figure and its description; `missing` are
/// the figures that could not be measured.
pub fn report(machine: &str, all: &[Row], methods: &[(&str, &str)], missing: &[&str]) -> String {
    let methods: String = methods
        .iter()
        .map(|(figure, method)| {
            format!("- `cargo run --profile dist -p bench {figure}`: {method}\n")
        })
        .collect();
    let missing = match missing {
        [] => String::new(),
        missing => format!("\nNot measured in this run: {}.\n", missing.join(", ")),
    };
    format!(
        "# Benchmarks\n\n\
         Written by `make bench`. Each figure stands beside a yardstick that was measured in the \
         same run on the same machine, because only the ratio says something about the service.\n\n\
         {machine}\n{}\n## How it is measured\n\n{methods}{missing}",
        rows(all)
    )
}
