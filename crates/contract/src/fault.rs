//! The error type of all calls. The service logs causes where they happen; a [`Fault`] contains
//! what a caller may know and can act on.

use crate::{FaultKind, Standing, time::span};
use serde::{Deserialize, Serialize};

/// A problem with one field of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FieldProblem {
    /// The path of the field, such as `scopes[0]`.
    pub field: String,
    /// What is wrong and what is allowed.
    pub problem: String,
}

/// Why a call was refused or failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The object does not exist, or the caller may not see it.
    #[error("there is no such {0}, or you may not see it")]
    NotFound(&'static str),
    /// Nothing is served at this path.
    #[error(
        "nothing is served at this address; functions are called with POST {{base_url}}/functions/{{name}}"
    )]
    NoRoute,
    /// The e-mail or the password is wrong. The text does not say which.
    #[error("wrong e-mail or password")]
    BadCredentials,
    /// The caller must confirm the change with the current password, and gave another one.
    #[error("the current password is wrong")]
    WrongCurrentPassword,
    /// The application id, session, token or key is missing or invalid.
    #[error("{0}")]
    Unauthenticated(String),
    /// The state of the object does not allow the call. The text names the state and what it
    /// allows.
    #[error("{0}")]
    NotNow(String),
    /// The change would exceed a quota. The text names the quota, its use and the limit.
    #[error("{0}")]
    OverQuota(String),
    /// A part of an upload does not start where the stored bytes end.
    #[error("{reason}")]
    WrongOffset {
        /// The offset that was sent and the right one.
        reason: String,
        /// The number of stored bytes.
        offset: u64,
    },
    /// The caller finalizes an upload before all its bytes are stored.
    #[error("{reason}")]
    Incomplete {
        /// What is missing.
        reason: String,
        /// The number of stored bytes.
        offset: u64,
    },
    /// Another object has this unique value.
    #[error("{0}")]
    Exists(String),
    /// No function has this name. `None`: it is not the name of any function.
    #[error("there is no function {}; GET /openapi.json lists all there are", name(.0.as_deref()))]
    UnknownFunction(Option<String>),
    /// The parameters are not valid.
    #[error("{}", sentence(.0))]
    Invalid(Vec<FieldProblem>),
    /// The body is not JSON, is not an object, or nests too deep.
    #[error("{0}")]
    Malformed(String),
    /// The path is not served with this HTTP method.
    #[error("this address is not served with {0:.20}")]
    Method(String),
    /// The body did not arrive in time.
    #[error("the request did not arrive in time")]
    RequestTimeout,
    /// The body is too large.
    #[error("the body is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The content type is not JSON in UTF-8.
    #[error("send JSON as application/json or text/plain in UTF-8, not {0}")]
    ContentType(String),
    /// The uploaded bytes are not as declared.
    #[error("{0}")]
    NotAsDeclared(String),
    /// The caller may see the object, but lacks the standing.
    #[error("this requires {}", .0.required())]
    Forbidden(Standing),
    /// A deploy token lacks the scope.
    #[error("this token lacks the scope {}", .0.name())]
    MissingScope(crate::Scope),
    /// The caller exceeded the rate limit.
    #[error("too many requests; try again in {retry_after} s")]
    RateLimited {
        /// Seconds until a call will pass.
        retry_after: u64,
    },
    /// The caller exceeded another limit, such as the limit of failed sign-ins.
    #[error("{what}; try again in {}", span(*.retry_after))]
    TooMany {
        /// What there is too much of.
        what: String,
        /// Seconds until the next attempt will pass.
        retry_after: u64,
    },
    /// The service is overloaded. It did nothing.
    #[error("the service is busy; nothing was done, try again in a moment")]
    Busy,
    /// The disk of the service is nearly full. It did nothing.
    #[error(
        "the disk of the service is full; nothing was done, try again when its operator has made room"
    )]
    NoRoom,
    /// A record that the call relies on changed during the call. Nothing was done; the router tries
    /// again.
    #[error("this changed while it was being done; nothing was done, try again")]
    Stale,
    /// An upstream is unreachable. Nothing was done.
    #[error("{0} cannot be reached; nothing was done, try again in a moment")]
    Unavailable(&'static str),
    /// An upstream did not answer in time. The call may have been executed.
    #[error("{0} gave no answer in time; it may have been done, read before trying again")]
    NoAnswer(&'static str),
    /// The object's owner failed too often. It is parked until an operator restarts it.
    #[error(
        "this {0} failed repeatedly and is parked; an operator can restart it with svc_admin_restartActor"
    )]
    Parked(&'static str),
    /// A cloud function of a user's backend failed.
    #[error("the cloud function failed{}: {error}", .code.map(|code| format!(" with code {code}")).unwrap_or_default())]
    CalledFailed {
        /// The code of the cloud function's error.
        code: Option<i64>,
        /// The message of the cloud function's error.
        error: String,
    },
    /// A payment provider or a shop refused, in these words.
    #[error("{0}")]
    Refused(String),
    /// An internal error. Nothing was done.
    #[error("a fault of the service; nothing was done")]
    Internal,
    /// An internal error. The call may have been executed.
    #[error(
        "interrupted by a fault of the service; it may have been done, read before trying again"
    )]
    Uncertain,
    /// The stored fault of an earlier call with the same idempotency key.
    #[error("{error}")]
    Again {
        /// The code of the earlier fault.
        code: u16,
        /// The HTTP status of the earlier fault.
        status: u16,
        /// The text of the earlier fault.
        error: String,
        /// The field problems of the earlier fault.
        details: Vec<FieldProblem>,
    },
    /// The session of a client library is invalid. Only session routes use it.
    #[error("Invalid session token")]
    InvalidSession,
    /// The user name of a sign-up is taken. Only session routes use it.
    #[error("Account already exists for this username.")]
    UsernameTaken,
}

/// A name that follows the grammar, quoted. Other names are not repeated.
fn name(name: Option<&str>) -> String {
    name.map_or_else(|| "of that name".to_owned(), |name| format!("{name:?}"))
}

fn sentence(problems: &[FieldProblem]) -> String {
    let parts: Vec<_> = problems.iter().map(|p| format!("{}: {}", p.field, p.problem)).collect();
    parts.join("; ")
}

impl Fault {
    /// A fault with one invalid field.
    pub fn invalid(field: &str, problem: impl Into<String>) -> Fault {
        Fault::Invalid(vec![FieldProblem { field: field.to_owned(), problem: problem.into() }])
    }

    /// The code in the body, which tells clients the kind of fault.
    pub fn code(&self) -> u16 {
        self.row().0
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        self.row().1
    }

    /// Seconds for `Retry-After`, if a retry can help.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Fault::RateLimited { retry_after } | Fault::TooMany { retry_after, .. } => {
                Some(*retry_after)
            }
            Fault::Busy | Fault::Stale => Some(1),
            Fault::Unavailable(_) | Fault::Parked(_) => Some(5),
            Fault::NoRoom => Some(60),
            _ => None,
        }
    }

    /// The field problems, for `details` in the body.
    pub fn details(&self) -> &[FieldProblem] {
        match self {
            Fault::Invalid(problems) | Fault::Again { details: problems, .. } => problems,
            _ => &[],
        }
    }

    /// Whether the answer may be stored for further calls with the same idempotency key.
    pub fn is_final(&self) -> bool {
        !matches!(self.status(), 401 | 424 | 429 | 500..)
    }

    /// The code and the HTTP status. The match is exhaustive, so every new fault needs a row.
    fn row(&self) -> (u16, u16) {
        use FaultKind as Kind;
        let kind = match self {
            Fault::Unavailable(_)
            | Fault::Busy
            | Fault::NoRoom
            | Fault::Stale
            | Fault::Parked(_) => Kind::Unavailable,
            Fault::NoAnswer(_) => Kind::NoAnswer,
            Fault::NotFound(_) | Fault::NoRoute => Kind::NotFound,
            Fault::BadCredentials | Fault::WrongCurrentPassword => Kind::BadCredentials,
            Fault::Unauthenticated(_) => Kind::Unauthenticated,
            Fault::NotNow(_) | Fault::WrongOffset { .. } | Fault::Incomplete { .. } => Kind::NotNow,
            Fault::OverQuota(_) => Kind::OverQuota,
            Fault::Exists(_) => Kind::Exists,
            Fault::UnknownFunction(_) => Kind::UnknownFunction,
            Fault::CalledFailed { .. } => Kind::CalledFailed,
            Fault::Refused(_) => Kind::Refused,
            Fault::Internal => Kind::Internal,
            Fault::Uncertain => Kind::Uncertain,
            Fault::Invalid(_) | Fault::Malformed(_) => Kind::Invalid,
            Fault::Method(_) => Kind::Method,
            Fault::RequestTimeout => Kind::RequestTimeout,
            Fault::TooLarge { .. } => Kind::TooLarge,
            Fault::ContentType(_) => Kind::ContentType,
            Fault::NotAsDeclared(_) => Kind::NotAsDeclared,
            Fault::Forbidden(_) | Fault::MissingScope(_) => Kind::Forbidden,
            Fault::RateLimited { .. } | Fault::TooMany { .. } => Kind::RateLimited,
            Fault::Again { code, status, .. } => return (*code, *status),
            Fault::InvalidSession => Kind::InvalidSession,
            Fault::UsernameTaken => Kind::UsernameTaken,
        };
        (kind.code(), kind.status())
    }
}

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// What went wrong, for programs.
    pub code: u16,
    /// What went wrong and what to do, for people.
    pub error: String,
    /// The invalid fields, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<FieldProblem>,
    /// If a part of an upload has the wrong start: where the next part must start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_offset: Option<u64>,
    /// If an upload is finalized too early: the number of stored bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

impl Failure {
    /// The body for a fault. An internal error contains the request id, which the log also has.
    pub fn new(fault: &Fault, request_id: &str) -> Failure {
        let error = match fault {
            Fault::Internal | Fault::Uncertain => format!("{fault} (request {request_id})"),
            other => other.to_string(),
        };
        let (expected_offset, offset) = match fault {
            Fault::WrongOffset { offset, .. } => (Some(*offset), None),
            Fault::Incomplete { offset, .. } => (None, Some(*offset)),
            _ => (None, None),
        };
        let details = fault.details().to_vec();
        Failure { code: fault.code(), error, details, expected_offset, offset }
    }
}
