//! Accounts, sessions and passwords.

use crate::{
    Email, Name, Page, Password, PasswordAttempt, SessionId, Timestamp, UserId, WebUrl, page::*,
    patch::Patch,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Authentication";

    /// Create a user account.
    ///
    /// Makes the account, its personal organization and a first session. The session token is in
    /// this reply only.
    "registerUser": RegisterUser {
        email: Email,
        password: Password,
        /// How to show the user; the part of the e-mail before the @ where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
    } -> SignedIn { who: Public, effect: Change, session: ignored, secret: true, errors: [Exists "an account with this e-mail exists"] }

    /// Sign in with e-mail and password.
    ///
    /// Whatever does not sign in is answered alike, a text that cannot be an e-mail or a password
    /// too. After ten failures for one e-mail within 15 minutes an address gets code 429 for that
    /// e-mail, whatever the password. After twenty from addresses that the account has never
    /// signed in from, all such addresses get it.
    "loginWithEmail": LoginWithEmail {
        #[schemars(extend("format" = "email"))]
        email: String,
        password: PasswordAttempt,
    } -> SignedIn
    { who: Public, effect: Change, session: ignored, secret: true,
        errors: [BadCredentials "wrong e-mail or password", RateLimited "too many failures for this e-mail"] }

    /// Read the account that is signed in.
    "getCurrentUser": GetCurrentUser {} -> User { who: User, effect: Read, person: required }

    /// Change the profile of the account that is signed in.
    "updateProfile": UpdateProfile {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        avatar_url: Patch<WebUrl>,
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        company: Patch<Name>,
    } -> User { who: User, effect: Change, person: required }

    /// Change the password and end every other session.
    ///
    /// The calling session gets a new token, in this reply only.
    "changePassword": ChangePassword {
        current_password: PasswordAttempt,
        new_password: Password,
        /// Whether to end all deploy tokens of the account, too.
        #[serde(default)]
        revoke_tokens: bool,
    } -> NewSession
    { who: User, effect: Change, person: required, secret: true,
        errors: [BadCredentials "the current password is wrong", RateLimited "too many wrong current passwords"] }

    /// End the calling session.
    "logout": Logout {} -> Nothing { who: User, effect: Change, person: required }

    /// List the sessions of the account that is signed in.
    "svc_getSessions": GetSessions {
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Session> { who: User, effect: Read, person: required }

    /// End one session of the account that is signed in.
    "svc_revokeSession": RevokeSession { session_id: SessionId } -> Nothing
    { who: User, effect: Change, person: required, errors: [NotFound "no such session of this account"] }

    /// Ask for a mail with a token to set a new password.
    ///
    /// The answer is the same whether the account exists or not. The token holds for one hour, and
    /// asking again does not end it. An account is sent at most three such mails within an hour;
    /// further calls send nothing. Where no mail is configured, the token appears once in the
    /// operator's log.
    "requestPasswordReset": RequestPasswordReset { email: Email } -> Nothing
    { who: Public, effect: Change, session: ignored }

    /// Set a new password with a token from the mail, and end every session and deploy token.
    ///
    /// All other tokens for a new password end, too.
    "resetPassword": ResetPassword {
        token: String,
        new_password: Password,
        /// Whether to end all deploy tokens of the account, too.
        #[serde(default = "yes")]
        revoke_tokens: bool,
    } -> Nothing
    { who: Public, effect: Change, session: ignored, errors: [Unauthenticated "the token is wrong, used or expired"] }
}

fn yes() -> bool {
    true
}

records! {
    /// A user account.
    pub struct User {
        id: UserId,
        email: Email,
        name: Name,
        avatar_url: Option<WebUrl>,
        company: Option<Name>,
        /// The highest role held; personal organizations do not count.
        role: Role,
        tier: Tier,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// A user with the session just made.
    pub struct SignedIn {
        user: User,
        /// Goes into `X-Backend-Session-Token`.
        session_token: String,
        expires_at: Timestamp,
    }

    /// A session just made.
    pub struct NewSession {
        /// Goes into `X-Backend-Session-Token`.
        session_token: String,
        expires_at: Timestamp,
    }

    /// A session as its user sees it. The token itself is not stored.
    pub struct Session {
        id: SessionId,
        /// Whether the call came with this session.
        current: bool,
        created_at: Timestamp,
        /// Written at most once an hour.
        last_used_at: Timestamp,
        expires_at: Timestamp,
        user_agent: Option<String>,
    }

    /// An empty object: it is done.
    pub struct Nothing {}
}

/// The role of a user, lowest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Standard user: own projects and those that list them.
    Client,
    /// Can manage the team's projects.
    Supervisor,
    /// Full access to the organization.
    Admin,
    /// Platform-level access.
    Superadmin,
}

/// How many requests a minute an account may make.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// 60 a minute.
    Free,
    /// 300 a minute.
    Developer,
    /// 1000 a minute.
    Professional,
    /// Unlimited.
    Enterprise,
}

impl Tier {
    /// Requests a minute; `None` is unlimited.
    pub const fn per_minute(self) -> Option<u32> {
        match self {
            Tier::Free => Some(60),
            Tier::Developer => Some(300),
            Tier::Professional => Some(1000),
            Tier::Enterprise => None,
        }
    }
}
