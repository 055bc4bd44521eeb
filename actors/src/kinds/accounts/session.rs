//! Sessions. Only the digest of a token is stored, and is the key of its session.

use crate::runtime::entries::Deadline;
use contract::{SessionId, Timestamp, UserId};
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;
use store::{Claims, Entries, Record};

/// How long a session lives after its last use.
pub const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// Use is written down at most this often.
pub const TOUCH_EVERY: Duration = Duration::from_secs(3600);

/// A session of an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// What people call it.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// The account's epoch when it was made. A later epoch of the account ends it.
    pub epoch: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, within an hour.
    pub last_used_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// What the client called itself.
    pub user_agent: Option<String>,
}

impl Session {
    /// A session that begins now.
    pub fn begin(
        id: SessionId,
        user: UserId,
        epoch: u32,
        now: Timestamp,
        user_agent: Option<String>,
    ) -> Self {
        Session {
            id,
            user,
            epoch,
            created_at: now,
            last_used_at: now,
            expires_at: now + LIFETIME,
            user_agent,
        }
    }

    /// The session after a use now; `None` while the last use is recent enough.
    pub fn touched(&self, now: Timestamp) -> Option<Self> {
        (now.since(self.last_used_at) >= TOUCH_EVERY).then(|| Session {
            last_used_at: now,
            expires_at: now + LIFETIME,
            ..self.clone()
        })
    }
}

impl Record for Session {
    const TREE: &'static str = "session";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;

    fn index(session: &Self) -> Entries<Self> {
        Entries::default()
            .and(SessionIndex::User { user: session.user })
            .and(Deadline(session.expires_at))
    }

    fn claims(session: &Self) -> Claims<Self> {
        Claims::default().and(SessionClaim::Id { id: session.id })
    }
}

store::entries! {
    /// What sessions are found by.
    pub enum SessionIndex of Session {
        User { user: UserId } = "user",
    }
}

store::claims! {
    /// What no two sessions have in common.
    pub enum SessionClaim of Session {
        Id { id: SessionId } = "id",
    }
}

/// The digest of a secret as it is stored: lower-case hex of its SHA-256.
pub fn digest(secret: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(secret))
}

/// Like [`digest`], and nobody without the key can find the text by trying: HMAC-SHA256.
pub fn keyed_digest(key: &[u8; 32], text: &str) -> String {
    // HMAC pads a key to the hash's block with zeros; doing it here leaves nothing to fail.
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
    mac.update(text.as_bytes());
    HEXLOWER.encode(&mac.finalize().into_bytes())
}
