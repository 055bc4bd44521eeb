//! What a store is asked for.

use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    BoundedSet, Email, Notes, PublicationId, Sha256,
    artifacts::ArtifactKind,
    publishing::{
        AppStoreOptions, FirebaseAppId, GooglePlayOptions, GroupName, Language, Percent,
        TestflightOptions,
    },
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, io};

/// A publication of one file in one store. `O` are the options: those of any store, or of one.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicationOrder<O = Options> {
    /// Identifies the publication.
    pub id: PublicationId,
    /// The package name or bundle identifier of the app.
    pub app: String,
    /// What users of the store will get.
    pub file: AppFile,
    /// Release notes for the default language that the app has in the store.
    pub default_notes: Option<Notes>,
    /// Release notes by language. They go before `default_notes`.
    pub notes: BTreeMap<Language, Notes>,
    /// The choices for the store.
    pub options: O,
    /// What is wanted of the store now.
    pub wanted: DesiredState,
}

impl PublicationOrder {
    /// The same order with the options of one store.
    pub(crate) fn with<O>(&self, options: O) -> PublicationOrder<O> {
        let PublicationOrder { id, app, file, default_notes, notes, options: _, wanted } =
            self.clone();
        PublicationOrder { id, app, file, default_notes, notes, options, wanted }
    }
}

/// A verified file of an app.
#[derive(Debug, Clone, PartialEq)]
pub struct AppFile {
    /// The format.
    pub kind: ArtifactKind,
    /// The file's name, without a folder.
    pub name: String,
    /// The size in bytes.
    pub size: u64,
    /// The hash of the bytes.
    pub sha256: Sha256,
    /// `CFBundleShortVersionString` or `versionName`.
    pub version: String,
    /// `CFBundleVersion` or `versionCode`.
    pub build_number: String,
}

/// The choices for the store of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Options {
    /// For Google Play. The track is set.
    GooglePlay(GooglePlayOptions),
    /// A release to everybody, at once or in phases.
    AppStore(AppStoreOptions),
    /// Groups of testers, with or without a review.
    Testflight(TestflightOptions),
    /// For Firebase App Distribution.
    Firebase(FirebaseApp),
}

/// The app of an order in Firebase App Distribution, and who gets its release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirebaseApp {
    /// Such as `1:1234:android:0a1b`.
    pub app_id: FirebaseAppId,
    /// The aliases of groups of testers.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub groups: BoundedSet<GroupName, 0, 20>,
    /// The e-mail addresses of testers.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub testers: BoundedSet<Email, 0, 200>,
}

/// What is wanted of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DesiredState {
    /// This share of the users gets the app; without one, all do at once.
    Released(Option<Percent>),
    /// No more users get the app until they are wanted to again.
    Halted,
    /// The publication is undone as far as the store permits, for good.
    Withdrawn,
    /// An earlier version is offered again, after a later one was withdrawn.
    Restored,
}

/// Reads the bytes of a file.
#[async_trait]
pub trait ReadAt: Send + Sync {
    /// Reads `length` bytes from `offset`. Both lie within the file.
    async fn read(&self, offset: u64, length: u64) -> io::Result<Bytes>;
}
