//! Money that arrived and is not settled keeps what it was paid for.

use super::{CheckoutIndex, Checkouts};
use crate::{
    kinds::{apps::Apps, projects::Projects},
    platform::Platform,
};
use contract::{AppId, Fault, OrganizationId, ProjectId, checkouts::Reference};

/// What somebody wants to delete.
#[derive(Clone, Copy)]
pub enum Whole {
    App(AppId),
    Project(ProjectId),
    Organization(OrganizationId),
}

impl Platform {
    /// Refuses the deletion of what has payments that are not settled. A payment that arrives while
    /// the deletion is under way is told to people instead.
    pub fn refuse_unsettled(&self, whole: Whole) -> Result<(), Fault> {
        let store = &self.world.store;
        let unsettled = store.newest::<Checkouts>(&CheckoutIndex::Unsettled, None, usize::MAX)?;
        let mut of_it = Vec::new();
        for id in unsettled {
            let Some(checkout) = store.get::<Checkouts>(&id)? else { continue };
            if self.has(whole, checkout.app_id)? {
                of_it.push(Reference(id));
            }
        }
        match of_it.as_slice() {
            [] => Ok(()),
            [first, others @ ..] => Err(Fault::NotNow(format!(
                "the payment {first}{} not settled; see svc_getCheckout for the reason, and refund it at the \
                 provider or settle it with svc_settleCheckout",
                match others.len() {
                    0 => " is".into(),
                    more => format!(" and {more} more are"),
                }
            ))),
        }
    }

    fn has(&self, whole: Whole, app: AppId) -> Result<bool, Fault> {
        if let Whole::App(meant) = whole {
            return Ok(app == meant);
        }
        let store = &self.world.store;
        let Some(app) = store.get::<Apps>(&app)? else { return Ok(false) };
        Ok(match whole {
            Whole::App(_) => false,
            Whole::Project(meant) => app.project_id == meant,
            Whole::Organization(meant) => store
                .get::<Projects>(&app.project_id)?
                .is_some_and(|project| project.organization_id == meant),
        })
    }
}
