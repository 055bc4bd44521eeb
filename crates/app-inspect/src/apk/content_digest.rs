//! The digest over the contents of an apk that its v2 and v3 signatures cover.
//!
//! Source: source.android.com/docs/security/features/apksigning/v2, "Integrity-protected contents".

use aws_lc_rs::digest::{Algorithm, Context};

use crate::archive::Archive;
use crate::refusal::Failure;

/// The digest is made of the digests of chunks of this many bytes.
const CHUNK_LEN: u64 = 1 << 20;
const CHUNK_PREFIX: u8 = 0xa5;
const TOP_PREFIX: u8 = 0x5a;
/// The place of the central directory's offset in the end record.
const DIRECTORY_OFFSET_FIELD: std::ops::Range<usize> = 16..20;

/// Digests the whole file except the signing block, which begins at `block_offset`.
pub(super) fn content_digest(
    archive: &Archive,
    block_offset: u64,
    algorithm: &'static Algorithm,
) -> Result<Vec<u8>, Failure> {
    let directory = archive.directory();
    let mut chunks = Chunks { algorithm, digests: Vec::new(), count: 0 };
    for section in [0..block_offset, directory.offset..directory.end_record] {
        let mut offset = section.start;
        while offset < section.end {
            let len = section.end.saturating_sub(offset).min(CHUNK_LEN);
            chunks.add(&archive.raw(offset, len)?);
            offset = offset.saturating_add(len);
        }
    }
    chunks.add(&end_record(archive, block_offset)?);
    Ok(chunks.finish())
}

/// The end record with the directory's offset as it was before the signing block was inserted.
fn end_record(archive: &Archive, block_offset: u64) -> Result<Vec<u8>, Failure> {
    let mut record = archive.end_record()?;
    if let (Some(field), Ok(offset)) =
        (record.get_mut(DIRECTORY_OFFSET_FIELD), u32::try_from(block_offset))
    {
        field.copy_from_slice(&offset.to_le_bytes());
    }
    Ok(record)
}

struct Chunks {
    algorithm: &'static Algorithm,
    digests: Vec<u8>,
    count: u32,
}

impl Chunks {
    /// `chunk` has at most [`CHUNK_LEN`] bytes.
    fn add(&mut self, chunk: &[u8]) {
        let len = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let mut context = Context::new(self.algorithm);
        context.update(&[CHUNK_PREFIX]);
        context.update(&len.to_le_bytes());
        context.update(chunk);
        self.digests.extend_from_slice(context.finish().as_ref());
        self.count = self.count.saturating_add(1);
    }

    fn finish(self) -> Vec<u8> {
        let mut context = Context::new(self.algorithm);
        context.update(&[TOP_PREFIX]);
        context.update(&self.count.to_le_bytes());
        context.update(&self.digests);
        context.finish().as_ref().to_vec()
    }
}
