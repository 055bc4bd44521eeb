//! Verifies the code signature of an executable.
//!
//! This module checks the CMS signature over the code directory. Against that directory it checks
//! every page of the executable, for each kind of processor, and every file of the app (see
//! [`super::resources`]). It does not check entitlements and whether the provisioning profile
//! allows them: the phone and the store do, with Apple's certificates, which are not here.
//!
//! Source: Apple, "Code Signing Guide", and TN3126 "Inside Code Signing: Hashes".

use super::code_directory::{CodeDirectory, EmbeddedSignature};
use super::mach_o::{self, Range};
use crate::archive::{Archive, Entry};
use crate::cms;
use crate::refusal::{Failure, Refusal};
use crate::report::Signer;

pub(super) const SCHEME: &str = "iOS code";

/// The code signatures of an executable, one for each kind of processor.
pub(super) struct CodeSignature<'a> {
    slices: Vec<SignedSlice<'a>>,
}

impl<'a> CodeSignature<'a> {
    /// The signatures of the executable, or `None` if it has none.
    pub(super) fn find(
        archive: &'a Archive<'a>,
        executable: &'a Entry,
    ) -> Result<Option<Self>, Failure> {
        let head = archive.read_range(executable, 0, mach_o::HEAD_LEN)?;
        let all = mach_o::slices(&head, executable.len())
            .ok_or_else(|| invalid("its executable is malformed"))?;
        let mut slices = Vec::new();
        for slice in &all {
            let len = mach_o::HEAD_LEN.min(slice.len);
            let head = archive.read_range(executable, slice.offset, len)?;
            if let Some(range) = mach_o::code_signature(&head) {
                slices.push(SignedSlice { archive, executable, slice: *slice, range });
            }
        }
        match slices.len() {
            0 => Ok(None),
            // The phone decides which slice runs.
            signed if signed == all.len() => Ok(Some(Self { slices })),
            _ => Err(invalid("it covers the code for some processors only").into()),
        }
    }

    /// The signer; `None` if the executable is signed "ad hoc", without a signer. `verify_files`
    /// checks the files of the executable against its code directory.
    pub(super) fn verify(
        &self,
        verify_files: impl Fn(&CodeDirectory) -> Result<(), Failure>,
    ) -> Result<Option<Signer>, Failure> {
        let mut signers = Vec::new();
        for slice in &self.slices {
            signers.push(slice.verify(&verify_files)?);
        }
        signers.dedup();
        match <[_; 1]>::try_from(signers) {
            Ok([signer]) => Ok(signer),
            Err(_) => Err(invalid("the code for each processor has another signer").into()),
        }
    }

    /// Whether each slice has a code directory with this hash, which another signature covers.
    /// Checks the pages and files of those directories.
    pub(super) fn verify_with_hash(
        &self,
        hash: &[u8],
        verify_files: impl Fn(&CodeDirectory) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        for slice in &self.slices {
            if !slice.verify_with_hash(hash, &verify_files)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A signed executable for one kind of processor.
struct SignedSlice<'a> {
    archive: &'a Archive<'a>,
    executable: &'a Entry,
    slice: Range,
    /// The place of the signature in the slice.
    range: Range,
}

impl SignedSlice<'_> {
    fn verify(
        &self,
        verify_files: impl Fn(&CodeDirectory) -> Result<(), Failure>,
    ) -> Result<Option<Signer>, Failure> {
        let bytes = self.read()?;
        let embedded = EmbeddedSignature::parse(&bytes).ok_or_else(malformed)?;
        let directory = CodeDirectory::parse(embedded.code_directory).ok_or_else(malformed)?;
        if embedded.cms.is_empty() {
            let stripped = Refusal::StrippedSignature { scheme: SCHEME };
            return if directory.is_ad_hoc { Ok(None) } else { Err(stripped.into()) };
        }
        let signer = cms::verify_detached(embedded.cms, embedded.code_directory)
            .map_err(|error| error.refusal(SCHEME))?;
        self.verify_code(&directory)?;
        verify_files(&directory)?;
        Ok(Some(signer))
    }

    fn verify_with_hash(
        &self,
        hash: &[u8],
        verify_files: impl Fn(&CodeDirectory) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let bytes = self.read()?;
        let embedded = EmbeddedSignature::parse(&bytes).ok_or_else(malformed)?;
        let Some(directory) = embedded.directory_with_hash(hash) else { return Ok(false) };
        self.verify_code(&directory)?;
        verify_files(&directory)?;
        Ok(true)
    }

    fn read(&self) -> Result<Vec<u8>, Failure> {
        let Range { offset, len } = self.range;
        if len > self.archive.limits().max_table_bytes {
            return Err(malformed().into());
        }
        let start = self.slice.offset.saturating_add(offset);
        self.archive.read_range(self.executable, start, len)
    }

    fn verify_code(&self, directory: &CodeDirectory) -> Result<(), Failure> {
        // Only the signature may follow the signed code, else code could hide there.
        if directory.code_len != self.range.offset || self.range.end() != self.slice.len {
            return Err(invalid("it does not cover the whole executable").into());
        }
        self.verify_pages(directory)
    }

    /// Streams the executable and compares the hash of each page.
    fn verify_pages(&self, directory: &CodeDirectory) -> Result<(), Failure> {
        let mut stated = directory.pages();
        if stated.len() as u64 != directory.code_len.div_ceil(directory.page_len as u64) {
            return Err(malformed().into());
        }
        let mut skip = self.slice.offset;
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

/// The first `count` bytes, or all bytes if there are fewer, and the rest.
fn split(bytes: &[u8], count: u64) -> (&[u8], &[u8]) {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    bytes.split_at_checked(count).unwrap_or((bytes, &[]))
}

fn malformed() -> Refusal {
    invalid("it is malformed")
}

pub(super) fn changed() -> Refusal {
    Refusal::ChangedAfterSigning { scheme: SCHEME }
}

pub(super) fn invalid(reason: &'static str) -> Refusal {
    Refusal::InvalidSignature { scheme: SCHEME, reason }
}
