//! Checks whether a repository can build its app, and says what is wrong in which line.
//!
//! The checks are pure: the caller reads the files, from a folder or from a host of repositories. A
//! check has a stable id, so that scripts can rely on it.
//!
//! The service and the runners also share how git signs in with a token.

#![warn(missing_docs)]

mod access;
pub mod config;
mod document;
pub mod folder;
mod host_key;
mod workflow;

pub use access::git_environment;
pub use config::{Config, Recipe, stays_inside, withheld_consent};
pub use host_key::other_host_key;

use contract::{
    apps::Platform,
    repositories::{DetectedFile, Finding, RepositoryMode, Severity},
};
use document::{Node, SyntaxError};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The package file. Its presence is one of the signs of a managed repository.
pub const PACKAGE: &str = "package.json";
/// The configuration of builds.
pub const CONFIG: &str = ".svc/config.json";
/// What the command of a build says that `svc init` cannot know.
pub const PLACEHOLDER: &str = "say in .svc/config.json how to build for";
/// The workflow that builds in the repository's own CI.
pub const WORKFLOW: &str = ".github/workflows/svc-build.yml";

/// The largest file that is checked, in bytes. Larger files are [`FileContent::Unreadable`].
pub const LARGEST_FILE: usize = 256 << 10;

/// The longest text of a problem, in characters. Problems quote the files of strangers.
const LONGEST_PROBLEM: usize = 300;

/// The three files of a managed repository.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The file at [`PACKAGE`].
    pub package: FileContent,
    /// The file at [`CONFIG`].
    pub config: FileContent,
    /// The file at [`WORKFLOW`].
    pub workflow: FileContent,
}

/// What reading a file gave.
#[derive(Debug, Clone, Default)]
pub enum FileContent {
    /// There is no such file.
    #[default]
    Missing,
    /// The file is there and cannot be read, for this reason.
    Unreadable(String),
    /// UTF-8 of at most [`LARGEST_FILE`] bytes.
    Text(String),
}

impl From<Vec<u8>> for FileContent {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() > LARGEST_FILE {
            return FileContent::Unreadable(format!("is larger than {} KiB", LARGEST_FILE >> 10));
        }
        // Programs that read these files ignore a byte order mark.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        match str::from_utf8(bytes) {
            Ok(text) => FileContent::Text(text.to_owned()),
            Err(_) => FileContent::Unreadable("is not UTF-8 text".into()),
        }
    }
}

/// The result of all checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Managed if all three files are there, whatever is wrong in them.
    pub mode: RepositoryMode,
    /// The three files.
    pub detected: Vec<DetectedFile>,
    /// Errors first, then in the order of the files and of their lines.
    pub findings: Vec<Finding>,
    /// The profiles that can be built, by platform. `None` if the configuration cannot be read.
    pub profiles: Option<BTreeMap<Platform, BTreeSet<String>>>,
}

impl Report {
    /// Adds that no build can begin in the CI of a managed repository, for this reason, which
    /// [`withheld_consent`] gave. Of any other repository, no build begins there anyway.
    pub fn add_withheld_consent(&mut self, problem: String) {
        if self.mode != RepositoryMode::Managed {
            return;
        }
        let mut findings = Findings(std::mem::take(&mut self.findings));
        findings.add(Check::ConfigApp, Location::of(CONFIG, None), problem);
        self.findings = findings.0;
        self.findings.sort_by_key(|found| Reverse(found.severity));
    }
}

/// Runs all checks.
///
/// A repository with all three files is managed, any other is artifact-only. A workflow needs the
/// other two files, so it makes their absence an error. A configuration alone is enough for runners.
pub fn check(files: &Files) -> Report {
    let parts = [(PACKAGE, &files.package), (CONFIG, &files.config), (WORKFLOW, &files.workflow)];
    let is_there = |content: &FileContent| !matches!(content, FileContent::Missing);
    let is_managed = parts.iter().all(|(_, content)| is_there(content));
    let missing = match (is_there(&files.workflow), is_there(&files.config)) {
        (true, _) => Severity::Error,
        (false, true) => Severity::Warning,
        (false, false) => Severity::Info,
    };

    let mut findings = Findings::default();
    let package = findings.read(PACKAGE, &files.package, missing, document::json);
    if let Some(package) = package.filter(|package| !package.is_map()) {
        findings.add(Check::PackageObject, Location::of(PACKAGE, package.line), "is not an object");
    }
    let config = findings.read(CONFIG, &files.config, missing, document::json);
    let built = config.map(|root| config::check(&root, &mut findings)).unwrap_or_default();
    let workflow = findings.read(WORKFLOW, &files.workflow, missing, document::yaml);
    if let Some(root) = workflow {
        workflow::check(&root, &built, &mut findings);
    }

    let mut findings = findings.0;
    let first_error = |path: &str| {
        let mut errors = findings.iter().filter(|found| found.severity == Severity::Error);
        let first = errors.find(|found| found.path.as_deref() == Some(path));
        first.map(|found| found.problem.clone())
    };
    let detected = parts.map(|(path, content)| DetectedFile {
        path: path.into(),
        present: is_there(content),
        problem: first_error(path).filter(|_| is_there(content)),
    });
    let file =
        |found: &Finding| parts.iter().position(|(path, _)| found.path.as_deref() == Some(path));
    findings.sort_by_key(|found| (Reverse(found.severity), file(found), found.line));
    let mode = if is_managed { RepositoryMode::Managed } else { RepositoryMode::ArtifactOnly };
    let profiles = config::profiles(&files.config);
    Report { mode, detected: detected.into(), findings, profiles }
}

/// The file and the line of a finding.
#[derive(Debug, Clone, Copy)]
struct Location {
    path: &'static str,
    line: Option<u32>,
}

impl Location {
    fn of(path: &'static str, line: Option<u32>) -> Location {
        Location { path, line }
    }
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, check: Check, place: Location, problem: impl Into<String>) {
        self.add_as(check, check.severity(), place, problem);
    }

    fn add_as(
        &mut self,
        check: Check,
        severity: Severity,
        Location { path, line }: Location,
        problem: impl Into<String>,
    ) {
        self.0.push(Finding {
            check: check.id().into(),
            severity,
            path: Some(path.into()),
            line,
            problem: problem.into().chars().take(LONGEST_PROBLEM).collect(),
            fix: check.fix().into(),
        });
    }

    /// Parses a file, and adds why that is not possible.
    fn read(
        &mut self,
        path: &'static str,
        content: &FileContent,
        missing: Severity,
        parse: impl Fn(&str) -> Result<Node, SyntaxError>,
    ) -> Option<Node> {
        match content {
            FileContent::Missing => {
                let check = match path {
                    PACKAGE => Check::PackageMissing,
                    CONFIG => Check::ConfigMissing,
                    _ => Check::WorkflowMissing,
                };
                self.add_as(check, missing, Location::of(path, None), "is missing");
            }
            FileContent::Unreadable(why) => {
                self.add(Check::FileReadable, Location::of(path, None), why);
            }
            FileContent::Text(text) => match parse(text) {
                Ok(root) => return Some(root),
                Err(e) => self.add(Check::FileSyntax, Location::of(path, e.line), e.problem),
            },
        }
        None
    }
}

macro_rules! checks {
    ($($check:ident $id:literal $severity:ident $fix:literal;)+) => {
        /// A check, with its stable id, the severity of its findings, and what to do about them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Check { $($check),+ }

        impl Check {
            fn id(self) -> &'static str {
                match self { $(Check::$check => $id),+ }
            }

            fn severity(self) -> Severity {
                match self { $(Check::$check => Severity::$severity),+ }
            }

            fn fix(self) -> &'static str {
                match self { $(Check::$check => $fix),+ }
            }
        }

        /// The id of each check, the severity of its findings, and what to do about them.
        pub const CHECKS: &[(&str, Severity, &str)] = &[$(($id, Severity::$severity, $fix)),+];
    };
}

checks! {
    PackageMissing "package-missing" Error "add package.json to the root of the repository";
    ConfigMissing "config-missing" Error "add .svc/config.json with platforms, build and artifact";
    WorkflowMissing "workflow-missing" Error "add .github/workflows/svc-build.yml, which calls the reusable build workflow";
    FileReadable "file-readable" Error "make it a text file of at most 256 KiB";
    FileSyntax "file-syntax" Error "correct the syntax in this line";
    PackageObject "package-object" Error "make it a JSON object";
    ConfigShape "config-shape" Error "give it the type that the documentation of .svc/config.json names";
    ConfigUnknown "config-unknown" Warning "correct the name, or remove it";
    ConfigPlatform "config-platform" Error "name ios or android";
    ConfigPlatforms "config-platforms" Error "name ios, android or both in platforms";
    ConfigBuild "config-build" Error "give the shell command that builds this profile, in at most 10,000 characters: a longer one belongs in a script of the repository";
    ConfigArtifact "config-artifact" Error "give the path of the file that the command of this profile builds";
    ConfigArtifactPath "config-artifact-path" Error "give a relative path without .., in at most 1,000 characters";
    ConfigArtifactKind "config-artifact-kind" Error "name a file that ends in .ipa for ios, and in .apk or .aab for android";
    ConfigArtifactStore "config-artifact-store" Warning "build a .aab for production: Google Play takes no .apk of a new app";
    ConfigProduction "config-production" Warning "add the profile production, which is built where no profile is named";
    ConfigUnused "config-unused" Warning "add the platform to platforms, or remove its entry";
    ConfigApp "config-app" Warning "name the app in app, and the repository in repository, in .svc/config.json of the default branch (svc init writes both): only then the service begins builds in the CI of the repository";
    WorkflowShape "workflow-shape" Error "write it as the reference of workflow files says";
    WorkflowTrigger "workflow-trigger" Error "put workflow_dispatch under on, so that a build can be triggered";
    WorkflowInput "workflow-input" Error "declare it under on.workflow_dispatch.inputs: the service sends it";
    WorkflowInputForeign "workflow-input-foreign" Error "give it a default or make it optional: the service sends only app_id, platform and profile";
    WorkflowInputType "workflow-input-type" Warning "make it of type string, or a choice that has all values";
    WorkflowReusable "workflow-reusable" Error "let a job use OWNER/REPOSITORY/.github/workflows/FILE.yml@v1, the reusable build workflow";
    WorkflowVersion "workflow-version" Warning "refer to the major version: @v1";
    WorkflowWith "workflow-with" Error "pass it on under with";
    WorkflowSecret "workflow-secret" Error "pass SVC_TOKEN under secrets, or grant id-token: write to the job";
}
