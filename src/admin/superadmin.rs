//! Grants and revokes superadmin. The command needs write access to the data directory and no other
//! permission.

use super::Place;
use actors::{
    kinds::people::accounts::{AccountClaim, Accounts},
    ports::random::Random,
    runtime::{audit::Event, resource::Kept},
};
use contract::{
    Email, UserId,
    operators::{AuditEvent, Via},
};
use store::{Change, Store};

/// Makes the account with this e-mail address a superadmin, or revokes that.
pub fn set(email: &Email, superadmin: bool, place: &Place) -> Result<(), String> {
    let store = place.open()?;
    let done = change(&store, email, superadmin);
    store.close();
    done
}

fn change(store: &Store, email: &Email, superadmin: bool) -> Result<(), String> {
    let holder = store.holder(&AccountClaim::email(email)).map_err(|e| e.to_string())?;
    let id: UserId = holder.ok_or_else(|| {
        format!("there is no account with the e-mail {email}: register it first, with registerUser")
    })?;
    let before = store.get::<Accounts>(&id).map_err(|e| e.to_string())?;
    let before =
        before.ok_or_else(|| format!("the account {id} is missing; run svc admin check"))?;
    let now = crate::adapters::clock::system().now();
    let mut after = Kept::clone(&before);
    (after.state.superadmin, after.state.updated_at) = (superadmin, now);
    let event = Event(AuditEvent {
        id: Random::default().id(now),
        at: now,
        function: "svc admin superadmin".into(),
        user_id: None,
        via: Via::Service,
        address: "this machine".into(),
        resource: id.to_string(),
        organization_id: None,
        project_id: None,
        request_id: String::new(),
    });
    let change = Change::new()
        .replace::<Accounts>(&id, Some(&before), after)
        .append::<Event>(&event.0.id, &event);
    actix_rt::System::new().block_on(store.commit(change)).map_err(|e| e.to_string())?;
    let what = if superadmin { "is a superadmin now" } else { "is no superadmin any more" };
    super::note(&format!("{email} ({id}) {what}"));
    Ok(())
}
