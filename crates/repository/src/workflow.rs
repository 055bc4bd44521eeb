//! `.github/workflows/svc-build.yml`: a thin wrapper around the reusable build workflow.
//!
//! The service triggers it with the inputs `app_id`, `platform` and `profile`. GitHub refuses a
//! trigger with an input that the file does not declare, and one without an input that it requires.
//! Source: "Workflow syntax for GitHub Actions", `on.workflow_dispatch.inputs`, `jobs.<job_id>.uses`.

use crate::{
    Check, Findings, Location, WORKFLOW,
    config::Built,
    document::{DocumentKey, Node, Value},
};
use std::{cmp::Reverse, collections::BTreeSet};

/// The inputs that the service sends.
const INPUTS: [&str; 3] = ["app_id", "platform", "profile"];
/// What the reusable workflow needs under `with`.
const WITH: [&str; 4] = ["platform", "profile", "app_id", "api_url"];
/// The version of the reusable workflow that the service works with.
const VERSION: &str = "v1";
const SECRET: &str = "SVC_TOKEN";

/// Checks the file.
pub(crate) fn check(root: &Node, built: &Built, findings: &mut Findings) {
    if !root.is_map() {
        findings.add(Check::WorkflowShape, at(root), "is no workflow");
        return;
    }
    match root.entry("on") {
        Some((key, on)) => check_trigger(key, on, built, findings),
        None => findings.add(Check::WorkflowTrigger, at(root), "on is missing"),
    }
    check_jobs(root, findings);
}

fn at(node: &Node) -> Location {
    Location::of(WORKFLOW, node.line)
}

fn check_trigger(key: &DocumentKey, on: &Node, built: &Built, findings: &mut Findings) {
    let place = Location::of(WORKFLOW, key.line);
    // `on` is a name, a list of names, or an object.
    let names_it = |node: &Node| node.text() == Some("workflow_dispatch");
    let dispatch = match on.entry("workflow_dispatch") {
        Some((key, dispatch)) => Some((Location::of(WORKFLOW, key.line), dispatch.get("inputs"))),
        None if names_it(on) || on.elements().iter().any(names_it) => Some((place, None)),
        None => None,
    };
    let Some((place, inputs)) = dispatch else {
        findings.add(Check::WorkflowTrigger, place, "has no workflow_dispatch");
        return;
    };
    for name in INPUTS {
        match inputs.and_then(|inputs| inputs.entry(name)) {
            Some((key, input)) => check_input(key, input, built, findings),
            None => {
                let place = inputs.map_or(place, at);
                findings.add(Check::WorkflowInput, place, format!("has no input {name}"));
            }
        }
    }
    for (key, input) in inputs.map(Node::entries).unwrap_or_default() {
        let is_required = input.get("required").is_some_and(|r| r.value == Value::Bool(true));
        let has_default = input.get("default").is_some_and(|d| d.value != Value::Null);
        if !INPUTS.contains(&key.name.as_str()) && is_required && !has_default {
            let problem = format!("requires the input {}", key.name);
            findings.add(Check::WorkflowInputForeign, Location::of(WORKFLOW, key.line), problem);
        }
    }
}

/// The values that the service may send for an input, as far as they are known.
fn values<'a>(input: &str, built: &'a Built) -> BTreeSet<&'a str> {
    match input {
        "platform" => built.keys().map(|platform| platform.name()).collect(),
        "profile" => built.values().flatten().map(String::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

/// Checks that an input takes all values that the service may send.
fn check_input(key: &DocumentKey, input: &Node, built: &Built, findings: &mut Findings) {
    let name = &key.name;
    let mut add = |line: Option<u32>, problem| {
        findings.add(Check::WorkflowInputType, Location::of(WORKFLOW, line.or(key.line)), problem);
    };
    match input.get("type").map(|kind| (kind.line, kind.text())) {
        // Without a type, an input is a string.
        None | Some((_, Some("string"))) => {}
        Some((_, Some("choice"))) if name != "app_id" => {
            let options = input.get("options");
            let offered = options.map(Node::elements).unwrap_or_default();
            let offered: Vec<_> = offered.iter().filter_map(Node::text).collect();
            for value in values(name, built).into_iter().filter(|value| !offered.contains(value)) {
                let line = options.and_then(|options| options.line);
                add(line, format!("{name} does not offer {value}"));
            }
        }
        Some((line, kind)) => {
            add(line, format!("{name} is of type {}", kind.unwrap_or("something else")));
        }
    }
}

fn check_jobs(root: &Node, findings: &mut Findings) {
    let jobs = root.get("jobs").map(Node::entries).unwrap_or_default();
    let calls = jobs.iter().filter_map(|(_, job)| {
        let uses = job.get("uses")?;
        Some((job, uses, Reference::read(uses.text()?)?))
    });
    // A repository may call other workflows too. Ours is the one that passes on what ours needs.
    let passed = |job: &Node| {
        let with = job.get("with").map(Node::entries).unwrap_or_default();
        with.iter().filter(|(key, _)| WITH.contains(&key.name.as_str())).count()
    };
    let ours = calls.min_by_key(|(job, _, reference)| {
        (Reverse(passed(job)), !reference.is_build, !reference.is_fit())
    });
    let Some((job, uses, reference)) = ours else {
        let place =
            root.entry("jobs").map_or(at(root), |(key, _)| Location::of(WORKFLOW, key.line));
        findings.add(Check::WorkflowReusable, place, "no job calls the reusable build workflow");
        return;
    };
    if !reference.is_fit() {
        let problem = format!("refers to the reusable workflow at {}", reference.version);
        findings.add(Check::WorkflowVersion, at(uses), problem);
    }
    let with = job.get("with");
    for name in WITH {
        if with.is_none_or(|with| with.get(name).is_none()) {
            let place = with.map_or(at(uses), at);
            findings.add(Check::WorkflowWith, place, format!("does not pass {name} on"));
        }
    }
    // The permissions of a job replace those of its workflow.
    let permissions = job.get("permissions").or(root.get("permissions"));
    if !passes_secret(job) && !permissions.is_some_and(is_keyless) {
        let place = job.get("secrets").map_or(at(uses), at);
        findings.add(Check::WorkflowSecret, place, format!("does not pass the secret {SECRET} on"));
    }
}

fn passes_secret(job: &Node) -> bool {
    let secrets = job.get("secrets");
    secrets
        .is_some_and(|secrets| secrets.text() == Some("inherit") || secrets.get(SECRET).is_some())
}

/// Whether permissions let a job ask GitHub for a token that proves its identity.
fn is_keyless(permissions: &Node) -> bool {
    let id_token = permissions.get("id-token").and_then(Node::text);
    permissions.text() == Some("write-all") || id_token == Some("write")
}

/// A reference to a workflow of another repository, such as
/// `example/svc/.github/workflows/build.yml@v1`.
struct Reference<'a> {
    version: &'a str,
    /// Whether the file's name says that it builds.
    is_build: bool,
}

impl<'a> Reference<'a> {
    fn read(uses: &'a str) -> Option<Self> {
        let (path, version) = uses.split_once('@')?;
        let (repository, file) = path.split_once("/.github/workflows/")?;
        let is_file = file.ends_with(".yml") || file.ends_with(".yaml");
        let is_foreign = repository.split('/').filter(|part| !part.is_empty()).count() == 2;
        (is_file && is_foreign).then(|| Reference { version, is_build: file.contains("build") })
    }

    /// Whether the reference is to [`VERSION`], or to one commit, which its author chose on purpose.
    fn is_fit(&self) -> bool {
        let is_commit =
            self.version.len() == 40 && self.version.bytes().all(|b| b.is_ascii_hexdigit());
        is_commit || self.version == VERSION
    }
}
