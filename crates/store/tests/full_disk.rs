//! A store on a full disk: changes are refused, nothing is lost, and it goes on when there is room.
//!
//! The disk is a small file system in memory, which only root can mount.

use crate::support::{Text, open};
use std::{
    fs::{self, File},
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};
use store::{Change, Store, StoreError};

/// A file system of 256 MiB.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount(test: &str) -> Option<Disk> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256m", "tmpfs"]).arg(folder.path());
        if mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return Some(Disk(folder));
        }
        let _ = writeln!(std::io::stderr(), "left out: {test} because it cannot mount a disk");
        None
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    /// Writes until no byte is left.
    fn fill(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[7; 1 << 16]).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

async fn put(store: &Store, key: &str) -> Result<(), StoreError> {
    let text = Text("x".repeat(2_000));
    store.commit(Change::new().create::<Text>(&key.to_owned(), text)).await
}

fn has(store: &Store, key: &str) -> bool {
    store.get::<Text>(&key.to_owned()).unwrap().is_some()
}

#[tokio::test]
async fn changes_are_refused_until_there_is_room() {
    let Some(disk) = Disk::mount("changes_are_refused_until_there_is_room") else { return };
    let store = open(&disk.store()).unwrap();
    put(&store, "before").await.unwrap();
    let first = disk.fill("first");
    put(&store, "from the reserve").await.unwrap();
    let second = disk.fill("second");
    for n in 0..16 {
        assert_eq!(put(&store, &format!("refused {n}")).await, Err(StoreError::NoRoom));
    }
    assert!(store.last_flush_ms().is_err());
    assert_eq!(store.barrier().await, Ok(()), "what was acknowledged is on the disk");
    assert!(has(&store, "before") && has(&store, "from the reserve"));
    fs::remove_file(first).unwrap();
    put(&store, "after").await.unwrap();
    assert!(store.last_flush_ms().is_ok());
    assert!(!has(&store, "refused 0"));

    // It also starts on a full disk, or says why and starts later.
    let third = disk.fill("third");
    store.close();
    drop(store);
    let store = match open(&disk.store()) {
        Ok(store) => store,
        Err(e) => {
            assert!(
                e.to_string().contains("No space left")
                    && e.to_string().contains("nothing is lost"),
                "{e}"
            );
            fs::remove_file(&third).unwrap();
            open(&disk.store()).unwrap()
        }
    };
    let _ = fs::remove_file(third);
    fs::remove_file(second).unwrap();
    assert!(["before", "from the reserve", "after"].iter().all(|key| has(&store, key)));
    put(&store, "in the end").await.unwrap();
}
