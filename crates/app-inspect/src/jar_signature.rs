//! JAR signatures, which sign an aab, and an apk for Android before 7.
//!
//! `META-INF/X.RSA` signs `X.SF`, which holds the digest of `MANIFEST.MF`, which holds the digest
//! of every other entry. The whole chain is checked, so every entry is inflated once.
//!
//! A `.SF` file that vouches only for single sections of the manifest is not supported. The first
//! of two signers leaves such a file after the second has signed.
//!
//! Source: "JAR File Specification", section "Signed JAR File", and
//! source.android.com/docs/security/features/apksigning/v2, "Rollback protections".

use std::borrow::Cow;

use data_encoding::BASE64;

use crate::archive::{Archive, Entry};
use crate::certificate::Hash;
use crate::cms;
use crate::refusal::{Failure, Refusal};
use crate::report::Signer;

const SCHEME: &str = "JAR";
const FOLDER: &str = "META-INF/";
const MANIFEST: &str = "META-INF/MANIFEST.MF";
const DIGESTS_EXTENSION: &str = "SF";
const BLOCK_EXTENSIONS: [&str; 3] = ["RSA", "EC", "DSA"];
/// Most signers, as on Android.
const MAX_SIGNATURES: usize = 10;

/// Digests, the strongest first. The first one that is present counts.
const DIGESTS: [(&str, Hash); 4] = [
    ("SHA-512-Digest", Hash::Sha512),
    ("SHA-384-Digest", Hash::Sha384),
    ("SHA-256-Digest", Hash::Sha256),
    ("SHA1-Digest", Hash::Sha1),
];

/// Most lines of a section. A line of a few bytes costs a hundred bytes of memory.
const MAX_FIELDS: usize = 64;

/// Checks all JAR signatures of an archive. Returns the signer of the first by name, or `None` if
/// there is no signature.
pub(crate) fn verify(archive: &Archive) -> Result<Option<Signer>, Failure> {
    let signatures = find_signatures(archive)?;
    if signatures.is_empty() {
        return Ok(None);
    }
    let manifest = archive.find(MANIFEST).ok_or(Refusal::StrippedSignature { scheme: SCHEME })?;
    let manifest = archive.read_table(manifest)?;
    let mut first = None;
    for signature in &signatures {
        let signer = verify_signature(archive, signature, &manifest)?;
        first.get_or_insert(signer);
    }
    verify_entries(archive, &manifest)?;
    Ok(first)
}

struct Signature<'a> {
    /// The `.SF` file.
    digests: &'a Entry,
    /// The CMS signature over it.
    block: &'a Entry,
}

fn find_signatures<'a>(archive: &'a Archive) -> Result<Vec<Signature<'a>>, Refusal> {
    let stripped = Refusal::StrippedSignature { scheme: SCHEME };
    let mut signatures = Vec::new();
    for entry in archive.entries() {
        let Some((stem, extension)) = split_name(entry.name()) else { continue };
        let sibling = |extension: &str| archive.find([stem, b".", extension.as_bytes()].concat());
        if extension == DIGESTS_EXTENSION.as_bytes() {
            let block = BLOCK_EXTENSIONS.into_iter().find_map(sibling).ok_or(stripped.clone())?;
            signatures.push(Signature { digests: entry, block });
        } else if BLOCK_EXTENSIONS.iter().any(|known| extension == known.as_bytes()) {
            // A block without its `.SF` file is the rest of a removed signature.
            sibling(DIGESTS_EXTENSION).ok_or(stripped.clone())?;
        }
    }
    if signatures.len() > MAX_SIGNATURES {
        return Err(invalid("it has too many signers"));
    }
    Ok(signatures)
}

/// The path and the extension of a file that lies directly in `META-INF`.
fn split_name(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let file = name.strip_prefix(FOLDER.as_bytes()).filter(|file| !file.contains(&b'/'))?;
    let extension = file.rsplit(|byte| *byte == b'.').next()?;
    let stem = name.strip_suffix(extension)?.strip_suffix(b".")?;
    Some((stem, extension))
}

fn verify_signature(
    archive: &Archive,
    signature: &Signature,
    manifest: &[u8],
) -> Result<Signer, Failure> {
    let digests = archive.read_table(signature.digests)?;
    let block = archive.read_manifest(signature.block)?;
    let signer = cms::verify_detached(&block, &digests).map_err(|error| error.refusal(SCHEME))?;

    let main = Sections(&digests).next().flatten();
    let main = main.ok_or_else(|| invalid("its list of digests is malformed"))?;
    refuse_stripped_schemes(archive, &main)?;
    let (hash, stated) = DIGESTS
        .iter()
        .find_map(|(name, hash)| Some((hash, main.get(&format!("{name}-Manifest"))?)))
        .ok_or(Refusal::UnsupportedSignature { scheme: SCHEME })?;
    if decode(stated).as_deref() != Some(hash.of(manifest).as_ref()) {
        return Err(Refusal::ChangedAfterSigning { scheme: SCHEME }.into());
    }
    Ok(signer)
}

/// Refuses an apk whose `.SF` file says that it also has a signature of a newer scheme. This code
/// runs only for an apk without such a signature.
fn refuse_stripped_schemes(archive: &Archive, main: &Section) -> Result<(), Refusal> {
    let is_apk = archive.find(crate::apk::MANIFEST).is_some();
    let Some(schemes) = main.get("X-Android-APK-Signed").filter(|_| is_apk) else { return Ok(()) };
    let mut schemes = schemes.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    if schemes.any(|scheme| matches!(scheme, b"2" | b"3")) {
        return Err(Refusal::StrippedSignature { scheme: "APK v2 or v3" });
    }
    Ok(())
}

/// Checks that each entry has a section of the manifest, and matches it.
fn verify_entries(archive: &Archive, manifest: &[u8]) -> Result<(), Failure> {
    let mut verified = vec![false; archive.entries().len()];
    let mut sections = Sections(manifest);
    sections.next(); // the main section is about the manifest itself
    for section in sections {
        let section = section.ok_or_else(|| invalid("its manifest is malformed"))?;
        let Some(name) = section.get("Name") else { continue };
        let found = archive.position(name);
        let found = found.and_then(|at| Some((archive.entries().get(at)?, verified.get_mut(at)?)));
        let (entry, verified) = found.ok_or(Refusal::ChangedAfterSigning { scheme: SCHEME })?;
        // A second section would inflate the entry a second time.
        if std::mem::replace(verified, true) {
            return Err(invalid("its manifest lists an entry twice").into());
        }
        verify_entry(archive, entry, &section)?;
    }
    let exempt =
        |entry: &Entry| entry.is_directory() || entry.name().starts_with(FOLDER.as_bytes());
    if archive.entries().iter().zip(verified).any(|(entry, verified)| !verified && !exempt(entry)) {
        return Err(Refusal::ChangedAfterSigning { scheme: SCHEME }.into());
    }
    Ok(())
}

fn verify_entry(archive: &Archive, entry: &Entry, section: &Section) -> Result<(), Failure> {
    let (hash, stated) = DIGESTS
        .iter()
        .find_map(|(name, hash)| Some((hash, section.get(name)?)))
        .ok_or(Refusal::UnsupportedSignature { scheme: SCHEME })?;
    if decode(stated) != Some(archive.digest(entry, *hash)?) {
        return Err(Refusal::ChangedAfterSigning { scheme: SCHEME }.into());
    }
    Ok(())
}

fn decode(digest: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(digest).ok()
}

fn invalid(reason: &'static str) -> Refusal {
    Refusal::InvalidSignature { scheme: SCHEME, reason }
}

/// One section of a manifest: its `Name: value` lines. The values are bytes, because a long line
/// may be folded in the middle of a character.
struct Section<'a>(Vec<(&'a [u8], Cow<'a, [u8]>)>);

impl Section<'_> {
    fn get(&self, name: &str) -> Option<&[u8]> {
        let is_wanted = |known: &[u8]| known.eq_ignore_ascii_case(name.as_bytes());
        let (_, value) = self.0.iter().find(|(known, _)| is_wanted(known))?;
        Some(value)
    }
}

/// The sections of a manifest, one at a time; `None` for one that is malformed.
struct Sections<'a>(&'a [u8]);

impl<'a> Sections<'a> {
    fn next_line(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = self.0.iter().position(|byte| *byte == b'\n').unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..).unwrap_or_default();
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Reads on to the empty line that ends a section.
    fn parse(&mut self, first_line: &'a [u8]) -> Option<Section<'a>> {
        let mut fields: Vec<(&[u8], Cow<[u8]>)> = Vec::new();
        let mut next = Some(first_line);
        while let Some(line) = next.filter(|line| !line.is_empty()) {
            // A line has at most 72 bytes. A line that starts with a space continues the value.
            if let Some(more) = line.strip_prefix(b" ") {
                fields.last_mut()?.1.to_mut().extend_from_slice(more);
            } else {
                let colon = line.windows(2).position(|bytes| bytes == b": ")?;
                let (name, value) = line.split_at_checked(colon)?;
                fields.push((name, Cow::Borrowed(value.get(2..)?)));
                (fields.len() <= MAX_FIELDS).then_some(())?;
            }
            next = self.next_line();
        }
        Some(Section(fields))
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Option<Section<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = self.next_line()?;
        while line.is_empty() {
            line = self.next_line()?;
        }
        Some(self.parse(line))
    }
}
