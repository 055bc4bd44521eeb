//! The file that is uploaded.

use crate::{failure::Failure, printer::Printer};
use contract::{artifacts::ArtifactKind, text::FileName};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// Bytes read at once while a file is hashed.
const BLOCK: usize = 256 * 1024;

/// A file with its size and hash at the time of opening.
pub struct Binary {
    file: File,
    path: PathBuf,
    pub name: FileName,
    pub kind: ArtifactKind,
    pub size: u64,
    pub sha256: contract::Sha256,
}

impl Binary {
    /// Opens a file and hashes it block by block, without loading it into memory.
    pub fn open(path: &Path, printer: &Printer) -> Result<Self, Failure> {
        // The name is looked at first: it is what people mistype.
        kind_of(path)?;
        let file = File::open(path).map_err(|error| {
            Failure::usage(format!("{}: {error}", path.display()), "name the file to publish")
        })?;
        Binary::of(file, path, printer)
    }

    /// Hashes an open file with this path.
    pub fn of(mut file: File, path: &Path, printer: &Printer) -> Result<Self, Failure> {
        let unreadable = |error| Failure::file(path, &error);
        let (name, kind) = kind_of(path)?;
        let name: FileName = name.parse().map_err(|problem: String| {
            Failure::usage(format!("{name:?} {problem}"), "rename it")
        })?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() || metadata.len() == 0 {
            let problem = format!("{} is empty, or no file", path.display());
            return Err(Failure::usage(problem, "build it first"));
        }
        let bar = printer.progress("hashing", metadata.len());
        let (sha256, size) = hash(bar.wrap_read(&mut file)).map_err(unreadable)?;
        bar.finish_and_clear();
        let sha256 =
            sha256.parse().map_err(|problem: String| Failure::local(problem, "run it again"))?;
        Ok(Binary { file, path: path.to_owned(), name, kind, size, sha256 })
    }

    /// Reads `length` bytes from `start`.
    pub fn part(&self, start: u64, length: u64) -> Result<Vec<u8>, Failure> {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(start))?;
            let mut part = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
            file.take(length).read_to_end(&mut part)?;
            Ok(part)
        };
        let part = read().map_err(|error| Failure::file(&self.path, &error))?;
        if u64::try_from(part.len()).ok() == Some(length) {
            return Ok(part);
        }
        Err(Failure::local(
            format!("{} changed while it was uploaded", self.path.display()),
            "wait until its build is over, and run it again",
        ))
    }
}

/// The name of a file, and the kind that it says.
fn kind_of(path: &Path) -> Result<(String, ArtifactKind), Failure> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    match ArtifactKind::of_file_name(&name) {
        Some(kind) => Ok((name, kind)),
        None => Err(Failure::usage(
            format!("{} is no file that can be published", path.display()),
            "name a file that ends in .ipa, .apk or .aab",
        )),
    }
}

/// The SHA-256 in hex, and the number of bytes.
fn hash(mut bytes: impl Read) -> io::Result<(String, u64)> {
    let (mut hasher, mut size) = (Sha256::new(), 0);
    let mut block = vec![0; BLOCK];
    loop {
        match bytes.read(&mut block) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(block.get(..count).unwrap_or_default());
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((HEXLOWER.encode(&hasher.finalize()), size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printer::Form;

    fn quiet() -> Printer {
        Printer::new(Form::Text, true)
    }

    #[test]
    fn a_file_is_hashed_and_cut_into_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.APK");
        std::fs::write(&path, "hello world").unwrap();
        let binary = Binary::open(&path, &quiet()).unwrap();
        let expected = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";
        assert_eq!((binary.size, binary.sha256.as_str()), (11, expected));
        assert_eq!(binary.kind, ArtifactKind::Apk);
        assert_eq!(binary.part(6, 5).unwrap(), b"world");
        std::fs::write(&path, "hello").unwrap();
        assert!(binary.part(6, 5).unwrap_err().to_string().contains("changed"));
    }

    #[test]
    fn what_cannot_be_published_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.aab");
        std::fs::write(&empty, "").unwrap();
        for path in [&empty, &folder.path().join("app.zip"), &folder.path().join("absent.ipa")] {
            let refused = Binary::open(path, &quiet()).err();
            assert!(matches!(refused, Some(Failure::Usage { .. })), "{}", path.display());
        }
    }
}
