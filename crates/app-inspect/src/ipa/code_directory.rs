//! The blobs of an embedded code signature, one of which is the code directory.
//!
//! Source: Apple XNU, osfmk/kern/cs_blobs.h.

use crate::certificate::Hash;
use crate::cursor::Cursor;

const EMBEDDED_SIGNATURE: u32 = 0xfade_0cc0;
const CODE_DIRECTORY: u32 = 0xfade_0c02;
const BLOB_WRAPPER: u32 = 0xfade_0b01;

const SLOT_CODE_DIRECTORY: u32 = 0;
/// Slots of additional code directories, with other kinds of hashes.
const SLOTS_ALTERNATE: std::ops::Range<u32> = 0x1000..0x1005;
const SLOT_CMS: u32 = 0x10000;

/// Numbers of special slots in the code directory.
const INFO_PLIST_SLOT: usize = 1;
const CODE_RESOURCES_SLOT: usize = 3;

/// Bytes of the hash by which one bundle names the code directory of another.
const CODE_HASH_LEN: usize = 20;

/// `CS_ADHOC`.
const FLAG_AD_HOC: u32 = 0x2;

const BLOB_HEAD_LEN: usize = 8;

/// The code directories, and the signature over the primary one.
pub(super) struct EmbeddedSignature<'a> {
    /// The primary code directory.
    pub(super) code_directory: &'a [u8],
    alternates: Vec<&'a [u8]>,
    /// A CMS signature over the code directory; empty if there is none.
    pub(super) cms: &'a [u8],
}

impl<'a> EmbeddedSignature<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut index = Cursor::new(bytes);
        (index.u32_be()? == EMBEDDED_SIGNATURE).then_some(())?;
        index.take(4)?; // length
        let count = index.u32_be()?;
        let (mut code_directory, mut cms) = (None, None);
        let mut alternates = Vec::new();
        for _ in 0..count {
            let (slot, offset) = (index.u32_be()?, index.size_be()?);
            let (found, magic) = match slot {
                SLOT_CODE_DIRECTORY => (&mut code_directory, CODE_DIRECTORY),
                SLOT_CMS => (&mut cms, BLOB_WRAPPER),
                slot if SLOTS_ALTERNATE.contains(&slot) => {
                    alternates.push(blob(bytes, offset, CODE_DIRECTORY)?);
                    (alternates.len() <= SLOTS_ALTERNATE.len()).then_some(())?;
                    continue;
                }
                _ => continue,
            };
            let blob = blob(bytes, offset, magic)?;
            found.replace(blob).is_none().then_some(())?;
        }
        let cms = cms.and_then(|cms| cms.get(BLOB_HEAD_LEN..)).unwrap_or_default();
        Some(Self { code_directory: code_directory?, alternates, cms })
    }

    /// The code directory with this hash.
    pub(super) fn directory_with_hash(&self, hash: &[u8]) -> Option<CodeDirectory<'a>> {
        (hash.len() == CODE_HASH_LEN).then_some(())?;
        std::iter::once(&self.code_directory).chain(&self.alternates).find_map(|bytes| {
            let directory = CodeDirectory::parse(bytes)?;
            directory.hash.of(bytes).as_ref().starts_with(hash).then_some(directory)
        })
    }
}

fn blob(bytes: &[u8], offset: usize, magic: u32) -> Option<&[u8]> {
    let mut fields = Cursor::at(bytes, offset)?;
    (fields.u32_be()? == magic).then_some(())?;
    let len = fields.size_be().filter(|len| *len >= BLOB_HEAD_LEN)?;
    Cursor::at(bytes, offset)?.take(len)
}

/// The hashes of the pages of the executable and of its files.
pub(super) struct CodeDirectory<'a> {
    /// Whether the directory states that it has no signer.
    pub(super) is_ad_hoc: bool,
    hash: Hash,
    hash_len: usize,
    /// Bytes of a page of code.
    pub(super) page_len: usize,
    /// Signed bytes of the executable, from the start of its slice.
    pub(super) code_len: u64,
    /// The hashes of the special slots, the highest slot first.
    special_hashes: &'a [u8],
    code_hashes: &'a [u8],
}

impl<'a> CodeDirectory<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Cursor::new(bytes);
        fields.take(12)?; // magic, length, version
        let flags = fields.u32_be()?;
        let hash_offset = fields.size_be()?;
        fields.take(4)?; // offset of the identifier
        let (special_count, code_count) = (fields.size_be()?, fields.size_be()?);
        let code_len = u64::from(fields.u32_be()?);
        let hash_len = usize::from(fields.u8()?);
        let hash = match (fields.u8()?, hash_len) {
            (1, 20) => Hash::Sha1,
            (2, 32) | (3, 20) => Hash::Sha256, // type 3 is cut to 20 bytes
            (4, 48) => Hash::Sha384,
            _ => return None,
        };
        fields.take(1)?; // platform
        let page_len =
            1_usize.checked_shl(fields.u8().filter(|bits| (10..=16).contains(bits))?.into())?;

        let special_len = special_count.checked_mul(hash_len)?;
        let special_hashes =
            Cursor::at(bytes, hash_offset.checked_sub(special_len)?)?.take(special_len)?;
        let code_hashes =
            Cursor::at(bytes, hash_offset)?.take(code_count.checked_mul(hash_len)?)?;
        Some(Self {
            is_ad_hoc: flags & FLAG_AD_HOC != 0,
            hash,
            hash_len,
            page_len,
            code_len,
            special_hashes,
            code_hashes,
        })
    }

    pub(super) fn info_plist_is(&self, content: &[u8]) -> bool {
        self.special(INFO_PLIST_SLOT).is_some_and(|stated| self.matches(stated, content))
    }

    pub(super) fn has_code_resources(&self) -> bool {
        self.special(CODE_RESOURCES_SLOT).is_some()
    }

    pub(super) fn code_resources_are(&self, content: &[u8]) -> bool {
        self.special(CODE_RESOURCES_SLOT).is_some_and(|stated| self.matches(stated, content))
    }

    /// The hash in the special slot with this number, from 1 on. An empty slot is all zeros.
    fn special(&self, slot: usize) -> Option<&'a [u8]> {
        let hash = self.special_hashes.rchunks_exact(self.hash_len).nth(slot.saturating_sub(1))?;
        hash.iter().any(|byte| *byte != 0).then_some(hash)
    }

    /// The stated hashes of the pages, in order.
    pub(super) fn pages(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.code_hashes.chunks_exact(self.hash_len)
    }

    pub(super) fn matches(&self, stated: &[u8], content: &[u8]) -> bool {
        self.hash.of(content).as_ref().starts_with(stated)
    }
}
