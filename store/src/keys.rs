//! How index entries and claims are spelled as keys. A part never holds a slash of its own except
//! an index entry, whose last part is the key of the record.

use crate::StoreError;

/// The key of an index entry that points at the record `key`.
pub(crate) fn entry(tree: &str, entry: &str, key: &str) -> Vec<u8> {
    [tree, "/", entry, "/", key].concat().into_bytes()
}

/// All keys of one index entry: from inclusive, to exclusive.
pub(crate) fn entry_range(tree: &str, entry: &str) -> (Vec<u8>, Vec<u8>) {
    // '0' is the character after '/'
    ([tree, "/", entry, "/"].concat().into_bytes(), [tree, "/", entry, "0"].concat().into_bytes())
}

/// The key of a unique claim.
pub(crate) fn claim(tree: &str, claim: &str) -> Vec<u8> {
    [tree, "/", claim].concat().into_bytes()
}

/// What stands after the first `from` bytes, as text.
pub(crate) fn last_part(key: &[u8], from: usize) -> Result<String, StoreError> {
    text(key.get(from..).unwrap_or_default())
}

/// What stands after the last slash, as text.
pub(crate) fn after_last_slash(key: &[u8]) -> Result<String, StoreError> {
    let start = key.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    last_part(key, start)
}

pub(crate) fn text(key: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(key.to_vec()).map_err(|_| StoreError::Unreadable("a key is not text".into()))
}
