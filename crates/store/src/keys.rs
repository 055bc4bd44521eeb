//! The keys of the rows of records, index entries and claims. Slashes separate the
//! parts of a key. Index entries and claims may hold slashes; kinds and keys of records may not.

use crate::{CLAIMS, INDEX, Record, StoreError};
use std::{
    fmt::{Display, Write},
    ops::Range,
};

/// Most keys of records are not longer, in bytes.
const USUAL: usize = 64;

pub(crate) fn record(kind: &str, key: &(impl Display + ?Sized)) -> Vec<u8> {
    let mut row = String::with_capacity(kind.len() + 1 + USUAL);
    row.push_str(kind);
    row.push('/');
    // Fails only if the key fails to write itself, which no key does.
    let _ = write!(row, "{key}");
    row.into_bytes()
}

pub(crate) fn records(kind: &str) -> Range<Vec<u8>> {
    below(&[kind])
}

/// The key of an index entry that points at the record `key`.
pub(crate) fn entry(kind: &str, entry: &str, key: &str) -> Vec<u8> {
    [INDEX, "/", kind, "/", entry, "/", key].concat().into_bytes()
}

/// The keys of all rows of one index entry.
pub(crate) fn entries(kind: &str, entry: &str) -> Range<Vec<u8>> {
    below(&[INDEX, "/", kind, "/", entry])
}

/// The keys of the index entries of a kind that have the name of `entry` and sort before it. The
/// name is `entry` without its last part.
pub(crate) fn entries_before(kind: &str, entry: &str) -> Range<Vec<u8>> {
    let name = entry.rfind('/').map_or("", |slash| entry.get(..=slash).unwrap_or_default());
    let key = |entry| [INDEX, "/", kind, "/", entry].concat().into_bytes();
    key(name)..key(entry)
}

/// The keys of the index entries of a kind that have the name of `entry`, whatever their last part is.
pub(crate) fn entries_named_like(kind: &str, entry: &str) -> Range<Vec<u8>> {
    let name = entry.rsplit_once('/').map_or(entry, |(name, _)| name);
    entries(kind, name)
}

/// The first key after those of the index entry that has this key.
pub(crate) fn after_entry(key: &[u8]) -> Vec<u8> {
    let end = key.iter().rposition(|b| *b == b'/').unwrap_or(key.len());
    // '0' is the character after '/'.
    [key.get(..end).unwrap_or_default(), b"0"].concat()
}

pub(crate) fn claim(kind: &str, claim: &str) -> Vec<u8> {
    [CLAIMS, "/", kind, "/", claim].concat().into_bytes()
}

/// Whether this is the key of an index entry.
pub(crate) fn is_of_index(key: &[u8]) -> bool {
    is_below(INDEX, key)
}

/// Whether this is the key of a record.
pub(crate) fn is_of_record(key: &[u8]) -> bool {
    !is_of_index(key) && !is_below(CLAIMS, key)
}

fn is_below(part: &str, key: &[u8]) -> bool {
    key.strip_prefix(part.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

/// The keys below a path.
pub(crate) fn below(path: &[&str]) -> Range<Vec<u8>> {
    let path = path.concat();
    // '0' is the character after '/'.
    [&path, "/"].concat().into_bytes()..[&path, "0"].concat().into_bytes()
}

/// All keys.
pub(crate) fn all() -> Range<Vec<u8>> {
    // No text has this byte.
    Vec::new()..vec![0xff]
}

/// The first key after this one.
pub(crate) fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// The last part of a key, which is the key of a record.
pub(crate) fn last_part(key: &[u8]) -> Result<String, StoreError> {
    let start = key.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    let part = key.get(start..).unwrap_or_default().to_vec();
    String::from_utf8(part).map_err(|_| StoreError::Unreadable("a key is not text".into()))
}

/// Parses the key of a record.
pub(crate) fn read<R: Record>(key: &str) -> Result<R::Key, StoreError> {
    let damaged = || StoreError::Unreadable(format!("{key:?} is no key of {}", R::TREE));
    key.parse().map_err(|_| damaged())
}
