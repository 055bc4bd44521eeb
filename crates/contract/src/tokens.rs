//! Deploy tokens, with which CI jobs authenticate.

use crate::{
    AppId, BoundedSet, Name, NewName, Page, Patch, Scope, Timestamp, TokenId, UserId, page::*,
};

/// How long a deploy token lives unless its creator says otherwise, in days.
pub const DEFAULT_DAYS: u64 = 90;
/// How many deploy tokens that can be used an app may have, and a person without an app. Tokens of CI jobs do
/// not count.
pub const MOST: usize = 100;

functions! {
    group "Deploy tokens";

    /// Create a deploy token.
    ///
    /// Only this reply contains the token. A token can do what its scopes allow, as long as the
    /// memberships of its creator allow it: the token of a superadmin reaches no further. At most 100
    /// tokens of an app can be used at a time, and 100 that a person made without an app. Those that
    /// CI jobs get for their identity do not count. A token that was revoked or has expired is
    /// removed 30 days later.
    "svc_createDeployToken": CreateDeployToken {
        /// What people call the token. It need not be unique.
        name: NewName,
        /// What the token may do, and nothing else.
        scopes: BoundedSet<Scope, 1, 7>,
        /// Restricts the token to one app. The default is every app that its creator may access.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        /// When the token expires; null: never. The default is 90 days from now.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        expires_at: Patch<Timestamp>,
    } -> NewDeployToken
    { who: Member of (app_id), effect: Change, person: true, secret: true,
      errors: [NotNow "the caller is a superadmin and no member of the app's organization, or there are 100 tokens"] }

    /// List the deploy tokens of an app, or the caller's own. The master key lists all tokens.
    "svc_getDeployTokens": GetDeployTokens {
        /// Return only tokens that are bound to this app. Without it, those that the caller made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<DeployToken> { who: Member of (app_id), effect: Read }

    /// Revoke a deploy token at once. Its maker may, and the owner and the admins of its app's
    /// organization.
    "svc_revokeDeployToken": RevokeDeployToken {
        /// The id of the token, from `svc_getDeployTokens`.
        token_id: TokenId,
    } -> DeployToken
    { who: OwnerOrAdmin of (token_id), effect: Change }
}

records! {
    /// A deploy token, without the secret token text, which the service does not store.
    pub struct DeployToken {
        id: TokenId,
        /// What people call the token. It need not be unique.
        name: Name,
        /// What the token may do, and nothing else.
        scopes: Vec<Scope>,
        /// The id of the app that the token is bound to. Null: every app that its creator may
        /// access.
        app_id: Option<AppId>,
        /// What people call that app. Null: the token is bound to none.
        #[serde(default)]
        app_name: Option<Name>,
        /// The id of the user who made it.
        created_by: UserId,
        created_at: Timestamp,
        /// When the token ceases to be valid. Null: never.
        expires_at: Option<Timestamp>,
        /// Updated at most once a minute.
        last_used_at: Option<Timestamp>,
        /// When the token was revoked, alone or with all tokens of its creator. Null if it was not.
        revoked_at: Option<Timestamp>,
    }

    /// A deploy token that the call created. The text of `token` is shown only here.
    pub struct NewDeployToken {
        /// Send it in `Authorization: Bearer`, or store it as the CI secret `SVC_TOKEN`.
        token: String,
        /// The token without its text, as lists show it.
        deploy_token: DeployToken,
    }
}
