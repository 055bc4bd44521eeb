//! What is kept under a key: a typed record, with the version of its shape and of its content.

use crate::StoreError;
use serde::{Serialize, de::DeserializeOwned};

/// A kind of record. Each kind has a tree of its own.
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the tree.
    const TREE: &'static str;
    /// The version of the shape. Older ones are read by [`Record::upgrade`]; newer ones are refused.
    const SCHEMA: u16;

    /// Entries of the index that point at this record, such as `project/prj_…`. An entry has no
    /// trailing slash.
    fn index(&self) -> Vec<String> {
        Vec::new()
    }

    /// Values that no other record of this kind may have, such as `email/ada@example.com`.
    fn claims(&self) -> Vec<String> {
        Vec::new()
    }

    /// Reads what an older version of the program wrote. Called only for schemas before [`Record::SCHEMA`].
    fn upgrade(from: u16, _old: serde_json::Value) -> Result<Self, StoreError> {
        Err(StoreError::Unreadable(format!("{} of schema {from} cannot be upgraded", Self::TREE)))
    }
}

/// A record that several writers add to. The committer applies each delta to what is stored, so
/// nobody has to read first.
pub trait Merge: Record {
    /// What one writer adds.
    type Delta: Send + 'static;
    /// The record after it; `None` removes the record.
    fn merge(old: Option<Self>, delta: &Self::Delta) -> Option<Self>;
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored<R> {
    /// Counts the writes of this record, from 1.
    pub version: u64,
    /// The content.
    pub record: R,
}

/// Schema and version stand before the JSON of the record.
const HEADER: usize = 10;

impl<R: Record> Stored<R> {
    pub(crate) fn encode(version: u64, record: &R) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(&R::SCHEMA.to_be_bytes());
        bytes.extend_from_slice(&version.to_be_bytes());
        serde_json::to_writer(&mut bytes, record)
            .map_err(|e| StoreError::Unreadable(format!("{} cannot be written: {e}", R::TREE)))?;
        Ok(bytes)
    }

    pub(crate) fn decode(key: &str, bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |why: &dyn std::fmt::Display| {
            StoreError::Unreadable(format!("{}/{key}: {why}", R::TREE))
        };
        let (schema, version) = header(bytes).ok_or_else(|| damaged(&"shorter than its header"))?;
        let body = bytes.get(HEADER..).unwrap_or_default();
        let record = match schema.cmp(&R::SCHEMA) {
            std::cmp::Ordering::Equal => serde_json::from_slice(body).map_err(|e| damaged(&e))?,
            std::cmp::Ordering::Less => {
                R::upgrade(schema, serde_json::from_slice(body).map_err(|e| damaged(&e))?)?
            }
            std::cmp::Ordering::Greater => {
                let known = R::SCHEMA;
                return Err(damaged(&format!(
                    "written with schema {schema}, this program knows up to {known}: use a newer version of it"
                )));
            }
        };
        Ok(Stored { version, record })
    }
}

/// Schema and version of a stored value.
pub(crate) fn header(bytes: &[u8]) -> Option<(u16, u64)> {
    let schema = bytes.get(..2)?.try_into().ok().map(u16::from_be_bytes)?;
    let version = bytes.get(2..HEADER)?.try_into().ok().map(u64::from_be_bytes)?;
    Some((schema, version))
}

/// The version of what is stored under a key; 0 where nothing is.
pub(crate) fn version_of(value: Option<&[u8]>) -> u64 {
    value.and_then(header).map_or(0, |(_, version)| version)
}
