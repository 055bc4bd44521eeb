//! The effects of credentials: mails before they expire.

use super::rules::{Credentials, Effect, Outcome};
use crate::{
    kinds::{people::responsible::responsible, world::World},
    runtime::resource::Retry,
};
use contract::Fault;
use std::sync::Arc;
use store::Snapshot;

pub(super) async fn perform(
    Effect::Warn(days): Effect,
    kept: Snapshot<Credentials>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let credential = &kept.state.credential;
    let (app, people) = match responsible(&world, kept.state.credential.app_id) {
        Ok(found) => found,
        // The app is being deleted.
        Err(Fault::NotFound(_)) => return Ok(Outcome::Warned),
        Err(fault) => return Err(fault.into()),
    };
    let Some(expires_at) = credential.expires_at else { return Ok(Outcome::Warned) };
    let end = match days {
        _ if expires_at <= world.ports.clock.now() => "has expired".to_owned(),
        1 => "expires within a day".to_owned(),
        days => format!("expires within {days} days"),
    };
    let subject = format!("{app}: {} {end}", credential.name);
    let text = format!(
        "The credential {} ({}) of the app {app} {end}: its time ends at {expires_at}.\n\nStore a new one in its \
         place, with the same name: svc credential set {} --app {} --name \"{}\" …\n",
        credential.name,
        credential.kind.name(),
        credential.kind.name(),
        credential.app_id,
        credential.name,
    );
    let mut failure = None;
    let mut sent = people.is_empty();
    for email in people {
        match world.ports.mail.send(&email, &subject, &text).await {
            Ok(()) => sent = true,
            Err(error) => {
                tracing::warn!(%email, %error, "the warning of a credential was not sent");
                failure = Some(error);
            }
        }
    }
    // Once somebody is told, another attempt would tell the same person again.
    match failure {
        Some(error) if !sent => Err(error.into()),
        _ => Ok(Outcome::Warned),
    }
}
