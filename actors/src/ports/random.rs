//! Ids and secrets.

use contract::{Id, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use ulid::Ulid;

/// Ids that sort by the time they were made, and secrets that cannot be guessed.
#[derive(Clone, Default)]
pub struct Random(Arc<Mutex<Option<Ulid>>>);

/// The operating system gave no random bytes, so no secret can be generated.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no random bytes: {0}")]
pub struct NoRandomness(String);

impl Random {
    /// A new id, higher than all earlier ids of this process.
    pub fn id<I: Id>(&self, now: Timestamp) -> I {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let next = match *last {
            // Within one millisecond, or after the clock went back: continue from the last id.
            Some(before) if before.timestamp_ms() >= millis => after(before),
            _ => Ulid::from_parts(millis, Ulid::generate().random()),
        };
        *last = Some(next);
        I::of(next)
    }

    /// `prefix`, followed by `length` random letters and digits, each one of 62.
    pub fn secret(&self, prefix: &str, length: usize) -> Result<String, NoRandomness> {
        const LETTERS: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut secret = String::from(prefix);
        let mut bytes = [0_u8; 64];
        while secret.len() < prefix.len() + length {
            getrandom::fill(&mut bytes).map_err(|e| NoRandomness(e.to_string()))?;
            // 248 is a multiple of 62: bytes from 248 up would make some letters likelier.
            let letters =
                bytes.iter().filter(|b| **b < 248).filter_map(|b| LETTERS.get(usize::from(b % 62)));
            secret
                .extend(letters.take(prefix.len() + length - secret.len()).map(|b| char::from(*b)));
        }
        Ok(secret)
    }

    /// A session token: `r:` and 32 hexadecimal digits.
    pub fn session_token(&self) -> Result<String, NoRandomness> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|e| NoRandomness(e.to_string()))?;
        Ok(format!("r:{:032x}", u128::from_be_bytes(bytes)))
    }
}

/// A later id of the same millisecond. The random step makes the next id hard to guess.
fn after(before: Ulid) -> Ulid {
    let step = Ulid::generate().random() >> 32;
    let next = before.random().saturating_add(step).saturating_add(1);
    if next < 1 << 80 {
        Ulid::from_parts(before.timestamp_ms(), next)
    } else {
        before.increment().unwrap_or(before)
    }
}
