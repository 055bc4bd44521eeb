//! Owners over a store of apps, in lives that end without warning.

use super::shop::Shop;
pub use crate::life::a_moment;
use crate::life::{open, time_passes};
use actix_rt::{Arbiter, System};
use actors::{
    kinds::{
        delivery::{
            artifacts::{Artifacts, StoredArtifact},
            credentials::{self, Credentials},
            publications::{self, Publications},
            releases::{self, Command, Draft, Offer, Releases},
        },
        people::{
            apps::{App, Apps},
            organizations::{self, Organizations},
            projects::Projects,
        },
        world::World,
    },
    ports::{
        PortError, Ports,
        binaries::{Binaries, Examined, Staged},
        credentials::Secret,
        unavailable,
    },
    runtime::{audit, directory::Rules, entries::Under, manual_clock::ManualClock, turns::Tenant},
};
use app_stores::{Pem, ServiceAccount};
use async_trait::async_trait;
use bytes::Bytes;
use container_engine::fake::Fake;
use contract::{
    AppId, ArtifactId, CredentialId, Fault, Id, OrganizationId, ProjectId, PublicationId,
    ReleaseId, Timestamp, UserId,
    artifacts::ArtifactKind,
    projects::{Project, ProjectState},
    publishing::Percent,
    releases::{Release, ReleaseState, Target},
};
use serde_json::json;
use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use ulid::Ulid;

/// How far the clock goes in a moment.
const STEP: Duration = Duration::from_millis(50);

/// How long something may take in real time. On the clock of the test that is up to 150 minutes.
const WITHIN: Duration = Duration::from_secs(180);

pub fn app() -> AppId {
    Id::of(Ulid(3))
}

fn project() -> ProjectId {
    Id::of(Ulid(2))
}

/// The n-th release has the n-th artifact and the n-th publication.
pub fn release(n: u128) -> ReleaseId {
    Id::of(Ulid(100 + n))
}

pub fn publication(n: u128) -> PublicationId {
    Id::of(Ulid(300 + n))
}

fn artifact(n: u128) -> ArtifactId {
    Id::of(Ulid(200 + n))
}

/// A clock in the year 2026.
pub fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_millis(1_767_225_600_000))
}

/// One life of the owners. It ends without warning when the test returns; the store stays.
pub fn life<T, F: Future<Output = T>>(
    folder: &Path,
    (clock, shop): (&ManualClock, &Shop),
    test: impl FnOnce(Scene) -> F,
) -> T {
    System::new().block_on(async {
        let arbiters = [Arbiter::new(), Arbiter::new()];
        let handles: Vec<_> = arbiters.iter().map(Arbiter::handle).collect();
        let engine = Fake::new({
            let clock = clock.port();
            move || clock.now()
        });
        let ports = unavailable::ports(clock.port(), Arc::new(engine));
        let shops: HashMap<Target, Arc<dyn app_stores::AnyStore>> =
            HashMap::from([(Target::GooglePlay, Arc::new(shop.clone()) as Arc<_>)]);
        let ports = Ports { app_stores: Arc::new(shops), binaries: Arc::new(OneByte), ..ports };
        let store = open(folder).await;
        let world = World::start(store, ports, &handles, Rules::default()).await.unwrap();
        actix_rt::spawn(time_passes(world.clone(), clock.clone(), handles, STEP));
        let result = test(Scene(world)).await;
        for arbiter in arbiters {
            arbiter.stop();
            arbiter.join().unwrap();
        }
        result
    })
}

/// Waits in real time until something holds.
pub async fn until(told: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < WITHIN, "{told}: it never holds");
        a_moment().await;
    }
}

/// An app, its credential and its releases.
pub struct Scene(pub Arc<World>);

impl Scene {
    pub fn now(&self) -> Timestamp {
        self.0.ports.clock.now()
    }

    /// Makes the app, with a credential for the store.
    pub async fn app(&self) -> CredentialId {
        let now = self.now();
        let (organization_id, owner): (OrganizationId, UserId) = (Id::of(Ulid(1)), Id::of(Ulid(4)));
        let acme = organizations::New { name: "Acme".parse().unwrap(), owner };
        self.0.to::<Organizations>(organization_id).create(acme).await.unwrap();
        let shop = Project {
            id: project(),
            organization_id,
            owner_id: Some(owner),
            name: "Shop".parse().unwrap(),
            description: None,
            member_ids: vec![],
            state: ProjectState::Active,
            created_at: now,
            updated_at: now,
        };
        self.0.to::<Projects>(project()).create(shop).await.unwrap();
        self.0
            .to::<Apps>(app())
            .create(App::new(project(), "Shop".parse().unwrap(), now))
            .await
            .unwrap();
        self.credential().await
    }

    /// Stores a credential.
    pub async fn credential(&self) -> CredentialId {
        let id: CredentialId = self.0.ports.random.id(self.now());
        let new = self.version(id);
        self.0.to::<Credentials>(id).create(new).await.unwrap();
        id
    }

    /// A version of a credential.
    pub fn version(&self, id: CredentialId) -> credentials::New {
        let secret = Secret::Google(ServiceAccount {
            client_email: "publisher@acme.iam.gserviceaccount.com".into(),
            private_key_id: "1".into(),
            private_key: Pem("a key".into()),
        });
        let secret = serde_json::to_string(&secret).unwrap();
        let credential = json!({
            "id": id, "appId": app(), "kind": "googleServiceAccount", "name": "play",
            "facts": {}, "warnings": [], "createdAt": self.now(), "updatedAt": self.now(),
        });
        credentials::New {
            credential: serde_json::from_value(credential).unwrap(),
            secret: self.0.ports.sealer.seal(&id.to_string(), &secret).unwrap(),
        }
    }

    /// Drafts the n-th release: version `1.0.n` with the build number n.
    pub async fn draft(&self, n: u128) {
        let now = self.now();
        let upload: StoredArtifact = serde_json::from_value(json!({
            "artifact": {
                "id": artifact(n), "appId": app(), "platform": "android", "kind": "aab",
                "fileName": "app.aab", "version": format!("1.0.{n}"), "buildNumber": n.to_string(),
                "identifier": "com.example.shop", "size": 1, "sha256": "0".repeat(64),
                "trust": "token", "state": "verified", "createdAt": now,
                "provenance": {"path": "external-ci", "claimed": true},
            },
            "offset": 1, "length": 1, "declared": {}, "expires_at": now,
        }))
        .unwrap();
        self.0.to::<Artifacts>(artifact(n)).create(upload).await.unwrap();
        let artifacts = vec![self.0.store.get(&artifact(n)).unwrap().unwrap()];
        let draft: Release = serde_json::from_value(json!({
            "id": release(n), "appId": app(), "version": format!("1.0.{n}"),
            "channel": "production", "artifactIds": [artifact(n)], "state": "draft",
            "publications": [], "createdAt": now,
        }))
        .unwrap();
        let draft = Draft { release: draft, by_token: None, artifacts, wanted: vec![] };
        self.0.to::<Releases>(release(n)).create(draft).await.unwrap();
    }

    /// Asks for the publication of the n-th release.
    pub async fn publish(&self, n: u128, rollout: Option<f64>) -> Result<(), Fault> {
        let offer =
            Offer { id: publication(n), artifact_id: artifact(n), target: Target::GooglePlay };
        let command = Command::Publish {
            held: vec![artifact(n)],
            wanted: vec![offer],
            notes: None,
            rollout: rollout.map(|share| Percent::try_from(share).unwrap()),
            options: None,
        };
        self.0.to::<Releases>(release(n)).ask(command).await.map(drop)
    }

    pub async fn ask(&self, n: u128, command: publications::Command) -> Result<(), Fault> {
        self.0.to::<Publications>(publication(n)).ask(command).await.map(drop)
    }

    /// The n-th release, if it exists.
    pub fn release(&self, n: u128) -> Option<releases::State> {
        self.0.store.get::<Releases>(&release(n)).unwrap().map(|seen| seen.state.clone())
    }

    /// Its publication, if it exists.
    pub fn publication(&self, n: u128) -> Option<publications::State> {
        let seen = self.0.store.get::<Publications>(&publication(n)).unwrap();
        seen.map(|seen| seen.state.clone())
    }

    /// Waits until the n-th release has a state and knows where its publication stands, and nothing
    /// is left to do.
    pub async fn comes_to(&self, n: u128, state: ReleaseState, told: &str) {
        let begun = Instant::now();
        loop {
            let (release, publication) = (self.release(n), self.publication(n));
            if self.rests(n) && release.as_ref().is_some_and(|r| r.release.state == state) {
                return;
            }
            assert!(
                begun.elapsed() < WITHIN,
                "{told}: it does not become {state:?}: {} {}",
                serde_json::to_string(&release).unwrap(),
                serde_json::to_string(&publication).unwrap()
            );
            a_moment().await;
        }
    }

    fn rests(&self, n: u128) -> bool {
        let release = self.0.store.get::<Releases>(&release(n)).unwrap();
        let publication = self.0.store.get::<Publications>(&publication(n)).unwrap();
        let (Some(release), Some(publication)) = (release, publication) else { return false };
        release.pending().is_none()
            && publication.pending().is_none()
            && release.state.release.publications == [publication.state.publication.clone()]
    }

    /// How often the records of the n-th release and its publication were written.
    pub fn writes(&self, n: u128) -> u64 {
        let release = self.0.store.get::<Releases>(&release(n)).unwrap();
        let publication = self.0.store.get::<Publications>(&publication(n)).unwrap();
        release.map_or(0, |seen| seen.version()) + publication.map_or(0, |seen| seen.version())
    }

    /// Restarts the owners of the n-th release and its publication, and so their effects.
    pub async fn restart(&self, n: u128) {
        let _ = self.0.to::<Publications>(publication(n)).restart().await;
        let _ = self.0.to::<Releases>(release(n)).restart().await;
    }

    /// Who used credentials, by the audit log: the credential and the publication of each use.
    pub fn uses(&self) -> Vec<(String, String)> {
        let events = self.0.store.whole::<audit::Event>(None).map(|found| found.unwrap().1);
        let events = events.filter(|event| event.0.function == "useCredential");
        events.map(|event| (event.0.resource.clone(), event.0.request_id.clone())).collect()
    }

    /// How many publications and credentials the app has.
    pub fn left(&self) -> (usize, usize) {
        let all = Under(app());
        let publications = self.0.store.newest::<Publications>(&all, None).count();
        (publications, self.0.store.newest::<Credentials>(&all, None).count())
    }
}

/// Every artifact is one byte.
struct OneByte;

#[async_trait]
impl Binaries for OneByte {
    async fn reach(&self, _: ArtifactId) -> Result<(), PortError> {
        Ok(())
    }
    async fn staged(&self, _: ArtifactId, _: &Staged) -> Result<u64, PortError> {
        Ok(0)
    }
    async fn examine(
        &self,
        _: Tenant,
        _: ArtifactId,
        _: ArtifactKind,
        _: &Staged,
    ) -> Result<Examined, PortError> {
        Err(PortError("every artifact is examined already".into()))
    }
    async fn keep(&self, _: ArtifactId, _: &Examined) -> Result<(), PortError> {
        Ok(())
    }
    async fn part(&self, _: ArtifactId, _: u64, length: u64) -> Result<Bytes, PortError> {
        Ok(Bytes::from(vec![0; usize::try_from(length).unwrap()]))
    }
    async fn discard(&self, _: ArtifactId) -> Result<(), PortError> {
        Ok(())
    }
}
