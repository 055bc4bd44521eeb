//! Idempotency: a change with a client's request id happens once. The transaction of the change
//! also stores the reply, for 24 hours. A repeated call gets the stored reply.

use super::{
    context::{Caller, Credential, SignedIn},
    platform::Platform,
};
use crate::runtime::side_record::{End, SideRecord};
use contract::{Fault, FieldProblem, Reply, Timestamp};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{net::IpAddr, time::Duration};
use store::Change;

/// How long a reply is stored.
pub const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Identifies the call that a stored reply belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Hex SHA-256 of caller, function and request id.
    pub key: String,
    /// Hex SHA-256 of a secret and the parameters.
    pub fingerprint: String,
}

impl IdempotencyKey {
    /// The fingerprint needs a secret. Without it, a reader of the store could find passwords among
    /// the parameters by guessing.
    pub fn new(
        (caller, address): (&Caller, IpAddr),
        function: &str,
        request_id: &str,
        fingerprint: &[u8; 32],
        secret: &[u8; 32],
    ) -> Self {
        let who = match caller {
            // A token may do less than its person, and than another token.
            Caller {
                user: Some(SignedIn { credential: Credential::Token(id, _), .. }), ..
            } => id.to_string(),
            Caller { user: Some(user), .. } => user.id.to_string(),
            Caller { master: true, .. } => "master".into(),
            Caller { user: None, .. } => address.to_string(),
        };
        let fingerprint = Sha256::digest([*secret, *fingerprint].concat());
        let key = Sha256::digest([&who, "\n", function, "\n", request_id].concat());
        IdempotencyKey { key: HEXLOWER.encode(&key), fingerprint: HEXLOWER.encode(&fingerprint) }
    }

    /// The record of an outcome that is reached now.
    pub fn stored(&self, outcome: Outcome, now: Timestamp) -> StoredReply {
        let fingerprint = self.fingerprint.clone();
        StoredReply { fingerprint, outcome, expires_at: now + LIFETIME }
    }

    /// The stored reply of an earlier call with this key. It is returned only when it is durable.
    pub async fn earlier_reply(
        &self,
        platform: &Platform,
        now: Timestamp,
    ) -> Result<Option<Result<Reply, Fault>>, Fault> {
        let store = &platform.world.store;
        let stored = store.get::<StoredReply>(&self.key)?;
        let Some(stored) = stored.filter(|stored| stored.expires_at > now) else {
            return Ok(None);
        };
        store.barrier().await.map_err(|_| Fault::Uncertain)?;
        Ok(Some(stored.answer(self)))
    }

    /// Stores a final refusal for repeated calls.
    pub async fn keep_refusal(&self, platform: &Platform, fault: &Fault, now: Timestamp) {
        if !fault.is_final() || matches!(fault, Fault::Again { .. } | Fault::Malformed(_)) {
            return;
        }
        let stored = self.stored(Outcome::refused(fault), now);
        let change = Change::new().create::<StoredReply>(&self.key, stored);
        platform.world.store.note_for_others(change).await;
    }
}

/// The outcome of the first call with an idempotency key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredReply {
    pub fingerprint: String,
    pub outcome: Outcome,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The JSON of the reply.
    Reply(String),
    /// The JSON of a reply with status 201: the call created its object.
    Created(String),
    /// The reply held a secret and is not stored.
    Secret,
    /// A final refusal: the same call would get it again.
    #[serde(rename_all = "camelCase")]
    Refused {
        /// The code in the body.
        code: u16,
        status: u16,
        error: String,
        /// The invalid fields.
        details: Vec<FieldProblem>,
    },
}

impl Outcome {
    pub fn reply(json: String, created: bool) -> Self {
        if created { Outcome::Created(json) } else { Outcome::Reply(json) }
    }

    pub fn refused(fault: &Fault) -> Self {
        Outcome::Refused {
            code: fault.code(),
            status: fault.status(),
            error: fault.to_string(),
            details: fault.details().to_vec(),
        }
    }
}

impl StoredReply {
    /// The answer to a repeated call; a refusal if its parameters differ.
    pub fn answer(&self, key: &IdempotencyKey) -> Result<Reply, Fault> {
        if self.fingerprint != key.fingerprint {
            return Err(Fault::Malformed("this request id was used before with other parameters; use a new one for a new call".into()));
        }
        match &self.outcome {
            Outcome::Reply(json) => Ok(Reply { json: json.clone().into_bytes(), created: false }),
            Outcome::Created(json) => Ok(Reply { json: json.clone().into_bytes(), created: true }),
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

impl SideRecord for StoredReply {
    fn end(&self) -> End {
        End::At(self.expires_at)
    }
}
