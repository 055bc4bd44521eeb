//! The report: rows of figures, as Markdown.

use serde::{Deserialize, Serialize};

/// One figure beside its yardstick.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    pub what: String,
    /// What the service did, with its unit.
    pub ours: String,
    /// What the yardstick did, and what it is.
    pub yardstick: String,
    /// The service's figure divided by the yardstick's.
    pub ratio: f64,
    /// What was aimed at; `None` where the figure is only watched.
    pub aim: Option<Aim>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Aim {
    /// Such as `at least 0.8`.
    pub text: String,
    /// Whether it was reached.
    pub met: bool,
    /// What stands in the way where it was not.
    pub binds: String,
}

impl Row {
    /// A figure that is only watched.
    pub fn new(what: &str, (ours, ours_text): (f64, String), yardstick: (f64, String)) -> Row {
        let ratio = ours / yardstick.0;
        Row { what: what.into(), ours: ours_text, yardstick: yardstick.1, ratio, aim: None }
    }

    /// With an aim for the ratio.
    pub fn at_least(self, ratio: f64, binds: &str) -> Row {
        let met = self.ratio >= ratio;
        self.aim(format!("ratio at least {ratio}"), met, binds)
    }

    /// With an aim of its own.
    pub fn aim(mut self, text: String, met: bool, binds: &str) -> Row {
        self.aim = Some(Aim { text, met, binds: binds.into() });
        self
    }
}

/// A table of rows, and below it what binds where an aim was missed.
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

/// The whole of `BENCHMARKS.md`. Each method is the name of a figure and how it is measured.
pub fn report(machine: &str, all: &[Row], methods: &[(&str, &str)]) -> String {
    let methods: String = methods
        .iter()
        .map(|(figure, method)| {
            format!("- `cargo run --profile dist -p bench {figure}`: {method}\n")
        })
        .collect();
    format!(
        "# Benchmarks\n\n\
         Written by `make bench`. Each figure stands beside a yardstick that was measured in the \
         same run on the same machine, because only the ratio says something about the service.\n\n\
         {machine}\n{}\n## How it is measured\n\n{methods}",
        rows(all)
    )
}
