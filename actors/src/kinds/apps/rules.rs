//! The rules of an app.

use crate::{
    runtime::resource::{Input, Intent, Kept, Moment, Resource, Retry, Step},
    world::World,
};
use contract::{
    AppId, Fault, Name, Patch, ProjectId, Sha256, Timestamp, apps::Platform, text::StoreIdentifier,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::Change;

/// The apps.
#[derive(Debug, Clone, Copy)]
pub struct Apps;

/// What is kept of an app.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct App {
    /// Where it belongs.
    pub project_id: ProjectId,
    /// Shown to people.
    pub name: Name,
    /// What it is built for.
    pub platforms: Vec<Platform>,
    /// What uploads for each platform are held to.
    pub ios: Identity,
    /// What uploads for each platform are held to.
    pub android: Identity,
    /// It is being removed; nobody sees it any more.
    pub deleting: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When a person last changed it.
    pub updated_at: Timestamp,
}

/// What uploads are held to. Empty until somebody says it, or the first verified upload does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Bundle identifier or package name.
    pub identifier: Option<StoreIdentifier>,
    /// SHA-256 of the signing certificate.
    pub signer: Option<Sha256>,
}

/// What can be asked of an app.
#[derive(Debug, Clone)]
pub enum Command {
    /// Make it.
    Create(Box<App>),
    /// Change it.
    Update {
        /// Replaces the name.
        name: Option<Name>,
        /// Replaces the list.
        platforms: Option<Vec<Platform>>,
        /// Patches the iOS bundle identifier.
        bundle_id: Patch<StoreIdentifier>,
        /// Patches the Android package name.
        package_name: Patch<StoreIdentifier>,
    },
    /// Hold an upload to the app's identity; what the app does not say yet, it takes from here.
    Match {
        /// Which identity.
        platform: Platform,
        /// What the file says.
        identifier: StoreIdentifier,
        /// Who signed it, where it is signed.
        signer: Option<Sha256>,
    },
    /// Remove it and all below it.
    Delete,
}

/// What an app does outside of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Remove its releases, artifacts and tokens.
    RemoveContents,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Nothing is left.
    Empty,
    /// Something is still being removed.
    NotYet,
}

impl Resource for Apps {
    const KIND: &'static str = "app";
    type Id = AppId;
    type State = App;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn step(
        at: &Moment<Self>,
        state: Option<&App>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault> {
        match (state, input) {
            (None, Input::Command(Command::Create(app))) => Ok(Step::put(*app)),
            (None, Input::Command(_)) => Err(Fault::NotFound("app")),
            (None, Input::Outcome(_)) => Ok(Step::keep()),
            (Some(app), Input::Command(_)) if app.deleting => Err(Fault::NotFound("app")),
            (Some(app), Input::Command(command)) => app.clone().take(at, command),
            (Some(_), Input::Outcome(Outcome::Empty)) => Ok(Step::remove()),
            (Some(_), Input::Outcome(Outcome::NotYet)) => Ok(Step::keep()
                .intend(Intent::After(Duration::from_millis(50), Effect::RemoveContents))),
        }
    }

    fn index(app: &App) -> Vec<String> {
        vec![format!("project/{}", app.project_id)]
    }

    fn perform(
        effect: Effect,
        id: AppId,
        _: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, world))
    }
}

/// Makes an app in the change of something that needs one: its owner does not live yet, so nobody
/// else can be writing it.
pub fn creation(id: AppId, app: App) -> Change {
    Change::new().create(&id.to_string(), &Kept::<Apps> { state: app, intent: None })
}

impl App {
    /// A new one, that says nothing of its identity yet.
    pub fn new(project_id: ProjectId, name: Name, now: Timestamp) -> App {
        App {
            project_id,
            name,
            platforms: vec![Platform::Ios, Platform::Android],
            ios: Identity::default(),
            android: Identity::default(),
            deleting: false,
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

    fn take(mut self, at: &Moment<Apps>, command: Command) -> Result<Step<Apps>, Fault> {
        match command {
            Command::Create(_) => return Err(Fault::Exists("this app exists already".into())),
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
            Command::Delete => {
                self.deleting = true;
                return Ok(Step::put(self).intend(Intent::Now(Effect::RemoveContents)));
            }
        }
        Ok(Step::put(self))
    }
}

impl Identity {
    /// Another identifier, or none, also ends what was known of the signer.
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
