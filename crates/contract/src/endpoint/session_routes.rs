//! The session routes, which the client libraries of the Parse wire call besides functions. Most are
//! a cloud function in other clothes: the edge renames the parameters, calls the function, and puts
//! the reply into the shape that the libraries read. Two do what no function does; the platform
//! serves these.
//!
//! The libraries post everything and say the method in the body (`_method`).

use crate::{
    Email, Name, Password, SessionId, Timestamp, UserId, WebUrl,
    authentication::{Nothing, Role, Tier},
    patch::Patch,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    group "Session routes";

    /// Read the calling session.
    "currentSession": Get "/backend/sessions/me" => CurrentSession {} with Nothing => ParseSession
    {
        who: User,
        effect: Read,
        person: required,
        done: "The session.",
        errors: [InvalidSession "the session is not valid"],
    }

    /// Change the password, the profile, or both.
    ///
    /// The session is enough: the current password is not asked for. A new password ends every other
    /// session, and the reply has the token of a new one.
    "changeUser": Put "/backend/users/{userId}" => ChangeUser { user_id: UserId = "user" } with UserChange => UserChanged
    {
        who: User,
        effect: Change,
        person: required,
        secret: true,
        done: "It is changed.",
        errors: [NotFound "another user", InvalidSession "the session is not valid"],
    }
}

edge_endpoints! {
    group "Session routes";

    /// Sign in.
    "logIn": Post "/backend/login" => LogIn
    {
        access: Application,
        body: Json(UserCredentials),
        answers: [200 Json(ParseUser) "The user, with a new session."],
        errors: [Invalid "a parameter is missing or not valid", BadCredentials "wrong e-mail or password", RateLimited "too many failures for this e-mail"],
    }

    /// Sign in, with the credentials in the query.
    "logInByGet": Get "/backend/login" => LogInByGet
    {
        access: Application,
        answers: [200 Json(ParseUser) "The user, with a new session."],
        errors: [Invalid "a parameter is missing or not valid", BadCredentials "wrong e-mail or password", RateLimited "too many failures for this e-mail"],
    }

    /// Sign up.
    "signUp": Post "/backend/users" => SignUp
    {
        access: Application,
        body: Json(UserCredentials),
        answers: [201 Json(SignedUp) "The user is made, with a session."],
        errors: [Invalid "a parameter is missing or not valid", UsernameTaken "an account with this e-mail exists"],
    }

    /// Read the user who is signed in.
    "currentUser": Get "/backend/users/me" => CurrentUser
    {
        access: Session,
        answers: [200 Json(ParseUser) "The user."],
        errors: [InvalidSession "the session is not valid"],
    }

    /// Change the password, the profile, or both, at the address of the user's object.
    "changeUserObject": Put "/backend/classes/_User/{userId}" => ChangeUserObject
    {
        access: Session,
        body: Json(UserChange),
        answers: [200 Json(UserChanged) "It is changed."],
        errors: [Invalid "a parameter is unknown or not valid", NotFound "another user", InvalidSession "the session is not valid"],
    }

    /// End the calling session.
    "logOut": Post "/backend/logout" => LogOut
    {
        access: Session,
        answers: [200 Json(Nothing) "It has ended."],
        errors: [InvalidSession "the session is not valid"],
    }

    /// Ask for a mail with a token to set a new password.
    "requestReset": Post "/backend/requestPasswordReset" => RequestReset
    {
        access: Application,
        body: Json(ResetRequest),
        answers: [200 Json(Nothing) "The same, whether the account exists or not."],
        errors: [Invalid "a parameter is missing or not valid"],
    }

    /// Whether the service is there.
    "health": Get "/backend/health" => Health
    { access: Anyone, answers: [200 Json(super::operators::Alive) "It is there."] }

    /// Whether the service is there, for libraries that post everything.
    "healthByPost": Post "/backend/health" => HealthByPost
    { access: Anyone, answers: [200 Json(super::operators::Alive) "It is there."] }
}

/// What signs somebody in or up: an e-mail, which is the user name too, and a password.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserCredentials {
    /// The e-mail; `email` may say the same.
    pub username: Option<Email>,
    /// The e-mail.
    pub email: Option<Email>,
    /// The password.
    pub password: Password,
    /// With a sign-up: how to show the user.
    pub name: Option<Name>,
}

/// Whose password to reset.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResetRequest {
    /// The e-mail of the account.
    pub email: Email,
}

/// What to change of a user.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserChange {
    /// A new password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// How to show the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// A picture of the user.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub avatar_url: Patch<WebUrl>,
    /// The company.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub company: Patch<Name>,
}

records! {
    /// A change of a user is done.
    pub struct UserChanged {
        updated_at: Timestamp,
        /// After a change of the password: the token of a new session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_token: Option<String>,
    }

    /// A user who was just made.
    pub struct SignedUp { object_id: UserId, created_at: Timestamp, session_token: String }

    /// A user in the shape that the libraries read.
    pub struct ParseUser {
        object_id: UserId,
        username: Email,
        email: Email,
        name: Name,
        avatar_url: Option<WebUrl>,
        company: Option<Name>,
        role: Role,
        tier: Tier,
        created_at: Timestamp,
        updated_at: Timestamp,
        session_token: String,
    }

    /// A session in the shape that the libraries read.
    pub struct ParseSession {
        object_id: SessionId,
        user: UserPointer,
        created_at: Timestamp,
        updated_at: Timestamp,
        expires_at: ParseDate,
    }

    /// A pointer to a user.
    pub struct UserPointer {
        /// `Pointer`.
        #[serde(rename = "__type")]
        kind: String,
        /// `_User`.
        class_name: String,
        object_id: UserId,
    }

    /// A moment in the shape that the libraries read.
    pub struct ParseDate {
        /// `Date`.
        #[serde(rename = "__type")]
        kind: String,
        iso: Timestamp,
    }
}
