//! What volumes and containers hold on the disk of the engine's machine.
//!
//! The daemon itself says what containers have written. The folders of volumes are read by
//! [tethered](super::helpers::tether) containers, each of many volumes.
//!
//! Such a container gets the folders of volumes, not the volumes: the daemon would refuse to remove a
//! volume while a container has it, and would make one that is missing.

use super::{
    Docker,
    body::map,
    daemon::Daemon,
    errors::DaemonFailure,
    helpers::{
        Helpers,
        tether::{self, Tethered},
    },
    objects, view,
};
use crate::{Container, DiskUse, EngineError, Labels};
use bollard::{
    models::{
        ContainerCreateBody, ContainerSummary, HostConfig, HostConfigLogConfig, Mount, MountType,
    },
    query_parameters::{InspectContainerOptionsBuilder, ListContainersOptionsBuilder},
};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

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
/// The last line of the program.
const END: &str = "end";
/// Reads each folder that is an argument for so many seconds at most, and runs until its input ends. Each has
/// its own `du`: one for all would remember every file.
const SCRIPT: &str = r#"{ for folder; do
    timeout "$0" du -s --block-size=1 -- "$folder"
    [ $? != 124 ] || printf '%s\t%s\n' late "$folder"
done; echo end; } &
exec cat >/dev/null"#;
/// What [`SCRIPT`] says in place of the bytes of a folder for which the time was too short.
const LATE: &str = "late";

/// A volume, and its folder on the engine's machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    volume: String,
    path: String,
}

pub(super) async fn disk_use(docker: &Docker, labels: &Labels) -> Result<DiskUse, EngineError> {
    let _one_at_a_time = docker.measuring.lock().await;
    let containers = written(&docker.daemon, labels).await?;
    let volumes = held(&docker.helpers, labels).await?;
    Ok(DiskUse { volumes, containers })
}

/// What containers have written outside of volumes.
async fn written(
    daemon: &Daemon,
    labels: &Labels,
) -> Result<BTreeMap<String, Option<u64>>, EngineError> {
    let filters = objects::filters(labels);
    let options = ListContainersOptionsBuilder::default().all(true).size(true).filters(&filters);
    let options = options.build();
    let answer = daemon
        .ask(LIST_WITHIN, |client| async move { client.list_containers(Some(options)).await })
        .await;
    match answer {
        Ok(found) => Ok(found.into_iter().map(bytes_of).collect()),
        // One container that is being made or removed, or has many files, spoils the list.
        Err(_) => one_by_one(daemon, labels).await,
    }
}

/// The name of a container, and what it has written.
fn bytes_of(found: ContainerSummary) -> (String, Option<u64>) {
    let bytes = bytes(found.size_rw);
    (view::summary(found).name, Some(bytes))
}

/// The daemon leaves zeros out, and can say -1 if it does not know.
fn bytes(size: Option<i64>) -> u64 {
    size.and_then(|size| u64::try_from(size).ok()).unwrap_or_default()
}

/// What containers have written, without those that are being made or removed.
async fn one_by_one(
    daemon: &Daemon,
    labels: &Labels,
) -> Result<BTreeMap<String, Option<u64>>, EngineError> {
    let mut written = BTreeMap::new();
    for Container { name, id, .. } in objects::containers(daemon, labels).await? {
        let options = InspectContainerOptionsBuilder::default().size(true).build();
        let answer = daemon
            .ask(
                EACH_WITHIN,
                |client| async move { client.inspect_container(&id, Some(options)).await },
            )
            .await;
        match answer {
            Ok(found) => drop(written.insert(name, Some(bytes(found.size_rw)))),
            Err(failure) if failure.is(404) => {}
            Err(DaemonFailure::Unreachable(_)) => drop(written.insert(name, None)),
            Err(failure) => return Err(failure.about(format_args!("container {name}"))),
        }
    }
    Ok(written)
}

/// What volumes hold.
async fn held(
    helpers: &Helpers,
    labels: &Labels,
) -> Result<BTreeMap<String, Option<u64>>, EngineError> {
    let mut held = BTreeMap::new();
    let all = folders(&helpers.daemon, labels).await?;
    if all.is_empty() {
        return Ok(held);
    }
    let image = helpers.image(None).await?;
    tether::remove_others(helpers, &own(labels)).await?;
    for batch in all.chunks(TOGETHER) {
        held.extend(read(helpers, &image, labels, batch).await?);
    }
    Ok(held)
}

/// The folders of the volumes with these labels.
async fn folders(daemon: &Daemon, labels: &Labels) -> Result<Vec<Folder>, EngineError> {
    let found = objects::volumes(daemon, labels).await?.into_iter();
    let folders = found.map(|volume| Folder { volume: volume.name, path: volume.mountpoint });
    // The volume of a plugin may have none.
    Ok(folders.filter(|folder| !folder.path.is_empty()).collect())
}

/// The labels of the containers that read for these labels. A container must not carry these themselves.
fn own(labels: &Labels) -> Labels {
    let whose: Vec<&str> = labels.values().map(String::as_str).collect();
    Labels::from([(LABEL.to_owned(), whose.join(" "))])
}

/// Reads folders. Volumes that are removed before that begins are left out.
async fn read(
    helpers: &Helpers,
    image: &str,
    labels: &Labels,
    batch: &[Folder],
) -> Result<BTreeMap<String, Option<u64>>, EngineError> {
    let mut batch = batch.to_vec();
    while !batch.is_empty() {
        let why = match Tethered::start(helpers, image, body(image, labels, &batch), None).await {
            Ok(reader) => return said(reader, &batch).await,
            Err(why) => why,
        };
        let there = folders(&helpers.daemon, labels).await?;
        let all = batch.len();
        batch.retain(|folder| there.contains(folder));
        if batch.len() == all {
            return Err(why);
        }
    }
    Ok(BTreeMap::new())
}

/// What the container says, which is then removed.
async fn said(
    mut reader: Tethered,
    batch: &[Folder],
) -> Result<BTreeMap<String, Option<u64>>, EngineError> {
    let said = reader.text(END, READ_WITHIN).await;
    reader.end().await;
    Ok(sizes(&said?, batch))
}

/// Reads lines with the bytes of a folder, a tab, and where it is in the container. What `du` could not
/// read is left out.
fn sizes(said: &str, batch: &[Folder]) -> BTreeMap<String, Option<u64>> {
    let size = |line: &str| {
        let (bytes, path) = line.split_once('\t')?;
        let number: usize = path.strip_prefix(FOLDERS)?.strip_prefix('/')?.parse().ok()?;
        let bytes = if bytes == LATE { None } else { Some(bytes.parse().ok()?) };
        Some((batch.get(number)?.volume.clone(), bytes))
    };
    said.lines().filter_map(size).collect()
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
        network_mode: Some("none".to_owned()),
        ipc_mode: Some("private".to_owned()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(vec!["DAC_READ_SEARCH".to_owned()]),
        privileged: Some(false),
        readonly_rootfs: Some(true),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        memory: Some(MEMORY),
        memory_swap: Some(MEMORY),
        pids_limit: Some(64),
        mounts: Some(batch.iter().enumerate().map(mount).collect()),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: Some(HashMap::new()),
        }),
        ..HostConfig::default()
    };
    let program = ["sh", "-c", SCRIPT, &EACH_WITHIN.as_secs().to_string()].map(str::to_owned);
    ContainerCreateBody {
        image: Some(image.to_owned()),
        labels: Some(map(&own(labels))),
        entrypoint: Some(program.into()),
        cmd: Some((0..batch.len()).map(place).collect()),
        user: Some("0".to_owned()),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(volumes: &[&str]) -> Vec<Folder> {
        let folder = |volume: &&str| Folder {
            volume: (*volume).to_owned(),
            path: format!("/docker/volumes/{volume}/_data"),
        };
        volumes.iter().map(folder).collect()
    }

    #[test]
    fn each_folder_has_its_bytes_and_one_that_was_not_read_has_none() {
        let batch = batch(&["a", "b", "c", "d"]);
        let said = "4096\t/volumes/0\n8392704\t/volumes/2\nlate\t/volumes/3\n";
        let held = [("a", Some(4096)), ("c", Some(8_392_704)), ("d", None)];
        let held = held.map(|(volume, bytes)| (volume.to_owned(), bytes));
        assert_eq!(sizes(said, &batch), BTreeMap::from(held));
        for other in ["", "4096\t/volumes/9\n", "4096\t/volumes\n", "4k\t/volumes/0\n", "4096\n"] {
            assert!(sizes(other, &batch).is_empty(), "{other}");
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
        assert_eq!(bytes_of(found(None)), ("a".to_owned(), Some(0)));
        assert_eq!(bytes_of(found(Some(-1))), ("a".to_owned(), Some(0)));
        assert_eq!(bytes_of(found(Some(7))), ("a".to_owned(), Some(7)));
    }
}
