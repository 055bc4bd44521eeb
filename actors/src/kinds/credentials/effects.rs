//! The effects of credentials: mails before they expire.

use super::rules::{Credentials, Effect, Outcome};
use crate::{
    call::lookup::get,
    kinds::{accounts::Accounts, apps::Apps, organizations::Organizations, projects::Projects},
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::{Email, Fault, authentication::Role};
use std::sync::Arc;

pub(super) async fn perform(
    Effect::Warn(days): Effect,
    kept: Arc<Kept<Credentials>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let credential = &kept.state.credential;
    let (app, people) = match responsible(&world, &kept) {
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

/// The name of the app, and the addresses of the owner and the admins of its organization.
fn responsible(world: &World, kept: &Kept<Credentials>) -> Result<(String, Vec<Email>), Fault> {
    let store = &world.store;
    let app = get::<Apps>(store, kept.state.credential.app_id)?;
    let project = get::<Projects>(store, app.project_id)?;
    let organization = get::<Organizations>(store, project.organization_id)?;
    let mut people = Vec::new();
    for member in &organization.members {
        if member.role == Role::Admin
            && let Some(account) = store.get::<Accounts>(&member.user)?
        {
            people.push(account.state.email.clone());
        }
    }
    Ok((app.name.to_string(), people))
}
