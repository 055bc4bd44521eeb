//! Why a command failed: the exit code, a sentence, and a hint.

use crate::settings::ClientCredential;
use contract::{BoundedSet, fault};
use std::{fmt, io, path::Path, process::ExitCode, time::Duration};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line or a setting is wrong.
    Usage {
        /// What is wrong, in a sentence.
        problem: String,
        hint: String,
    },
    /// Something failed on this machine.
    Local { problem: String, hint: String },
    /// The printed reply already says what failed.
    Told { problem: String, hint: String },
    /// The service refused.
    Refused(ServiceRefusal),
    /// No answer came, or the answer is not from the service.
    Unreachable {
        /// What happened instead, in a sentence.
        problem: String,
        hint: String,
    },
}

/// An answer of the service that is not a success.
#[derive(Debug, Clone)]
pub struct ServiceRefusal {
    /// The HTTP status, which tells refusals with the same code apart.
    pub status: u16,
    pub body: Box<fault::Failure>,
    /// The pause after which a repetition can help.
    pub retry_after: Option<Duration>,
    /// The credential of the call.
    pub credential: Option<ClientCredential>,
    /// A hint of the command, which replaces the hint for the code.
    pub advice: Option<String>,
}

impl Failure {
    pub(crate) fn usage(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Usage { problem: problem.into(), hint: hint.into() }
    }

    pub(crate) fn local(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Local { problem: problem.into(), hint: hint.into() }
    }

    pub(crate) fn told(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Told { problem: problem.into(), hint: hint.into() }
    }

    /// The values of an option, or a usage failure if there are too few or too many.
    pub(crate) fn list<T: PartialEq, const MIN: usize, const MAX: usize>(
        option: &str,
        values: Vec<T>,
    ) -> Result<BoundedSet<T, MIN, MAX>, Failure> {
        values.try_into().map_err(|problem| {
            Failure::usage(
                format!("{option} {problem}"),
                format!("give {option} {MIN} to {MAX} times"),
            )
        })
    }

    /// The failure to read or write a file.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Failure::local(
            format!("{}: {error}", path.display()),
            "check that path and its permissions",
        )
    }

    /// The same failure with another hint.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        match &mut self {
            Failure::Usage { hint, .. }
            | Failure::Local { hint, .. }
            | Failure::Told { hint, .. }
            | Failure::Unreachable { hint, .. } => *hint = advice.into(),
            Failure::Refused(refusal) => refusal.advice = Some(advice.into()),
        }
        self
    }

    /// The refusal, if it has this code.
    pub(crate) fn refused_with(&self, code: u16) -> Option<&ServiceRefusal> {
        match self {
            Failure::Refused(refusal) if refusal.body.code == code => Some(refusal),
            _ => None,
        }
    }

    /// Whether the same request may succeed later: the service is away, busy, did not answer in time
    /// or limits the caller.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Failure::Unreachable { .. } => true,
            Failure::Refused(refusal) => {
                matches!(refusal.status, 408 | 424 | 429) || refusal.status >= 500
            }
            _ => false,
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Refused(_) | Failure::Local { .. } | Failure::Told { .. } => 1,
            Failure::Usage { .. } => 2,
            Failure::Unreachable { .. } => 3,
        })
    }

    /// What to do about it. Empty if the failure itself says so.
    pub fn hint(&self) -> String {
        match self {
            Failure::Usage { hint, .. }
            | Failure::Local { hint, .. }
            | Failure::Told { hint, .. }
            | Failure::Unreachable { hint, .. } => hint.clone(),
            Failure::Refused(refusal) => refusal.advice.clone().unwrap_or_else(|| refusal.hint()),
        }
    }

    /// The body for programs. A failure that is not from the service gets the closest code of the
    /// service.
    pub fn body(&self) -> fault::Failure {
        let code = match self {
            Failure::Refused(refusal) => return (*refusal.body).clone(),
            Failure::Unreachable { .. } => 100,
            Failure::Local { .. } | Failure::Told { .. } => 141,
            Failure::Usage { .. } => 142,
        };
        fault::Failure {
            code,
            error: self.to_string(),
            details: Vec::new(),
            expected_offset: None,
            offset: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage { problem, .. }
            | Failure::Local { problem, .. }
            | Failure::Told { problem, .. }
            | Failure::Unreachable { problem, .. } => f.write_str(problem),
            Failure::Refused(refusal) => {
                write!(f, "{} (code {})", refusal.body.error, refusal.body.code)
            }
        }
    }
}

impl std::error::Error for Failure {}

impl ServiceRefusal {
    fn hint(&self) -> String {
        let seconds = self.retry_after.map_or(1, |pause| pause.as_secs().max(1));
        match (self.body.code, self.status) {
            (119, 401) if self.body.error.contains("application id") => {
                "say --application-id, or set SVC_APPLICATION_ID; who operates the service knows it"
                    .into()
            }
            (119, 401) => match &self.credential {
                None => {
                    "sign in with `svc login`, or give a token with --token or SVC_TOKEN; \
                         `svc doctor` tells which part of the sign-in is wrong"
                }
                Some(ClientCredential::Session(_)) => {
                    "sign in again with `svc login`; `svc doctor` tells which part of the sign-in \
                     is wrong"
                }
                Some(ClientCredential::DeployToken(_)) => {
                    "leave out --token and SVC_TOKEN, and sign in with `svc login`, or give \
                     another token"
                }
                Some(ClientCredential::MasterKey(_)) => {
                    "check the key, and call from an address in SVC_MASTER_KEY_ADDRESSES of the \
                     service; where a person is needed, leave the key out"
                }
            }
            .into(),
            // The sentence says what to do: it knows the state, the shop or the backend.
            (119 | 141, _) => String::new(),
            (101, _) => "check the id: `svc apps`, `svc artifacts` and `svc releases` list what \
                         you reach"
                .into(),
            (403, _) => match &self.credential {
                Some(ClientCredential::DeployToken(_)) => {
                    "use a token with that scope (`svc token create --scope …`), of somebody with \
                     that standing"
                }
                _ => "ask somebody with that standing",
            }
            .into(),
            (137, _) => "it exists already: choose another value, or use the one there is".into(),
            (142, _) => "change what the sentence names, and run it again".into(),
            (429, _) => format!("wait {seconds} s, and run it again"),
            (_, 424) => "it may have been done: look before you run it again".into(),
            (_, 503) => format!("nothing was done: wait {seconds} s, and run it again"),
            _ => "run it again; if it stays, ask who operates the service, with the request id"
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: u16, status: u16) -> Failure {
        let body = fault::Failure {
            code,
            error: "no".into(),
            details: Vec::new(),
            expected_offset: None,
            offset: None,
        };
        let retry_after = Some(Duration::from_secs(17));
        Failure::Refused(ServiceRefusal {
            status,
            body: Box::new(body),
            retry_after,
            credential: None,
            advice: None,
        })
    }

    #[test]
    fn the_hint_follows_code_and_status() {
        assert!(refusal(119, 401).hint().contains("svc login"));
        assert_eq!(refusal(119, 409).hint(), "");
        assert!(refusal(429, 429).hint().contains("17 s"));
        assert!(refusal(100, 424).hint().contains("may have been done"));
        assert!(refusal(100, 503).hint().contains("nothing was done"));
    }

    #[test]
    fn the_hint_follows_the_credential() {
        let hint = |code, status, credential: ClientCredential| {
            let Failure::Refused(refusal) = refusal(code, status) else { panic!("no refusal") };
            Failure::Refused(ServiceRefusal { credential: Some(credential), ..refusal }).hint()
        };
        let token = || ClientCredential::DeployToken("svc_dt_x".into());
        let session = || ClientCredential::Session("r:0".into());
        assert!(hint(119, 401, token()).contains("leave out --token"));
        assert!(hint(119, 401, session()).contains("sign in again"));
        assert!(hint(119, 401, ClientCredential::MasterKey("x".into())).contains("the key"));
        assert!(hint(403, 403, token()).contains("--scope"));
        assert!(!hint(403, 403, session()).contains("token"));
    }

    #[test]
    fn advice_replaces_the_hint() {
        assert_eq!(refusal(101, 404).advise("check the password").hint(), "check the password");
    }

    #[test]
    fn a_failure_of_ours_has_a_body_for_programs_too() {
        assert_eq!(Failure::usage("bad", "better").body().code, 142);
        assert_eq!(refusal(137, 409).body().code, 137);
    }
}
