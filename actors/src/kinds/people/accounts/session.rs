//! Sessions. The store has only the digest of a session's token, as the key of the session.

use crate::runtime::{
    side_record::{End, SideRecord},
    store::{Keyed, Store},
};
use contract::{Fault, SessionId, Timestamp, UserId};
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;
use store::{Change, Claims, Entries};

/// How long a session lives after its last use.
pub const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// The last use is written at most this often.
pub const TOUCH_EVERY: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The id in replies. It is not the key of the record.
    pub id: SessionId,
    pub user: UserId,
    /// The account's epoch at sign-in. A later epoch of the account ends the session.
    pub epoch: u32,
    pub created_at: Timestamp,
    /// Precise to an hour.
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
    pub user_agent: Option<String>,
}

impl Session {
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

    /// The session after a use now; `None` if the last use is recent enough to stay.
    pub fn touched(&self, now: Timestamp) -> Option<Self> {
        (now.since(self.last_used_at) >= TOUCH_EVERY).then(|| Session {
            last_used_at: now,
            expires_at: now + LIFETIME,
            ..self.clone()
        })
    }
}

impl SideRecord for Session {
    fn end(&self) -> End {
        End::At(self.expires_at)
    }

    fn index(&self) -> Entries<Self> {
        Entries::default().and(SessionIndex::User { user: self.user })
    }

    fn claims(&self) -> Claims<Self> {
        Claims::default().and(SessionClaim::Id { id: self.id })
    }
}

store::entries! {
    /// The index entries of sessions.
    pub enum SessionIndex of Session {
        User { user: UserId } = "user",
    }
}

store::claims! {
    /// The unique values of sessions.
    pub enum SessionClaim of Session {
        Id { id: SessionId } = "id",
    }
}

/// The sessions that a user keeps: the newest.
const MOST: usize = 100;
/// The sessions of one user that are read at a time. Earlier versions kept more than [`MOST`].
pub const MOST_LOOKED_AT: usize = 1000;
/// How often the end of sessions is tried again while others write them.
const TRIES: usize = 32;

/// Ends all sessions of a user but the newest ones. Of concurrent sign-ins, the last to end sees the
/// sessions of all.
pub async fn end_surplus(store: &Store, user: UserId) {
    for _ in 0..TRIES {
        match end_once(store, user).await {
            Ok(true) => return,
            Ok(false) | Err(Fault::Stale) => {}
            Err(e) => {
                tracing::warn!(error = %e, %user, "old sessions stay until the next sign-in");
                return;
            }
        }
    }
}

/// Returns whether no sessions were left over.
async fn end_once(store: &Store, user: UserId) -> Result<bool, Fault> {
    let sessions = store.newest(&SessionIndex::User { user }, None).take(MOST_LOOKED_AT);
    let mut found = sessions.collect::<Result<Vec<Keyed<Session>>, _>>()?;
    if found.len() <= MOST {
        return Ok(true);
    }
    found.sort_by_key(|(_, session)| std::cmp::Reverse((session.created_at, session.id)));
    let surplus = found.iter().skip(MOST);
    let change = surplus
        .fold(Change::new(), |change, (key, session)| change.remove::<Session>(key, session));
    store.commit(change).await?;
    Ok(false)
}

/// The stored digest of a secret: lower-case hex of its SHA-256.
pub fn digest(secret: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(secret))
}

/// Like [`digest`], with HMAC-SHA256. Without the key, guessing cannot find the text.
pub fn keyed_digest(key: &[u8; 32], text: &str) -> String {
    // HMAC pads a key with zeros to the block of the hash. A whole block cannot be refused.
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
    mac.update(text.as_bytes());
    HEXLOWER.encode(&mac.finalize().into_bytes())
}
