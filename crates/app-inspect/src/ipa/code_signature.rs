//! Verifies the code signature of an app's main executable.
//!
//! Checked are the CMS signature over the code directory, and against that directory every page
//! of the executable and `Info.plist`, which is where the report comes from. Not checked are the
//! other files of the app (`_CodeSignature/CodeResources`), nested code, entitlements and the
//! provisioning profile: the phone and the store do that, with Apple's certificates, which are
//! not here.
//!
//! Source: Apple, "Code Signing Guide", and TN3126 "Inside Code Signing: Hashes".

use super::code_directory::{CodeDirectory, EmbeddedSignature, INFO_PLIST_SLOT};
use super::mach_o::{self, Range};
use crate::archive::{Archive, Entry};
use crate::cms;
use crate::refusal::{Failure, Refusal};
use crate::report::Signer;

pub(super) const SCHEME: &str = "iOS code";

/// A code signature inside of an executable.
pub(super) struct CodeSignature<'a> {
    archive: &'a Archive<'a>,
    executable: &'a Entry,
    /// Where the slice for phones starts in the executable.
    slice: u64,
    /// Where the signature lies in that slice.
    range: Range,
}

impl<'a> CodeSignature<'a> {
    /// The executable's signature, or `None` if it has none.
    pub(super) fn find(
        archive: &'a Archive,
        executable: &'a Entry,
    ) -> Result<Option<Self>, Failure> {
        let head = archive.read_range(executable, 0, mach_o::HEAD_LEN)?;
        let Some(slice) = mach_o::slice_offset(&head) else { return Ok(None) };
        let head = archive.read_range(executable, slice, mach_o::HEAD_LEN)?;
        let range = mach_o::code_signature(&head);
        Ok(range.map(|range| Self { archive, executable, slice, range }))
    }

    /// Who made it; `None` if it is signed "ad hoc", by nobody.
    pub(super) fn verify(&self, info_plist: &[u8]) -> Result<Option<Signer>, Failure> {
        let Range { offset, len } = self.range;
        if len > self.archive.limits().max_table_bytes {
            return Err(malformed().into());
        }
        let start = self.slice.saturating_add(offset);
        let bytes = self.archive.read_range(self.executable, start, len)?;
        let embedded = EmbeddedSignature::parse(&bytes).ok_or_else(malformed)?;
        let directory = CodeDirectory::parse(embedded.code_directory).ok_or_else(malformed)?;
        if embedded.cms.is_empty() {
            let stripped = Refusal::StrippedSignature { scheme: SCHEME };
            return if directory.is_ad_hoc { Ok(None) } else { Err(stripped.into()) };
        }
        let signer = cms::verify_detached(embedded.cms, embedded.code_directory)
            .map_err(|error| error.refusal(SCHEME))?;
        if !directory.special_matches(INFO_PLIST_SLOT, info_plist) {
            return Err(changed().into());
        }
        // What comes after the signed code must be the signature, or code could hide there.
        if directory.code_len != offset {
            return Err(invalid("it does not cover the whole executable").into());
        }
        self.verify_pages(&directory)?;
        Ok(Some(signer))
    }

    /// Streams the executable and compares it page by page.
    fn verify_pages(&self, directory: &CodeDirectory) -> Result<(), Failure> {
        let mut stated = directory.pages();
        if stated.len() as u64 != directory.code_len.div_ceil(directory.page_len as u64) {
            return Err(malformed().into());
        }
        let mut skip = self.slice;
        let mut left = directory.code_len;
        let mut page = Vec::with_capacity(directory.page_len);
        let mut sound = true;
        self.archive.stream(self.executable, |piece| {
            let (skipped, mut piece) = split(piece, skip);
            skip = skip.saturating_sub(skipped.len() as u64);
            while left > 0 && !piece.is_empty() {
                let room = directory.page_len.saturating_sub(page.len()) as u64;
                let (taken, rest) = split(piece, room.min(left));
                page.extend_from_slice(taken);
                left = left.saturating_sub(taken.len() as u64);
                piece = rest;
                if page.len() == directory.page_len || left == 0 {
                    sound &= stated.next().is_some_and(|hash| directory.matches(hash, &page));
                    page.clear();
                }
            }
        })?;
        if sound && left == 0 { Ok(()) } else { Err(changed().into()) }
    }
}

/// The first `count` bytes, or all if there are fewer, and the rest.
fn split(bytes: &[u8], count: u64) -> (&[u8], &[u8]) {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    bytes.split_at_checked(count).unwrap_or((bytes, &[]))
}

fn malformed() -> Refusal {
    invalid("it is malformed")
}

fn changed() -> Refusal {
    Refusal::ChangedAfterSigning { scheme: SCHEME }
}

fn invalid(reason: &'static str) -> Refusal {
    Refusal::InvalidSignature { scheme: SCHEME, reason }
}
