//! The archive of the audit log: a file of the data directory for each day, with an event as JSON in each line.

use actors::ports::{PortError, audit_archive::AuditArchive};
use async_trait::async_trait;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// How much of a file is read at a time, in bytes.
const PIECE: u64 = 4096;

pub struct AuditFolder {
    root: PathBuf,
}

impl AuditFolder {
    /// Opens the folder, or creates it.
    pub fn open(root: PathBuf) -> io::Result<AuditFolder> {
        fs::create_dir_all(&root)?;
        Ok(AuditFolder { root })
    }
}

#[async_trait]
impl AuditArchive for AuditFolder {
    async fn append(&self, day: &str, lines: Vec<u8>) -> Result<(), PortError> {
        let (root, path) = (self.root.clone(), self.root.join(format!("{day}.jsonl")));
        let written = tokio::task::spawn_blocking(move || append(&root, &path, &lines));
        let written = written.await.map_err(|e| PortError(e.to_string()))?;
        written.map_err(|e| PortError(format!("the archive of the audit log: {e}")))
    }
}

fn append(root: &Path, path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file =
        options.create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
    let end = end_of_lines(&mut file)?;
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    file.write_all(lines)?;
    file.sync_all()?;
    File::open(root)?.sync_all()
}

/// The end of the last whole line. A crash may have left a part of one behind it.
fn end_of_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    while end > 0 {
        let begin = end.saturating_sub(PIECE);
        file.seek(SeekFrom::Start(begin))?;
        let mut piece = Vec::new();
        Read::by_ref(&mut *file).take(end - begin).read_to_end(&mut piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_follow_the_last_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let archive = AuditFolder::open(folder.path().join("audit")).unwrap();
        let path = folder.path().join("audit/2026-01-31.jsonl");
        archive.append("2026-01-31", b"1\n2\n".to_vec()).await.unwrap();
        let torn = "x".repeat(10_000);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(torn.as_bytes()).unwrap();
        archive.append("2026-01-31", b"3\n".to_vec()).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
        fs::write(&path, torn).unwrap();
        archive.append("2026-01-31", b"4\n".to_vec()).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "4\n");
    }
}
