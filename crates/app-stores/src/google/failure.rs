//! The refusals of Google's services.

use crate::RemoteError;
use remote::{RemoteResponse, quotation};
use serde::Deserialize;
use std::fmt;

/// What a refusal says. Sources: "Errors" of Google's API design guide, RFC 6749 section 5.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoogleRefusal {
    /// The HTTP status.
    pub status: u16,
    /// Such as `editExpired`, `FAILED_PRECONDITION` or `invalid_grant`. May be empty.
    pub reason: String,
    /// The sentence of the service.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RefusalBody {
    Service {
        error: GoogleError,
    },
    Token {
        error: String,
        #[serde(default)]
        error_description: String,
    },
}

#[derive(Deserialize)]
struct GoogleError {
    #[serde(default)]
    message: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    errors: Vec<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(default)]
    reason: String,
}

impl GoogleRefusal {
    pub fn of(answer: &RemoteResponse) -> GoogleRefusal {
        let status = answer.status;
        match serde_json::from_slice(&answer.body) {
            Ok(RefusalBody::Service { error }) => GoogleRefusal {
                status,
                reason: error.errors.into_iter().next().map_or(error.status, |it| it.reason),
                message: quotation(error.message.as_bytes()),
            },
            Ok(RefusalBody::Token { error, error_description }) => GoogleRefusal {
                status,
                reason: error,
                message: quotation(error_description.as_bytes()),
            },
            Err(_) => {
                GoogleRefusal { status, reason: String::new(), message: quotation(&answer.body) }
            }
        }
    }

    /// Whether the reason or the sentence has one of these parts. Capital letters are equal to small
    /// ones.
    pub fn says(&self, parts: &[&str]) -> bool {
        let text = format!("{} {}", self.reason, self.message).to_lowercase();
        parts.iter().any(|part| text.contains(&part.to_lowercase()))
    }

    /// A refusal: what to do, and Google's own words.
    pub fn refused(&self, what_to_do: &str) -> RemoteError {
        RemoteError::Refused(format!("{what_to_do} {self}"))
    }
}

impl fmt::Display for GoogleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GoogleRefusal { status, reason, message } = self;
        write!(f, "Google says: {message} ({status} {reason})")
    }
}
