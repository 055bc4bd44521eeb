//! Reads the whole store and says what does not fit together: records against their index, derived
//! records against what they derive from, artifacts against their bytes.

use super::{dump::open, note};
use crate::adapters::binaries::hash;
use actors::{
    call::{audit::Event, idempotency::Replay},
    kinds::{
        accounts::{Accounts, Session},
        apps::Apps,
        artifacts::{Artifacts, Hold},
        backups::Backups,
        deployments::{Deployments, Served},
        image_builds::ImageBuilds,
        images::Images,
        instances::{Instances, metrics::Hour},
        organizations::{Organizations, Reach},
        projects::Projects,
        releases::{Current, Releases},
        templates::{Templates, catalogue::Shipped},
        tokens::{LastUse, Tokens},
    },
    runtime::{
        progress_log::Line,
        ref_count::Uses,
        resource::{Kept, Resource},
    },
};
use contract::{artifacts::ArtifactState, releases::ReleaseState};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::Path,
};
use store::{Finding, Record, Store, StoreError};

/// What the records say of each other, gathered while they are read.
#[derive(Default)]
struct Gathered {
    /// Member and organization, from the organizations.
    memberships: BTreeSet<(String, String)>,
    /// The same, from the users' reach.
    reaches: BTreeSet<(String, String)>,
    /// Artifact and release, from the releases.
    holds: BTreeSet<(String, String)>,
    /// The same, from the holds.
    held: BTreeSet<(String, String)>,
    /// Which organization, project or app something hangs from.
    parents: Vec<(String, String)>,
    known: BTreeSet<String>,
    /// The hash of each verified artifact.
    verified: BTreeMap<String, String>,
    /// The current releases.
    current: BTreeSet<String>,
    /// The releases that say they are published.
    published: BTreeSet<String>,
    /// The releases that another one has yet to tell that this changed.
    to_be_told: BTreeSet<String>,
    /// How many use each image and template, from the users.
    uses: BTreeMap<String, u64>,
    /// The same, as it was counted.
    used: BTreeMap<String, u64>,
    /// How many resources have an intent that stands.
    at_work: u64,
}

/// Checks a data directory. An error names how many findings there were.
pub fn check(data: &Path) -> Result<(), String> {
    let store = open(data)?;
    let mut findings = Vec::new();
    let gathered = read(&store, &mut findings).map_err(|e| e.to_string())?;
    compare(&gathered, &mut findings);
    bytes(data, &gathered, &mut findings);
    store.close();
    for Finding(finding) in &findings {
        note(finding);
    }
    if findings.is_empty() {
        note(&format!(
            "{} resources, {} with work left, nothing to mend",
            gathered.known.len(),
            gathered.at_work
        ));
        return Ok(());
    }
    Err(format!("{} findings", findings.len()))
}

fn read(store: &Store, findings: &mut Vec<Finding>) -> Result<Gathered, StoreError> {
    let (mut g, mut at_work) = (Gathered::default(), 0);
    resources::<Accounts>(store, findings, &mut at_work, |key, account| {
        g.known.insert(key.into());
        g.parents.push((key.into(), account.state.personal.to_string()));
    })?;
    resources::<Organizations>(store, findings, &mut at_work, |key, organization| {
        g.known.insert(key.into());
        g.memberships.extend(
            organization.state.members.iter().map(|m| (m.user.to_string(), key.to_owned())),
        );
    })?;
    one::<Reach>(store, findings, |user, reach| {
        g.reaches.extend(
            reach
                .organizations
                .keys()
                .map(|organization| (user.to_owned(), organization.to_string())),
        );
    })?;
    resources::<Projects>(store, findings, &mut at_work, |key, project| {
        g.known.insert(key.into());
        g.parents.push((key.into(), project.state.organization_id.to_string()));
    })?;
    resources::<Apps>(store, findings, &mut at_work, |key, app| {
        g.known.insert(key.into());
        g.parents.push((key.into(), app.state.project_id.to_string()));
    })?;
    resources::<Artifacts>(store, findings, &mut at_work, |key, upload| {
        g.known.insert(key.into());
        let artifact = &upload.state.artifact;
        g.parents.push((key.into(), artifact.app_id.to_string()));
        if let (ArtifactState::Verified, Some(sha256)) = (artifact.state, &artifact.sha256) {
            g.verified.insert(key.into(), sha256.to_string());
        }
    })?;
    resources::<Releases>(store, findings, &mut at_work, |key, state| {
        g.known.insert(key.into());
        let release = &state.state.release;
        g.parents.push((key.into(), release.app_id.to_string()));
        g.holds.extend(
            release.artifact_ids.iter().map(|artifact| (artifact.to_string(), key.to_owned())),
        );
        if release.state == ReleaseState::Published {
            g.published.insert(key.into());
        }
        g.to_be_told.extend(state.state.to_tell.iter().map(ToString::to_string));
    })?;
    one::<Hold>(store, findings, |artifact, hold| {
        g.held
            .extend(hold.releases.iter().map(|release| (artifact.to_owned(), release.to_string())));
    })?;
    one::<Current>(store, findings, |_, current| {
        g.current.insert(current.release.to_string());
    })?;
    resources::<Tokens>(store, findings, &mut at_work, |key, token| {
        g.known.insert(key.into());
        g.parents.extend(token.state.app_id.map(|app| (key.to_owned(), app.to_string())));
    })?;
    one::<LastUse>(store, findings, |_, _| {})?;
    resources::<Images>(store, findings, &mut at_work, |key, _| {
        g.known.insert(key.into());
    })?;
    resources::<Templates>(store, findings, &mut at_work, |key, template| {
        g.known.insert(key.into());
        for version in &template.state.versions {
            let images: BTreeSet<_> = version.services.iter().map(|s| s.image_id).collect();
            for image in images {
                *g.uses.entry(image.to_string()).or_default() += 1;
                g.parents.push((key.into(), image.to_string()));
            }
        }
    })?;
    resources::<Instances>(store, findings, &mut at_work, |key, instance| {
        g.known.insert(key.into());
        if instance.state.is_there() {
            let template = instance.state.template_id.to_string();
            *g.uses.entry(template.clone()).or_default() += 1;
            g.parents.push((key.into(), template));
            g.parents.push((key.into(), instance.state.app_id.to_string()));
        }
    })?;
    one::<Uses>(store, findings, |key, uses| {
        g.used.insert(key.into(), uses.count);
    })?;
    one::<Hour>(store, findings, |_, _| {})?;
    resources::<Deployments>(store, findings, &mut at_work, |key, state| {
        g.known.insert(key.into());
        g.parents.push((key.into(), state.state.deployment.app_id.to_string()));
    })?;
    resources::<Backups>(store, findings, &mut at_work, |key, state| {
        g.known.insert(key.into());
        g.parents.push((key.into(), state.state.backup.app_id.to_string()));
    })?;
    resources::<ImageBuilds>(store, findings, &mut at_work, |key, _| {
        g.known.insert(key.into());
    })?;
    one::<Shipped>(store, findings, |_, _| {})?;
    one::<Served>(store, findings, |_, _| {})?;
    one::<Line>(store, findings, |_, line| {
        g.parents.push(("a line of a log".into(), line.of.clone()));
    })?;
    one::<Session>(store, findings, |_, _| {})?;
    one::<Replay>(store, findings, |_, _| {})?;
    one::<Event>(store, findings, |_, _| {})?;
    g.at_work = at_work;
    Ok(g)
}

/// Reads the resources of a kind, and counts those with work left.
fn resources<R: Resource>(
    store: &Store,
    findings: &mut Vec<Finding>,
    at_work: &mut u64,
    mut each: impl FnMut(&str, &Kept<R>),
) -> Result<(), StoreError> {
    one::<Kept<R>>(store, findings, |key, kept| {
        *at_work += u64::from(kept.intent.is_some());
        each(key, kept);
    })
}

fn one<R: Record>(
    store: &Store,
    findings: &mut Vec<Finding>,
    mut each: impl FnMut(&str, &R),
) -> Result<(), StoreError> {
    let (_, found) = store.check::<R>(|key, record, _| each(key, record))?;
    findings.extend(found);
    Ok(())
}

fn compare(g: &Gathered, findings: &mut Vec<Finding>) {
    for (user, organization) in g.memberships.symmetric_difference(&g.reaches) {
        findings.push(Finding(format!("{user} and {organization} do not agree on the membership")));
    }
    for (artifact, release) in g.holds.symmetric_difference(&g.held) {
        findings.push(Finding(format!("{artifact} and {release} do not agree on the hold")));
    }
    if g.uses != g.used {
        findings
            .push(Finding("how often images and templates are used was not counted right".into()));
    }
    for (child, parent) in g.parents.iter().filter(|(_, parent)| !g.known.contains(parent)) {
        findings.push(Finding(format!("{child} hangs from {parent}, which is not there")));
    }
    for release in g.current.iter().filter(|release| !g.known.contains(*release)) {
        findings.push(Finding(format!("{release} is current and not there")));
    }
    for release in
        g.published.difference(&g.current).filter(|release| !g.to_be_told.contains(*release))
    {
        findings.push(Finding(format!("{release} is published and not current")));
    }
}

/// Hashes the bytes of every verified artifact that is kept in a folder.
fn bytes(data: &Path, g: &Gathered, findings: &mut Vec<Finding>) {
    let folder = data.join("artifacts");
    if !folder.exists() {
        return;
    }
    for (artifact, sha256) in &g.verified {
        let hashed = File::open(folder.join(artifact)).and_then(|mut file| hash(&mut file));
        match hashed {
            Ok((_, found)) if found.as_str() == sha256 => {}
            Ok((_, found)) => findings.push(Finding(format!(
                "{artifact} should hash to {sha256}, but hashes to {found}"
            ))),
            Err(e) => {
                findings.push(Finding(format!("the bytes of {artifact} cannot be read: {e}")))
            }
        }
    }
}
