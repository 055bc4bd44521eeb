//! What an order asks of Firebase, checked as far as that needs no answer of Firebase. Pure.

use crate::{DesiredState, FirebaseApp, PublicationOrder, RemoteError};
use contract::publishing::Percent;

/// The most testers and groups of one release.
const MOST_TESTERS: usize = 999;

/// What an order asks.
pub(super) struct FirebaseOrder<'a> {
    pub order: &'a PublicationOrder<FirebaseApp>,
    /// The id of the app.
    pub app: &'a str,
    pub notes: Option<&'a str>,
}

impl<'a> FirebaseOrder<'a> {
    pub fn of(order: &'a PublicationOrder<FirebaseApp>) -> Result<FirebaseOrder<'a>, RemoteError> {
        let refused = |why: &str| Err(RemoteError::Refused(why.to_owned()));
        let options = &order.options;
        match order.wanted {
            DesiredState::Released(Some(share)) if share != Percent::ALL => {
                return refused(
                    "Firebase App Distribution has no staged rollout: every tester of a release gets \
                     it. Publish it without `rollout`.",
                );
            }
            DesiredState::Halted => {
                return refused(
                    "Firebase App Distribution cannot halt a release. Withdraw it: then it is \
                     deleted.",
                );
            }
            _ => {}
        }
        if options.groups.iter().count() + options.testers.iter().count() > MOST_TESTERS {
            return refused("Firebase takes at most 999 testers and groups together.");
        }
        let english = order.notes.iter().find(|(language, _)| language.as_str().starts_with("en"));
        let notes = order.default_notes.as_ref();
        let notes = notes.or(english.or(order.notes.iter().next()).map(|(_, text)| text));
        Ok(FirebaseOrder {
            order,
            app: options.app_id.as_str(),
            notes: notes.map(|text| text.as_str()),
        })
    }

    pub fn has_testers(&self) -> bool {
        self.order.options.groups.iter().count() + self.order.options.testers.iter().count() > 0
    }
}
