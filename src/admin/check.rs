//! Reads the whole store and reports inconsistencies: records against their index, side records against the
//! resource that they end with, derived records against their sources, artifacts against their bytes.

use super::{Place, note};
use crate::adapters::{binaries::hash, clock};
use actors::{
    kinds::{
        delivery::{
            artifacts::{ArtifactRefs, Artifacts},
            releases::{Current, Releases},
        },
        events::{deliveries::Deliveries, webhooks::Payload},
        hosting::{instances::Instances, templates::Templates},
        people::{
            accounts::Accounts,
            organizations::{Memberships, Organizations},
            usage,
        },
        table,
    },
    records::{self, RecordVisitor},
    runtime::{
        ref_count::RefCount,
        resource::Resource,
        side_record::{End, SideRecord},
    },
};
use contract::{Timestamp, artifacts::ArtifactState, releases::ReleaseState};
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
    /// How many resources of each kind have owners with work that does not wait for a later time.
    at_work: BTreeMap<&'static str, u64>,
}

/// Checks a store and the files beside it. The error names the number of findings.
pub fn check(place: &Place) -> Result<(), String> {
    let (store, data) = (place.open()?, place.data.as_path());
    let inspected = inspect(&store, data);
    store.close();
    let (gathered, findings) = inspected?;
    for Finding(finding) in &findings {
        note(finding);
    }
    if findings.is_empty() {
        let at_work = &gathered.at_work;
        let kinds: Vec<_> = at_work.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        note(&format!(
            "{} resources, {} with work left{}, no inconsistencies",
            gathered.known.len(),
            at_work.values().sum::<u64>(),
            if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) }
        ));
        return Ok(());
    }
    Err(format!("{} findings", findings.len()))
}

fn inspect(store: &Store, data: &Path) -> Result<(Gathered, Vec<Finding>), String> {
    // As at a start: what an earlier version did not index or count is no finding.
    let indexed = store.clone().into();
    let prepared = actix_rt::System::new().block_on(async {
        table::reindex(&indexed).await?;
        usage::count_once(&indexed).await
    });
    prepared.map_err(|e| e.to_string())?;
    let mut findings = Vec::new();
    for organization in usage::miscounted(&indexed).map_err(|e| e.to_string())? {
        findings.push(Finding(format!(
            "what {organization} uses of its quotas, or the machine promises, is miscounted"
        )));
    }
    let gathered = read(store, &mut findings).map_err(|e| e.to_string())?;
    compare(&gathered, &mut findings);
    bytes(data, &gathered, &mut findings);
    Ok((gathered, findings))
}

/// Reads what all records have in common: that they can be read and found, with which resource they end,
/// and whether an owner is awake.
struct All<'a> {
    store: &'a Store,
    findings: &'a mut Vec<Finding>,
    gathered: &'a mut Gathered,
    now: Timestamp,
}

impl RecordVisitor for All<'_> {
    type Error = StoreError;

    fn resource<R: Resource>(&mut self) -> Result<(), StoreError> {
        let (g, now) = (&mut *self.gathered, self.now);
        let (_, found) = self.store.check::<R>(|key, kept, _| {
            g.known.insert(key.into());
            if kept.is_at_work(now) {
                *g.at_work.entry(R::TREE).or_default() += 1;
            }
            let parent = R::parent_key(kept).filter(|_| !kept.is_deleted());
            g.parents.extend(parent.map(|parent| (key.to_owned(), parent)));
        })?;
        self.findings.extend(found);
        Ok(())
    }

    fn side_record<R: SideRecord>(&mut self) -> Result<(), StoreError> {
        let g = &mut *self.gathered;
        let (_, found) = self.store.check::<R>(|key, record, findings| {
            let record_key = || format!("the record {key} of {}", R::TREE);
            let parent = match (record.end(), key.parse::<R::Key>()) {
                (End::With(id), _) => id,
                (End::WithKey, Ok(key)) => R::named_by(&key),
                (End::WithKey, Err(_)) => {
                    return findings.push(Finding(format!("{} has no valid key", record_key())));
                }
                (End::At(_) | End::WhenUsed | End::Archived | End::Never, _) => return,
            };
            // The resources were visited before.
            if !g.known.contains(&parent) {
                findings.push(lost(&record_key(), &parent));
            }
        })?;
        self.findings.extend(found);
        Ok(())
    }
}

fn read(store: &Store, findings: &mut Vec<Finding>) -> Result<Gathered, StoreError> {
    let mut g = Gathered::default();
    let now = clock::system().now();
    records::visit(&mut All { store, findings, gathered: &mut g, now })?;
    // What only some kinds have.
    g.members(store)?;
    g.artifacts_and_releases(store)?;
    g.uses(store)?;
    Ok(g)
}

impl Gathered {
    /// Who belongs to which organization.
    fn members(&mut self, store: &Store) -> Result<(), StoreError> {
        each::<Accounts>(store, |key, account| {
            self.parents.push((key.into(), account.personal.to_string()));
        })?;
        each::<Organizations>(store, |key, organization| {
            let members = organization.members.iter();
            self.memberships.extend(members.map(|m| (m.user.to_string(), key.to_owned())));
        })?;
        each::<Memberships>(store, |user, memberships| {
            let organizations = memberships.organizations.keys();
            self.reaches.extend(organizations.map(|id| (user.to_owned(), id.to_string())));
        })
    }

    fn artifacts_and_releases(&mut self, store: &Store) -> Result<(), StoreError> {
        each::<Artifacts>(store, |key, upload| {
            let artifact = &upload.artifact;
            if let (ArtifactState::Verified, Some(sha256)) = (artifact.state, &artifact.sha256) {
                self.verified.insert(key.into(), sha256.to_string());
            }
        })?;
        each::<Releases>(store, |key, state| {
            let artifacts = state.release.artifact_ids.iter();
            self.holds.extend(artifacts.map(|artifact| (artifact.to_string(), key.to_owned())));
            if state.release.state == ReleaseState::Published {
                self.published.insert(key.into());
            }
            self.to_be_told.extend(state.to_tell.iter().map(ToString::to_string));
        })?;
        each::<ArtifactRefs>(store, |artifact, refs| {
            let releases = refs.releases.iter();
            self.held.extend(releases.map(|release| (artifact.to_owned(), release.to_string())));
        })?;
        each::<Current>(store, |_, current| {
            self.current.insert(current.release.to_string());
        })
    }

    /// What is used by others, and the stored counts of that.
    fn uses(&mut self, store: &Store) -> Result<(), StoreError> {
        each::<Templates>(store, |key, template| {
            for version in &template.versions {
                let images: BTreeSet<_> = version.services.iter().map(|s| s.image_id).collect();
                for image in images {
                    *self.uses.entry(image.to_string()).or_default() += 1;
                    self.parents.push((key.into(), image.to_string()));
                }
            }
        })?;
        each::<Instances>(store, |key, instance| {
            if !instance.is_deleted() {
                let template = instance.template_id.to_string();
                *self.uses.entry(template.clone()).or_default() += 1;
                self.parents.push((key.into(), template));
            }
        })?;
        each::<Deliveries>(store, |_, state| {
            let waits = state.organization_id.filter(|_| state.delivery.finished_at.is_none());
            let shared = state.payload.is_none().then(|| state.delivery.message_id.to_string());
            for used in waits.map(|id| id.to_string()).into_iter().chain(shared) {
                *self.uses.entry(used).or_default() += 1;
            }
        })?;
        each::<RefCount>(store, |key, refs| {
            self.used.insert(key.into(), refs.count);
        })?;
        each::<Payload>(store, |key, payload| {
            self.used.insert(key.into(), payload.uses());
        })
    }
}

/// Reads every record of a kind. What is wrong with the record itself was found before.
fn each<R: Record>(
    store: &Store,
    mut each: impl FnMut(&str, &R::Content),
) -> Result<(), StoreError> {
    store.check::<R>(|key, content, _| each(key, content)).map(drop)
}

fn lost(child: &str, parent: &str) -> Finding {
    Finding(format!("{child} refers to {parent}, which does not exist"))
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
            "a count is wrong: of the uses of images, templates or payloads, or of the waiting deliveries of an organization"
                .into(),
        ));
    }
    for (child, parent) in g.parents.iter().filter(|(_, parent)| !g.known.contains(parent)) {
        findings.push(lost(child, parent));
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

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests")]
mod tests {
    use super::*;
    use actors::kinds::hosting::progress_log::Line;
    use contract::{EventId, Timestamp, deployments::StepName};
    use store::{Change, Memory};

    #[test]
    fn a_line_that_outlived_its_build_is_a_finding() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::open(&path, &records::trees(), Memory::default()).unwrap();
        let (key, build) = ("evt_00000000000000000000000001", "job_00000000000000000000000002");
        let id: EventId = key.parse().unwrap();
        let at = Timestamp::from_millis(1);
        let line = Line { of: build.into(), at, step: StepName::Build, text: "done".into() };
        let change = Change::new().append::<Line>(&id, &line);
        actix_rt::System::new().block_on(store.commit(change)).unwrap();
        let (_, findings) = inspect(&store, folder.path()).unwrap();
        let said: Vec<_> = findings.iter().map(|Finding(said)| said.as_str()).collect();
        let lost = format!("the record {key} of logLine refers to {build}, which does not exist");
        assert_eq!(said, [lost]);
        store.close();
    }
}
