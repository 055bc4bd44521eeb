//! Finds the APK Signing Block, which lies between the last entry and the central directory.
//!
//! The block is a list of values with ids. No signature covers it, so anybody can add a value to a
//! signed app. Android looks up the ids of the signature schemes that it knows, the newest first,
//! and ignores the rest. A value that this crate does not know may be a signature that a newer
//! Android prefers, with the key of a stranger. The values are treated so:
//!
//! * A signature of a known scheme is verified (see [`super::signature_scheme`]).
//! * Metadata with an id of [`METADATA`] is accepted: it never says who signed the app.
//! * Other metadata, such as the channel ids of many Chinese stores, is accepted, except if it has
//!   the shape of the signatures of all known schemes (signers with digests, certificates,
//!   signatures and a key). Then it may belong to a newer scheme, and the app is refused.
//!
//! The shape is a guess: a future scheme with another shape would pass. A stricter rule would
//! refuse the apps of stores that keep their own values in the block.
//!
//! Source: source.android.com/docs/security/features/apksigning/v2, "APK Signing Block".

use crate::archive::Archive;
use crate::cursor::Cursor;
use crate::refusal::{Failure, Refusal};

const MAGIC: &[u8; 16] = b"APK Sig Block 42";

/// Ids of values that are not signatures of the app.
const METADATA: [u32; 6] = [
    0x4272_6577, // padding, to align the block
    0x504b_4453, // dependencies, for Google Play (Android Gradle Plugin)
    0x2146_444e, // "frosting", which Google Play adds to the apps that it delivers
    0x2b09_189e, // source stamp v1: which store delivered the app; has the shape of a signature
    0x6dff_800d, // source stamp v2
    0x7177_7777, // channel id of Walle
];

/// Bytes of the second copy of the block's size and of the magic.
const FOOTER_LEN: u64 = 24;

pub(super) struct SigningBlock {
    /// The offset of the block in the file.
    pub(super) offset: u64,
    /// The pairs of ids and values, encoded.
    pairs: Vec<u8>,
}

impl SigningBlock {
    /// The archive's signing block, or `None` if it has none.
    pub(super) fn find(archive: &Archive) -> Result<Option<Self>, Failure> {
        let end = archive.directory().offset;
        let Some(footer_offset) = end.checked_sub(FOOTER_LEN) else { return Ok(None) };
        let footer = archive.raw(footer_offset, FOOTER_LEN)?;
        let Some(size) = footer_size(&footer) else { return Ok(None) };

        // The size does not include the first copy of the size.
        let offset = end.checked_sub(size).and_then(|start| start.checked_sub(8));
        let offset =
            offset.filter(|_| (FOOTER_LEN..=archive.limits().max_table_bytes).contains(&size));
        let offset = offset.ok_or_else(malformed)?;
        let head = archive.raw(offset, 8)?;
        if Cursor::new(&head).u64_le() != Some(size) {
            return Err(malformed().into());
        }
        let pairs = archive.raw(offset.saturating_add(8), size.saturating_sub(FOOTER_LEN))?;
        Ok(Some(Self { offset, pairs }))
    }

    /// The values whose ids are neither in [`METADATA`] nor in `known`.
    pub(super) fn unknown<'a>(&'a self, known: &[u32]) -> Result<Vec<&'a [u8]>, Refusal> {
        let mut pairs = Cursor::new(&self.pairs);
        let mut unknown = Vec::new();
        while !pairs.is_empty() {
            let (id, value) = next_pair(&mut pairs).ok_or_else(malformed)?;
            if !METADATA.contains(&id) && !known.contains(&id) {
                unknown.push(value);
            }
        }
        Ok(unknown)
    }

    /// The value with this id.
    pub(super) fn value(&self, id: u32, scheme: &'static str) -> Result<Option<&[u8]>, Refusal> {
        let mut pairs = Cursor::new(&self.pairs);
        let mut found = None;
        while !pairs.is_empty() {
            let (pair_id, value) = next_pair(&mut pairs).ok_or_else(malformed)?;
            // Of two values, some readers take the first and others the last.
            if pair_id == id && found.replace(value).is_some() {
                return Err(Refusal::DuplicateSignature { scheme });
            }
        }
        Ok(found)
    }
}

fn footer_size(footer: &[u8]) -> Option<u64> {
    let mut fields = Cursor::new(footer);
    let size = fields.u64_le()?;
    (fields.rest() == MAGIC).then_some(size)
}

fn next_pair<'a>(pairs: &mut Cursor<'a>) -> Option<(u32, &'a [u8])> {
    let len = usize::try_from(pairs.u64_le()?).ok()?;
    let mut pair = Cursor::new(pairs.take(len)?);
    Some((pair.u32_le()?, pair.rest()))
}

fn malformed() -> Refusal {
    Refusal::InvalidSignature { scheme: "APK", reason: "its signing block is malformed" }
}
