//! Reads the whole store and reports inconsistencies: records against their index, derived records
//! against their sources, artifacts against their bytes.

use super::{dump::open, note};
use crate::adapters::binaries::hash;
use actors::{
    call::{audit::Event, idempotency::StoredReply},
    kinds::{
        accounts::{Accounts, Session},
        artifacts::{ArtifactRefs, Artifacts},
        builds::Chunk,
        deliveries::Deliveries,
        deployments::DeploymentHistory,
        instances::{Instances, metrics::HourlyMetrics},
        organizations::{Memberships, Organizations},
        releases::{Current, Releases},
        table::{self, Visitor},
        templates::{Templates, catalogue::Shipped},
        tokens::LastUse,
        webhooks::{Payload, outbox::Outgoing},
    },
    operators::installation::Installation,
    platform,
    runtime::{
        clock_watch, progress_log::Line, reachability::ForwardedRequest, ref_count::RefCount,
        reindex::IndexVersion, resource::Resource,
    },
};
use contract::{artifacts::ArtifactState, releases::ReleaseState};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::Path,
};
use store::{Finding, Record, Store, StoreError};

/// Facts from the records, gathered for comparison.
#[derive(Default)]
struct Gathered {
    /// User and organization, from the organizations.
    memberships: BTreeSet<(String, String)>,
    /// User and organization, from the users' membership records.
    reaches: BTreeSet<(String, String)>,
    /// Artifact and release, from the releases.
    holds: BTreeSet<(String, String)>,
    /// Artifact and release, from the artifact references.
    held: BTreeSet<(String, String)>,
    /// A record and a record that it refers to, such as its organization, project or app.
    parents: Vec<(String, String)>,
    known: BTreeSet<String>,
    /// The SHA-256 of each verified artifact.
    verified: BTreeMap<String, String>,
    current: BTreeSet<String>,
    /// The releases whose state is published.
    published: BTreeSet<String>,
    /// The releases that another release still has to tell about a change of the current release.
    to_be_told: BTreeSet<String>,
    /// How often each image, template and payload is used, and how many deliveries of each
    /// organization wait, counted here.
    uses: BTreeMap<String, u64>,
    /// The stored counts of the same.
    used: BTreeMap<String, u64>,
    /// The number of resources whose owners are awake.
    at_work: u64,
}

/// What is wrong, and what was looked at.
#[derive(Default)]
struct Findings {
    all: Vec<Finding>,
    /// The trees whose records were read.
    trees: BTreeSet<&'static str>,
}

/// Checks a data directory. The error names the number of findings.
pub fn check(data: &Path) -> Result<(), String> {
    let store = open(data)?;
    // As at a start: what an earlier version did not index is no finding.
    let indexed = store.clone().into();
    let reindexed = actix_rt::System::new().block_on(table::reindex(&indexed));
    reindexed.map_err(|e| e.to_string())?;
    let mut found = Findings::default();
    let gathered = read(&store, &mut found).map_err(|e| e.to_string())?;
    let Findings { all: mut findings, trees } = found;
    let unread = platform::kinds().into_iter().filter(|tree| !trees.contains(tree));
    findings.extend(unread.map(|tree| Finding(format!("the records of {tree} were not checked"))));
    compare(&gathered, &mut findings);
    bytes(data, &gathered, &mut findings);
    store.close();
    for Finding(finding) in &findings {
        note(finding);
    }
    if findings.is_empty() {
        note(&format!(
            "{} resources, {} with work left, no inconsistencies",
            gathered.known.len(),
            gathered.at_work
        ));
        return Ok(());
    }
    Err(format!("{} findings", findings.len()))
}

/// Reads what all kinds have in common: the record, its parent and whether its owner is awake.
struct Kinds<'a> {
    store: &'a Store,
    findings: &'a mut Findings,
    gathered: &'a mut Gathered,
}

impl Visitor for Kinds<'_> {
    type Error = StoreError;

    fn visit<R: Resource>(&mut self) -> Result<(), StoreError> {
        let g = &mut *self.gathered;
        one::<R>(self.store, self.findings, |key, kept| {
            g.known.insert(key.into());
            g.at_work += u64::from(kept.task().is_some());
            let parent = R::parent_key(kept).filter(|_| !kept.is_deleted());
            g.parents.extend(parent.map(|parent| (key.to_owned(), parent)));
        })
    }
}

fn read(store: &Store, findings: &mut Findings) -> Result<Gathered, StoreError> {
    let mut g = Gathered::default();
    table::visit(&mut Kinds { store, findings, gathered: &mut g })?;
    // What only some kinds have. `table::visit` has already checked these records.
    let seen = &mut Findings::default();
    one::<Accounts>(store, seen, |key, account| {
        g.parents.push((key.into(), account.personal.to_string()));
    })?;
    one::<Organizations>(store, seen, |key, organization| {
        let members = organization.members.iter();
        g.memberships.extend(members.map(|m| (m.user.to_string(), key.to_owned())));
    })?;
    one::<Artifacts>(store, seen, |key, upload| {
        let artifact = &upload.artifact;
        if let (ArtifactState::Verified, Some(sha256)) = (artifact.state, &artifact.sha256) {
            g.verified.insert(key.into(), sha256.to_string());
        }
    })?;
    one::<Releases>(store, seen, |key, state| {
        let artifacts = state.release.artifact_ids.iter();
        g.holds.extend(artifacts.map(|artifact| (artifact.to_string(), key.to_owned())));
        if state.release.state == ReleaseState::Published {
            g.published.insert(key.into());
        }
        g.to_be_told.extend(state.to_tell.iter().map(ToString::to_string));
    })?;
    one::<Templates>(store, seen, |key, template| {
        for version in &template.versions {
            let images: BTreeSet<_> = version.services.iter().map(|s| s.image_id).collect();
            for image in images {
                *g.uses.entry(image.to_string()).or_default() += 1;
                g.parents.push((key.into(), image.to_string()));
            }
        }
    })?;
    one::<Instances>(store, seen, |key, instance| {
        if !instance.is_deleted() {
            let template = instance.template_id.to_string();
            *g.uses.entry(template.clone()).or_default() += 1;
            g.parents.push((key.into(), template));
        }
    })?;
    one::<Deliveries>(store, seen, |_, state| {
        let waits = state.organization_id.filter(|_| state.delivery.finished_at.is_none());
        let shared = state.payload.is_none().then(|| state.delivery.message_id.to_string());
        for used in waits.map(|id| id.to_string()).into_iter().chain(shared) {
            *g.uses.entry(used).or_default() += 1;
        }
    })?;
    one::<Memberships>(store, findings, |user, memberships| {
        let organizations = memberships.organizations.keys();
        g.reaches.extend(organizations.map(|id| (user.to_owned(), id.to_string())));
    })?;
    one::<ArtifactRefs>(store, findings, |artifact, refs| {
        let releases = refs.releases.iter();
        g.held.extend(releases.map(|release| (artifact.to_owned(), release.to_string())));
    })?;
    one::<Current>(store, findings, |_, current| {
        g.current.insert(current.release.to_string());
    })?;
    one::<RefCount>(store, findings, |key, refs| {
        g.used.insert(key.into(), refs.count);
    })?;
    one::<Payload>(store, findings, |key, payload| {
        g.used.insert(key.into(), payload.uses());
    })?;
    one::<Line>(store, findings, |_, line| {
        g.parents.push(("a line of a log".into(), line.of.clone()));
    })?;
    one::<Chunk>(store, findings, |_, chunk| {
        g.parents.push(("a log".into(), chunk.of.to_string()));
    })?;
    one::<Outgoing>(store, findings, |_, _| {})?;
    one::<LastUse>(store, findings, |_, _| {})?;
    one::<HourlyMetrics>(store, findings, |_, _| {})?;
    one::<Shipped>(store, findings, |_, _| {})?;
    one::<ForwardedRequest>(store, findings, |_, _| {})?;
    one::<DeploymentHistory>(store, findings, |_, _| {})?;
    one::<Session>(store, findings, |_, _| {})?;
    one::<StoredReply>(store, findings, |_, _| {})?;
    one::<Event>(store, findings, |_, _| {})?;
    one::<Installation>(store, findings, |_, _| {})?;
    one::<IndexVersion>(store, findings, |_, _| {})?;
    one::<clock_watch::Seen>(store, findings, |_, _| {})?;
    Ok(g)
}

fn one<R: Record>(
    store: &Store,
    findings: &mut Findings,
    mut each: impl FnMut(&str, &R::Content),
) -> Result<(), StoreError> {
    let (_, found) = store.check::<R>(|key, content, _| each(key, content))?;
    findings.all.extend(found);
    findings.trees.insert(R::TREE);
    Ok(())
}

fn compare(g: &Gathered, findings: &mut Vec<Finding>) {
    for (user, organization) in g.memberships.symmetric_difference(&g.reaches) {
        findings.push(Finding(format!("{user} and {organization} do not agree on the membership")));
    }
    for (artifact, release) in g.holds.symmetric_difference(&g.held) {
        findings.push(Finding(format!("{artifact} and {release} do not agree on the reference")));
    }
    if g.uses != g.used {
        findings.push(Finding(
            "the counts of what images, templates, payloads and webhooks are used for are wrong"
                .into(),
        ));
    }
    for (child, parent) in g.parents.iter().filter(|(_, parent)| !g.known.contains(parent)) {
        findings.push(Finding(format!("{child} refers to {parent}, which does not exist")));
    }
    for release in g.current.iter().filter(|release| !g.known.contains(*release)) {
        findings.push(Finding(format!("{release} is current but does not exist")));
    }
    for release in
        g.published.difference(&g.current).filter(|release| !g.to_be_told.contains(*release))
    {
        findings.push(Finding(format!("{release} is published but not current")));
    }
}

/// Hashes the bytes of every verified artifact, if artifacts lie in a folder.
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
