//! The rules of a channel of a shop: it is registered, changed, and forgotten.

use crate::{
    ports::sealed::Sealed,
    runtime::resource::{Child, Moment, Resource, Step, Unique, without_effects},
};
use contract::{AppId, Fault, Name, Timestamp, WebUrl, checkouts::ChannelCheck};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy)]
pub struct CommerceChannels;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub registered: New,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A registration. Its access was checked, unless the shop did not answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct New {
    pub app_id: AppId,
    pub store_id: Name,
    /// Names the channel in the shop.
    pub channel_token: Name,
    pub admin_api_url: WebUrl,
    /// Sealed for the id of the channel.
    pub admin_token: Sealed,
    pub label: Name,
    /// What the check found.
    pub check: String,
    /// Whether the check passed. Earlier versions kept only channels that passed.
    #[serde(default)]
    pub outcome: ChannelCheck,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// The same channel is registered again.
    Replace(Box<New>),
    Remove,
}

impl Resource for CommerceChannels {
    type New = New;
    type State = State;
    type Command = Command;
    without_effects!();

    fn create(at: &Moment<Self>, new: New) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State { registered: new, created_at: at.now, updated_at: at.now }))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        Ok(match command {
            // Its orders belong to checkouts of the app.
            Command::Replace(new) if new.app_id != state.registered.app_id => {
                return Err(Fault::Exists("this channel is registered for another app; delete it there first with svc_admin_deleteCommerceChannel".into()));
            }
            Command::Replace(new) => {
                Step::put(State { registered: *new, updated_at: at.now, ..state })
            }
            Command::Remove => Step::remove(),
        })
    }

    fn claims(State { registered, .. }: &State) -> Vec<Unique<Self>> {
        let channel = CommerceChannelClaim::Channel { token: registered.channel_token.clone() };
        let store = CommerceChannelClaim::store(registered.app_id, &registered.store_id);
        let taken = || {
            Fault::Exists("another channel of the app has this store id; choose another one".into())
        };
        // `Stale`: the call is decided again, and replaces the registration that exists.
        vec![Unique::new(channel, || Fault::Stale), Unique::new(store, taken)]
    }
}

impl Child for CommerceChannels {
    const NEEDED_TO_THE_END: bool = true;

    fn parent(state: &State) -> Option<AppId> {
        Some(state.registered.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::claims! {
    pub enum CommerceChannelClaim of CommerceChannels {
        /// A channel is registered once.
        Channel { token: Name } = "channel",
        /// An app has one channel for a store.
        Store { app: AppId, store: Name } = "store",
    }
}

impl CommerceChannelClaim {
    pub fn store(app: AppId, store: &Name) -> Self {
        CommerceChannelClaim::Store { app, store: store.clone() }
    }
}
