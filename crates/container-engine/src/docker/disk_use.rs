//! What volumes and containers hold on the disk of the engine's machine.
//!
//! The daemon itself says what containers have written. The folders of volumes are read by
//! [tethered](super::helpers::tether) containers, each of many volumes.
//!
//! Such a container gets the folders of volumes, not the volumes: the daemon would refuse to remove a
//! volume while a container has it, and would make one that is missing.

use super::{
    Docker,
    daemon::{Daemon, LOOK},
    helpers::{
        Helpers, bodies,
        tether::{self, Tethered},
    },
    objects, view,
};
use crate::{Disk, DiskUse, EngineError, Labels};
use bollard::{
    models::{ContainerCreateBody, ContainerSummary, HostConfig, Mount, MountType, Volume},
    query_parameters::{InspectContainerOptionsBuilder, ListContainersOptionsBuilder},
};
use std::{collections::HashMap, time::Duration};

/// Label: whose folders a container reads.
const LABEL: &str = "svc.disk-use";
/// How many volumes a container reads.
const TOGETHER: usize = 64;
/// How long the folder of one volume is read, or what one container has written. So one with many files
/// does not keep the others from being measured.
const EACH_WITHIN: Duration = Duration::from_secs(20);
/// How long a container may read, and the daemon what all containers have written.
const READ_WITHIN: Duration = Duration::from_secs(EACH_WITHIN.as_secs() * (TOGETHER as u64 + 1));
const LIST_WITHIN: Duration = Duration::from_secs(120);
/// Bytes of memory. `du` remembers each file that has a second name.
const MEMORY: i64 = 128 << 20;
/// Where the folders are, each under a number.
const FOLDERS: &str = "/volumes";
/// How the daemon says that its disk has no room for one more container.
const NO_SPACE: &str = "no space left on device";
/// The last line of the program.
const END: &str = "end";
/// Tells of the disk of each folder that is an argument, reads the folder for so many seconds at most, and runs
/// until its input ends. Each has its own `du`: one for all would remember every file.
const SCRIPT: &str = r#"{ for folder; do
    stat --file-system --format "disk %a %b %S" -- "$folder"
    timeout "$0" du -s --block-size=1 -- "$folder"
done; echo end; } &
exec cat >/dev/null"#;

/// A container, what it has written outside of volumes, and its volumes. `None`: it is not known how much.
#[derive(Debug, PartialEq, Eq)]
struct Writer {
    name: String,
    bytes: Option<u64>,
    volumes: Vec<String>,
}

/// The folder of a volume on the engine's machine, and for what it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    of: Holder,
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Holder {
    Volume(String),
    /// The image of a container declares a volume, which has no labels.
    Container(String),
}

/// What was read of folders.
#[derive(Debug, Default)]
struct Held {
    /// What each holds, in bytes. `None`: it could not be read in time.
    folders: Vec<(Holder, Option<u64>)>,
    /// The disk of the folders, or the fullest of several.
    disk: Option<Disk>,
}

impl Held {
    fn and(mut self, other: Held) -> Held {
        self.folders.extend(other.folders);
        self.disk = self.disk.into_iter().chain(other.disk).min_by_key(|disk| disk.free);
        self
    }
}

pub(super) async fn disk_use(docker: &Docker, labels: &Labels) -> Result<DiskUse, EngineError> {
    let _one_at_a_time = docker.measuring.lock().await;
    let writers = writers(&docker.daemon, labels).await?;
    let volumes = objects::volumes(&docker.daemon, &Labels::new()).await?;
    let folders = folders(&writers, volumes, labels);
    let written = writers.into_iter().map(|writer| (writer.name, writer.bytes)).collect();
    let mut found = DiskUse { containers: written, ..DiskUse::default() };
    let held = held(&docker.helpers, labels, &folders).await?;
    found.disk = held.disk;
    for (of, bytes) in held.folders {
        match of {
            Holder::Volume(name) => drop(found.volumes.insert(name, bytes)),
            Holder::Container(name) => {
                let sum = found.containers.entry(name).or_insert(Some(0));
                *sum = sum.zip(bytes).map(|(sum, bytes)| sum + bytes);
            }
        }
    }
    Ok(found)
}

/// The containers with these labels.
async fn writers(daemon: &Daemon, labels: &Labels) -> Result<Vec<Writer>, EngineError> {
    let filters = objects::filters(labels);
    let list = ListContainersOptionsBuilder::default().all(true).filters(&filters);
    let (sized, plain) = (list.clone().size(true).build(), list.build());
    let answer = daemon
        .ask(LIST_WITHIN, |client| async move { client.list_containers(Some(sized)).await })
        .await;
    if let Ok(found) = answer {
        return Ok(found.into_iter().map(writer).collect());
    }
    // One container that is being made or removed, or has many files, spoils the list.
    let found = daemon
        .ask(LOOK, |client| async move { client.list_containers(Some(plain)).await })
        .await
        .map_err(|failure| failure.about("list of containers"))?;
    let mut writers = Vec::new();
    for writer in found.into_iter().map(writer) {
        writers.extend(measured(daemon, writer).await);
    }
    Ok(writers)
}

fn writer(mut found: ContainerSummary) -> Writer {
    let bytes = bytes(found.size_rw);
    let mounts = found.mounts.take().unwrap_or_default();
    // Only volumes have a name.
    let volumes = mounts.into_iter().filter_map(|mount| mount.name).collect();
    Writer { name: view::name(&found), bytes, volumes }
}

/// The daemon leaves zeros out, and says -1 if it does not know.
fn bytes(size: Option<i64>) -> Option<u64> {
    u64::try_from(size.unwrap_or_default()).ok()
}

/// The container with what it has written; `None` if it was removed meanwhile.
async fn measured(daemon: &Daemon, writer: Writer) -> Option<Writer> {
    let options = InspectContainerOptionsBuilder::default().size(true).build();
    let (name, options) = (writer.name.clone(), Some(options));
    let answer = daemon
        .ask(EACH_WITHIN, |client| async move { client.inspect_container(&name, options).await })
        .await;
    match answer {
        Ok(found) => Some(Writer { bytes: bytes(found.size_rw), ..writer }),
        Err(failure) if failure.is(404) => None,
        // It is damaged, or has many files.
        Err(_) => Some(Writer { bytes: None, ..writer }),
    }
}

/// The folders of those volumes that have these labels, or that one of these containers has beside them.
fn folders(writers: &[Writer], volumes: Vec<Volume>, labels: &Labels) -> Vec<Folder> {
    let owner = |volume: &Volume| {
        if objects::carries(Some(&volume.labels), labels) {
            return Some(Holder::Volume(volume.name.clone()));
        }
        let mut owners = writers.iter().filter(|writer| writer.volumes.contains(&volume.name));
        owners.next().map(|writer| Holder::Container(writer.name.clone()))
    };
    let folder = |volume: Volume| Some(Folder { of: owner(&volume)?, path: volume.mountpoint });
    // The volume of a plugin may have no folder.
    volumes.into_iter().filter_map(folder).filter(|folder| !folder.path.is_empty()).collect()
}

/// What folders hold.
async fn held(helpers: &Helpers, labels: &Labels, folders: &[Folder]) -> Result<Held, EngineError> {
    if folders.is_empty() {
        return Ok(Held::default());
    }
    let image = helpers.image(None).await?;
    tether::remove_others(helpers, &own(labels)).await?;
    let mut held = Held::default();
    for batch in folders.chunks(TOGETHER) {
        held = held.and(read(helpers, &image, labels, batch).await?);
    }
    Ok(held)
}

/// The labels of the containers that read for these labels. A container must not carry these themselves.
fn own(labels: &Labels) -> Labels {
    let whose: Vec<&str> = labels.values().map(String::as_str).collect();
    Labels::from([(LABEL.to_owned(), whose.join(" "))])
}

/// Reads folders. Those that are removed before that begins are left out, and one that keeps a container
/// from starting is not read.
async fn read(
    helpers: &Helpers,
    image: &str,
    labels: &Labels,
    batch: &[Folder],
) -> Result<Held, EngineError> {
    let (mut held, mut batches) = (Held::default(), vec![batch.to_vec()]);
    while let Some(mut batch) = batches.pop() {
        if batch.is_empty() {
            continue;
        }
        match Tethered::start(helpers, image, body(image, labels, &batch), None).await {
            Ok(reader) => held = held.and(said(reader, batch).await?),
            Err(EngineError::Unreachable(why)) => return Err(EngineError::Unreachable(why)),
            Err(EngineError::Refused(why)) if why.contains(NO_SPACE) => {
                let unread = batch.into_iter().map(|folder| (folder.of, None)).collect();
                held = held.and(Held { folders: unread, disk: Some(Disk::FULL) });
            }
            Err(_) => {
                let there = objects::volumes(&helpers.daemon, &Labels::new()).await?;
                let all = batch.len();
                batch.retain(|folder| there.iter().any(|volume| volume.mountpoint == folder.path));
                if batch.len() < all {
                    batches.push(batch);
                } else if let [folder] = &batch[..] {
                    held.folders.push((folder.of.clone(), None));
                } else {
                    batches.push(batch.split_off(all / 2));
                    batches.push(batch);
                }
            }
        }
    }
    Ok(held)
}

/// What the container says, which is then removed.
async fn said(mut reader: Tethered, batch: Vec<Folder>) -> Result<Held, EngineError> {
    let said = reader.text(END, READ_WITHIN).await;
    reader.end().await;
    Ok(sizes(&said?, batch))
}

/// Reads lines with the bytes of a folder, a tab, and where it is in the container, and lines with the free
/// blocks of a disk, all blocks, and the size of each. A folder without a line could not be read in time.
fn sizes(said: &str, batch: Vec<Folder>) -> Held {
    let size = |line: &str| {
        let (bytes, path) = line.split_once('\t')?;
        let number: usize = path.strip_prefix(FOLDERS)?.strip_prefix('/')?.parse().ok()?;
        Some((number, bytes.parse().ok()?))
    };
    let sizes: HashMap<usize, u64> = said.lines().filter_map(size).collect();
    let folders = batch.into_iter().enumerate();
    let size = |(number, folder): (usize, Folder)| (folder.of, sizes.get(&number).copied());
    let disk = said.lines().filter_map(disk).min_by_key(|disk| disk.free);
    Held { folders: folders.map(size).collect(), disk }
}

fn disk(line: &str) -> Option<Disk> {
    let mut numbers = line.strip_prefix("disk ")?.split(' ').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (free, all, size) = (next()?, next()?, next()?);
    Some(Disk { bytes: all.checked_mul(size)?, free: free.checked_mul(size)? })
}

fn place(number: usize) -> String {
    format!("{FOLDERS}/{number}")
}

/// The container that reads these folders. It may read what belongs to others, and write nothing.
fn body(image: &str, labels: &Labels, batch: &[Folder]) -> ContainerCreateBody {
    let mount = |(number, folder): (usize, &Folder)| Mount {
        typ: Some(MountType::BIND),
        source: Some(folder.path.clone()),
        target: Some(place(number)),
        read_only: Some(true),
        ..Mount::default()
    };
    let host = HostConfig {
        cap_add: Some(vec!["DAC_READ_SEARCH".to_owned()]),
        mounts: Some(batch.iter().enumerate().map(mount).collect()),
        ..bodies::small(MEMORY)
    };
    let seconds = EACH_WITHIN.as_secs().to_string();
    ContainerCreateBody {
        cmd: Some((0..batch.len()).map(place).collect()),
        ..bodies::body(image, &own(labels), "0", &["sh", "-c", SCRIPT, &seconds], host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(volumes: &[&str]) -> Vec<Folder> {
        let folder = |volume: &&str| Folder {
            of: Holder::Volume((*volume).to_owned()),
            path: format!("/docker/volumes/{volume}/_data"),
        };
        volumes.iter().map(folder).collect()
    }

    #[test]
    fn each_folder_has_its_bytes_and_one_that_was_not_read_is_not_known() {
        let sizes = |said: &str| {
            let held = sizes(said, batch(&["a", "b", "c"])).folders.into_iter();
            held.map(|(_, bytes)| bytes).collect::<Vec<_>>()
        };
        assert_eq!(
            sizes("4096\t/volumes/0\n8392704\t/volumes/2\n"),
            [Some(4096), None, Some(8_392_704)]
        );
        for other in ["", "4096\t/volumes/9\n", "4096\t/volumes\n", "4k\t/volumes/0\n", "4096\n"] {
            assert_eq!(sizes(other), [None; 3], "{other}");
        }
    }

    #[test]
    fn of_several_disks_the_fullest_counts() {
        let disk = |said: &str| super::sizes(said, batch(&["a"])).disk;
        let said = "disk 100 200 4096\n4096\t/volumes/0\ndisk 5 1000 4096\n";
        assert_eq!(disk(said), Some(Disk { bytes: 1000 << 12, free: 5 << 12 }));
        for other in ["", "disk", "disk 1 2", "disk a b c", "4096\t/volumes/0\n"] {
            assert_eq!(disk(other), None, "{other}");
        }
    }

    #[test]
    fn a_container_that_reads_cannot_write_and_is_none_of_those_that_are_measured() {
        let labels = Labels::from([("svc.app".to_owned(), "1".to_owned())]);
        let body = body("image", &labels, &batch(&["a", "b"]));
        let mounts = body.host_config.and_then(|host| host.mounts).unwrap();
        assert!(mounts.iter().all(|mount| mount.read_only == Some(true)), "{mounts:?}");
        let targets: Vec<String> = mounts.into_iter().filter_map(|mount| mount.target).collect();
        assert_eq!(targets, ["/volumes/0", "/volumes/1"]);
        assert_eq!(body.cmd, Some(targets));
        assert!(!body.labels.unwrap().contains_key("svc.app"));
    }

    #[test]
    fn a_container_of_which_nothing_is_said_has_written_nothing() {
        let found = |size_rw| ContainerSummary {
            names: Some(vec!["/a".to_owned()]),
            size_rw,
            ..ContainerSummary::default()
        };
        for (size, bytes) in [(None, Some(0)), (Some(-1), None), (Some(7), Some(7))] {
            let known = Writer { name: "a".to_owned(), bytes, volumes: Vec::new() };
            assert_eq!(writer(found(size)), known);
        }
    }
}
