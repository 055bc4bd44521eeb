//! What an archive of a volume contains, in a few bytes: the paths, kinds, owners, permissions, links and contents of
//! all files, but not when they were written.

use super::pipes::InputPipe;
use crate::{Archive, EngineError};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures_util::{StreamExt, stream};
use sha2::{Digest, Sha256};
use std::{
    fmt,
    io::{self, Read},
};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinHandle,
};

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint {
    entries: u64,
    /// The sum of the sizes of all files.
    bytes: u64,
    hash: [u8; 32],
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fingerprint { entries, bytes, hash } = self;
        write!(f, "{entries} files and folders with {bytes} bytes ({})", HEXLOWER.encode(hash))
    }
}

impl Fingerprint {
    /// Reads an archive to its end.
    pub async fn of(archive: Archive) -> Result<Fingerprint, EngineError> {
        let (mut archive, found) = along(archive);
        while let Some(part) = archive.next().await {
            part?;
        }
        drop(archive);
        found.await.unwrap_or_else(|e| Err(EngineError::Unreachable(e.to_string())))
    }

    fn read(archive: impl Read) -> io::Result<Fingerprint> {
        let (mut entries, mut bytes, mut hash) = (0, 0, Sha256::new());
        let mut archive = tar::Archive::new(archive);
        let mut piece = vec![0; PIECE];
        for entry in archive.entries()? {
            let mut entry = entry?;
            let header = entry.header();
            let numbers = [
                u64::from(header.entry_type().as_byte()),
                u64::from(header.mode()?),
                header.uid()?,
                header.gid()?,
                entry.size(),
            ];
            let link = entry.link_name_bytes().unwrap_or_default();
            for text in [&entry.path_bytes(), &link] {
                hash.update(text.len().to_be_bytes());
                hash.update(text);
            }
            numbers.iter().for_each(|number| hash.update(number.to_be_bytes()));
            loop {
                let length = entry.read(&mut piece)?;
                match piece.get(..length) {
                    Some(read) if length > 0 => hash.update(read),
                    _ => break,
                }
            }
            entries += 1;
            bytes += entry.size();
        }
        // The daemon pads what it sends.
        io::copy(&mut archive.into_inner(), &mut io::sink())?;
        Ok(Fingerprint { entries, bytes, hash: hash.finalize().into() })
    }
}

/// Passes an archive on, and finds its fingerprint meanwhile.
pub(super) fn along(archive: Archive) -> (Archive, JoinHandle<Result<Fingerprint, EngineError>>) {
    let (goes, comes): (Sender<Bytes>, Receiver<Bytes>) = channel(4);
    let found = tokio::task::spawn_blocking(move || {
        let read = Fingerprint::read(InputPipe::new(comes));
        read.map_err(|e| {
            EngineError::Refused(format!("the content of a volume is no archive: {e}"))
        })
    });
    let passed = stream::unfold((archive, goes), |(mut archive, goes)| async {
        let part = archive.next().await?;
        if let Ok(bytes) = &part {
            // What is no archive is told in the end.
            let _ = goes.send(bytes.clone()).await;
        }
        Some((part, (archive, goes)))
    });
    (passed.boxed(), found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of these files: path, owner, content.
    fn archive(files: &[(&str, u64, &str)], at: u64) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, owner, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            header.set_uid(*owner);
            header.set_gid(*owner);
            header.set_mtime(at);
            archive.append_data(&mut header, path, content.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap()
    }

    fn of(files: &[(&str, u64, &str)], at: u64) -> Fingerprint {
        Fingerprint::read(&archive(files, at)[..]).unwrap()
    }

    #[test]
    fn what_counts_is_told_apart() {
        let files = [("volume/a", 999, "one"), ("volume/b", 999, "two")];
        let known = of(&files, 1);
        assert_eq!(known, of(&files, 2), "when a file was written does not count");
        assert_eq!((known.entries, known.bytes), (2, 6));
        for other in [
            [("volume/a", 999, "one"), ("volume/b", 999, "twO")],
            [("volume/a", 0, "one"), ("volume/b", 999, "two")],
            [("volume/a", 999, "onet"), ("volume/b", 999, "wo")],
            [("volume/c", 999, "one"), ("volume/b", 999, "two")],
        ] {
            assert_ne!(known, of(&other, 1), "{other:?}");
        }
    }

    #[tokio::test]
    async fn an_archive_is_passed_on_as_it_is() {
        let whole = archive(&[("volume/a", 999, &"x".repeat(200_000))], 1);
        let pieces: Vec<_> =
            whole.chunks(777).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let (passed, found) = along(stream::iter(pieces).boxed());
        let passed: Vec<Bytes> = passed.map(Result::unwrap).collect().await;
        assert_eq!(passed.concat(), whole);
        assert_eq!(found.await.unwrap().unwrap(), Fingerprint::read(&whole[..]).unwrap());
        let cut = stream::iter([Ok(Bytes::copy_from_slice(&whole[..100_000]))]).boxed();
        assert!(Fingerprint::of(cut).await.is_err());
    }
}
