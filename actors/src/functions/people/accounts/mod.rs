//! The handlers of the group Authentication.

mod email;
pub mod passwords;
pub mod registration;
pub mod session_routes;
pub mod sign_in;

use super::tokens::show_token;
use crate::{
    call::{
        authz,
        context::{Call, Credential},
        platform::Platform,
    },
    kinds::{
        people::accounts::{
            Account, AccountClaim, Accounts, Command, Session, SessionClaim, SessionIndex, session,
        },
        world::World,
    },
    runtime::pagination,
};
use contract::{
    Email, Fault, Page, Serves, UserId,
    authentication::{
        self as auth, Caller, Empty, GetCurrentUser, GetSessions, Logout, RevokeSession, Role,
        UpdateProfile, User,
    },
};
use store::Snapshot;

/// The account as a reply shows it.
pub fn view(platform: &Platform, id: UserId, account: &Account) -> Result<User, Fault> {
    let role = if account.superadmin {
        Role::Superadmin
    } else {
        authz::memberships(&platform.world, id)?.role()
    };
    Ok(User {
        id,
        email: account.email.clone(),
        name: account.name.clone(),
        avatar_url: account.avatar_url.clone(),
        company: account.company.clone(),
        role,
        tier: account.tier(),
        created_at: account.created_at,
        updated_at: account.updated_at,
    })
}

pub fn account_of(
    world: &World,
    email: &Email,
) -> Result<Option<(UserId, Snapshot<Accounts>)>, Fault> {
    world.store.held_by(&AccountClaim::email(email))
}

impl Serves<GetCurrentUser> for Platform {
    async fn serve(&self, cx: &Call, _: GetCurrentUser) -> Result<Caller, Fault> {
        let caller = cx.user()?;
        let user = view(self, caller.id, &caller.account.state)?;
        Ok(match &caller.credential {
            Credential::Session(..) => Caller { user, deploy_token: None },
            Credential::Token(token, seen) => {
                // A token does not have the standing of a superadmin.
                let role = authz::memberships(&self.world, caller.id)?.role();
                let token = show_token(&self.world.store, *token, &seen.state)?;
                Caller { user: User { role, ..user }, deploy_token: Some(token) }
            }
        })
    }
}

impl Serves<UpdateProfile> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateProfile) -> Result<User, Fault> {
        let user = cx.user()?.id;
        let command = Command::Update {
            name: p.name.map(Into::into),
            avatar_url: p.avatar_url,
            company: p.company.map(Into::into),
        };
        let platform = self.clone();
        let reply = move |account: &Account| view(&platform, user, account);
        cx.to::<Accounts>(user).change(command, reply).await
    }
}

impl Serves<Logout> for Platform {
    async fn serve(&self, cx: &Call, _: Logout) -> Result<Empty, Fault> {
        let (key, _) = cx.session()?;
        // Read again: the authentication of this call may have written that the session is in use.
        let session = self.world.store.get::<Session>(&key.to_owned())?;
        let Some(session) = session else { return Ok(Empty {}) };
        let command = Command::SignOut { key: key.to_owned(), session };
        cx.to::<Accounts>(cx.user()?.id).change(command, |_| Ok(Empty {})).await
    }
}

impl Serves<GetSessions> for Platform {
    async fn serve(&self, cx: &Call, p: GetSessions) -> Result<Page<auth::Session>, Fault> {
        let user = cx.user()?;
        let current = cx.session().ok().map(|(key, _)| key);
        let mut sessions = Vec::new();
        let of_user = SessionIndex::User { user: user.id };
        let stored = self.world.store.newest(&of_user, None);
        for found in stored.take(session::MOST_LOOKED_AT) {
            let (key, session) = found?;
            if session.epoch == user.account.state.epoch && session.expires_at > cx.now {
                sessions.push(auth::Session {
                    id: session.id,
                    current: current == Some(key.as_str()),
                    created_at: session.created_at,
                    last_used_at: session.last_used_at,
                    expires_at: session.expires_at,
                    user_agent: session.user_agent.clone(),
                });
            }
        }
        Ok(pagination::slice(sessions, |session| session.id.to_string(), (p.limit, p.cursor)))
    }
}

impl Serves<RevokeSession> for Platform {
    async fn serve(&self, cx: &Call, p: RevokeSession) -> Result<Empty, Fault> {
        let user = cx.user()?.id;
        let none = || Fault::NotFound("session");
        let membership = self.world.store.held_by(&SessionClaim::Id { id: p.session_id })?;
        let (key, session) = membership.ok_or_else(none)?;
        if session.user != user {
            return Err(none());
        }
        let command = Command::SignOut { key, session };
        cx.to::<Accounts>(user).change(command, |_| Ok(Empty {})).await
    }
}
