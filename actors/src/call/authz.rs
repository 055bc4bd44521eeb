//! Who may: the one place where standing is decided.
//!
//! An object outside the caller's reach does not exist for it (101). Within reach, a standing that
//! is too low is said to be (403).

use crate::{
    call::{
        context::{Caller, Proof, SignedIn},
        lookup::{Ancestry, find, get, noun},
    },
    kinds::{
        accounts::Accounts,
        organizations::{Held, Organizations, Reach},
    },
    runtime::store::Store,
    world::World,
};
use contract::{Fault, Scope, Standing, Subject, UserId, authentication::Role, projects::Project};
use store::Snapshot;

/// What a function asks of its caller.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The standing.
    pub who: Standing,
    /// The scope that lets a deploy token in.
    pub scope: Option<Scope>,
    /// The scope that is enough for a release which the token itself created.
    pub own_scope: Option<Scope>,
    /// The object.
    pub subject: Subject,
}

/// Refuses callers who bring no credential of the kind that is needed, whatever they ask about.
pub fn check_proof(caller: &Caller, who: Standing, scope: Option<Scope>) -> Result<(), Fault> {
    let refused = |why: &str| Err(Fault::Unauthenticated(why.into()));
    match (&caller.user, who) {
        _ if caller.master => Ok(()),
        (_, Standing::Public) => Ok(()),
        (None, Standing::Master) => refused("this needs the master key"),
        (None, _) => refused("this needs a session: sign in with loginWithEmail"),
        (Some(SignedIn { proof: Proof::Token(..), .. }), _) if scope.is_none() => {
            refused("a deploy token cannot do this: sign in with loginWithEmail")
        }
        (Some(_), _) => Ok(()),
    }
}

/// Decides whether the caller may, and finds the object that it is about.
pub fn authorize(world: &World, caller: &Caller, asked: Asked) -> Result<Ancestry, Fault> {
    check_proof(caller, asked.who, asked.scope)?;
    let place = find(world, caller, asked.subject);
    if !caller.master && asked.who != Standing::Public {
        check_scope(caller, asked, place.as_ref().ok())?;
    }
    let place = place?;
    let user = match &caller.user {
        Some(user) if !caller.master && asked.who != Standing::Public => user,
        _ => return Ok(place),
    };
    check_binding(user, &place, asked.subject)?;
    if asked.who == Standing::User {
        return Ok(place);
    }
    if asked.who == Standing::Master {
        return Err(Fault::Forbidden(Standing::Master));
    }
    if user.account.state.superadmin {
        return Ok(place);
    }
    let reach = &reach(world, user.id)?;
    let may = match asked.who {
        Standing::SuperAdmin => false,
        Standing::Admin => leads_a_team(world, reach)?,
        who => return stand(&place, asked.subject, reach, user, who).map(|()| place),
    };
    if may { Ok(place) } else { Err(Fault::Forbidden(asked.who)) }
}

/// A token acts for its maker, within its scopes. For a release that the token itself created, a
/// lower scope may be enough.
fn check_scope(caller: &Caller, asked: Asked, place: Option<&Ancestry>) -> Result<(), Fault> {
    let Some(SignedIn { proof: Proof::Token(id, token), .. }) = &caller.user else { return Ok(()) };
    let holds = |scope: Scope| token.state.scopes.contains(&scope);
    let release = place.and_then(|place| place.release.as_ref());
    let is_own = release.is_some_and(|(_, seen)| seen.state.created_by_token == Some(*id));
    let is_enough = |scope| holds(scope) || is_own && asked.own_scope.is_some_and(holds);
    match asked.scope {
        Some(scope) if !is_enough(scope) => Err(Fault::MissingScope(scope)),
        _ => Ok(()),
    }
}

/// A token that is bound to an app knows of no other.
fn check_binding(user: &SignedIn, place: &Ancestry, subject: Subject) -> Result<(), Fault> {
    let Proof::Token(_, token) = &user.proof else { return Ok(()) };
    match (token.state.app_id, &place.app) {
        (Some(bound), Some((app, _))) if bound != *app => Err(Fault::NotFound(noun(subject))),
        _ => Ok(()),
    }
}

/// Whether the user's part in the object's organization and project is enough.
fn stand(
    place: &Ancestry,
    subject: Subject,
    reach: &Reach,
    user: &SignedIn,
    who: Standing,
) -> Result<(), Fault> {
    let (is_token, who) = match &place.token {
        Some((_, token)) if token.state.created_by == user.id => return Ok(()),
        // next to its maker, those who lead where its app is
        Some(_) => (true, Standing::OwnerOrAdmin),
        None => (false, who),
    };
    let Some((organization, _)) = &place.organization else {
        // no object is named: the caller's own things; or it is another user's own token
        return if is_token { Err(Fault::NotFound(noun(subject))) } else { Ok(()) };
    };
    let Some(held) = reach.organizations.get(organization) else {
        return Err(Fault::NotFound(noun(subject)));
    };
    if matches!(subject, Subject::Membership(_, member) if member == user.id) {
        return Ok(());
    }
    if matches!(&user.proof, Proof::Token(_, token) if token.state.created_at < held.since) {
        return Err(Fault::NotFound(noun(subject)));
    }
    let project = place.project.as_ref().map(|(_, seen)| &seen.state);
    let creator = project.is_some_and(|project| is_creator(held, project, user.id));
    if project.is_some_and(|project| !reaches_project(held, project, user.id)) {
        return Err(Fault::NotFound(noun(subject)));
    }
    let is_app = matches!(subject, Subject::App(_) | Subject::Instance(_) | Subject::Backup(_));
    let is_project = matches!(subject, Subject::Project(_));
    let may = match who {
        Standing::Member => true,
        Standing::OwnerOrAdmin => leads(held) || creator && is_app,
        Standing::Owner => held.owner || creator && is_project,
        _ => false,
    };
    if may { Ok(()) } else { Err(Fault::Forbidden(who)) }
}

fn leads(held: &Held) -> bool {
    held.owner || held.role >= Role::Admin
}

fn leads_a_team(world: &World, reach: &Reach) -> Result<bool, Fault> {
    for (organization, held) in &reach.organizations {
        if leads(held) && !held.personal {
            let seen = world.store.get::<Organizations>(organization)?;
            if seen.is_some_and(|o| o.state.members.len() >= 2) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What a user is a member of.
pub fn reach(world: &World, user: UserId) -> Result<Snapshot<Reach>, Fault> {
    world.store.get_or_empty::<Reach>(&user)
}

/// Whether a member of the organization reaches the project: its creator, its listed members, and
/// every supervisor and above.
pub fn reaches_project(held: &Held, project: &Project, user: UserId) -> bool {
    held.role >= Role::Supervisor
        || is_creator(held, project, user)
        || project.member_ids.contains(&user)
}

/// Whether a member made the project, and has not left the organization since.
fn is_creator(held: &Held, project: &Project, user: UserId) -> bool {
    project.owner_id == user && project.created_at >= held.since
}

/// The account of a user.
pub fn account(store: &Store, id: UserId) -> Result<Snapshot<Accounts>, Fault> {
    get::<Accounts>(store, id)
}
