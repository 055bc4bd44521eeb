//! Packs a folder into an archive. The same files make the same bytes, so a folder that did not
//! change is not sent again.

use crate::failure::Failure;
use contract::{
    Sha256,
    endpoint::sources::{MAX_ARCHIVE, MAX_FILES, MAX_UNPACKED},
};
use data_encoding::HEXLOWER;
use flate2::{Compression, write::GzEncoder};
use ignore::{
    DirEntry, WalkBuilder,
    gitignore::{Gitignore, GitignoreBuilder},
};
use repository::folder::{CLOUD_CODE, DOCKERFILE, FolderContents, is_package_file};
use sha2::Digest;
use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// Lists what is not sent, with the patterns of `.gitignore`. Its patterns come after those of
/// `.gitignore`, so `!pattern` sends what git leaves out.
const SVCIGNORE: &str = ".svcignore";
/// Lists what is not sent of a folder with a Dockerfile.
const DOCKERIGNORE: &str = ".dockerignore";

/// A packed folder.
pub struct Archive {
    /// The compressed tar file.
    pub bytes: Vec<u8>,
    pub sha256: Sha256,
    /// The number of files.
    pub files: u64,
}

/// Packs a folder. Refuses one that the service would refuse.
pub fn pack(root: &Path) -> Result<Archive, Failure> {
    let files = files(root)?;
    check(root, &files)?;
    let mut tar = tar::Builder::new(GzEncoder::new(Bounded::default(), Compression::default()));
    let mut unpacked = 0;
    for Packed { path, full } in &files {
        let failed = |e: &io::Error| match e.kind() {
            io::ErrorKind::FileTooLarge => too_large(root),
            _ => Failure::file(full, e),
        };
        let file = File::open(full).map_err(|e| failed(&e))?;
        let metadata = file.metadata().map_err(|e| failed(&e))?;
        unpacked += metadata.len();
        if unpacked > MAX_UNPACKED {
            return Err(too_large(root));
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(metadata.len());
        header.set_mode(if is_executable(&metadata) { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        // A file that grows meanwhile is cut off, so that the archive stays readable.
        let content = file.take(metadata.len());
        tar.append_data(&mut header, path, content).map_err(|e| failed(&e))?;
    }
    let packed = tar.into_inner().and_then(GzEncoder::finish).map_err(|_| too_large(root))?;
    let sha256 = HEXLOWER.encode(&sha2::Sha256::digest(&packed.0));
    let sha256 = sha256.parse().map_err(|e: String| Failure::local(e, "report this fault"))?;
    Ok(Archive { bytes: packed.0, sha256, files: files.len() as u64 })
}

/// A file to pack: its path in the archive, and on this machine.
struct Packed {
    path: String,
    full: PathBuf,
}

/// The files that are sent, sorted.
fn files(root: &Path) -> Result<Vec<Packed>, Failure> {
    if !root.is_dir() {
        return Err(Failure::usage(
            format!("{} is not a folder", root.display()),
            "name the folder with cloud/main.js or with a Dockerfile",
        ));
    }
    let docker = dockerignore(root)?;
    // Only the files of this folder say what is sent, not those of its parents or of the user.
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false)
        .git_ignore(true)
        .require_git(false)
        .add_custom_ignore_filename(SVCIGNORE)
        .filter_entry(|entry| entry.depth() == 0 || may_be_sent(entry.file_name()))
        .sort_by_file_name(OsStr::cmp);
    let mut files = Vec::new();
    for entry in walk.build() {
        let entry = entry.map_err(|e| Failure::local(e.to_string(), "check that folder"))?;
        let Some(path) = path_of(root, &entry)? else { continue };
        let ignored = |docker: &Gitignore| {
            docker.matched_path_or_any_parents(&path, false).is_ignore() && path != DOCKERFILE
        };
        if docker.as_ref().is_some_and(ignored) {
            continue;
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return Err(Failure::usage(
                format!(
                    "{} is a link or a special file, which is not sent",
                    entry.path().display()
                ),
                format!("put the file itself there, or list it in {SVCIGNORE}"),
            ));
        }
        files.push(Packed { path, full: entry.into_path() });
    }
    Ok(files)
}

/// Never sent: history, secrets, and packages that the build installs itself.
fn may_be_sent(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !([".git", "node_modules"].contains(&name.as_ref()) || name.starts_with(".env"))
}

/// The path of a file in the archive; `None` for a folder.
fn path_of(root: &Path, entry: &DirEntry) -> Result<Option<String>, Failure> {
    if entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return Ok(None);
    }
    let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
    let parts: Option<Vec<_>> = path.iter().map(OsStr::to_str).collect();
    let parts = parts.ok_or_else(|| {
        Failure::usage(
            format!("{} is not named in UTF-8", path.display()),
            format!("rename it, or list it in {SVCIGNORE}"),
        )
    })?;
    Ok(Some(parts.join("/")))
}

/// The patterns of `.dockerignore`, if the folder has a Dockerfile. Unlike those of git, they begin
/// at the root of the folder.
fn dockerignore(root: &Path) -> Result<Option<Gitignore>, Failure> {
    let path = root.join(DOCKERIGNORE);
    if !root.join(DOCKERFILE).exists() || !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(|e| Failure::file(&path, &e))?;
    let unfit = |e: ignore::Error| {
        Failure::usage(format!("{}: {e}", path.display()), "correct that pattern")
    };
    let mut patterns = GitignoreBuilder::new("");
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let (not, pattern) = line.strip_prefix('!').map_or(("", line), |rest| ("!", rest));
        let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
        if !pattern.is_empty() {
            patterns.add_line(None, &format!("{not}/{pattern}")).map_err(unfit)?;
        }
    }
    patterns.build().map(Some).map_err(unfit)
}

fn check(root: &Path, files: &[Packed]) -> Result<(), Failure> {
    let hint = format!(
        "run it in the folder of the project: cloud code begins in {CLOUD_CODE}; any other server \
         needs a {DOCKERFILE}. What {SVCIGNORE} and .gitignore list is not sent"
    );
    if files.len() as u64 > MAX_FILES {
        return Err(too_large(root));
    }
    let mut seen = FolderContents::default();
    for Packed { path, full } in files {
        let content = match is_package_file(path) {
            true => fs::read(full).map_err(|e| Failure::file(full, &e))?,
            false => Vec::new(),
        };
        seen.file(path, &content);
    }
    seen.kind().map(drop).map_err(|why| Failure::usage(format!("{}: {why}", root.display()), hint))
}

fn too_large(root: &Path) -> Failure {
    Failure::usage(
        format!(
            "{} is too large: at most {MAX_FILES} files with {} MiB together are sent, packed {} MiB",
            root.display(),
            MAX_UNPACKED >> 20,
            MAX_ARCHIVE >> 20
        ),
        format!("list what the deployment does not need in {SVCIGNORE}"),
    )
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

/// Memory for an archive that is not too large.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.0.len() + bytes.len()) as u64 > MAX_ARCHIVE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    fn names(root: &Path) -> Vec<String> {
        let archive = pack(root).unwrap();
        let tar = flate2::read::GzDecoder::new(archive.bytes.as_slice());
        let mut tar = tar::Archive::new(tar);
        let entries = tar.entries().unwrap();
        entries.map(|e| e.unwrap().path().unwrap().display().to_string()).collect()
    }

    #[test]
    fn what_is_ignored_or_secret_is_not_sent() {
        let folder = folder(&[
            ("cloud/main.js", ""),
            ("cloud/lib/a.js", ""),
            ("cloud/node_modules/x/index.js", ""),
            (".git/config", ""),
            (".env", "SECRET=1"),
            ("cloud/.env.production", "SECRET=1"),
            (".npmrc", ""),
            (".gitignore", "*.log\ndist\n"),
            (".svcignore", "test\n!dist\n"),
            ("dist/page.html", ""),
            ("test/a.js", ""),
            ("cloud/debug.log", ""),
            // Without a Dockerfile, it says nothing.
            (".dockerignore", "cloud\n"),
        ]);
        let sent = [
            ".dockerignore",
            ".gitignore",
            ".npmrc",
            ".svcignore",
            "cloud/lib/a.js",
            "cloud/main.js",
            "dist/page.html",
        ];
        assert_eq!(names(folder.path()), sent);
        let again = || pack(folder.path()).unwrap().sha256;
        assert_eq!(again(), again());
    }

    #[test]
    fn a_dockerignore_counts_from_the_root_and_never_hides_the_dockerfile() {
        let folder = folder(&[
            ("Dockerfile", "FROM scratch"),
            (".dockerignore", "# all but the source\n*\n!src\nsrc/*.tmp\n"),
            ("src/main.js", ""),
            ("src/a.tmp", ""),
            ("src/deep/b.tmp", ""),
            ("notes", ""),
        ]);
        assert_eq!(names(folder.path()), ["Dockerfile", "src/deep/b.tmp", "src/main.js"]);
    }

    #[test]
    fn a_folder_that_cannot_be_deployed_is_refused_before_anything_is_sent() {
        let refused = |folder: &tempfile::TempDir| pack(folder.path()).err().unwrap().to_string();
        assert!(refused(&folder(&[("main.js", "")])).contains("neither cloud/main.js"));
        let broken = folder(&[("cloud/main.js", ""), ("package.json", "{")]);
        assert!(refused(&broken).contains("package.json is not valid JSON"));
        let linked = folder(&[("cloud/main.js", "")]);
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", linked.path().join("cloud/users")).unwrap();
        #[cfg(unix)]
        assert!(refused(&linked).contains("cloud/users is a link"));
        assert!(pack(&linked.path().join("nowhere")).is_err());
    }
}
