//! The record of the installation: with which keys, and by which program, its store is written.
//!
//! Keys lie in a file beside the store. With other keys, every secret in the store would be
//! unreadable, so the store knows fingerprints of its keys, which say nothing about them.

pub mod engine;

use crate::runtime::side_record::{End, SideRecord};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{fmt, str::FromStr};

/// The shape of all records together. A program refuses a store with a higher number: it would drop
/// what it does not know when it writes a record. Raise it with each field that must not be lost,
/// and with each derived record that older programs would not keep up to date.
pub const SHAPE: u32 = 3;

/// With which keys the store is written, and by which program last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    pub application_id: String,
    /// The fingerprint of the key that signs addresses.
    pub signing_key: String,
    /// The fingerprint of the key that encrypts secrets.
    pub encryption_key: String,
    /// The version of the program, for people.
    pub program: String,
    /// See [`SHAPE`].
    pub shape: u32,
}

/// The key of the only record.
#[derive(Debug, Clone, Copy)]
pub struct This;

impl fmt::Display for This {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this")
    }
}

impl FromStr for This {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "this" { Ok(This) } else { Err("the only record is `this`") }
    }
}

impl SideRecord for Installation {
    fn end(&self) -> End {
        End::Never
    }
}

/// The fingerprint of a key.
pub fn fingerprint(key: &str) -> String {
    HEXLOWER.encode(&Sha256::new().chain_update("svc fingerprint\n").chain_update(key).finalize())
}

/// Why a program does not go on with a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error(
        "{0} of the key file is not the one with which this store was written: put the key file \
         of this store back, from the place of its backups"
    )]
    OtherKey(&'static str),
    #[error(
        "svc {program} wrote this store, and svc {} is older: start that version or a newer one",
        env!("CARGO_PKG_VERSION")
    )]
    OlderProgram { program: String },
}

impl Installation {
    /// Whether a program with the keys of `present` may go on with the store. `older` are fingerprints
    /// that the key file keeps while keys are renewed.
    pub fn accepts(&self, present: &Installation, older: &[String]) -> Result<(), Unfit> {
        if self.shape > present.shape || version(&self.program) > version(&present.program) {
            return Err(Unfit::OlderProgram { program: self.program.clone() });
        }
        if self.application_id != present.application_id {
            return Err(Unfit::OtherKey("the application id"));
        }
        let is_known = |key: &String, present: &String| key == present || older.contains(key);
        if !is_known(&self.signing_key, &present.signing_key) {
            return Err(Unfit::OtherKey("the signing key"));
        }
        if !is_known(&self.encryption_key, &present.encryption_key) {
            return Err(Unfit::OtherKey("the encryption key"));
        }
        Ok(())
    }
}

/// The numbers of a version. What is no number counts as 0.
fn version(text: &str) -> Vec<u64> {
    text.split(['.', '-', '+']).take(3).map(|number| number.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installation(encryption: &str, program: &str, shape: u32) -> Installation {
        Installation {
            application_id: "svc_1".into(),
            signing_key: fingerprint("signs"),
            encryption_key: fingerprint(encryption),
            program: program.into(),
            shape,
        }
    }

    #[test]
    fn a_store_is_used_with_its_keys_and_by_no_older_program() {
        let stored = installation("one", "1.2.3", 4);
        let older = [fingerprint("one")];
        let other = |field: &'static str| Err(Unfit::OtherKey(field));
        let too_old = Err(Unfit::OlderProgram { program: "1.2.3".into() });
        assert_eq!(stored.accepts(&installation("one", "1.2.3", 4), &[]), Ok(()));
        assert_eq!(stored.accepts(&installation("one", "1.10.0", 5), &[]), Ok(()));
        assert_eq!(stored.accepts(&installation("two", "1.2.3", 4), &older), Ok(()));
        assert_eq!(
            stored.accepts(&installation("two", "1.2.3", 4), &[]),
            other("the encryption key")
        );
        assert_eq!(stored.accepts(&installation("one", "1.2.2", 4), &[]), too_old);
        assert_eq!(stored.accepts(&installation("one", "1.3.0", 3), &[]), too_old);
        let signs = Installation { signing_key: fingerprint("x"), ..stored.clone() };
        assert_eq!(stored.accepts(&signs, &[]), other("the signing key"));
        assert_eq!(stored.accepts(&signs, &[fingerprint("signs")]), Ok(()));
        let named = Installation { application_id: "svc_2".into(), ..stored.clone() };
        assert_eq!(stored.accepts(&named, &[]), other("the application id"));
    }
}
