//! Authorization: the one place that decides whether a caller may do something.
//!
//! An object outside the caller's reach is not found (code 101). For an object within reach, a
//! standing that is too low is forbidden (code 403).

use super::{
    context::{Caller, Credential, SignedIn},
    lookup::{Ancestry, noun},
};
use crate::{
    kinds::{
        delivery::releases::Releases,
        people::{
            accounts::Accounts,
            organizations::{Membership, Memberships, Organizations},
            tokens::Tokens,
        },
        world::World,
    },
    runtime::store::{Store, get},
};
use contract::{
    Fault, ReleaseId, Requirement, Scope, Spec, Standing, Subject, TokenId, UserId,
    authentication::Role, projects::Project,
};
use store::Snapshot;

/// Refuses a caller without the kind of credential that the function needs, whatever its subject.
pub fn check_credential(caller: &Caller, spec: &Spec) -> Result<(), Fault> {
    let refused = |why: &str| Err(Fault::Unauthenticated(why.into()));
    match (&caller.user, spec.who) {
        (None, _) if caller.master && spec.person => refused(
            "the master key alone stands for nobody: sign in with loginWithEmail, and send the session along",
        ),
        _ if caller.master => Ok(()),
        (_, Standing::Public) => Ok(()),
        (None, Standing::Master) => refused("this needs the master key"),
        (None, _) => refused("this needs a session: sign in with loginWithEmail"),
        (Some(_), _) if caller.is_token() && spec.scopes.is_empty() && !spec.any_token => {
            refused("a deploy token cannot do this: sign in with loginWithEmail")
        }
        (Some(_), _) => Ok(()),
    }
}

/// Refuses a deploy token that lacks a scope, before any look-up.
pub fn check_scopes(caller: &Caller, requirement: &Requirement) -> Result<(), Fault> {
    let Some((_, token)) = limited_by_scopes(caller, requirement) else { return Ok(()) };
    let holds = |scope: &Scope| token.state.scopes.contains(scope);
    let missing = requirement
        .scopes
        .iter()
        .find(|rule| !holds(&rule.scope) && !rule.own.as_ref().is_some_and(holds));
    missing.map_or(Ok(()), |rule| Err(Fault::MissingScope(rule.scope)))
}

/// Refuses a release that the token did not create, if the token's scope covers only its own
/// releases.
fn check_own(caller: &Caller, requirement: &Requirement, place: &Ancestry) -> Result<(), Fault> {
    let Some((id, token)) = limited_by_scopes(caller, requirement) else { return Ok(()) };
    let made_by_it =
        |(_, seen): &(ReleaseId, Snapshot<Releases>)| seen.state.created_by_token == Some(*id);
    if place.release.as_ref().is_none_or(made_by_it) {
        return Ok(());
    }
    let missing = requirement.scopes.iter().find(|rule| !token.state.scopes.contains(&rule.scope));
    missing.map_or(Ok(()), |rule| Err(Fault::MissingScope(rule.scope)))
}

/// The caller's deploy token, if its scopes limit this call.
fn limited_by_scopes<'a>(
    caller: &'a Caller,
    requirement: &Requirement,
) -> Option<(&'a TokenId, &'a Snapshot<Tokens>)> {
    match &caller.user {
        _ if caller.master || requirement.who == Standing::Public => None,
        Some(SignedIn { credential: Credential::Token(id, token), .. }) => Some((id, token)),
        _ => None,
    }
}

/// Decides whether the caller may call the function for the object that was looked up.
pub fn authorize(
    world: &World,
    caller: &Caller,
    requirement: &Requirement,
    place: &Ancestry,
) -> Result<(), Fault> {
    let Requirement { who, subject, .. } = *requirement;
    let user = match &caller.user {
        Some(user) if !caller.master && who != Standing::Public => user,
        _ => return Ok(()),
    };
    check_binding(user, place, subject)?;
    check_standing(world, user, who, subject, place)?;
    check_own(caller, requirement, place)
}

fn check_standing(
    world: &World,
    user: &SignedIn,
    who: Standing,
    subject: Subject,
    place: &Ancestry,
) -> Result<(), Fault> {
    let may = match who {
        Standing::Public | Standing::User => true,
        Standing::Master => false,
        _ if user.is_superadmin() => true,
        Standing::SuperAdmin => false,
        Standing::Admin => leads_a_team(world, &*memberships(world, user.id)?)?,
        Standing::Member | Standing::OwnerOrAdmin | Standing::Owner => {
            let memberships = memberships(world, user.id)?;
            return check_membership(place, subject, &memberships, user, who);
        }
    };
    if may { Ok(()) } else { Err(Fault::Forbidden(who)) }
}

/// For a token that is bound to an app, other apps are not found, and neither is what belongs to no
/// app.
fn check_binding(user: &SignedIn, place: &Ancestry, subject: Subject) -> Result<(), Fault> {
    let Credential::Token(_, token) = &user.credential else { return Ok(()) };
    match (token.state.app_id, &place.app) {
        (Some(bound), Some((app, _))) if bound != *app => Err(Fault::NotFound(noun(subject))),
        (Some(_), None) if place.organization.is_some() => Err(Fault::NotFound(noun(subject))),
        _ => Ok(()),
    }
}

/// Checks the user's membership in the object's organization, and the reach into its project.
fn check_membership(
    place: &Ancestry,
    subject: Subject,
    memberships: &Memberships,
    user: &SignedIn,
    who: Standing,
) -> Result<(), Fault> {
    let (is_token, who) = match &place.token {
        Some((_, token)) if token.state.created_by == user.id => return Ok(()),
        // Beside its maker, the owner and the admins of the app's organization may.
        Some(_) => (true, Standing::OwnerOrAdmin),
        None => (false, who),
    };
    let Some((organization, _)) = &place.organization else {
        // Without an object, the call is about the caller's own things. A token without an app
        // belongs to its maker only.
        return if is_token { Err(Fault::NotFound(noun(subject))) } else { Ok(()) };
    };
    let Some(membership) = memberships.organizations.get(organization) else {
        return Err(Fault::NotFound(noun(subject)));
    };
    if matches!(subject, Subject::Membership(_, member) if member == user.id) {
        return Ok(());
    }
    if matches!(&user.credential, Credential::Token(_, token) if token.state.created_at < membership.since)
    {
        return Err(Fault::NotFound(noun(subject)));
    }
    let project = place.project.as_ref().map(|(_, seen)| &seen.state);
    let creator = project.is_some_and(|project| is_creator(membership, project, user.id));
    if project.is_some_and(|project| !reaches_project(membership, project, user.id)) {
        return Err(Fault::NotFound(noun(subject)));
    }
    let is_project = matches!(subject, Subject::Project(_));
    let may = match who {
        Standing::Member => true,
        Standing::OwnerOrAdmin => leads(membership) || creator && place.app.is_some(),
        Standing::Owner => membership.owner || creator && is_project,
        _ => false,
    };
    if may { Ok(()) } else { Err(Fault::Forbidden(who)) }
}

/// Decides whether the caller may run the builds of an organization or of an app.
///
/// Whoever runs builds gets the tokens of repositories, which owners and admins store. So the
/// caller's own membership decides: neither the standing of a superadmin nor that of a project's
/// creator counts.
pub fn authorize_runner(
    world: &World,
    caller: &Caller,
    subject: Subject,
    place: &Ancestry,
) -> Result<(), Fault> {
    let hidden = || Fault::NotFound(noun(subject));
    let user = caller.user.as_ref().ok_or_else(hidden)?;
    check_binding(user, place, subject)?;
    let memberships = memberships(world, user.id)?;
    check_membership(place, subject, &memberships, user, Standing::Member)?;
    let (organization, _) = place.organization.as_ref().ok_or_else(hidden)?;
    match memberships.organizations.get(organization) {
        Some(membership) if leads(membership) => Ok(()),
        _ => Err(Fault::Forbidden(Standing::OwnerOrAdmin)),
    }
}

/// Refuses to make what gives deploy tokens of the maker, if the maker reaches the app as a superadmin
/// only: the tokens would reach nothing.
pub fn check_maker(world: &World, maker: &SignedIn, place: &Ancestry) -> Result<(), Fault> {
    let Some((app, _)) = &place.app else { return Ok(()) };
    let memberships = memberships(world, maker.id)?;
    let member = check_membership(place, Subject::App(*app), &memberships, maker, Standing::Member);
    member.map_err(|fault| match fault {
        Fault::NotFound(_) => Fault::NotNow(
            "a deploy token has the standing of its maker's memberships, and you are no member of \
             this app's organization or project: join it first, or leave this to one of its owners \
             and admins"
                .into(),
        ),
        fault => fault,
    })
}

fn leads(membership: &Membership) -> bool {
    membership.owner || membership.role >= Role::Admin
}

fn leads_a_team(world: &World, memberships: &Memberships) -> Result<bool, Fault> {
    for (organization, membership) in &memberships.organizations {
        if leads(membership) && !membership.personal {
            let seen = world.store.get::<Organizations>(organization)?;
            if seen.is_some_and(|o| o.state.members.len() >= 2) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The memberships of a user; empty if there are none.
pub fn memberships(world: &World, user: UserId) -> Result<Snapshot<Memberships>, Fault> {
    world.store.get_or_empty::<Memberships>(&user)
}

/// Whether a member of the organization reaches the project: its creator, its listed members, and
/// every supervisor or higher role do.
pub fn reaches_project(membership: &Membership, project: &Project, user: UserId) -> bool {
    membership.role >= Role::Supervisor
        || is_creator(membership, project, user)
        || project.member_ids.contains(&user)
}

/// Whether a member created the project and has not left the organization since.
fn is_creator(membership: &Membership, project: &Project, user: UserId) -> bool {
    project.owner_id == Some(user) && project.created_at >= membership.since
}

pub fn account(store: &Store, id: UserId) -> Result<Snapshot<Accounts>, Fault> {
    get::<Accounts>(store, id)
}
