//! Repositories of apps, and the checks of their files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

records! {
    /// A file that a managed repository has.
    pub struct DetectedFile {
        path: String,
        present: bool,
        /// The first error in the file.
        problem: Option<String>,
    }

    /// Something that a check found in a repository.
    pub struct Finding {
        /// The id of the check. It never changes.
        check: String,
        severity: Severity,
        path: Option<String>,
        /// The line in the file, from 1.
        line: Option<u32>,
        problem: String,
        /// What to do about it.
        fix: String,
    }
}

/// Where the builds of a repository run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepositoryMode {
    /// No check has read the repository yet.
    #[default]
    Unclassified,
    /// All three files are there. Builds run in the CI of the repository.
    Managed,
    /// Artifacts are uploaded, or built from the repository elsewhere.
    ArtifactOnly,
}

/// How much a finding matters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong.
    Info,
    /// Builds work, but perhaps not as intended.
    Warning,
    /// A build fails.
    Error,
}
