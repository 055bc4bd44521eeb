//! Owners of checkouts over the model of the world outside, in lives that end without warning.

use super::{
    market::Market,
    purchases::{Of, channel, price},
    till::Till,
};
pub use crate::life::a_moment;
use crate::life::{open, time_passes};
use actix_rt::{Arbiter, System};
use actors::{
    background::sweeper::sweep,
    call::platform::{DefaultTemplates, Platform, Settings},
    functions::people::accounts::registration::new_registration,
    kinds::{
        commerce::{
            checkouts::{CheckoutIndex, Checkouts, Command, New, Ordered, RequestId, State},
            commerce_channels::{self, CommerceChannels},
            subscriptions::{self, Subscriptions},
        },
        delivery::credentials::{self, Credentials},
        people::{
            accounts::Accounts,
            apps::{App, Apps},
            organizations::{self, Organizations},
            projects::Projects,
        },
        world::World,
    },
    ports::{Ports, credentials::Secret, site::Site, unavailable},
    runtime::{directory::Rules, entries::Under, manual_clock::ManualClock},
};
use container_engine::fake::Fake;
use contract::{
    AppId, CheckoutId, CredentialId, Fault, Id, OrganizationId, ProjectId, SubscriptionId,
    Timestamp, UserId,
    authentication::Tier,
    checkouts::{ChannelCheck, CheckoutState, Customer, PaymentProvider, Reference},
    projects::{Project, ProjectState},
    retention::{Retention, Retentions},
};
use payments::{PaystackKey, Provider, SecretText, StripeKey};
use serde_json::json;
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use ulid::Ulid;

/// How long something may take in real time. On the clock of the test that is days.
const WITHIN: Duration = Duration::from_secs(180);
/// How far the clock goes in a moment.
const STEP: Duration = Duration::from_secs(1);
pub const HOUR: Duration = Duration::from_secs(3600);
pub const OWNER: &str = "ada@example.com";
pub const BUYER: &str = "buyer@example.com";

pub fn app() -> AppId {
    Id::of(Ulid(3))
}

/// The n-th checkout.
pub fn checkout(n: u128) -> CheckoutId {
    Id::of(Ulid(100 + n))
}

pub fn reference(n: u128) -> Reference {
    Reference(checkout(n))
}

/// A clock in the year 2026.
pub fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_millis(1_767_225_600_000))
}

/// One life of the platform. It ends without warning when the test returns; the store stays.
pub fn life<T, F: Future<Output = T>>(
    folder: &Path,
    (clock, market): (&ManualClock, &Market),
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
        let tills = PaymentProvider::ALL.map(|provider| {
            let till: Arc<dyn Provider> = Arc::new(Till { market: market.clone(), provider });
            (provider, till)
        });
        let platform_plans = BTreeMap::from([
            ("PLN_gold".parse().unwrap(), Tier::Professional),
            ("PLN_silver".parse().unwrap(), Tier::Developer),
        ]);
        // Longer than any test of the money takes.
        let mut retentions = Retentions::default();
        retentions.set(Retention::UnpaidCheckouts, Some(100));
        retentions.set(Retention::OpenCheckouts, Some(200));
        let platform_app = Some(app());
        let site = Site { platform_app, platform_plans, retentions, ..(*ports.site).clone() };
        let ports = Ports {
            payments: Arc::new(HashMap::from(tills)),
            shop: Arc::new(market.clone()),
            mail: Arc::new(market.clone()),
            site: Arc::new(site),
            ..ports
        };
        let store = open(folder).await;
        let mut rules = Rules::default();
        // Clients in tests panic more often than an owner may crash.
        rules.intensity.crashes = 1000;
        let platform = Platform::start(store, ports, settings(), &handles, rules).await.unwrap();
        let scene = Scene { platform, clock: clock.clone(), market: market.clone() };
        let time = time_passes(scene.world().clone(), clock.clone(), handles, STEP);
        let passing = actix_rt::spawn(time);
        let result = test(scene).await;
        passing.abort();
        let _ = passing.await;
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

/// An app that takes payments.
#[derive(Clone)]
pub struct Scene {
    pub platform: Platform,
    pub clock: ManualClock,
    pub market: Market,
}

impl Scene {
    pub fn world(&self) -> &Arc<World> {
        &self.platform.world
    }

    pub fn now(&self) -> Timestamp {
        self.world().ports.clock.now()
    }

    /// Makes the app with an owner, the credential of a provider, and a channel of a shop.
    pub async fn app(&self, provider: PaymentProvider) {
        let now = self.now();
        let (organization_id, owner): (OrganizationId, UserId) = (Id::of(Ulid(1)), Id::of(Ulid(4)));
        self.register(owner, OWNER).await;
        let acme = organizations::New { name: "Acme".parse().unwrap(), owner };
        self.platform.world.to::<Organizations>(organization_id).create(acme).await.unwrap();
        let project_id: ProjectId = Id::of(Ulid(2));
        let shop = Project {
            id: project_id,
            organization_id,
            owner_id: Some(owner),
            name: "Shop".parse().unwrap(),
            description: None,
            member_ids: vec![],
            state: ProjectState::Active,
            created_at: now,
            updated_at: now,
        };
        self.platform.world.to::<Projects>(project_id).create(shop).await.unwrap();
        self.platform
            .world
            .to::<Apps>(app())
            .create(App::new(project_id, "Shop".parse().unwrap(), now))
            .await
            .unwrap();
        self.credential(provider).await;
        let sealer = &self.world().ports.sealer;
        let registered = commerce_channels::New {
            app_id: app(),
            store_id: "tea".parse().unwrap(),
            channel_token: "tea".parse().unwrap(),
            admin_api_url: "https://shop.example.com/admin-api".parse().unwrap(),
            admin_token: sealer.seal(&channel().to_string(), "an-admin-token-of-the-shop").unwrap(),
            label: "Tea".parse().unwrap(),
            check: "The channel opens.".into(),
            outcome: ChannelCheck::Passed,
        };
        self.platform.world.to::<CommerceChannels>(channel()).create(registered).await.unwrap();
    }

    /// Makes an account.
    pub async fn register(&self, user: UserId, email: &str) {
        let (email, now) = (email.parse().unwrap(), self.now());
        let registration =
            new_registration(&self.platform.world, user, email, None, String::new(), now);
        self.platform.world.to::<Accounts>(user).create(registration).await.unwrap();
    }

    async fn credential(&self, provider: PaymentProvider) {
        let id: CredentialId = self.world().ports.random.id(self.now());
        let secret_key = SecretText("sk_test_1".into());
        let secret = match provider {
            PaymentProvider::Paystack => {
                Secret::Paystack(PaystackKey { secret_key, previous_keys: vec![] })
            }
            PaymentProvider::Stripe => {
                Secret::Stripe(StripeKey { secret_key, webhook_secrets: vec![] })
            }
        };
        let credential = json!({
            "id": id, "appId": app(), "kind": provider.name(), "name": "payments",
            "facts": {}, "warnings": [], "createdAt": self.now(), "updatedAt": self.now(),
        });
        let secret = serde_json::to_string(&secret).unwrap();
        let new = credentials::New {
            credential: serde_json::from_value(credential).unwrap(),
            secret: self.world().ports.sealer.seal(&id.to_string(), &secret).unwrap(),
        };
        self.platform.world.to::<Credentials>(id).create(new).await.unwrap();
    }

    /// Opens the n-th checkout.
    pub async fn open(&self, n: u128, provider: PaymentProvider, of: Of) -> Result<(), Fault> {
        self.open_as(n, provider, of, &n.to_string()).await
    }

    /// Opens the n-th checkout with a request id.
    pub async fn open_as(
        &self,
        n: u128,
        provider: PaymentProvider,
        of: Of,
        request: &str,
    ) -> Result<(), Fault> {
        let new = New {
            app_id: app(),
            provider,
            ordered: Ordered {
                price: price(of),
                store_id: None,
                customer: Customer { email: BUYER.parse().unwrap(), name: None, phone: None },
                return_to: "https://shop.example.com/thanks".parse().unwrap(),
                metadata: Default::default(),
            },
            request: Some(RequestId { key: request.into(), fingerprint: "f".into() }),
        };
        self.platform.world.to::<Checkouts>(checkout(n)).create(new).await.map(drop)
    }

    pub async fn ask(&self, n: u128, command: Command) -> Result<(), Fault> {
        self.platform.world.to::<Checkouts>(checkout(n)).ask(command).await.map(drop)
    }

    /// The n-th checkout, if it exists.
    pub fn checkout(&self, n: u128) -> Option<State> {
        let seen = self.world().store.get::<Checkouts>(&checkout(n)).unwrap();
        seen.map(|seen| seen.state.clone())
    }

    /// How often the record of the n-th checkout was written.
    pub fn writes(&self, n: u128) -> u64 {
        let seen = self.world().store.get::<Checkouts>(&checkout(n)).unwrap();
        seen.map_or(0, |seen| seen.version())
    }

    /// Whether nothing is under way in the n-th checkout.
    pub fn is_idle(&self, n: u128) -> bool {
        let seen = self.world().store.get::<Checkouts>(&checkout(n)).unwrap();
        seen.is_none_or(|seen| seen.pending().is_none())
    }

    /// Waits until nothing is under way in the n-th checkout.
    pub async fn idles(&self, n: u128, told: &str) {
        until(told, || self.is_idle(n)).await;
    }

    /// Waits until the n-th checkout has a state and nothing is under way. Deadlines that pass are
    /// told.
    pub async fn comes_to(&self, n: u128, state: CheckoutState, told: &str) {
        let begun = Instant::now();
        loop {
            let checkout = self.checkout(n);
            if self.is_idle(n) && checkout.as_ref().is_some_and(|found| found.state == state) {
                return;
            }
            let found = serde_json::to_string(&checkout).unwrap();
            assert!(begun.elapsed() < WITHIN, "{told}: it does not become {state:?}: {found}");
            sweep(&self.platform).await;
            a_moment().await;
        }
    }

    /// Time passes, and what is due is told.
    pub async fn later(&self, time: Duration) {
        self.clock.advance(time);
        sweep(&self.platform).await;
    }

    /// The checkouts that are listed as unsettled.
    pub fn unsettled(&self) -> Vec<CheckoutId> {
        let unsettled = self.world().store.newest::<Checkouts>(&CheckoutIndex::Unsettled, None);
        unsettled.map(|found| found.unwrap().0).collect()
    }

    /// How many checkouts may still need the channel of the shop.
    pub fn open_in_channel(&self) -> usize {
        let entry = CheckoutIndex::Open { channel: channel() };
        self.world().store.newest::<Checkouts>(&entry, None).count()
    }

    /// The subscriptions of the app.
    pub fn subscriptions(&self) -> Vec<(SubscriptionId, subscriptions::State)> {
        let of_app = self.world().store.newest::<Subscriptions>(&Under(app()), None);
        of_app.map(Result::unwrap).map(|(id, seen)| (id, seen.state.clone())).collect()
    }

    /// The tier of an account.
    pub fn tier(&self, user: UserId) -> Tier {
        let seen =
            self.world().store.get::<actors::kinds::people::accounts::Accounts>(&user).unwrap();
        seen.unwrap().state.tier()
    }

    /// How many mails told the owner of the app of a payment that is not settled.
    pub fn alarms(&self) -> usize {
        let mails = self.market.mails();
        mails.iter().filter(|(to, about)| to == OWNER && about.contains("not settled")).count()
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
        upload_lifetime: HOUR,
        oidc_issuers: vec![],
        build_limit: HOUR,
        function_limit: Duration::from_secs(30),
        largest_log_reply: 1 << 20,
        default_templates: DefaultTemplates {
            backend: "a".parse().unwrap(),
            market: "b".parse().unwrap(),
        },
    }
}
