//! What the program asks of a store, and what the client of one store is.
//!
//! The program holds keys, options and progress of any store ([`StoreKey`], [`Options`], [`Progress`]). A
//! client knows those of its own store only ([`StoreClient`]). Every client is an [`AnyStore`]: whatever
//! belongs to another store is refused here, and nowhere else.

use crate::{
    Advanced, AppFile, Options, Progress, PublicationOrder, ReadAt, RemoteError, StoreKey,
};
use async_trait::async_trait;
use std::time::Duration;

/// A store, or a service that distributes apps to testers.
#[async_trait]
pub trait AnyStore: Send + Sync {
    /// Takes a publication one step closer to what is wanted. The first steps check everything that
    /// the store tells before anything is sent. A step takes at most [`StoreClient::step_within`].
    ///
    /// After [`RemoteError::Busy`] and [`RemoteError::Unclear`], the step may be repeated with the same
    /// progress; after [`RemoteError::Refused`] too, once the reason is gone.
    async fn advance(
        &self,
        key: &StoreKey,
        order: &PublicationOrder,
        content: &dyn ReadAt,
        progress: &Progress,
    ) -> Result<Advanced, RemoteError>;

    /// Checks that the key opens the app in this store with every permission that a publication
    /// needs. Changes nothing that anybody sees. Returns what was found, as one sentence.
    async fn check_access(&self, key: &StoreKey, app: &str) -> Result<String, RemoteError>;
}

/// How long one step may take in most stores.
pub const STEP_WITHIN: Duration = Duration::from_secs(120);

/// The client of one store, in the types of that store.
#[async_trait]
pub trait StoreClient: Send + Sync {
    /// The key that opens the store.
    type Key: OfOneStore<StoreKey>;
    /// What a publication may choose in the store.
    type Options: OfOneStore<Options>;
    /// How far a publication has come in the store. The default is the beginning.
    type Progress: OfOneStore<Progress> + Default;

    /// Takes a step, as [`AnyStore::advance`] says.
    async fn advance(
        &self,
        key: &Self::Key,
        order: &PublicationOrder<Self::Options>,
        content: &dyn ReadAt,
        progress: Self::Progress,
    ) -> Result<Advanced<Self::Progress>, RemoteError>;

    /// Checks a key, as [`AnyStore::check_access`] says.
    async fn check_access(&self, key: &Self::Key, app: &str) -> Result<String, RemoteError>;

    /// How long one step with this file may take. It is longer where a store takes a file only as a
    /// whole.
    fn step_within(&self, _file: &AppFile) -> Duration {
        STEP_WITHIN
    }
}

#[async_trait]
impl<C: StoreClient> AnyStore for C {
    async fn advance(
        &self,
        key: &StoreKey,
        order: &PublicationOrder,
        content: &dyn ReadAt,
        progress: &Progress,
    ) -> Result<Advanced, RemoteError> {
        let key = own(key, "key")?;
        let order = order.with(own::<_, C::Options>(&order.options, "options")?.clone());
        let progress = match progress {
            Progress::None => C::Progress::default(),
            begun => own::<_, C::Progress>(begun, "progress")?.clone(),
        };
        let advanced = StoreClient::advance(self, key, &order, content, progress).await?;
        Ok(advanced.map_progress(OfOneStore::into_any))
    }

    async fn check_access(&self, key: &StoreKey, app: &str) -> Result<String, RemoteError> {
        StoreClient::check_access(self, own(key, "key")?, app).await
    }
}

/// What a client takes as its own, of what the program holds for any store.
fn own<'a, Any, One: OfOneStore<Any>>(any: &'a Any, what: &str) -> Result<&'a One, RemoteError> {
    let foreign =
        || RemoteError::Refused(format!("The {what} of the publication is for another store."));
    One::of(any).ok_or_else(foreign)
}

/// A type of one store, which `Any` has a variant for.
pub trait OfOneStore<Any>: Clone + Send + Sync {
    /// The value, if it is one of this store.
    fn of(any: &Any) -> Option<&Self>;
    /// The value among those of all stores.
    fn into_any(self) -> Any;
}

/// Says which variant holds which type.
macro_rules! of_one_store {
    ($($one:ty => $any:ident::$variant:ident),+ $(,)?) => {
        $(impl OfOneStore<$any> for $one {
            fn of(any: &$any) -> Option<&Self> {
                match any {
                    $any::$variant(one) => Some(one),
                    _ => None,
                }
            }

            fn into_any(self) -> $any {
                $any::$variant(self.into())
            }
        })+
    };
}

of_one_store! {
    crate::ServiceAccount => StoreKey::Google,
    crate::AppStoreConnectKey => StoreKey::Apple,
    contract::publishing::GooglePlayOptions => Options::GooglePlay,
    contract::publishing::AppStoreOptions => Options::AppStore,
    contract::publishing::TestflightOptions => Options::Testflight,
    crate::FirebaseApp => Options::Firebase,
    crate::google_play::PlayProgress => Progress::GooglePlay,
    crate::app_store::AppStoreProgress => Progress::AppStore,
    crate::testflight::TestflightProgress => Progress::Testflight,
    crate::firebase::FirebaseProgress => Progress::Firebase,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AppStoreConnectKey, DesiredState, NextStep, Pem, ServiceAccount,
        google_play::PlayProgress as InPlay,
    };
    use contract::{
        artifacts::ArtifactKind,
        publishing::{AppStoreOptions, GooglePlayOptions},
        releases::PublicationState,
    };
    use std::io;

    /// A client that leaves every publication where it is.
    struct Idle;

    #[async_trait]
    impl StoreClient for Idle {
        type Key = ServiceAccount;
        type Options = GooglePlayOptions;
        type Progress = InPlay;

        async fn advance(
            &self,
            _: &ServiceAccount,
            _: &PublicationOrder<GooglePlayOptions>,
            _: &dyn ReadAt,
            progress: InPlay,
        ) -> Result<Advanced<InPlay>, RemoteError> {
            Ok(Advanced {
                progress,
                state: PublicationState::Queued,
                words: None,
                remote_id: None,
                url: None,
                log: vec![],
                error: None,
                next: NextStep::Done,
            })
        }

        async fn check_access(&self, _: &ServiceAccount, _: &str) -> Result<String, RemoteError> {
            Ok("The key opens the app.".into())
        }
    }

    struct NoBytes;

    #[async_trait]
    impl ReadAt for NoBytes {
        async fn read(&self, _: u64, _: u64) -> io::Result<bytes::Bytes> {
            Ok(bytes::Bytes::new())
        }
    }

    fn order(options: Options) -> PublicationOrder {
        PublicationOrder {
            id: "pub_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap(),
            app: "com.example".into(),
            file: AppFile {
                kind: ArtifactKind::Aab,
                name: "app.aab".into(),
                size: 1,
                sha256: "0".repeat(64).parse().unwrap(),
                version: "1.0".into(),
                build_number: "1".into(),
            },
            default_notes: None,
            notes: Default::default(),
            options,
            wanted: DesiredState::Released(None),
        }
    }

    #[tokio::test]
    async fn a_client_gets_what_belongs_to_its_store_only() {
        let google = StoreKey::Google(ServiceAccount {
            client_email: "a@example.com".into(),
            private_key_id: "1".into(),
            private_key: Pem(String::new()),
        });
        let apple = StoreKey::Apple(AppStoreConnectKey {
            key_id: "ABCDE12345".into(),
            issuer_id: None,
            private_key: Pem(String::new()),
        });
        let play = order(Options::GooglePlay(GooglePlayOptions::default()));
        let app_store = order(Options::AppStore(AppStoreOptions::default()));
        let begun: Progress =
            serde_json::from_value(serde_json::json!({"googlePlay": {"polls": 3}})).unwrap();
        let foreign: Progress =
            serde_json::from_value(serde_json::json!({"appStore": {}})).unwrap();
        let store: &dyn AnyStore = &Idle;
        let kept = store.advance(&google, &play, &NoBytes, &begun).await.unwrap();
        assert_eq!(kept.progress, begun);
        let first = store.advance(&google, &play, &NoBytes, &Progress::None).await.unwrap();
        assert_eq!(first.progress, Progress::GooglePlay(Box::default()));
        for (key, order, progress, word) in [
            (&apple, &play, &begun, "key"),
            (&google, &app_store, &begun, "options"),
            (&google, &play, &foreign, "progress"),
        ] {
            let error = store.advance(key, order, &NoBytes, progress).await.unwrap_err();
            assert!(matches!(&error, RemoteError::Refused(why) if why.contains(word)), "{error:?}");
        }
        assert!(store.check_access(&apple, "com.example").await.is_err());
    }
}
