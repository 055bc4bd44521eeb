//! Money that arrived and is not settled keeps what it was paid for.

use super::CheckoutIndex;
use crate::{
    kinds::{apps::Apps, organizations::Organizations, projects::Projects},
    platform::Platform,
    runtime::entries::Under,
};
use contract::{AppId, CheckoutId, Fault, OrganizationId, ProjectId, checkouts::Reference};

/// The most payments that a refusal counts.
const MOST_COUNTED: usize = 100;

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
        match self.unsettled(whole)?.as_slice() {
            [] => Ok(()),
            [first, others @ ..] => Err(Fault::NotNow(format!(
                "the payment {}{} not settled; see svc_getCheckout for the reason, and refund it at the \
                 provider or settle it with svc_settleCheckout",
                Reference(*first),
                match others.len() {
                    0 => " is".into(),
                    more => format!(" and {more} more are"),
                }
            ))),
        }
    }

    fn unsettled(&self, whole: Whole) -> Result<Vec<CheckoutId>, Fault> {
        let store = &self.world.store;
        let parts: Vec<Whole> = match whole {
            Whole::App(app) => {
                return store.newest(&CheckoutIndex::UnsettledOf { app }, None, MOST_COUNTED);
            }
            Whole::Project(id) => {
                store.all::<Apps>(&Under::<Projects>(id))?.into_iter().map(Whole::App).collect()
            }
            Whole::Organization(id) => {
                let projects = store.all::<Projects>(&Under::<Organizations>(id))?;
                projects.into_iter().map(Whole::Project).collect()
            }
        };
        let mut found = Vec::new();
        for part in parts {
            found.extend(self.unsettled(part)?);
        }
        Ok(found)
    }
}
