//! Finds the APK Signing Block, which lies between the last entry and the central directory.
//!
//! Source: source.android.com/docs/security/features/apksigning/v2, "APK Signing Block".

use crate::archive::Archive;
use crate::cursor::Cursor;
use crate::refusal::{Failure, Refusal};

const MAGIC: &[u8; 16] = b"APK Sig Block 42";
/// The block's size, once more, and the magic.
const FOOTER_LEN: u64 = 24;

pub(super) struct SigningBlock {
    /// Where the block begins in the file.
    pub(super) offset: u64,
    /// Its id-value pairs.
    pairs: Vec<u8>,
}

impl SigningBlock {
    /// The archive's signing block, or `None` if it has none.
    pub(super) fn find(archive: &Archive) -> Result<Option<Self>, Failure> {
        let end = archive.directory().offset;
        let Some(footer_offset) = end.checked_sub(FOOTER_LEN) else { return Ok(None) };
        let footer = archive.raw(footer_offset, FOOTER_LEN)?;
        let Some(size) = footer_size(&footer) else { return Ok(None) };

        // The size counts everything but the first copy of itself.
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

    /// The value with this id.
    pub(super) fn value(&self, id: u32, scheme: &'static str) -> Result<Option<&[u8]>, Refusal> {
        let mut pairs = Cursor::new(&self.pairs);
        let mut found = None;
        while !pairs.is_empty() {
            let (pair_id, value) = next_pair(&mut pairs).ok_or_else(malformed)?;
            // Readers differ in which of two they take.
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
