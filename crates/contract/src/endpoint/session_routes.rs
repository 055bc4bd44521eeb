//! The session routes that client libraries of the Parse wire style call. Most call a cloud
//! function with renamed parameters and reshape its reply. Two do what no function does; the
//! platform serves these.
//!
//! Client libraries send every request as `POST`, with the method in the body (`_method`).

use crate::{
    Email, Name, NewName, Password, PasswordAttempt, SessionId, Timestamp, UserId, WebUrl,
    authentication::{Empty, Role, Tier},
    patch::Patch,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    group SessionOperations "Session routes";

    /// Read the calling session.
    "currentSession": Get "/backend/sessions/me" => CurrentSession {} -> ParseSession
    {
        body: Empty,
        who: User,
        effect: Read,
        person: true,
        done: "The session.",
        errors: [InvalidSession "the session is invalid"],
    }

    /// Change the caller's password, profile or both.
    ///
    /// A new password needs the current one, unless the session began within ten minutes. It ends
    /// every other session, and the reply contains the token of a new session. A mail tells the user
    /// of it.
    "changeUser": Put "/backend/users/{userId}" => ChangeUser { user_id: UserId = "user" } -> UserChanged
    {
        body: UserChange,
        who: User,
        effect: Change,
        person: true,
        secret: true,
        done: "The account is changed.",
        errors: [
            Invalid "the caller signed in more than ten minutes ago and sent no `currentPassword`",
            BadCredentials "the current password is wrong",
            NotFound "the id is not the caller's",
            InvalidSession "the session is invalid",
        ],
    }
}

edge_endpoints! {
    group SessionRoutes "Session routes";

    /// Sign in.
    "logIn": Post "/backend/login" => LogIn
    {
        access: Application,
        body: Json(UserCredentials),
        answers: [200 Json(ParseUser) "The user, with a new session."],
        errors: [Invalid "a parameter is missing or invalid", BadCredentials "wrong e-mail or password", RateLimited "too many failures for this e-mail"],
    }

    /// Sign in with credentials in the query, if the operator sets `SVC_LOGIN_BY_GET`.
    ///
    /// Proxies log addresses. A library that sends every request as `POST` has the credentials in the
    /// body, and needs no setting.
    "logInByGet": Get "/backend/login" => LogInByGet
    {
        access: Application,
        answers: [200 Json(ParseUser) "The user, with a new session."],
        errors: [Invalid "a parameter is missing or invalid", BadCredentials "wrong e-mail or password", RateLimited "too many failures for this e-mail"],
    }

    /// Make an account and begin a session.
    "signUp": Post "/backend/users" => SignUp
    {
        access: Application,
        body: Json(UserCredentials),
        answers: [201 Json(SignedUp) "The new user, with a session."],
        errors: [Invalid "a parameter is missing or invalid", UsernameTaken "an account with this e-mail exists"],
    }

    /// Read the caller's account.
    "currentUser": Get "/backend/users/me" => CurrentUser
    {
        access: Session,
        answers: [200 Json(ParseUser) "The user."],
        errors: [InvalidSession "the session is invalid"],
    }

    /// Change the caller's password, profile or both, at the path of the user object.
    "changeUserObject": Put "/backend/classes/_User/{userId}" => ChangeUserObject
    {
        access: Session,
        body: Json(UserChange),
        answers: [200 Json(UserChanged) "The account is changed."],
        errors: [Invalid "a parameter is unknown or invalid", BadCredentials "the current password is wrong", NotFound "the id is not the caller's", InvalidSession "the session is invalid"],
    }

    /// End the calling session.
    "logOut": Post "/backend/logout" => LogOut
    {
        access: Session,
        answers: [200 Json(Empty) "The session has ended."],
        errors: [InvalidSession "the session is invalid"],
    }

    /// Send a mail with a token for a new password.
    "requestReset": Post "/backend/requestPasswordReset" => RequestReset
    {
        access: Application,
        body: Json(ResetRequest),
        answers: [200 Json(Empty) "An empty object, whether the account exists or not."],
        errors: [Invalid "a parameter is missing or invalid"],
    }

    /// Whether the service answers.
    "health": Get "/backend/health" => Health
    { access: Anyone, answers: [200 Json(super::operators::Alive) "The service answers."] }

    /// Whether the service answers, for libraries that send every request as `POST`.
    "healthByPost": Post "/backend/health" => HealthByPost
    { access: Anyone, answers: [200 Json(super::operators::Alive) "The service answers."] }
}

/// The credentials of a sign-in or sign-up. The e-mail address is the user name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserCredentials {
    /// The e-mail address. Send `username`, `email`, or the same address in both.
    pub username: Option<Email>,
    /// The e-mail address.
    pub email: Option<Email>,
    /// The password of the account.
    pub password: Password,
    /// The display name, for a sign-up.
    pub name: Option<NewName>,
}

/// The account whose password to reset.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResetRequest {
    /// The e-mail address of the account.
    pub email: Email,
}

/// A change of an account.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserChange {
    /// The new password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// The current password. It may be missing if the session began within ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_password: Option<PasswordAttempt>,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<NewName>,
    /// The URL of a picture. Null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub avatar_url: Patch<WebUrl>,
    /// The company. Null clears it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub company: Patch<NewName>,
}

records! {
    /// The reply to a change of an account.
    pub struct UserChanged {
        updated_at: Timestamp,
        /// The token of a new session, after a change of the password.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_token: Option<String>,
    }

    /// The reply to a sign-up.
    pub struct SignedUp {
        /// The id of the new account.
        object_id: UserId,
        created_at: Timestamp,
        /// The token of the new session.
        session_token: String,
    }

    /// A user, in the format of Parse client libraries.
    pub struct ParseUser {
        /// The id of the account.
        object_id: UserId,
        /// The same address as `email`.
        username: Email,
        email: Email,
        /// The display name. It need not be unique.
        name: Name,
        avatar_url: Option<WebUrl>,
        company: Option<Name>,
        /// The user's highest role. Personal organizations do not count.
        role: Role,
        tier: Tier,
        created_at: Timestamp,
        updated_at: Timestamp,
        /// The token of the new session after a sign-in, otherwise that of the call.
        session_token: String,
    }

    /// A session, in the format of Parse client libraries.
    pub struct ParseSession {
        /// The id of the session, which is not its token.
        object_id: SessionId,
        /// The account that is signed in.
        user: UserPointer,
        created_at: Timestamp,
        /// When the session was last used, exact to the hour.
        updated_at: Timestamp,
        expires_at: ParseDate,
        /// The token with which the call was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_token: Option<String>,
    }

    /// How Parse client libraries write a reference to a user.
    pub struct UserPointer {
        /// Always `Pointer`.
        #[serde(rename = "__type")]
        kind: String,
        /// Always `_User`.
        class_name: String,
        /// The id of the account.
        object_id: UserId,
    }

    /// A timestamp, in the format of Parse client libraries.
    pub struct ParseDate {
        /// Always `Date`.
        #[serde(rename = "__type")]
        kind: String,
        /// The time in UTC with milliseconds, such as `2026-01-31T12:00:00.000Z`.
        iso: Timestamp,
    }
}
