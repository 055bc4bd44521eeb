//! Deploy tokens: what CI jobs sign in with.

use crate::{AppId, BoundedSet, Name, Page, Scope, Timestamp, TokenId, UserId, page::*};

functions! {
    group "Deploy tokens";

    /// Create a deploy token.
    ///
    /// The token is in this reply only. It can do what its scopes allow and its maker could do.
    "svc_createDeployToken": CreateDeployToken {
        name: Name,
        scopes: BoundedSet<Scope, 1, 3>,
        /// Bind it to one app; every app that its maker reaches where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        /// No end where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    } -> NewDeployToken
    { who: Member of (app_id), effect: Change, person: required, secret: true }

    /// List deploy tokens: those of an app, or the caller's own; all, for the master key.
    "svc_getDeployTokens": GetDeployTokens {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<DeployToken> { who: Member of (app_id), effect: Read }

    /// End a deploy token at once.
    "svc_revokeDeployToken": RevokeDeployToken { token_id: TokenId } -> DeployToken
    { who: Owner of (token_id), effect: Change }
}

records! {
    /// A deploy token as people see it. The token itself is not stored.
    pub struct DeployToken {
        id: TokenId,
        name: Name,
        scopes: Vec<Scope>,
        app_id: Option<AppId>,
        created_by: UserId,
        created_at: Timestamp,
        expires_at: Option<Timestamp>,
        /// Written at most once a minute.
        last_used_at: Option<Timestamp>,
        revoked_at: Option<Timestamp>,
    }

    /// A deploy token just made.
    pub struct NewDeployToken {
        /// Goes into `Authorization: Bearer` or the secret `SVC_TOKEN`.
        token: String,
        deploy_token: DeployToken,
    }
}
