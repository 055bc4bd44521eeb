//! The one error type that crosses a boundary. Causes are logged where they happen; a [`Fault`]
//! carries what a caller may know and can act on.

use crate::{FaultKind, Standing};
use serde::{Deserialize, Serialize};

/// What is wrong with one field of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FieldProblem {
    /// The field, as a path such as `scopes[0]`.
    pub field: String,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

/// Why a call was refused or failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// There is no such object, or the caller may not know of it.
    #[error("there is no such {0}, or you may not see it")]
    NotFound(&'static str),
    /// No route at this address.
    #[error(
        "nothing is served at this address; functions are called with POST {{base_url}}/functions/{{name}}"
    )]
    NoRoute,
    /// The e-mail or the password is wrong. It does not say which.
    #[error("wrong e-mail or password")]
    BadCredentials,
    /// The current password, which was asked for again, is wrong.
    #[error("the current password is wrong")]
    WrongCurrentPassword,
    /// The caller is not who it has to be: no or invalid application id, session, token or key.
    #[error("{0}")]
    Unauthenticated(String),
    /// The state of the object does not allow it. The sentence names the state and what would be allowed.
    #[error("{0}")]
    NotNow(String),
    /// A part of an upload does not start where the stored bytes end.
    #[error("{reason}")]
    WrongOffset {
        /// What was asked and what would be right.
        reason: String,
        /// How many bytes are stored.
        offset: u64,
    },
    /// An upload is finalized before all its bytes are stored.
    #[error("{reason}")]
    Incomplete {
        /// What is missing.
        reason: String,
        /// How many bytes are stored.
        offset: u64,
    },
    /// A unique value is taken already.
    #[error("{0}")]
    Exists(String),
    /// No function has this name.
    #[error("there is no function {0:?}; GET /openapi.json lists all there are")]
    UnknownFunction(String),
    /// The parameters are not valid.
    #[error("{}", sentence(.0))]
    Invalid(Vec<FieldProblem>),
    /// The request cannot be read: not JSON, too deep, not an object.
    #[error("{0}")]
    Malformed(String),
    /// The HTTP method is not served here.
    #[error("this address is not served with {0:.20}")]
    Method(String),
    /// The body did not arrive in time.
    #[error("the request did not arrive in time")]
    RequestTimeout,
    /// The headers are too large, or too many.
    #[error("the headers are larger than 128 KiB, or more than 96")]
    HeadersTooLarge,
    /// The body is too large.
    #[error("the body is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The content type is not understood.
    #[error("send JSON as application/json or text/plain in UTF-8, not {0}")]
    ContentType(String),
    /// The bytes are not what was declared.
    #[error("{0}")]
    NotAsDeclared(String),
    /// The caller is known and sees the object, but its standing is too low.
    #[error("this requires {}", .0.required())]
    Forbidden(Standing),
    /// A deploy token lacks the scope.
    #[error("this token lacks the scope {}", .0.name())]
    MissingScope(crate::Scope),
    /// Too many requests.
    #[error("too many requests; try again in {retry_after} s")]
    RateLimited {
        /// Seconds until a call will pass.
        retry_after: u64,
    },
    /// Too many of one thing, such as failed sign-ins.
    #[error("{what}; try again in {}", span(*.retry_after))]
    TooMany {
        /// What there were too many of.
        what: String,
        /// Seconds until the next one will pass.
        retry_after: u64,
    },
    /// The service has too much to do, and did nothing.
    #[error("the service is busy; nothing was done, try again in a moment")]
    Busy,
    /// Something the call was based on changed meanwhile; nothing was done. The router asks again.
    #[error("this changed while it was being done; nothing was done, try again")]
    Stale,
    /// Something behind the service cannot be reached; nothing was done.
    #[error("{0} cannot be reached; nothing was done, try again in a moment")]
    Unavailable(&'static str),
    /// Something behind the service gave no answer in time; it may have been done.
    #[error("{0} gave no answer in time; it may have been done, read before trying again")]
    NoAnswer(&'static str),
    /// Its owner failed too often and is parked until an operator restarts it.
    #[error(
        "this {0} failed repeatedly and is parked; an operator can restart it with svc_admin_restartActor"
    )]
    Parked(&'static str),
    /// A cloud function of somebody's backend was called, and failed.
    #[error("the cloud function failed{}: {error}", .code.map(|code| format!(" with code {code}")).unwrap_or_default())]
    CalledFailed {
        /// Its own code.
        code: Option<i64>,
        /// Its own message.
        error: String,
    },
    /// A fault of ours; nothing was done.
    #[error("a fault of the service; nothing was done")]
    Internal,
    /// A fault of ours; it may have been done.
    #[error(
        "interrupted by a fault of the service; it may have been done, read before trying again"
    )]
    Uncertain,
    /// The refusal that an earlier call with the same request id got.
    #[error("{error}")]
    Again {
        /// The code in the body.
        code: u16,
        /// The HTTP status.
        status: u16,
        /// The sentence.
        error: String,
        /// The fields at fault.
        details: Vec<FieldProblem>,
    },
    /// The session of a client library's own route is not valid.
    #[error("Invalid session token")]
    InvalidSession,
    /// The user name of a client library's sign-up is taken.
    #[error("Account already exists for this username.")]
    UsernameTaken,
}

/// A span of time in words, never shorter than it is.
fn span(seconds: u64) -> String {
    match seconds {
        0..=1 => "a second".into(),
        2..=90 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds.div_ceil(60)),
    }
}

fn sentence(problems: &[FieldProblem]) -> String {
    let parts: Vec<_> = problems.iter().map(|p| format!("{}: {}", p.field, p.problem)).collect();
    parts.join("; ")
}

impl Fault {
    /// One field is at fault.
    pub fn invalid(field: &str, problem: impl Into<String>) -> Fault {
        Fault::Invalid(vec![FieldProblem { field: field.to_owned(), problem: problem.into() }])
    }

    /// The code in the body: what clients tell faults apart by.
    pub fn code(&self) -> u16 {
        self.row().0
    }

    /// The HTTP status that goes with it.
    pub fn status(&self) -> u16 {
        self.row().1
    }

    /// Seconds for `Retry-After`, where trying the same call again can help.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Fault::RateLimited { retry_after } | Fault::TooMany { retry_after, .. } => {
                Some(*retry_after)
            }
            Fault::Busy | Fault::Stale => Some(1),
            Fault::Unavailable(_) | Fault::Parked(_) => Some(5),
            _ => None,
        }
    }

    /// The fields at fault, for the body's `details`.
    pub fn details(&self) -> &[FieldProblem] {
        match self {
            Fault::Invalid(problems) | Fault::Again { details: problems, .. } => problems,
            _ => &[],
        }
    }

    /// Whether an answer like this may be kept for a repetition of the same request id.
    pub fn is_final(&self) -> bool {
        !matches!(self.status(), 401 | 424 | 429 | 500..)
    }

    /// Code and status of each fault. The match is exhaustive, so a new fault cannot forget them.
    fn row(&self) -> (u16, u16) {
        use FaultKind as Kind;
        let kind = match self {
            Fault::Unavailable(_) | Fault::Busy | Fault::Stale | Fault::Parked(_) => {
                Kind::Unavailable
            }
            Fault::NoAnswer(_) => Kind::NoAnswer,
            Fault::NotFound(_) | Fault::NoRoute => Kind::NotFound,
            Fault::BadCredentials | Fault::WrongCurrentPassword => Kind::BadCredentials,
            Fault::Unauthenticated(_) => Kind::Unauthenticated,
            Fault::NotNow(_) | Fault::WrongOffset { .. } | Fault::Incomplete { .. } => Kind::NotNow,
            Fault::Exists(_) => Kind::Exists,
            Fault::UnknownFunction(_) => Kind::UnknownFunction,
            Fault::CalledFailed { .. } => Kind::CalledFailed,
            Fault::Internal => Kind::Internal,
            Fault::Uncertain => Kind::Uncertain,
            Fault::Invalid(_) | Fault::Malformed(_) => Kind::Invalid,
            Fault::Method(_) => Kind::Method,
            Fault::RequestTimeout => Kind::RequestTimeout,
            Fault::TooLarge { .. } => Kind::TooLarge,
            Fault::ContentType(_) => Kind::ContentType,
            Fault::HeadersTooLarge => Kind::HeadersTooLarge,
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
    /// The fields at fault, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<FieldProblem>,
    /// With a wrong start of an upload's part: where to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_offset: Option<u64>,
    /// With an upload that is finalized too early: how many bytes are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

impl Failure {
    /// The body for a fault. A fault of ours carries the request id, which finds it in the log.
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
