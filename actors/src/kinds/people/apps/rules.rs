//! The rules of an app.

use crate::runtime::{
    resource::{Child, Kept, Moment, Resource, Step, without_effects},
    uses::Uses,
};
use contract::{
    AppId, Fault, Name, Patch, ProjectId, Sha256, Timestamp,
    apps::{ChannelPolicy, Platform},
    quotas::Quota,
    text::StoreIdentifier,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Change, Entries};

#[derive(Debug, Clone, Copy)]
pub struct Apps;

/// The stored state of an app.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct App {
    pub project_id: ProjectId,
    pub name: Name,
    pub platforms: Vec<Platform>,
    pub ios: Identity,
    pub android: Identity,
    /// At most one for each channel.
    #[serde(default)]
    pub channel_policies: Vec<ChannelPolicy>,
    /// The size of the images that deployments built, as measured last.
    #[serde(default)]
    pub image_bytes: u64,
    pub created_at: Timestamp,
    /// When [`Command::Update`] last changed the app. Uploads do not count.
    pub updated_at: Timestamp,
}

/// The identity that uploads for one platform must match. A user sets it, or else the first
/// verified upload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Bundle identifier or package name.
    pub identifier: Option<StoreIdentifier>,
    /// SHA-256 of the signing certificate.
    pub signer: Option<Sha256>,
}

/// How many channels of an app may have a policy.
const MOST_POLICIES: usize = 50;

#[derive(Debug, Clone)]
pub enum Command {
    Update {
        name: Option<Name>,
        platforms: Option<Vec<Platform>>,
        /// For iOS.
        bundle_id: Patch<StoreIdentifier>,
        /// For Android.
        package_name: Patch<StoreIdentifier>,
    },
    /// Check an upload against the app's identity. The upload sets what the identity lacks.
    Match {
        platform: Platform,
        /// The identifier in the file.
        identifier: StoreIdentifier,
        /// The certificate of the signature, if the file is signed.
        signer: Option<Sha256>,
    },
    /// Replace the policy of a channel.
    SetChannelPolicy(ChannelPolicy),
    /// The images that deployments built have so many bytes.
    MeasureImages(u64),
    /// Delete the app and everything under it.
    Delete,
}

impl Resource for Apps {
    const INDEX: u16 = 2;
    type New = App;
    type State = App;
    type Command = Command;
    without_effects!();

    fn create(_: &Moment<Self>, app: App) -> Result<Step<Self>, Fault> {
        Ok(Step::put(app))
    }

    fn on_command(app: App, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        app.on_command(at, command)
    }

    fn reports(command: &Command) -> bool {
        matches!(command, Command::MeasureImages(_))
    }

    fn index(app: &App) -> Entries<Self> {
        Entries::default().and_all((app.image_bytes > 0).then_some(AppIndex::HasImages))
    }

    fn uses(app: &App) -> Uses {
        Uses::one(Quota::Apps).and(Quota::ImageBytes, app.image_bytes)
    }

    /// Earlier versions had one effect, for apps that were being deleted.
    fn adopt(kept: &mut Kept<Self>, _: &Value) {
        kept.deleting = true;
    }
}

store::entries! {
    pub enum AppIndex of Apps {
        /// Apps with images that deployments built.
        HasImages = "hasImages",
    }
}

impl Child for Apps {
    fn parent(app: &App) -> Option<ProjectId> {
        Some(app.project_id)
    }

    fn delete() -> Command {
        Command::Delete
    }
}

/// Creates an app in the transaction of another resource. No owner of the app is in memory yet, so
/// there is no other writer.
pub fn creation(id: AppId, app: App) -> Change {
    Change::new().create::<Apps>(&id, Kept::at_rest(app))
}

impl App {
    /// A new app for both platforms, with empty identities.
    pub fn new(project_id: ProjectId, name: Name, now: Timestamp) -> App {
        App {
            project_id,
            name,
            platforms: vec![Platform::Ios, Platform::Android],
            ios: Identity::default(),
            android: Identity::default(),
            channel_policies: Vec::new(),
            image_bytes: 0,
            created_at: now,
            updated_at: now,
        }
    }

    fn identity(&mut self, platform: Platform) -> &mut Identity {
        match platform {
            Platform::Ios => &mut self.ios,
            Platform::Android => &mut self.android,
        }
    }

    fn on_command(mut self, at: &Moment<Apps>, command: Command) -> Result<Step<Apps>, Fault> {
        match command {
            Command::Update { name, platforms, bundle_id, package_name } => {
                self.name = name.unwrap_or(self.name);
                self.platforms = platforms.unwrap_or(self.platforms);
                self.ios.set(bundle_id);
                self.android.set(package_name);
                self.updated_at = at.now;
            }
            Command::Match { platform, identifier, signer } => {
                let identity = self.identity(platform);
                let before = identity.clone();
                identity.hold(identifier, signer)?;
                if *identity == before {
                    return Ok(Step::keep());
                }
            }
            Command::SetChannelPolicy(policy) => {
                self.channel_policies.retain(|other| other.channel != policy.channel);
                if policy.minimum_trust.is_some()
                    || policy.signer.is_some()
                    || policy.attested_by.is_some()
                {
                    if self.channel_policies.len() >= MOST_POLICIES {
                        return Err(Fault::NotNow(format!(
                            "the app has {MOST_POLICIES} channel policies; end some first"
                        )));
                    }
                    self.channel_policies.push(policy);
                }
                self.updated_at = at.now;
            }
            Command::MeasureImages(bytes) if bytes == self.image_bytes => return Ok(Step::keep()),
            Command::MeasureImages(bytes) => self.image_bytes = bytes,
            Command::Delete => return Ok(Step::delete(self)),
        }
        Ok(Step::put(self))
    }
}

impl Identity {
    /// A change of the identifier also clears the signer.
    fn set(&mut self, patch: Patch<StoreIdentifier>) {
        let before = self.identifier.clone();
        patch.apply(&mut self.identifier);
        if self.identifier != before {
            self.signer = None;
        }
    }

    fn hold(&mut self, identifier: StoreIdentifier, signer: Option<Sha256>) -> Result<(), Fault> {
        let known = self.identifier.get_or_insert_with(|| identifier.clone());
        if *known != identifier {
            return Err(Fault::NotAsDeclared(format!(
                "the app is {known}, but the file says {identifier}"
            )));
        }
        match (&self.signer, signer) {
            (Some(known), Some(signer)) if *known != signer => Err(Fault::NotAsDeclared(format!(
                "earlier files of this app were signed with the certificate {known}, this one with {signer}; if the certificate was renewed, clear the app's identifier with updateApp first"
            ))),
            (Some(known), None) => Err(Fault::NotAsDeclared(format!(
                "earlier files of this app were signed with the certificate {known}, this one is not signed"
            ))),
            (None, signer) => {
                self.signer = signer;
                Ok(())
            }
            (Some(_), Some(_)) => Ok(()),
        }
    }
}
