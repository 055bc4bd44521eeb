//! Checks every file of a signed bundle against its signature.
//!
//! The code directory holds the hashes of `Info.plist` and of the list of the bundle's files. The
//! list holds the hashes of the other files. A nested framework or plug-in is listed file by file,
//! as Xcode does for iOS, or with the hash of its own code directory. Then it is a bundle with its
//! own list of files.
//!
//! The signer's rules may leave files out of the list. Files that Apple's rules leave out are
//! accepted, because no code reads them: `PkgInfo`, `.DS_Store` and `locversion.plist`. Other files
//! outside the list are refused, because they could be anything. The App Store also refuses custom
//! rules.
//!
//! Files beside the app in the archive, such as symbols and `SwiftSupport`, are not checked: they
//! are not installed.

use std::collections::BTreeSet;

use super::code_directory::CodeDirectory;
use super::code_resources::{self, MAX_PATH, Seal, SealedContent};
use super::code_signature::{CodeSignature, SCHEME, changed, invalid};
use super::info_plist::InfoPlist;
use crate::archive::{Archive, Entry};
use crate::certificate::Hash;
use crate::refusal::{Failure, Refusal};

const INFO_PLIST: &str = "Info.plist";
const CODE_RESOURCES: &str = "_CodeSignature/CodeResources";

/// Most levels of nested bundles. A plug-in of a watch app, with a framework, needs few.
const MAX_DEPTH: usize = 6;

/// A folder of the archive whose files are signed together.
pub(super) struct Bundle<'a> {
    archive: &'a Archive<'a>,
    /// Ends with a slash.
    folder: &'a [u8],
    info_plist: &'a [u8],
    executable: &'a Entry,
}

impl<'a> Bundle<'a> {
    pub(super) fn new(
        archive: &'a Archive<'a>,
        folder: &'a [u8],
        info_plist: &'a [u8],
        executable: &'a Entry,
    ) -> Self {
        Self { archive, folder, info_plist, executable }
    }

    /// Checks all files of the bundle against its code directory.
    pub(super) fn verify(&self, directory: &CodeDirectory) -> Result<(), Failure> {
        self.verify_within(directory, MAX_DEPTH)
    }

    fn verify_within(&self, directory: &CodeDirectory, depth: usize) -> Result<(), Failure> {
        if !directory.info_plist_is(self.info_plist) {
            return Err(changed().into());
        }
        let files = match self.archive.find(self.path(CODE_RESOURCES)) {
            Some(entry) => {
                let list = self.archive.read_table(entry)?;
                if !directory.code_resources_are(&list) {
                    return Err(self.unsigned(CODE_RESOURCES).into());
                }
                code_resources::parse(&list)
                    .ok_or_else(|| invalid("its list of files is malformed"))?
            }
            None if directory.has_code_resources() => {
                return Err(Refusal::StrippedSignature { scheme: SCHEME }.into());
            }
            None => Default::default(),
        };

        let mut nested = BTreeSet::new();
        for (path, seal) in &files {
            let is_code = |folder: &str| {
                files.get(folder).is_some_and(|seal| matches!(seal.content, SealedContent::Code(_)))
            };
            // Listing a nested bundle twice would read its files many times.
            if parents(path).any(is_code) {
                return Err(invalid("its list of files lists a nested bundle twice").into());
            }
            if self.verify_file(path, seal, depth)? == Covers::Folder {
                nested.insert(path.as_str());
            }
        }
        for entry in self.archive.entries_under(self.folder) {
            let path = entry.name().strip_prefix(self.folder).unwrap_or_default();
            let listed = |path: &str| {
                path.len() <= MAX_PATH
                    && (files.contains_key(path)
                        || parents(path).any(|folder| nested.contains(folder)))
            };
            if !self.is_exempt(entry, path) && !std::str::from_utf8(path).is_ok_and(listed) {
                return Err(Refusal::UnsignedFile { name: entry.quoted() }.into());
            }
        }
        Ok(())
    }

    /// Whether a file may be missing in the list.
    fn is_exempt(&self, entry: &Entry, path: &[u8]) -> bool {
        entry.is_directory()
            || entry.name() == self.executable.name()
            || [INFO_PLIST, CODE_RESOURCES, "PkgInfo"].iter().any(|known| path == known.as_bytes())
            || path == b".DS_Store"
            || path.ends_with(b"/.DS_Store")
            || path.ends_with(b".lproj/locversion.plist")
    }

    fn verify_file(&self, path: &str, seal: &Seal, depth: usize) -> Result<Covers, Failure> {
        let entry = self.archive.find(self.path(path));
        let sound = match (&seal.content, entry) {
            (SealedContent::Code(hash), Some(entry)) => self.verify_code(entry, hash)?,
            (SealedContent::Code(hash), None) if self.has_folder(path) => {
                self.verify_nested(path, hash, depth)?;
                return Ok(Covers::Folder);
            }
            (_, None) => seal.optional,
            (SealedContent::Sha256(hash), Some(entry)) => {
                self.archive.digest(entry, Hash::Sha256)? == *hash
            }
            (SealedContent::Sha1(hash), Some(entry)) => {
                self.archive.digest(entry, Hash::Sha1)? == *hash
            }
            (SealedContent::Link(target), Some(entry)) => {
                let len = target.len() as u64;
                self.archive.read_range(entry, 0, len.saturating_add(1))? == target.as_bytes()
            }
        };
        if sound { Ok(Covers::File) } else { Err(self.unsigned(path).into()) }
    }

    /// Checks an executable or a library that is not a bundle.
    fn verify_code(&self, entry: &Entry, hash: &[u8]) -> Result<bool, Failure> {
        let Some(signature) = CodeSignature::find(self.archive, entry)? else { return Ok(false) };
        signature.verify_with_hash(hash, |_| Ok(()))
    }

    fn verify_nested(&self, path: &str, hash: &[u8], depth: usize) -> Result<(), Failure> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| invalid("its bundles lie too deep in one another"))?;
        let folder = self.path(&format!("{path}/"));
        let find = |name: &str| self.archive.find([&*folder, name.as_bytes()].concat());
        let unsigned = || self.unsigned(path);
        let info_bytes = self.archive.read_manifest(find(INFO_PLIST).ok_or_else(unsigned)?)?;
        let info = InfoPlist::parse(&info_bytes).ok_or_else(unsigned)?;
        let executable = info
            .text("CFBundleExecutable")
            .filter(|name| !name.contains('/'))
            .and_then(|name| find(&name))
            .ok_or_else(unsigned)?;
        let bundle = Bundle::new(self.archive, &folder, &info_bytes, executable);
        let signature = CodeSignature::find(self.archive, executable)?.ok_or_else(unsigned)?;
        let sound =
            signature.verify_with_hash(hash, |directory| bundle.verify_within(directory, depth))?;
        if sound { Ok(()) } else { Err(unsigned().into()) }
    }

    fn has_folder(&self, path: &str) -> bool {
        self.archive.find(self.path(&format!("{path}/{INFO_PLIST}"))).is_some()
    }

    fn path(&self, name: &str) -> Vec<u8> {
        [self.folder, name.as_bytes()].concat()
    }

    fn unsigned(&self, path: &str) -> Refusal {
        Refusal::UnsignedFile { name: Refusal::quote(&self.path(path)) }
    }
}

/// The folders that contain a path, without a slash at their ends.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// What an item of the list covers.
#[derive(Debug, PartialEq, Eq)]
enum Covers {
    File,
    Folder,
}
