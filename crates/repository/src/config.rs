//! `.svc/config.json`: which platforms a repository builds, with which commands.

use crate::{
    CONFIG, Check, FileContent, Files, Findings, Location, PLACEHOLDER,
    document::{DocumentKey, Node, Value},
};
use contract::{AppId, apps::Platform, artifacts::ArtifactKind, text::RepositoryName};
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
};

/// The content of `.svc/config.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// The platforms that the repository builds for.
    pub platforms: Vec<Platform>,
    /// The shell command that builds, by platform and profile. It has at most 10,000 characters.
    pub build: BTreeMap<Platform, BTreeMap<String, String>>,
    /// The path of the built file, by platform and profile. It has at most 1,000 characters.
    pub artifact: BTreeMap<Platform, BTreeMap<String, String>>,
    /// The service that this repository publishes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    /// The application id of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_id: Option<String>,
    /// The app of this repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppId>,
    /// The name of this repository at its host. With `app`, it lets the service reach the repository
    /// through its GitHub App.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryName>,
}

/// How a repository builds for one platform and profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The shell command that builds, for the root of the repository.
    pub command: String,
    /// The path of the built file in the repository.
    pub artifact: String,
}

/// The JSON schema of the file, for editors.
pub fn schema() -> Schema {
    schema_for!(Config)
}

impl Recipe {
    /// The recipe in the files of a repository. The error says why there is none.
    pub fn of(files: &Files, platform: Platform, profile: &str) -> Result<Recipe, String> {
        let text = match &files.config {
            FileContent::Text(text) => text,
            FileContent::Missing => return Err(format!("the repository has no {CONFIG}")),
            FileContent::Unreadable(why) => return Err(format!("{CONFIG} {why}")),
        };
        let config: Config = serde_json::from_str(text).map_err(|e| format!("{CONFIG}: {e}"))?;
        config.recipe(platform, profile)
    }
}

impl Config {
    /// The recipe for a platform and profile. The error names the missing part.
    pub fn recipe(&self, platform: Platform, profile: &str) -> Result<Recipe, String> {
        let missing = |part: &str| format!("{CONFIG} has no {part}.{}.{profile}", platform.name());
        let of = |table: &BTreeMap<Platform, BTreeMap<String, String>>| {
            table.get(&platform).and_then(|profiles| profiles.get(profile)).cloned()
        };
        let command = of(&self.build).ok_or_else(|| missing("build"))?;
        let artifact = of(&self.artifact).ok_or_else(|| missing("artifact"))?;
        let name = platform.name();
        for (table, text, most) in
            [("build", &command, MOST_COMMAND), ("artifact", &artifact, MOST_PATH)]
        {
            if let Some(problem) = too_long(text, most) {
                return Err(format!("{CONFIG}: {table}.{name}.{profile} {problem}"));
            }
        }
        if !stays_inside(&artifact) {
            return Err(format!(
                "{CONFIG}: artifact.{name}.{profile} is not a path inside the repository"
            ));
        }
        Ok(Recipe { command, artifact })
    }
}

/// What keeps the service from beginning builds of this app in the CI of this repository: the
/// configuration must name both, whatever else is wrong in it. The name of the repository matters: a
/// copy of the repository says the same. `None` if it names both. Without an app, any one will do.
pub fn withheld_consent(
    config: &str,
    app: Option<AppId>,
    repository: &RepositoryName,
) -> Option<String> {
    let config = config.trim_start_matches('\u{feff}');
    let config = serde_json::from_str::<serde_json::Value>(config).unwrap_or_default();
    let problem = |field: &str, is_meant: &dyn Fn(&str) -> bool| {
        let said = config.get(field).and_then(|said| said.as_str());
        match said {
            Some(said) if is_meant(said) => None,
            Some(said) => Some(format!("{field} is {said:?}, which is another one")),
            None => Some(format!("{field} is missing")),
        }
    };
    let is_app = |said: &str| match app {
        Some(app) => said.eq_ignore_ascii_case(&app.to_string()),
        None => said.parse::<AppId>().is_ok(),
    };
    let is_repository = |said: &str| said.eq_ignore_ascii_case(repository.as_str());
    let problems = [problem("app", &is_app), problem("repository", &is_repository)];
    let problems: Vec<_> = problems.into_iter().flatten().collect();
    (!problems.is_empty()).then(|| problems.join(", and "))
}

/// The profiles that can be built, by platform. `None` if the configuration cannot be read, or names so
/// many that nobody means them.
pub(crate) fn profiles(content: &FileContent) -> Option<BTreeMap<Platform, BTreeSet<String>>> {
    let config: Config = match content {
        FileContent::Text(text) => serde_json::from_str(text).ok()?,
        FileContent::Missing => Config::default(),
        FileContent::Unreadable(_) => return None,
    };
    let mut all = BTreeMap::new();
    for (platform, commands) in &config.build {
        let can_be_built = |profile: &&String| config.recipe(*platform, profile).is_ok();
        let of_platform: BTreeSet<_> = commands.keys().filter(can_be_built).cloned().collect();
        if of_platform.len() > MOST_PROFILES {
            return None;
        }
        all.insert(*platform, of_platform);
    }
    Some(all)
}

/// `$schema` names the schema of the file for editors.
const FIELDS: [&str; 8] =
    ["$schema", "platforms", "build", "artifact", "apiUrl", "applicationId", "app", "repository"];
/// How many profiles of a platform are told.
const MOST_PROFILES: usize = 50;
/// The profile that is built where none is named.
const PRODUCTION: &str = "production";

/// How many characters the command of a build may have. Each build keeps a copy.
const MOST_COMMAND: usize = 10_000;
/// How many characters the path of a built file may have. Each build keeps a copy.
const MOST_PATH: usize = 1_000;

/// Why a text is refused that has more characters than `most`.
fn too_long(text: &str, most: usize) -> Option<String> {
    let characters = text.chars().count();
    (characters > most)
        .then(|| format!("has {characters} characters, and at most {most} are allowed"))
}

/// Whether a path is relative and has no `..`.
pub fn stays_inside(path: &str) -> bool {
    let mut components = Path::new(path).components();
    let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && components.all(stays)
}

/// The profiles of each platform that a repository builds for.
pub(crate) type Built = BTreeMap<Platform, Vec<String>>;

/// Checks the file.
pub(crate) fn check(root: &Node, findings: &mut Findings) -> Built {
    if !root.is_map() {
        findings.add(Check::ConfigShape, at(root), "is not an object");
        return Built::new();
    }
    foreign_names(root, &FIELDS, "", Check::ConfigUnknown, findings);
    let platforms = platforms(root, findings);
    let build = Table::of(root, "build", findings);
    let artifact = Table::of(root, "artifact", findings);
    let mut built = Built::new();
    for platform in Platform::ALL {
        let profiles = Profiles::of(platform, &build, &artifact, findings);
        if platforms.contains(&platform) {
            profiles.check(root, findings);
            built.insert(platform, profiles.build.keys().map(|name| (*name).to_owned()).collect());
        } else if let Some(key) = profiles.key {
            let problem = format!("{} has entries and is not among the platforms", platform.name());
            findings.add(Check::ConfigUnused, Location::of(CONFIG, key.line), problem);
        }
    }
    for field in ["$schema", "apiUrl", "applicationId", "app", "repository"] {
        if let Some(value) = root.get(field) {
            let (fits, kind) = match (field, value.text()) {
                ("app", Some(app)) => (app.parse::<AppId>().is_ok(), "the id of an app"),
                ("repository", Some(name)) => {
                    (name.parse::<RepositoryName>().is_ok(), "a name such as acme/app")
                }
                (_, text) => (text.is_some(), "text"),
            };
            if !fits && value.value != Value::Null {
                findings.add(Check::ConfigShape, at(value), format!("{field} is not {kind}"));
            }
        }
    }
    built
}

/// Adds a finding for each name of a map that is none of `known`.
fn foreign_names(node: &Node, known: &[&str], prefix: &str, check: Check, findings: &mut Findings) {
    for (DocumentKey { line, name }, _) in node.entries() {
        if !known.contains(&name.as_str()) {
            findings.add(
                check,
                Location::of(CONFIG, *line),
                format!("{prefix}{name} is not known"),
            );
        }
    }
}

fn at(node: &Node) -> Location {
    Location::of(CONFIG, node.line)
}

fn platforms(root: &Node, findings: &mut Findings) -> Vec<Platform> {
    let Some(node) = root.get("platforms") else {
        findings.add(Check::ConfigPlatforms, at(root), "platforms is missing");
        return vec![];
    };
    let mut found = Vec::new();
    for element in node.elements() {
        match Platform::ALL.into_iter().find(|platform| element.text() == Some(platform.name())) {
            Some(platform) => found.push(platform),
            None => {
                let what = element.text().map_or("a value".into(), |text| format!("{text:?}"));
                let problem = format!("platforms names {what}, which is no platform");
                findings.add(Check::ConfigPlatforms, at(element), problem);
            }
        }
    }
    match &node.value {
        Value::List(elements) if elements.is_empty() => {
            findings.add(Check::ConfigPlatforms, at(node), "platforms names none");
        }
        Value::List(_) => {}
        _ => findings.add(Check::ConfigShape, at(node), "platforms is not a list"),
    }
    found
}

/// The field `build` or `artifact`: texts by platform and profile.
struct Table<'a> {
    name: &'static str,
    node: Option<&'a Node>,
}

impl<'a> Table<'a> {
    fn of(root: &'a Node, name: &'static str, findings: &mut Findings) -> Self {
        let node = root.get(name);
        if let Some(node) = node {
            if !node.is_map() {
                findings.add(Check::ConfigShape, at(node), format!("{name} is not an object"));
            }
            let (known, prefix) = (Platform::ALL.map(Platform::name), format!("{name}."));
            foreign_names(node, &known, &prefix, Check::ConfigPlatform, findings);
        }
        Table { name, node }
    }

    /// The entries of a platform: the line of each profile, and its text.
    fn profiles(
        &self,
        platform: Platform,
        findings: &mut Findings,
    ) -> BTreeMap<&'a str, (Option<u32>, &'a str)> {
        let Some(node) = self.node.and_then(|node| node.get(platform.name())) else {
            return BTreeMap::new();
        };
        let path = format!("{}.{}", self.name, platform.name());
        if !node.is_map() {
            findings.add(Check::ConfigShape, at(node), format!("{path} is not an object"));
        }
        let mut profiles = BTreeMap::new();
        for (key, value) in node.entries() {
            match value.text() {
                Some(text) => drop(profiles.insert(key.name.as_str(), (key.line, text))),
                None => {
                    let problem = format!("{path}.{} is not text", key.name);
                    findings.add(Check::ConfigShape, Location::of(CONFIG, key.line), problem);
                }
            }
        }
        profiles
    }
}

/// The profiles of one platform.
struct Profiles<'a> {
    platform: Platform,
    build: BTreeMap<&'a str, (Option<u32>, &'a str)>,
    artifact: BTreeMap<&'a str, (Option<u32>, &'a str)>,
    /// The key of the platform's first entry.
    key: Option<&'a DocumentKey>,
}

impl<'a> Profiles<'a> {
    fn of(
        platform: Platform,
        build: &Table<'a>,
        artifact: &Table<'a>,
        findings: &mut Findings,
    ) -> Self {
        let entry = |table: &Table<'a>| table.node.and_then(|node| node.entry(platform.name()));
        let key = entry(build).or(entry(artifact)).map(|(key, _)| key);
        let (build, artifact) =
            (build.profiles(platform, findings), artifact.profiles(platform, findings));
        Profiles { platform, build, artifact, key }
    }

    fn check(&self, root: &Node, findings: &mut Findings) {
        let name = self.platform.name();
        let place = self.key.map_or(at(root), |key| Location::of(CONFIG, key.line));
        if self.build.is_empty() && self.artifact.is_empty() {
            findings.add(Check::ConfigBuild, place, format!("build.{name} has no profile"));
            return;
        }
        if !self.build.contains_key(PRODUCTION) {
            let problem = format!("build.{name} has no profile production");
            findings.add(Check::ConfigProduction, place, problem);
        }
        for (profile, (line, command)) in &self.build {
            let place = Location::of(CONFIG, *line);
            if command.trim().is_empty() {
                let problem = format!("build.{name}.{profile} is empty");
                findings.add(Check::ConfigBuild, place, problem);
            } else if command.contains(PLACEHOLDER) {
                let problem = format!("build.{name}.{profile} is still what `svc init` wrote");
                findings.add(Check::ConfigBuild, place, problem);
            } else if let Some(why) = too_long(command, MOST_COMMAND) {
                let problem = format!("build.{name}.{profile} {why}");
                findings.add(Check::ConfigBuild, place, problem);
            }
            if !self.artifact.contains_key(profile) {
                let problem = format!("artifact.{name}.{profile} is missing");
                findings.add(Check::ConfigArtifact, place, problem);
            }
        }
        for (profile, (line, path)) in &self.artifact {
            let place = Location::of(CONFIG, *line);
            if !self.build.contains_key(profile) {
                let problem = format!("build.{name}.{profile} is missing");
                findings.add(Check::ConfigBuild, place, problem);
            }
            self.check_path(profile, path, place, findings);
        }
    }

    fn check_path(&self, profile: &str, path: &str, place: Location, findings: &mut Findings) {
        let field = format!("artifact.{}.{profile}", self.platform.name());
        if !stays_inside(path) {
            let problem = format!("{field} is {path:?}, which may lead out of the repository");
            findings.add(Check::ConfigArtifactPath, place, problem);
        }
        if let Some(why) = too_long(path, MOST_PATH) {
            let problem = format!("{field} {why}");
            findings.add(Check::ConfigArtifactPath, place, problem);
            return;
        }
        let kind = ArtifactKind::of_file_name(path);
        if kind.map(ArtifactKind::platform) != Some(self.platform) {
            let problem = format!("{field} is {path:?}, which is no file of this platform");
            findings.add(Check::ConfigArtifactKind, place, problem);
        } else if kind == Some(ArtifactKind::Apk) && profile == PRODUCTION {
            findings.add(Check::ConfigArtifactStore, place, format!("{field} is an .apk"));
        }
    }
}
