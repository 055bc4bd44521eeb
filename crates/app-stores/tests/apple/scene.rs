//! Publications of one app, and what App Store Connect has of it.

use app_stores::{
    Advanced, AnyStore, AppFile, AppStoreConnectKey, DesiredState, NextStep, Options, Pem,
    Progress, PublicationOrder, ReadAt, RemoteError, StoreKey, app_store::AppStore,
    testflight::Testflight,
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    artifacts::ArtifactKind,
    publishing::{AppStoreOptions, TestflightOptions},
    releases::PublicationState,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{io, sync::OnceLock};
use test_support::apple::{Apple, ISSUER_ID, KEY_ID};

/// More steps than any publication takes.
const MOST_STEPS: usize = 80;

pub struct Scene<'a> {
    pub apple: &'a Apple,
    /// Apple's id of the app.
    pub app: String,
    bundle_id: String,
    file: AppFile,
    bytes: Vec<u8>,
    app_store: AppStore,
    testflight: Testflight,
}

/// The bytes of a file.
struct InMemory<'a>(&'a [u8]);

#[async_trait]
impl ReadAt for InMemory<'_> {
    async fn read(&self, offset: u64, length: u64) -> io::Result<Bytes> {
        let range = offset as usize..(offset + length) as usize;
        Ok(Bytes::copy_from_slice(&self.0[range]))
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["uploads", "builds", "versions", "submissions"] {
                println!("{name}: {:?}", self.list(name));
            }
        }
    }
}

impl Scene<'_> {
    /// A new app with one released version, 1.0, and build 42 of version 1.4.2 to publish.
    pub fn new<'a>(apple: &'a Apple, name: &str) -> Scene<'a> {
        let scene = Scene::without_version(apple, name);
        scene.version("1.0", "READY_FOR_DISTRIBUTION", json!({"en-US": {"whatsNew": "First."}}));
        scene
    }

    /// A new app that was never in the App Store.
    pub fn without_version<'a>(apple: &'a Apple, name: &str) -> Scene<'a> {
        let bundle_id = format!("com.example.{name}");
        let bytes: Vec<u8> =
            (0..1000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let hash = Sha256::digest(&bytes);
        let hex = hash.iter().map(|byte| format!("{byte:02x}"));
        let file = AppFile {
            kind: ArtifactKind::Ipa,
            name: "app.ipa".into(),
            size: bytes.len() as u64,
            sha256: hex.collect::<String>().parse().unwrap(),
            version: "1.4.2".into(),
            build_number: "42".into(),
        };
        let (app_store, testflight) = clients(apple);
        let app = apple.add_app(&bundle_id);
        Scene { apple, app, bundle_id, file, bytes, app_store, testflight }
    }

    pub fn version(&self, version: &str, state: &str, locales: Value) -> Value {
        let app = &self.app;
        let added = json!({"do": "version", "app": app, "version": version, "state": state,
            "locales": locales});
        self.apple.tell(&added)
    }

    pub fn group(&self, name: &str, more: Value) {
        let mut group = json!({"do": "group", "app": self.app, "name": name});
        group.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.apple.tell(&group);
    }

    pub fn to_app_store(&self, options: AppStoreOptions) -> PublicationOrder {
        self.order(Options::AppStore(options))
    }

    pub fn to_testflight(&self, groups: &[&str]) -> PublicationOrder {
        let groups: Vec<_> = groups.iter().map(|name| name.parse().unwrap()).collect();
        let groups = groups.try_into().unwrap();
        self.order(Options::Testflight(TestflightOptions { groups, ..Default::default() }))
    }

    fn order(&self, options: Options) -> PublicationOrder {
        PublicationOrder {
            id: "pub_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap(),
            app: self.bundle_id.clone(),
            file: self.file.clone(),
            default_notes: Some("Better.".parse().unwrap()),
            notes: Default::default(),
            options,
            wanted: DesiredState::Released(None),
        }
    }

    pub fn key(&self) -> StoreKey {
        key(KEY_ID, Some(ISSUER_ID), &self.apple.private_key)
    }

    pub async fn step(
        &self,
        order: &PublicationOrder,
        progress: &Progress,
    ) -> Result<Advanced, RemoteError> {
        let store: &dyn AnyStore = match order.options {
            Options::AppStore(_) => &self.app_store,
            _ => &self.testflight,
        };
        store.advance(&self.key(), order, &InMemory(&self.bytes), progress).await
    }

    /// The clients that go on after a crash.
    pub fn crash(&mut self) {
        (self.app_store, self.testflight) = clients(self.apple);
    }

    /// Steps until nothing is left to do.
    pub async fn run(&self, order: &PublicationOrder, progress: Progress) -> Advanced {
        self.run_until(order, progress, |advanced| advanced.next == NextStep::Done).await
    }

    /// Steps until the publication has this state, in these words of Apple.
    pub async fn run_to(
        &self,
        order: &PublicationOrder,
        state: PublicationState,
        words: &str,
    ) -> Advanced {
        let is_there = |advanced: &Advanced| {
            advanced.state == state && advanced.words.as_deref().unwrap_or_default().contains(words)
        };
        self.run_until(order, Progress::None, is_there).await
    }

    pub async fn run_until(
        &self,
        order: &PublicationOrder,
        progress: Progress,
        is_there: impl Fn(&Advanced) -> bool,
    ) -> Advanced {
        let mut progress = progress;
        let mut steps = Vec::new();
        for _ in 0..MOST_STEPS {
            let advanced = self.step(order, &progress).await.unwrap();
            steps.push((advanced.words.clone(), advanced.log.clone()));
            // What is kept is what can be read again.
            let kept = serde_json::to_string(&advanced.progress).unwrap();
            progress = serde_json::from_str(&kept).unwrap();
            assert_eq!(progress, advanced.progress);
            if is_there(&advanced) {
                return advanced;
            }
            assert_ne!(advanced.next, NextStep::Done, "{advanced:?} after {steps:?}");
        }
        panic!("it does not end: {steps:?}");
    }

    /// What Apple has of this app in a list of its state.
    pub fn list(&self, name: &str) -> Vec<Value> {
        let state = self.apple.state();
        let all = state[name].as_array().unwrap().iter();
        all.filter(|one| one["app"] == json!(self.app)).cloned().collect()
    }

    /// The version that is published.
    pub fn published(&self) -> Value {
        let versions = self.list("versions");
        let found: Vec<_> = versions.iter().filter(|one| one["version"] == "1.4.2").collect();
        assert_eq!(found.len(), 1, "{versions:?}");
        found[0].clone()
    }

    /// The build that is published.
    pub fn build(&self) -> Value {
        let builds = self.list("builds");
        assert_eq!(builds.len(), 1, "{builds:?}");
        builds[0].clone()
    }

    pub fn settings(&self, settings: Value) {
        let mut settings = settings;
        settings["do"] = json!("settings");
        settings["app"] = json!(self.app);
        self.apple.tell(&settings);
    }
}

fn clients(apple: &Apple) -> (AppStore, Testflight) {
    (AppStore::new(&apple.api).unwrap(), Testflight::new(&apple.api).unwrap())
}

/// An App Store Connect for the tests that leave its keys and its network alone.
pub fn shared() -> &'static Apple {
    static SHARED: OnceLock<Apple> = OnceLock::new();
    SHARED.get_or_init(Apple::start)
}

pub fn key(id: &str, issuer: Option<&str>, private_key: &str) -> StoreKey {
    StoreKey::Apple(AppStoreConnectKey {
        key_id: id.into(),
        issuer_id: issuer.map(str::to_owned),
        private_key: Pem(private_key.into()),
    })
}

pub fn wanting(order: &PublicationOrder, wanted: DesiredState) -> PublicationOrder {
    PublicationOrder { wanted, ..order.clone() }
}
