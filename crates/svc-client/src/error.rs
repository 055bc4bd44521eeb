//! Why a call has no reply.

use crate::Response;
use contract::{FieldProblem, fault};
use std::time::Duration;

/// What a failure means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The service refuses the call, and did nothing. The same call is refused again until the
    /// caller or the object changes. [`Error::code`] tells refusals apart.
    Refused,
    /// The caller exceeded a rate limit, and nothing was done.
    Limited,
    /// The service, or something behind it, is not able to do it now, and nothing was done.
    Unavailable,
    /// Nobody can tell whether the change was made. Read the object, or call again with the same
    /// idempotency key: the service then makes the change once.
    Unclear,
    /// The service did not get the call, or the call changes nothing.
    Unreachable,
}

/// Why a call has no reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Error {
    /// What it means for the caller.
    pub kind: Kind,
    /// A sentence for a person. That of the service, if it refused.
    pub message: String,
    /// The HTTP status of the last answer, if one came.
    pub status: Option<u16>,
    /// The body of the refusal, if the service refused.
    pub failure: Option<Box<fault::Failure>>,
    /// The pause after which a repetition can succeed.
    pub retry_after: Option<Duration>,
    /// The id of the request in the log of the service.
    pub request_id: Option<String>,
    /// The idempotency key of the change. With it, `Client::call_once` makes the change once.
    pub idempotency_key: Option<String>,
}

impl Error {
    /// The code of the service, if it refused: 100, 101, 119, 137, 141, 142, 403 or 429.
    pub fn code(&self) -> Option<u16> {
        self.failure.as_ref().map(|failure| failure.code)
    }

    /// The invalid fields of the parameters.
    pub fn details(&self) -> &[FieldProblem] {
        self.failure.as_ref().map_or(&[], |failure| &failure.details)
    }
}

/// What is known of a call when it fails.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    /// Whether the call changes something.
    pub change: bool,
    /// Whether the answer of an attempt was lost.
    pub lost: bool,
}

impl Facts {
    /// What a refusal of the service means.
    fn refusal(self, status: u16) -> Kind {
        match status {
            424 if self.change => Kind::Unclear,
            // The service decides these before it reads the idempotency key, so they tell nothing
            // about the attempt whose answer was lost.
            401 | 408 | 429 | 500.. if self.change && self.lost => Kind::Unclear,
            429 => Kind::Limited,
            408 | 424 | 500.. => Kind::Unavailable,
            _ => Kind::Refused,
        }
    }

    /// What it means when another program answers, or the service in a form that is not known.
    fn stranger(self, status: u16) -> Kind {
        match status {
            200..300 | 500.. if self.change => Kind::Unclear,
            _ if self.change && self.lost => Kind::Unclear,
            _ => Kind::Unreachable,
        }
    }

    /// What it means when no answer came.
    fn silence(self) -> Kind {
        if self.change && self.lost { Kind::Unclear } else { Kind::Unreachable }
    }
}

/// The failure in an answer that is not the reply. `service` is the address in sentences.
pub(crate) fn of_answer(service: &str, answer: &Response, facts: Facts) -> Error {
    let status = answer.status;
    let failure = answer.failure().map(Box::new);
    let (kind, message) = match &failure {
        Some(failure) => (facts.refusal(status), failure.error.clone()),
        None => {
            let place = answer.header("location");
            let place = place.map(|place| format!(" and points to {place}")).unwrap_or_default();
            let message =
                format!("{service} answered, but not as this service does (HTTP {status}{place})");
            (facts.stranger(status), message)
        }
    };
    Error {
        kind,
        message,
        status: Some(status),
        failure,
        retry_after: answer.retry_after(),
        request_id: answer.header("x-request-id").map(str::to_owned),
        idempotency_key: None,
    }
}

/// The failure when no answer came.
pub(crate) fn of_silence(service: &str, error: &reqwest::Error, facts: Facts) -> Error {
    let kind = facts.silence();
    let what = if error.is_builder() {
        format!("the request to {service} cannot be made: {}", cause(error))
    } else if error.is_timeout() {
        format!("{service} gave no answer in time")
    } else {
        format!("{service} cannot be reached: {}", cause(error))
    };
    let message = match kind {
        Kind::Unclear => format!("{what}; it may have been done, so read before a retry"),
        _ => what,
    };
    Error {
        kind,
        message,
        status: None,
        failure: None,
        retry_after: None,
        request_id: None,
        idempotency_key: None,
    }
}

/// The innermost cause of an error, which a person can act on.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderMap;
    use serde_json::json;

    const READ: Facts = Facts { change: false, lost: false };
    const CHANGE: Facts = Facts { change: true, lost: false };
    const LOST_CHANGE: Facts = Facts { change: true, lost: true };

    #[test]
    fn a_refusal_tells_whether_something_was_done() {
        for (status, facts, kind) in [
            (400, CHANGE, Kind::Refused),
            (409, LOST_CHANGE, Kind::Refused),
            (401, CHANGE, Kind::Refused),
            (401, LOST_CHANGE, Kind::Unclear),
            (424, CHANGE, Kind::Unclear),
            (424, READ, Kind::Unavailable),
            (429, CHANGE, Kind::Limited),
            (429, LOST_CHANGE, Kind::Unclear),
            (503, CHANGE, Kind::Unavailable),
            (503, LOST_CHANGE, Kind::Unclear),
            (500, Facts { change: false, lost: true }, Kind::Unavailable),
        ] {
            assert_eq!(facts.refusal(status), kind, "{status} {facts:?}");
        }
    }

    #[test]
    fn what_is_not_from_the_service_is_no_refusal() {
        for (status, facts, kind) in [
            (200, CHANGE, Kind::Unclear),
            (200, READ, Kind::Unreachable),
            (302, CHANGE, Kind::Unreachable),
            (404, CHANGE, Kind::Unreachable),
            (404, LOST_CHANGE, Kind::Unclear),
            (504, CHANGE, Kind::Unclear),
            (504, READ, Kind::Unreachable),
        ] {
            assert_eq!(facts.stranger(status), kind, "{status} {facts:?}");
        }
    }

    #[test]
    fn an_error_keeps_what_the_service_said() {
        let mut headers = HeaderMap::new();
        headers.insert("x-request-id", "req-1".parse().unwrap());
        headers.insert("retry-after", "7".parse().unwrap());
        let details = json!([{"field": "name", "problem": "is empty"}]);
        let body = json!({"code": 142, "error": "name: is empty", "details": details});
        let answer = Response { status: 400, headers, body: body.to_string().into_bytes() };
        let error = of_answer("http://svc", &answer, CHANGE);
        assert_eq!((error.code(), error.status, error.details().len()), (Some(142), Some(400), 1));
        assert_eq!(error.to_string(), "name: is empty");
        assert_eq!(error.request_id.as_deref(), Some("req-1"));
        assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
    }
}
