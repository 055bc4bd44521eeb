//! Writes records to a store before the service opens it, with the index entries of the service.

use crate::{
    outcome::{Explain, Outcome},
    server::Server,
};
use actors::{
    kinds::{
        delivery::{
            artifacts::{Artifacts, StoredArtifact},
            releases::{Current, Releases, State},
        },
        people::{
            apps::{App, Apps},
            organizations::{Organization, Organizations},
            projects::Projects,
        },
    },
    ports::{binaries::Staged, random::Random},
    records::trees,
    runtime::resource::{Kept, Resource},
};
use contract::{
    AppId, ArtifactId, Channel, OrganizationId, ProjectId, Timestamp, UserId,
    apps::Platform,
    artifacts::{Artifact, ArtifactKind, ArtifactState, Provenance, ProvenancePath, Trust},
    projects::{Project, ProjectState},
    releases::{Release, ReleaseState},
};
use std::{path::Path, str::FromStr};
use store::{Change, Memory, Store};

/// The time at which all records were created.
pub const MADE: Timestamp = Timestamp::from_millis(1_750_000_000_000);
/// Records of one change. A larger change is not faster.
const BATCH: usize = 1000;

/// Opens the store of a stopped service. One that never started is started once, which makes its keys: the
/// service opens a store that was written only with the keys that belong to it.
pub fn open(home: &Path) -> Outcome<Store> {
    if !home.join("data/run").exists() {
        Server::start(home, 1)?.stop()?;
    }
    Store::open(&home.join("data/run/store"), &trees(), Memory::default()).or_say("the store")
}

pub async fn commit(store: &Store, change: Change) -> Outcome<()> {
    store.commit(change).await.or_say("the store")
}

/// Writes `count` records to the store of a stopped service. `add` gets the number of each.
pub fn fill(
    home: &Path,
    count: usize,
    mut add: impl FnMut(Change, usize) -> Outcome<Change>,
) -> Outcome<()> {
    let store = open(home)?;
    let system = actix_rt::System::new();
    let mut left = 0..count;
    while !left.is_empty() {
        let change = left.by_ref().take(BATCH).try_fold(Change::new(), &mut add)?;
        system.block_on(commit(&store, change))?;
    }
    store.close();
    Ok(())
}

/// Writes `count` projects to the store, a thousand for each organization, and returns their ids.
pub async fn projects(store: &Store, count: usize) -> Outcome<Vec<ProjectId>> {
    let random = Random::default();
    let ids: Vec<ProjectId> = (0..count).map(|_| random.id(MADE)).collect();
    for ids in ids.chunks(BATCH) {
        let organization_id = random.id(MADE);
        let mut change = Change::new();
        for id in ids {
            change = put::<Projects>(change, *id, project(*id, organization_id)?);
        }
        commit(store, change).await?;
    }
    Ok(ids)
}

fn project(id: ProjectId, organization_id: OrganizationId) -> Outcome<Project> {
    Ok(Project {
        id,
        organization_id,
        owner_id: Some(Random::default().id(MADE)),
        name: text("A project of a team")?,
        description: Some(text("What this team builds, said in one line.")?),
        member_ids: Vec::new(),
        state: ProjectState::Active,
        created_at: MADE,
        updated_at: MADE,
    })
}

/// Writes a published release to the store, with its artifact and parents. The channel is
/// `production`, the platform Android.
pub async fn release(store: &Store) -> Outcome<AppId> {
    let random = Random::default();
    let (organization, user): (OrganizationId, UserId) = (random.id(MADE), random.id(MADE));
    let (project_id, app_id): (ProjectId, AppId) = (random.id(MADE), random.id(MADE));
    let (artifact_id, release_id) = (random.id(MADE), random.id(MADE));
    let channel: Channel = text("production")?;
    let change = Change::new();
    let change = put::<Organizations>(change, organization, organization_of(user)?);
    let change = put::<Projects>(change, project_id, project(project_id, organization)?);
    let change = put::<Apps>(change, app_id, app(project_id)?);
    let change = put::<Artifacts>(change, artifact_id, artifact(artifact_id, app_id, user)?);
    let release = Release {
        id: release_id,
        app_id,
        version: text("1.4.2")?,
        channel: channel.clone(),
        notes: Some(text("Faster, and fewer surprises.")?),
        artifact_ids: vec![artifact_id],
        state: ReleaseState::Published,
        publications: Vec::new(),
        rolled_back_to: None,
        created_by: Some(user),
        created_at: MADE,
        published_at: Some(MADE),
        options: Default::default(),
    };
    let state = State::new(release, None);
    let change = put::<Releases>(change, release_id, state);
    let current = Current { release: release_id, since: MADE };
    commit(store, change.create::<Current>(&Current::key(app_id, &channel), current)).await?;
    Ok(app_id)
}

/// A verified artifact for Android.
pub fn artifact(id: ArtifactId, app_id: AppId, user: UserId) -> Outcome<StoredArtifact> {
    let artifact = Artifact {
        id,
        app_id,
        platform: Platform::Android,
        kind: ArtifactKind::Apk,
        file_name: text("app-release.apk")?,
        size: Some(25_000_000),
        sha256: Some(text(&"5d".repeat(32))?),
        version: Some(text("1.4.2")?),
        build_number: Some("42".into()),
        identifier: Some(text("com.example.app")?),
        provenance: provenance(user),
        trust: Trust::Token,
        attestation: None,
        signer: None,
        profile: None,
        state: ArtifactState::Verified,
        problem: None,
        created_at: MADE,
        finalized_at: Some(MADE),
    };
    Ok(StoredArtifact {
        expected: None,
        discarding: false,
        claims_bytes: false,
        artifact,
        staged: Staged { offset: 25_000_000, segments: Vec::new() },
        length: Some(25_000_000),
        declared: Default::default(),
        expires_at: MADE,
    })
}

fn organization_of(user: UserId) -> Outcome<Organization> {
    Ok(Organization {
        name: text("A team")?,
        owner: user,
        personal: false,
        members: Vec::new(),
        leaving: Vec::new(),
        invitations: Vec::new(),
        closing: false,
        created_at: MADE,
        updated_at: MADE,
    })
}

pub fn app(project_id: ProjectId) -> Outcome<App> {
    Ok(App { platforms: vec![Platform::Android], ..App::new(project_id, text("An app")?, MADE) })
}

fn provenance(user: UserId) -> Provenance {
    Provenance {
        path: ProvenancePath::ExternalCi,
        uploaded_by: Some(user),
        repository: Some("example/app".into()),
        commit: Some("9fceb02d0ae598e95dc970b74767f19372d61af8".into()),
        git_ref: Some("refs/tags/v1.4.2".into()),
        run_url: None,
        profile: None,
        build_id: None,
        claimed: true,
    }
}

/// Adds the record of a resource at rest.
pub fn put<R: Resource>(change: Change, id: R::Key, state: R::State) -> Change {
    change.create::<R>(&id, Kept::at_rest(state))
}

/// Parses a text type of the contract.
pub fn text<T: FromStr<Err = String>>(text: &str) -> Outcome<T> {
    text.parse()
}
