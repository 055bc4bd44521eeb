//! The commands about releases, stores and their credentials.

use crate::values::one_of;
use clap::{Args, Subcommand};
use contract::{
    AppId, ArtifactId, Channel, CredentialId, Email, Name, Notes, ReleaseId, VersionName,
    credentials::CredentialKind,
    publishing::{FirebaseAppId, GroupName, Percent, TrackName},
    releases::Target,
    text::Currency,
};
use std::{path::PathBuf, str::FromStr};

/// `svc release`.
#[derive(Debug, Subcommand)]
pub enum ReleaseCommand {
    /// Create a release of verified artifacts, or add them to the release of their version
    #[command(disable_version_flag = true)]
    Create {
        /// The app [env: SVC_APP_ID]
        #[arg(long)]
        app: Option<AppId>,
        /// An artifact; repeat it for each platform
        #[arg(long, required = true)]
        artifact: Vec<ArtifactId>,
        /// The version, the same as that of its artifacts
        #[arg(long)]
        version: Option<VersionName>,
        /// The channel, such as production
        #[arg(long, default_value = "production")]
        channel: Channel,
        /// Release notes
        #[arg(long)]
        notes: Option<Notes>,
    },
    /// Show a release, and where its publications stand
    Show {
        /// The id of the release (rel_…)
        release: ReleaseId,
        /// Show the history of each publication too
        #[arg(long)]
        log: bool,
    },
    /// Ask the stores now where the publications of a release stand
    Check {
        /// The id of the release (rel_…)
        release: ReleaseId,
    },
    /// Publish a release
    Publish(Box<Publication>),
    /// Change the staged rollout of a release in its stores
    Rollout {
        /// The id of the release (rel_…)
        release: ReleaseId,
        /// A share of the users in percent, `all`, `halt` or `resume`
        #[arg(value_name = "SHARE|all|halt|resume")]
        to: Rollout,
        /// Only this target; repeat it for each
        #[arg(long, value_delimiter = ',', value_parser = one_of::<Target>())]
        target: Vec<Target>,
    },
    /// Roll back the current release of a channel
    Rollback {
        /// The current release
        release: ReleaseId,
        /// The release to go back to; by default the release that was current before
        #[arg(long)]
        to: Option<ReleaseId>,
        /// Leave the channel without a release, in place of going back to an earlier one
        #[arg(long, conflicts_with = "to")]
        withdraw: bool,
        /// Only show what each target would do
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete a draft, or a release that every target refused
    Delete {
        /// The id of the release (rel_…)
        release: ReleaseId,
    },
}

/// `svc release publish`.
#[derive(Debug, Args)]
pub struct Publication {
    /// The id of the release (rel_…)
    pub release: ReleaseId,
    /// A target; repeat it for each
    #[arg(long, required = true, value_delimiter = ',', value_parser = one_of::<Target>())]
    pub target: Vec<Target>,
    /// The share of the users that get it first, in percent
    #[arg(long, value_name = "PERCENT")]
    pub rollout: Option<Percent>,
    /// Release notes
    #[arg(long)]
    pub notes: Option<Notes>,
    /// A JSON file with the choices for the stores; the options below go before it
    #[arg(long, value_name = "FILE")]
    pub options: Option<PathBuf>,
    /// The track in google-play
    #[arg(long)]
    pub track: Option<TrackName>,
    /// Make a draft in google-play, which somebody rolls out in its console
    #[arg(long)]
    pub draft: bool,
    /// A group of testers in testflight and firebase-app-distribution; repeat it for each
    #[arg(long)]
    pub group: Vec<GroupName>,
    /// The e-mail of a tester in firebase-app-distribution; repeat it for each
    #[arg(long)]
    pub tester: Vec<Email>,
    /// The id of an app in Firebase; repeat it for the other platform
    #[arg(long, value_name = "ID")]
    pub firebase_app: Vec<FirebaseAppId>,
}

/// What becomes of a staged rollout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rollout {
    To(Percent),
    Halt,
    Resume,
}

impl FromStr for Rollout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Rollout::To(Percent::ALL)),
            "halt" => Ok(Rollout::Halt),
            "resume" => Ok(Rollout::Resume),
            share => share.parse().map(Rollout::To).map_err(|_| {
                format!("{share:?} is no share of the users such as 10, nor all, halt or resume")
            }),
        }
    }
}

/// `svc credential`.
#[derive(Debug, Subcommand)]
pub enum CredentialCommand {
    /// Store a credential of an app; one with the same kind and name is replaced
    Set(Box<NewCredential>),
    /// List the credentials of an app
    List {
        /// The app [env: SVC_APP_ID]
        #[arg(long)]
        app: Option<AppId>,
        /// List all, not only the newest
        #[arg(long)]
        all: bool,
    },
    /// Check now whether a credential opens what it is for
    Check {
        /// The id, as in `svc credential list`
        credential: CredentialId,
    },
    /// Delete a credential
    Delete {
        /// The id, as in `svc credential list`
        credential: CredentialId,
    },
}

/// `svc credential set`.
#[derive(Debug, Args)]
pub struct NewCredential {
    /// What the file is
    #[arg(value_parser = one_of::<CredentialKind>())]
    pub kind: CredentialKind,
    /// The file; - reads it from standard input
    pub file: PathBuf,
    /// The app [env: SVC_APP_ID]
    #[arg(long)]
    pub app: Option<AppId>,
    /// A name of your choice; for repositoryHost, the host such as git.example.com
    #[arg(long, default_value = "main")]
    pub name: Name,
    /// Read the password of the file from standard input instead of asking for it
    #[arg(long)]
    pub password_stdin: bool,
    /// For androidKeystore: read the password of the key too, which is not that of the keystore
    #[arg(long)]
    pub key_password: bool,
    /// For iosSigning: the provisioning profile
    #[arg(long, value_name = "FILE", required_if_eq("kind", "iosSigning"))]
    pub profile: Option<PathBuf>,
    /// For androidKeystore: the alias of the key, if there are several
    #[arg(long)]
    pub alias: Option<Name>,
    /// For appStoreConnectKey: the id of the key; by default that in the name of the file
    #[arg(long)]
    pub key_id: Option<Name>,
    /// For appStoreConnectKey: the id of the issuer
    #[arg(long)]
    pub issuer_id: Option<Name>,
    /// For paystack and stripe: the currency of checkouts that name none, such as EUR
    #[arg(long)]
    pub currency: Option<Currency>,
}
