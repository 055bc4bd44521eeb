//! Accounts, sessions and passwords.

use crate::{
    Email, Name, NewName, OrganizationId, Page, Password, PasswordAttempt, SessionId, Timestamp,
    UserId, WebUrl, operators::AuditEvent, page::*, patch::Patch, quotas::QuotaUse,
    tokens::DeployToken,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Authentication";

    /// Create a user account.
    ///
    /// This creates the account, its personal organization and a first session. Only this reply
    /// contains the session token.
    ///
    /// `registration` of `svc_getServiceInfo` says who may register.
    "registerUser": RegisterUser {
        email: Email,
        /// The password of the account, 8 to 256 characters.
        password: Password,
        /// The display name. The default is the part of the e-mail address before the `@`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
        /// The token of a pending invitation for this e-mail. It is needed where people register by
        /// invitation only. It stays valid: accept the invitation with `acceptInvitation`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        invitation: Option<String>,
    } -> SignedIn { who: Public, effect: Change, session: Ignored, secret: true,
        errors: [
            Exists "an account with this e-mail exists",
            NotNow "registration is closed, or needs an invitation",
            NotFound "there is no such invitation for this e-mail",
        ] }

    /// Create the first administrator, once.
    ///
    /// The account is a superadmin. The token is that of the link which the server prints when it
    /// starts without an administrator; the file `secrets/first-start.json` in its data directory
    /// holds it, too. Only this reply contains the session token.
    "svc_createFirstAdministrator": CreateFirstAdministrator {
        /// The token in the link that the server printed when it started.
        token: String,
        email: Email,
        /// The password of the account, 8 to 256 characters.
        password: Password,
        /// The display name. The default is the part of the e-mail address before the `@`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
    } -> SignedIn
    { who: Public, effect: Change, session: Ignored, secret: true,
        errors: [
            Unauthenticated "the token is wrong, or this server needs no first administrator",
            Exists "there is a first administrator, or an account with this e-mail",
        ] }

    /// Sign in with e-mail and password.
    ///
    /// Every failed sign-in gets the same answer, even if the text cannot be an e-mail address or a
    /// password. After ten failures for one e-mail within 15 minutes, an IP address gets code 429
    /// for that e-mail, even with the right password. After twenty failures from IP addresses that
    /// the account has never signed in from, all such addresses get it.
    "loginWithEmail": LoginWithEmail {
        #[schemars(extend("format" = "email"))]
        email: String,
        /// The password of the account. One that cannot be a password counts as a wrong one.
        password: PasswordAttempt,
    } -> SignedIn
    { who: Public, effect: Change, session: Ignored, secret: true,
        errors: [BadCredentials "wrong e-mail or password", RateLimited "too many failures for this e-mail"] }

    /// Read the caller's account. For a deploy token, the reply also tells what the token is.
    "getCurrentUser": GetCurrentUser {} -> Caller
    { who: User, effect: Read, any_token: true, person: true }

    /// Change the caller's profile.
    "updateProfile": UpdateProfile {
        /// The new display name. Without it, the name stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
        /// The address of a picture of the user. Null clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        avatar_url: Patch<WebUrl>,
        /// The company that the user works for. Null clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        company: Patch<NewName>,
    } -> User { who: User, effect: Change, person: true }

    /// Ask for another e-mail for the caller's account.
    ///
    /// This sends a mail with a token to the new e-mail, and tells the present one of it. Nothing changes
    /// until `svc_confirmEmail` has the token, within one hour. A new password revokes the token. If no
    /// mail server is configured, the token appears once in the operator's log.
    "svc_changeEmail": ChangeEmail {
        /// The e-mail that is to get the mail, and then the account.
        new_email: Email,
        /// The password of the account. It is not needed within ten minutes of the sign-in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        current_password: Option<PasswordAttempt>,
    } -> Empty
    { who: User, effect: Change, person: true,
        errors: [
            BadCredentials "the current password is wrong",
            Exists "an account with this e-mail exists",
            RateLimited "three such mails were sent within an hour, or too many wrong current passwords",
        ] }

    /// Give an account its new e-mail with the token from the mail.
    ///
    /// Sessions and deploy tokens stay. Tokens for a new password that were sent to the earlier e-mail are
    /// revoked, and a mail tells it of the change. A tier that a subscription pays for belongs to the
    /// e-mail that pays.
    "svc_confirmEmail": ConfirmEmail {
        /// The token from the mail of `svc_changeEmail`. It works once.
        token: String,
    } -> Empty
    { who: Public, effect: Change, session: Ignored,
        errors: [
            Unauthenticated "the token is wrong, used or expired",
            Exists "an account with this e-mail was made meanwhile",
        ] }

    /// Change the caller's password and end every other session.
    ///
    /// The calling session gets a new token. Only this reply contains it. A mail tells the user of the
    /// change.
    "changePassword": ChangePassword {
        /// The password that is to be replaced.
        current_password: PasswordAttempt,
        /// The password from now on, 8 to 256 characters.
        new_password: Password,
        /// Whether to revoke all deploy tokens of the account, too. Then the trusted publishers that it
        /// added are removed, and the webhooks that it made are disabled.
        #[serde(default)]
        revoke_tokens: bool,
    } -> NewSession
    { who: User, effect: Change, person: true, secret: true,
        errors: [BadCredentials "the current password is wrong", RateLimited "too many wrong current passwords"] }

    /// End the calling session.
    "logout": Logout {} -> Empty { who: User, effect: Change, person: true }

    /// List the caller's sessions.
    "svc_getSessions": GetSessions {
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Session> { who: User, effect: Read, person: true }

    /// End one of the caller's sessions.
    "svc_revokeSession": RevokeSession {
        /// The id of the session, from `svc_getSessions`.
        session_id: SessionId,
    } -> Empty
    { who: User, effect: Change, person: true, errors: [NotFound "no such session of this account"] }

    /// Read how much of the caller's rate limit is left, and what an organization uses of its quotas.
    ///
    /// A change that would exceed a quota is refused with code 119, and the message names the quota.
    "svc_getUsage": GetUsage {
        /// The organization whose quotas are returned. Without it, those of the caller's personal one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        organization_id: Option<OrganizationId>,
    } -> Usage { who: Member of (organization_id) or User, effect: Read, person: true }

    /// List the changes that were made with the caller's sessions and deploy tokens.
    "svc_getAuditLog": GetOwnAuditLog {
        /// Return only calls of this function.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<Name>,
        /// Return only events of the object with this id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<Name>,
        /// Return only events at or after this time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<AuditEvent> { who: User, effect: Read, person: true }

    /// Send a mail with a token for a new password.
    ///
    /// The answer is the same whether the account exists or not. The token is valid for one hour; a
    /// later request does not revoke it. An account gets at most three such mails within an hour;
    /// further calls send nothing. If no mail server is configured, the token appears once in the
    /// operator's log.
    "requestPasswordReset": RequestPasswordReset { email: Email } -> Empty
    { who: Public, effect: Change, session: Ignored }

    /// Set a new password with the token from the mail.
    ///
    /// This ends every session and revokes all other tokens for a new password. A mail tells the user of
    /// it.
    "resetPassword": ResetPassword {
        /// The token from the mail of `requestPasswordReset`, or from `svc_admin_createUser`. It
        /// works once.
        token: String,
        /// The password from now on, 8 to 256 characters.
        new_password: Password,
        /// Whether to revoke all deploy tokens of the account, too. Then the trusted publishers that it
        /// added are removed, and the webhooks that it made are disabled. The default is true.
        #[serde(default = "yes")]
        revoke_tokens: bool,
    } -> Empty
    { who: Public, effect: Change, session: Ignored,
        errors: [Unauthenticated "the token is wrong, used or expired"] }
}

fn yes() -> bool {
    true
}

records! {
    /// A user account.
    pub struct User {
        id: UserId,
        email: Email,
        /// The display name, which other members see. It need not be unique.
        name: Name,
        avatar_url: Option<WebUrl>,
        company: Option<Name>,
        /// The user's highest role. Personal organizations do not count.
        role: Role,
        tier: Tier,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// Who makes the call: an account, and the deploy token if it is one that calls.
    pub struct Caller {
        /// The account. For a deploy token, that of its creator, with the role that the token has.
        #[serde(flatten)]
        user: User,
        /// The deploy token that made the call. Null for a session.
        #[serde(default)]
        deploy_token: Option<DeployToken>,
    }

    /// A user and a new session.
    pub struct SignedIn {
        /// The account that is signed in.
        user: User,
        /// Send it in `X-Backend-Session-Token`.
        session_token: String,
        expires_at: Timestamp,
    }

    /// The session that the call began. Its token is shown only here.
    pub struct NewSession {
        /// Send it in `X-Backend-Session-Token`.
        session_token: String,
        expires_at: Timestamp,
    }

    /// A session. The service does not store its token.
    pub struct Session {
        id: SessionId,
        /// Whether this is the session of the call.
        current: bool,
        created_at: Timestamp,
        /// Updated at most once an hour.
        last_used_at: Timestamp,
        expires_at: Timestamp,
        /// The first 200 characters of `User-Agent` in the request that began the session. Null if
        /// it had none.
        user_agent: Option<String>,
    }

    /// How much of a rate limit is left, and what an organization uses of its quotas.
    pub struct Usage {
        /// The tier of the caller's account. It sets the rate limit.
        tier: Tier,
        /// The calls that the tier allows in a minute. Null if there is no limit.
        calls_per_minute: Option<u32>,
        /// The calls that pass now, before others have to wait. Null if there is no limit.
        calls_left: Option<u32>,
        organization_id: OrganizationId,
        /// The tier of the owner of the organization. It sets the quotas.
        organization_tier: Tier,
        /// What the organization uses of each quota.
        quotas: Vec<QuotaUse>,
    }

    /// An empty object. It confirms that the call succeeded.
    pub struct Empty {}
}

/// The roles of users, lowest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Works on own projects, and on projects that list the user as a member.
    Client,
    /// Works on all projects of the organization.
    Supervisor,
    /// Full access to the organization.
    Admin,
    /// Full access to the platform.
    Superadmin,
}

/// The rate limit of an account.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// 60 calls a minute.
    Free,
    /// 300 calls a minute.
    Developer,
    /// 1000 calls a minute.
    Professional,
    /// Unlimited.
    Enterprise,
}

impl Tier {
    /// The number of calls a minute. `None` means unlimited.
    pub const fn per_minute(self) -> Option<u32> {
        match self {
            Tier::Free => Some(60),
            Tier::Developer => Some(300),
            Tier::Professional => Some(1000),
            Tier::Enterprise => None,
        }
    }
}
