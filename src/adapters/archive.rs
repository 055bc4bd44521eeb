//! Reads the archives of folders: tar files, compressed with gzip, which strangers send.
//!
//! Nothing is ever unpacked onto the disk. Each file is checked and passed on, and the context of a
//! build is written anew from the checked files.

use contract::endpoint::sources::{MAX_FILES, MAX_UNPACKED};
use flate2::read::GzDecoder;
use repository::folder::{FolderContents, FolderKind, LARGEST_PACKAGE_FILE, is_package_file};
use std::{
    collections::HashSet,
    io::{self, Read, Write},
    thread,
};
use tar::EntryType;

/// An archive may unpack to this many times its size. Source files compress by about ten.
const HIGHEST_RATIO: u64 = 100;
/// An archive may unpack to this many bytes, however small it is.
const ALWAYS_ALLOWED: u64 = 16 << 20;
/// The longest path, in bytes.
const LONGEST_PATH: usize = 1024;

/// The Dockerfiles for cloud code, without and with npm packages.
const PLAIN: &[u8] = include_bytes!("../../data/images/parse-cloud/Dockerfile");
const WITH_PACKAGES: &[u8] = include_bytes!("../../data/images/parse-cloud/Dockerfile.npm");

/// Why an archive could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive cannot be deployed, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The files cannot be passed on, or the archive cannot be read.
    #[error(transparent)]
    Io(io::Error),
}

fn refused(why: impl Into<String>) -> ArchiveError {
    ArchiveError::Refused(why.into())
}

/// Checks a whole archive of `packed` bytes, and returns how its folder is built.
pub fn check(archive: impl Read, packed: u64) -> Result<FolderKind, ArchiveError> {
    let mut seen = FolderContents::default();
    each_file(archive, packed, |file, content| {
        let mut kept = Vec::new();
        if is_package_file(&file.path) {
            content.read_to_end(&mut kept).map_err(unread)?;
        }
        seen.file(&file.path, &kept);
        Ok(())
    })?;
    seen.kind().map_err(ArchiveError::Refused)
}

/// Writes the context of a build from a checked archive of `packed` bytes.
pub fn write_context(
    archive: impl Read,
    packed: u64,
    kind: FolderKind,
    to: impl Write,
) -> Result<(), ArchiveError> {
    let mut context = tar::Builder::new(to);
    let dockerfile = match kind {
        FolderKind::Dockerfile => None,
        FolderKind::CloudCode => Some(PLAIN),
        FolderKind::CloudCodeWithPackages => Some(WITH_PACKAGES),
    };
    if let Some(dockerfile) = dockerfile {
        let size = dockerfile.len() as u64;
        append(&mut context, "Dockerfile", size, false, dockerfile)?;
    }
    each_file(archive, packed, |file, content| {
        let ArchivedFile { path, size, executable } = file;
        if dockerfile.is_none() {
            return append(&mut context, &path, size, executable, content);
        }
        if !is_package_file(&path) {
            return append(&mut context, &format!("app/{path}"), size, executable, content);
        }
        let mut kept = Vec::new();
        content.read_to_end(&mut kept).map_err(unread)?;
        append(&mut context, &format!("packages/{path}"), size, false, kept.as_slice())?;
        // Only the installation of packages reads the settings of npm: they may hold a password.
        if path.ends_with(".npmrc") {
            return Ok(());
        }
        append(&mut context, &format!("app/{path}"), size, false, kept.as_slice())
    })?;
    context.finish().map_err(ArchiveError::Io)
}

fn append(
    context: &mut tar::Builder<impl Write>,
    path: &str,
    size: u64,
    executable: bool,
    content: impl Read,
) -> Result<(), ArchiveError> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(if executable { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    context.append_data(&mut header, path, content).map_err(ArchiveError::Io)
}

/// A regular file of an archive.
struct ArchivedFile {
    /// Relative, without `.` and `..`.
    path: String,
    size: u64,
    executable: bool,
}

/// Passes on each file with its content, and then checks that the archive is whole.
fn each_file(
    archive: impl Read,
    packed: u64,
    mut take: impl FnMut(ArchivedFile, &mut dyn Read) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let most = (packed.saturating_mul(HIGHEST_RATIO)).clamp(ALWAYS_ALLOWED, MAX_UNPACKED);
    let unpacked = Limited { inner: GzDecoder::new(archive), left: most };
    let mut tar = tar::Archive::new(unpacked);
    let mut paths = HashSet::new();
    for entry in tar.entries().map_err(unread)? {
        let mut entry = entry.map_err(unread)?;
        let path = path_of(&entry.path_bytes())?;
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Directory | EntryType::XGlobalHeader => continue,
            EntryType::Symlink | EntryType::Link => {
                return Err(refused(format!("{path:?} is a link; put the file itself there")));
            }
            _ => return Err(refused(format!("{path:?} is not a regular file"))),
        }
        if path.is_empty() {
            return Err(refused("a file of the archive has no name"));
        }
        if paths.len() as u64 >= MAX_FILES {
            return Err(refused(format!("there are more than {MAX_FILES} files")));
        }
        let size = entry.size();
        if is_package_file(&path) && size > LARGEST_PACKAGE_FILE {
            return Err(refused(format!("{path:?} is larger than 16 MiB")));
        }
        if !paths.insert(path.clone()) {
            return Err(refused(format!("{path:?} is in the archive twice")));
        }
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
        take(ArchivedFile { path, size, executable }, &mut entry)?;
    }
    // The tar file ends before the checksum of gzip, which is compared only now.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(unread)?;
    Ok(())
}

/// The path of an entry, without `./`. Refuses all that could lead out of the folder.
fn path_of(bytes: &[u8]) -> Result<String, ArchiveError> {
    let unfit = || refused(format!("the path {:?} is not allowed", String::from_utf8_lossy(bytes)));
    let text = str::from_utf8(bytes).map_err(|_| unfit())?;
    if text.len() > LONGEST_PATH || text.starts_with('/') || text.chars().any(char::is_control) {
        return Err(unfit());
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !["", "."].contains(part)).collect();
    if parts.contains(&"..") {
        return Err(unfit());
    }
    Ok(parts.join("/"))
}

/// Fails when more bytes come than are allowed. Lets other threads go first after each piece: a small archive may
/// unpack to much, and short requests would wait for a processor.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "it unpacks to more than {} MiB, or to more than {HIGHEST_RATIO} times its size",
                    MAX_UNPACKED >> 20
                ),
            )
        })?;
        thread::yield_now();
        Ok(read)
    }
}

/// The meaning of a failure to read an archive: its bytes are wrong, unless the system failed.
fn unread(e: io::Error) -> ArchiveError {
    match e.raw_os_error() {
        Some(_) => ArchiveError::Io(e),
        None => refused(format!("the archive is not a whole tar.gz file: {e}")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    /// An archive of entries with these raw names, types and contents.
    fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            // `Builder::append_data` would refuse the names that matter here.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o4755);
            if *kind == EntryType::Symlink || *kind == EntryType::Link {
                header.set_link_name_literal("/etc/passwd").unwrap();
            }
            header.set_cksum();
            tar.append(&header, *content).unwrap();
        }
        packed(&tar.into_inner().unwrap())
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    fn checked(archive: &[u8]) -> Result<FolderKind, String> {
        check(archive, archive.len() as u64).map_err(|e| match e {
            ArchiveError::Refused(why) => why,
            ArchiveError::Io(e) => panic!("{e}"),
        })
    }

    const CODE: (&str, EntryType, &[u8]) =
        ("cloud/main.js", EntryType::Regular, b"Parse.Cloud.define('a', () => 1);");

    #[test]
    fn hostile_archives_are_refused() {
        let whole = archive(&[CODE]);
        assert_eq!(checked(&whole), Ok(FolderKind::CloudCode));
        for (entry, why) in [
            (("/etc/passwd", EntryType::Regular), "not allowed"),
            (("../out", EntryType::Regular), "not allowed"),
            (("cloud/../../out", EntryType::Regular), "not allowed"),
            (("a\nb", EntryType::Regular), "not allowed"),
            (("../out", EntryType::Directory), "not allowed"),
            (("./", EntryType::Regular), "no name"),
            (("cloud/link", EntryType::Symlink), "is a link"),
            (("cloud/link", EntryType::Link), "is a link"),
            (("cloud/device", EntryType::Char), "not a regular file"),
            (("cloud/device", EntryType::Block), "not a regular file"),
            (("cloud/fifo", EntryType::Fifo), "not a regular file"),
            (("cloud/sparse", EntryType::GNUSparse), ""),
            (("./cloud//main.js", EntryType::Regular), "twice"),
        ] {
            let (name, kind) = entry;
            let found = checked(&archive(&[CODE, (name, kind, b"")]));
            assert!(found.as_ref().is_err_and(|e| e.contains(why)), "{name} {kind:?}: {found:?}");
        }
        let zeros = vec![0; (ALWAYS_ALLOWED + 1) as usize];
        let bomb = archive(&[CODE, ("zeros", EntryType::Regular, &zeros)]);
        assert!(checked(&bomb).is_err_and(|why| why.contains("100 times")));
        let names: Vec<_> = (0..=MAX_FILES).map(|n| n.to_string()).collect();
        let many: Vec<_> =
            names.iter().map(|n| (n.as_str(), EntryType::Regular, &b""[..])).collect();
        assert!(checked(&archive(&many)).is_err_and(|why| why.contains("more than 20000 files")));
        for cut in [0, 1, 10, whole.len() / 2, whole.len() - 1] {
            let found = checked(&whole[..cut]);
            assert!(found.as_ref().is_err_and(|e| e.contains("not a whole")), "{cut}: {found:?}");
        }
        let mut damaged = whole.clone();
        let at = damaged.len() - 6;
        damaged[at] ^= 1;
        assert!(checked(&damaged).is_err_and(|why| why.contains("not a whole")));
        assert!(checked(b"PK\x03\x04").is_err());
    }

    #[test]
    fn a_context_holds_the_files_under_the_dockerfile_of_the_service() {
        let packages = br#"{"dependencies": {"ms": "2.1.3"}}"#;
        let sent = archive(&[
            ("./cloud", EntryType::Directory, b""),
            CODE,
            ("package.json", EntryType::Regular, packages),
            (".npmrc", EntryType::Regular, b"//registry/:_authToken=secret"),
        ]);
        let kind = checked(&sent).unwrap();
        assert_eq!(kind, FolderKind::CloudCodeWithPackages);
        let mut context = Vec::new();
        write_context(sent.as_slice(), sent.len() as u64, kind, &mut context).unwrap();
        let mut found = Vec::new();
        for entry in tar::Archive::new(context.as_slice()).entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            found.push((
                entry.path().unwrap().display().to_string(),
                header.mode().unwrap(),
                header.uid().unwrap(),
            ));
        }
        let names: Vec<_> =
            found.iter().map(|(name, mode, uid)| (name.as_str(), *mode, *uid)).collect();
        assert_eq!(
            names,
            [
                ("Dockerfile", 0o644, 0),
                ("app/cloud/main.js", 0o755, 0),
                ("packages/package.json", 0o644, 0),
                ("app/package.json", 0o644, 0),
                ("packages/.npmrc", 0o644, 0),
            ]
        );
    }
}
