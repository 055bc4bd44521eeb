//! The layers of an image, as they pass.

use super::Failure;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use tar::{EntryType, PaxExtensions};

/// Bytes of an extended header.
const LARGEST_EXTENSION: u64 = 1 << 20;

/// The digest in the name that `buildah` gives a layer: the SHA-256 in hex, and `.tar`.
pub(super) fn digest(name: &str) -> Option<&str> {
    let digest = name.strip_suffix(".tar")?;
    let is_hex = digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (digest.len() == 64 && is_hex).then_some(digest)
}

/// Copies a layer of this many bytes. It must have this digest, and be a plain archive, so that it unpacks
/// to no more than it is: neither compressed, nor with files that are larger than what is written of them,
/// nor with an entry whose end could be disputed.
pub(super) fn pass(
    input: impl Read,
    output: impl Write,
    size: u64,
    digest: &str,
) -> Result<(), Failure> {
    let mut copied = Copied { input, output, hash: Sha256::new(), size: 0 };
    let mut archive = tar::Archive::new(&mut copied);
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let is_disputed = || Err("a layer has an entry that is not as archives have it".into());
        let header = entry.header();
        if !is_number(&header.as_old().size) {
            return is_disputed();
        }
        match header.entry_type() {
            EntryType::XHeader | EntryType::XGlobalHeader => {
                if entry.size() > LARGEST_EXTENSION {
                    return is_disputed();
                }
                let mut text = Vec::new();
                entry.read_to_end(&mut text)?;
                for field in PaxExtensions::new(&text) {
                    let field = field?;
                    let name = field.key()?;
                    if name == "size" || name.starts_with("GNU.sparse") {
                        return Err("a layer has a sparse file, or one of 8 GiB".into());
                    }
                }
            }
            EntryType::GNUSparse => return Err("a layer has a sparse file".into()),
            EntryType::Link
            | EntryType::Symlink
            | EntryType::Char
            | EntryType::Block
            | EntryType::Directory
            | EntryType::Fifo
                if entry.size() > 0 =>
            {
                return is_disputed();
            }
            _ => {}
        }
    }
    // What follows the end of an archive belongs to the layer, too.
    io::copy(&mut copied, &mut io::sink())?;
    if copied.size != size || HEXLOWER.encode(&copied.hash.finalize()) != digest {
        return Err(format!("the layer {digest} has another digest").into());
    }
    Ok(())
}

/// Whether all readers of archives agree on this number.
fn is_number(field: &[u8]) -> bool {
    let digits = field.iter().take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let rest = field.get(digits..).unwrap_or_default();
    digits > 0 && rest.iter().all(|byte| matches!(byte, b' ' | 0))
}

/// Writes what it reads, and hashes it.
struct Copied<R, W> {
    input: R,
    output: W,
    hash: Sha256,
    size: u64,
}

impl<R: Read, W: Write> Read for Copied<R, W> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(into)?;
        let piece = into.get(..length).unwrap_or_default();
        self.hash.update(piece);
        self.output.write_all(piece)?;
        self.size += length as u64;
        Ok(length)
    }
}
