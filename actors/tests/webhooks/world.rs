//! A platform over a receiver that answers as the test wants, in lives that end without warning.

pub use crate::life::a_moment;
use crate::life::open;
use actix_rt::{Arbiter, System};
use actors::{
    background::{fan_out::FanOut, sweeper::sweep},
    call::platform::{DefaultTemplates, Platform, Settings},
    kinds::{
        delivery::artifacts::{Artifacts, StoredArtifact},
        events::webhooks::{Webhook, Webhooks, signature::Secret},
        people::{
            apps::{App, Apps},
            organizations::{self, Organizations},
            projects::Projects,
        },
    },
    ports::{
        Ports,
        receivers::{Answered, Posted, Receivers},
        unavailable,
    },
    runtime::{directory::Rules, manual_clock::ManualClock},
};
use async_trait::async_trait;
use container_engine::fake::Fake;
use contract::{
    AppId, ArtifactId, DeliveryId, Id, OrganizationId, ProjectId, Timestamp, UserId, WebUrl,
    WebhookId,
    authentication::Tier,
    projects::{Project, ProjectState},
    webhooks::WebhookDelivery,
};
use serde_json::json;
use std::{
    collections::HashMap,
    future::pending,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use ulid::Ulid;

/// A request that the receiver got.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub at: Timestamp,
    pub url: String,
    pub headers: HashMap<&'static str, String>,
    pub body: String,
}

impl Request {
    pub fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }
}

/// What the receiver does with requests to an address.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    Status(u16),
    /// With the header `Retry-After`.
    Later(u16, Duration),
    Never,
}

/// A receiver. Clones are the same one.
#[derive(Clone)]
pub struct Receiver {
    clock: ManualClock,
    got: Arc<Mutex<Vec<Request>>>,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
}

impl Receiver {
    pub fn new(clock: &ManualClock) -> Receiver {
        Receiver { clock: clock.clone(), got: Arc::default(), answers: Arc::default() }
    }

    /// Answers requests to an address like this from now on. By default, the status is 204.
    pub fn answer(&self, url: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(url.into(), answer);
    }

    /// The requests to an address.
    pub fn got(&self, url: &str) -> Vec<Request> {
        let got = self.got.lock().unwrap();
        got.iter().filter(|request| request.url == url).cloned().collect()
    }

    /// Waits until so many requests to an address came.
    pub async fn wait_for(&self, url: &str, count: usize) -> Vec<Request> {
        until(&format!("{count} requests to {url}"), || self.got(url).len() >= count).await;
        self.got(url)
    }
}

#[async_trait]
impl Receivers for Receiver {
    fn check(&self, _: &WebUrl) -> Result<(), String> {
        Ok(())
    }

    async fn post(
        &self,
        url: &WebUrl,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Posted {
        let at = actors::runtime::clock::Time::now(&self.clock);
        let (url, headers) = (url.to_string(), headers.into_iter().collect());
        let answer = self.answers.lock().unwrap().get(&url).copied();
        self.got.lock().unwrap().push(Request { at, url, headers, body });
        let (status, retry_after) = match answer.unwrap_or(Answer::Status(204)) {
            Answer::Status(status) => (status, None),
            Answer::Later(status, time) => (status, Some(time)),
            Answer::Never => pending().await,
        };
        let reply = "a reply".to_owned();
        Posted { took: Duration::ZERO, result: Ok(Answered { status, retry_after, reply }) }
    }
}

/// A platform with one organization, project and app.
pub struct World {
    pub clock: ManualClock,
    pub platform: Platform,
}

pub fn organization() -> OrganizationId {
    Id::of(Ulid(1))
}

pub fn project() -> ProjectId {
    Id::of(Ulid(2))
}

pub fn app() -> AppId {
    Id::of(Ulid(3))
}

/// One life of the platform. It ends without warning when the test returns; the store stays.
pub fn life<T, F: Future<Output = T>>(
    folder: &Path,
    (clock, receiver): (&ManualClock, &Receiver),
    test: impl FnOnce(World) -> F,
) -> T {
    System::new().block_on(async {
        let arbiters = [Arbiter::new(), Arbiter::new()];
        let handles: Vec<_> = arbiters.iter().map(Arbiter::handle).collect();
        let engine = Fake::new({
            let clock = clock.port();
            move || clock.now()
        });
        let ports = unavailable::ports(clock.port(), Arc::new(engine));
        let ports = Ports { receivers: Arc::new(receiver.clone()), ..ports };
        let store = open(folder).await;
        let platform =
            Platform::start(store, ports, settings(), &handles, Rules::default()).await.unwrap();
        let result = test(World { clock: clock.clone(), platform }).await;
        for arbiter in arbiters {
            arbiter.stop();
            arbiter.join().unwrap();
        }
        result
    })
}

pub fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_millis(1_767_225_600_000))
}

impl World {
    /// Makes the organization with its project and app.
    pub async fn people(self) -> World {
        let owner = UserId::of(Ulid(4));
        self.organization(organization(), owner).await;
        let now = self.now();
        let shop = Project {
            id: project(),
            organization_id: organization(),
            owner_id: Some(owner),
            name: "Shop".parse().unwrap(),
            description: None,
            member_ids: vec![],
            state: ProjectState::Active,
            created_at: now,
            updated_at: now,
        };
        self.platform.world.to::<Projects>(project()).create(shop).await.unwrap();
        self.platform
            .world
            .to::<Apps>(app())
            .create(App::new(project(), "Shop".parse().unwrap(), now))
            .await
            .unwrap();
        self
    }

    /// Makes an organization of an account.
    pub async fn organization(&self, id: OrganizationId, owner: UserId) {
        let acme = organizations::New { name: "Acme".parse().unwrap(), owner };
        self.platform.world.to::<Organizations>(id).create(acme).await.unwrap();
    }

    pub fn now(&self) -> Timestamp {
        actors::runtime::clock::Time::now(&self.clock)
    }

    pub fn start_fan_out(&self) {
        FanOut::start(self.platform.world.clone());
    }

    pub async fn webhook(&self, url: &str) -> WebhookId {
        self.webhook_of(organization(), url).await
    }

    pub async fn webhook_of(&self, organization: OrganizationId, url: &str) -> WebhookId {
        let world = &self.platform.world;
        let id: WebhookId = world.ports.random.id(self.now());
        let secret = Secret::new(&world.ports.random).unwrap();
        let secret = world.ports.sealer.seal(&id.to_string(), secret.reveal()).unwrap();
        let webhook = Webhook {
            organization_id: organization,
            url: url.parse().unwrap(),
            description: None,
            events: None,
            enabled: true,
            disabled_reason: None,
            failing_since: None,
            secret,
            previous_secret: None,
            created_by: None,
            maker_epoch: 0,
            created_at: self.now(),
            updated_at: self.now(),
        };
        world.webhooks.add(organization, id);
        world.to::<Webhooks>(id).create(webhook).await.unwrap();
        id
    }

    /// Something happens of which webhooks hear.
    pub async fn artifact(&self) -> ArtifactId {
        let world = &self.platform.world;
        let id: ArtifactId = world.ports.random.id(self.now());
        let upload: StoredArtifact = serde_json::from_value(json!({
            "artifact": {
                "id": id, "appId": app(), "platform": "android", "kind": "apk",
                "fileName": "app.apk", "version": "1.0.0", "trust": "token", "state": "verified",
                "provenance": {"path": "external-ci", "claimed": true}, "createdAt": self.now(),
            },
            "offset": 1, "length": 1, "declared": {}, "expires_at": self.now(),
        }))
        .unwrap();
        world.to::<Artifacts>(id).create(upload).await.unwrap();
        id
    }

    pub fn delivery(&self, id: DeliveryId) -> Option<WebhookDelivery> {
        let found =
            self.platform.world.store.get::<actors::kinds::events::deliveries::Deliveries>(&id);
        found.unwrap().map(|found| found.state.delivery.clone())
    }

    /// Moves the clock, and tells the resources that are due.
    pub async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        sweep(&self.platform).await;
    }
}

/// Waits in real time until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: it never holds");
        a_moment().await;
    }
}

fn settings() -> Settings {
    Settings {
        api_url: "http://svc.test".into(),
        dashboard_url: None,
        application_id: "svc_test".into(),
        javascript_key: None,
        require_javascript_key: false,
        master_key: "svc_mk_test".into(),
        first_start_token: None,
        master_key_addresses: vec![],
        signing_key: [7; 32],
        anonymous_tier: Tier::Free,
        largest_artifact: 1 << 20,
        upload_lifetime: Duration::from_secs(3600),
        oidc_issuers: vec![],
        build_limit: Duration::from_secs(3600),
        function_limit: Duration::from_secs(30),
        largest_log_reply: 1 << 20,
        default_templates: DefaultTemplates {
            backend: "a".parse().unwrap(),
            market: "b".parse().unwrap(),
        },
    }
}
