//! Look-up: finds the object that a call is about, and its ancestors.

pub use crate::kinds::table::{Ancestry, noun};

use super::context::Caller;
use crate::{
    kinds::{
        events::webhooks::Webhooks,
        people::{
            accounts::Accounts, apps::Apps, organizations::Organizations, projects::Projects,
        },
        world::World,
    },
    runtime::resource::Resource,
};
use contract::{AppId, Fault, Subject};
use store::{Change, Snapshot};

/// Finds the object and its ancestors. A deleted object is not found.
pub fn find(world: &World, caller: &Caller, subject: Subject) -> Result<Ancestry, Fault> {
    let personal = caller.user.as_ref().map(|user| user.account.state.personal);
    Ancestry::of(&world.store, subject, personal)
}

/// Checks that the app and its ancestors are not deleted, before bytes of the app are sent or fetched.
pub fn check_reachable(world: &World, app: AppId) -> Result<(), Fault> {
    let found = find(world, &Caller::default(), Subject::App(app));
    found.map(drop).map_err(|_| Fault::NotFound("artifact"))
}

impl Ancestry {
    /// Makes a change require that the account, organization, project, app and webhook are still as they
    /// were read. The resource with the key `changed` is left out, because its owner knows its latest
    /// state.
    pub fn require(&self, change: Change, changed: &str) -> Change {
        fn one<R: Resource>(
            change: Change,
            seen: Option<&(R::Key, Snapshot<R>)>,
            changed: &str,
        ) -> Change {
            match seen {
                Some((id, seen)) if id.to_string() != changed => change.require(id, seen),
                _ => change,
            }
        }
        let change = one::<Accounts>(change, self.account.as_ref(), changed);
        let change = one::<Organizations>(change, self.organization.as_ref(), changed);
        let change = one::<Projects>(change, self.project.as_ref(), changed);
        let change = one::<Apps>(change, self.app.as_ref(), changed);
        one::<Webhooks>(change, self.webhook.as_ref(), changed)
    }
}
