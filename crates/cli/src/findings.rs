//! Shows what checks found.

use crate::printer::{Table, word};
use contract::repositories::{DetectedFile, Finding, RepositoryMode, Severity};

/// A line for each sound file and for each finding, and the mode of the repository.
pub fn table(mode: RepositoryMode, detected: &[DetectedFile], findings: &[Finding]) -> String {
    let is_sound = |file: &&DetectedFile| {
        let found = |finding: &Finding| finding.path.as_deref() == Some(&file.path);
        file.present && !findings.iter().any(found)
    };
    let table = Table::new(["CHECK", "SEVERITY", "WHERE", "FOUND", "WHAT TO DO"]);
    let table = detected.iter().filter(is_sound).fold(table, |table, file| {
        table.row(["file".into(), "ok".into(), file.path.clone(), "is sound".into(), String::new()])
    });
    let table = findings.iter().fold(table, |table, finding| table.row(line(finding)));
    format!("{table}mode: {}", word(&mode))
}

fn line(finding: &Finding) -> [String; 5] {
    let Finding { check, severity, path, line, problem, fix } = finding;
    let severity = match severity {
        // Only a check without a file reports that all is well.
        Severity::Info if path.is_none() => "ok".into(),
        severity => word(severity),
    };
    let place = path.iter().cloned().chain(line.map(|line| line.to_string()));
    let place = place.collect::<Vec<_>>().join(":");
    [check.clone(), severity, place, problem.clone(), fix.clone()]
}
