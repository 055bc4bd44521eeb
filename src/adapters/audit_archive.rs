//! The archive of the audit log: a file of the data directory for each day, with an event as JSON in each line.
//! Nodes share a bucket, which has a folder for each day and an object for each batch.

use super::objects::Objects;
use actors::ports::{PortError, audit_archive::AuditArchive};
use async_trait::async_trait;
use contract::EventId;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// How much of a file is read at a time, in bytes.
const PIECE: u64 = 4096;

/// The archive of a service.
pub struct AuditFolder {
    root: PathBuf,
}

/// The archive that nodes share.
pub struct AuditBucket(pub Objects);

#[async_trait]
impl AuditArchive for AuditBucket {
    async fn append(
        &self,
        day: &str,
        (first, last): (EventId, EventId),
        lines: Vec<u8>,
    ) -> Result<(), PortError> {
        let written = self.0.put(&format!("{day}/{first}-{last}.jsonl"), lines.into()).await;
        written.map_err(|e| PortError(format!("the archive of the audit log: {e}")))
    }
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
    async fn append(
        &self,
        day: &str,
        _: (EventId, EventId),
        lines: Vec<u8>,
    ) -> Result<(), PortError> {
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
        let id: EventId = "evt_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        archive.append("2026-01-31", (id, id), b"1\n2\n".to_vec()).await.unwrap();
        let torn = "x".repeat(10_000);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(torn.as_bytes()).unwrap();
        archive.append("2026-01-31", (id, id), b"3\n".to_vec()).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
        fs::write(&path, torn).unwrap();
        archive.append("2026-01-31", (id, id), b"4\n".to_vec()).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "4\n");
    }

    #[tokio::test]
    async fn a_batch_of_nodes_that_grew_meanwhile_stands_beside_the_first_one() {
        let folder = tempfile::tempdir().unwrap();
        let archive = AuditBucket(Objects::folder(folder.path()).unwrap());
        let [one, two]: [EventId; 2] =
            [1, 2].map(|n| format!("evt_01J9ZQ8F5W7V3T6M2K4N8R0P1{n}").parse().unwrap());
        archive.append("2026-01-31", (one, two), b"1\n2\n".to_vec()).await.unwrap();
        // It was read before, and comes late.
        archive.append("2026-01-31", (one, one), b"1\n".to_vec()).await.unwrap();
        let read = |last| {
            let file = format!("2026-01-31/{one}-{last}.jsonl");
            fs::read_to_string(folder.path().join(file)).unwrap()
        };
        assert_eq!((read(one), read(two)), ("1\n".into(), "1\n2\n".into()));
    }
}
