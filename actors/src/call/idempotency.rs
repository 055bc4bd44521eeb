//! A change that carries a request id happens once. Its reply is kept for 24 hours, written in the
//! transaction of the change itself, and given again to whoever repeats the call.

use crate::runtime::entries::Deadline;
use contract::{Fault, FieldProblem, Timestamp};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;
use store::{Entries, Record};

/// How long a reply is kept.
pub const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Which call a reply belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayKey {
    /// Caller, function and request id.
    pub key: String,
    /// The parameters.
    pub fingerprint: String,
}

impl ReplayKey {
    /// The key of a call. The fingerprint is kept under a secret: without it, whoever reads the
    /// store could guess passwords among the parameters.
    pub fn new(
        caller: &str,
        function: &str,
        request_id: &str,
        fingerprint: &[u8; 32],
        secret: &[u8; 32],
    ) -> Self {
        let fingerprint = Sha256::digest([*secret, *fingerprint].concat());
        let key = Sha256::digest([caller, "\n", function, "\n", request_id].concat());
        ReplayKey { key: HEXLOWER.encode(&key), fingerprint: HEXLOWER.encode(&fingerprint) }
    }
}

/// The first reply to a request id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Of the parameters.
    pub fingerprint: String,
    /// What was answered.
    pub outcome: Outcome,
    /// When it may be forgotten.
    pub expires_at: Timestamp,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The JSON of the reply.
    Reply(String),
    /// The reply held a secret and was not kept.
    Secret,
    /// A refusal that would be the same again.
    #[serde(rename_all = "camelCase")]
    Refused {
        /// The code in the body.
        code: u16,
        /// The HTTP status.
        status: u16,
        /// The sentence.
        error: String,
        /// The fields at fault.
        details: Vec<FieldProblem>,
    },
}

impl Outcome {
    /// A refusal.
    pub fn refused(fault: &Fault) -> Self {
        Outcome::Refused {
            code: fault.code(),
            status: fault.status(),
            error: fault.to_string(),
            details: fault.details().to_vec(),
        }
    }
}

impl Replay {
    /// The answer to a repetition with these parameters.
    pub fn answer(&self, key: &ReplayKey) -> Result<Vec<u8>, Fault> {
        if self.fingerprint != key.fingerprint {
            return Err(Fault::Malformed("this request id was used before with other parameters; use a new one for a new call".into()));
        }
        match &self.outcome {
            Outcome::Reply(json) => Ok(json.clone().into_bytes()),
            Outcome::Secret => Err(Fault::Exists(
                "already done; the reply held a secret and is not shown again".into(),
            )),
            Outcome::Refused { code, status, error, details } => Err(Fault::Again {
                code: *code,
                status: *status,
                error: error.clone(),
                details: details.clone(),
            }),
        }
    }
}

impl Record for Replay {
    const TREE: &'static str = "replay";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;

    fn index(replay: &Self) -> Entries<Self> {
        Entries::default().and(Deadline(replay.expires_at))
    }
}
