//! The containers of an isolated build, as the daemon is asked for them.

use super::{bases, seccomp};
use crate::{
    Isolation, PROXY_PORT,
    docker::{
        body::{LEAST_CPU_SHARES, map, signed},
        helpers::bodies::bare,
    },
};
use bollard::models::{
    ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions,
    MountVolumeOptionsDriverConfig,
};

/// The user of a build.
pub(super) const USER: &str = "build";
/// The user of the main program of its container, which a build cannot stop.
const KEEPER: &str = "keeper";
/// Processes and threads of a build.
const PIDS: i64 = 2048;
/// Under pressure the kernel kills a build before all instances.
const OOM_SCORE: i64 = 500;
/// What a step may put into folders that are memory.
const SCRATCH: &str = "rw,nosuid,nodev,size=64m";
/// The bytes that the program which makes disks may use. A part is pages of the file.
const DISK_MEMORY: i64 = 256 << 20;

/// The container that makes a disk on a volume. It runs a program of this crate, and may create device
/// nodes of loop devices, and use these.
pub(super) fn disk(
    image: &str,
    isolation: &Isolation,
    volume: Option<&str>,
) -> ContainerCreateBody {
    let host = HostConfig {
        cap_add: Some(vec!["MKNOD".to_owned()]),
        device_cgroup_rules: Some(vec!["b 7:* rwm".to_owned(), "c 10:237 rwm".to_owned()]),
        memory: Some(DISK_MEMORY),
        memory_swap: Some(DISK_MEMORY),
        pids_limit: Some(64),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        mounts: Some(vec![mount(volume, "/disk", isolation)]),
        ..bare()
    };
    ContainerCreateBody {
        entrypoint: Some(vec!["/usr/libexec/svc/disk".to_owned()]),
        cmd: Some(vec![isolation.disk.to_string()]),
        user: Some("0".to_owned()),
        host_config: Some(host),
        ..named(image, isolation)
    }
}

/// The container in which a build runs, with this device as its disk, and what stands on the volume `base`.
pub(super) fn container(
    image: &str,
    memory: u64,
    isolation: &Isolation,
    device: &str,
    base: Option<&str>,
) -> ContainerCreateBody {
    let options = [("type", "ext4"), ("device", device), ("o", "nodev,nosuid,noatime,discard")];
    let disk = Mount {
        typ: Some(MountType::VOLUME),
        target: Some("/build".to_owned()),
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(true),
            driver_config: Some(MountVolumeOptionsDriverConfig {
                name: Some("local".to_owned()),
                options: Some(
                    options.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
                ),
            }),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    };
    let egress = Mount {
        typ: Some(MountType::BIND),
        source: Some(isolation.egress.display().to_string()),
        target: Some("/egress".to_owned()),
        read_only: Some(true),
        ..Mount::default()
    };
    let base = base.map(|volume| Mount {
        read_only: Some(true),
        ..mount(Some(volume), bases::MOUNT, isolation)
    });
    let ports = [PROXY_PORT].iter().chain(&isolation.loopback).map(u16::to_string);
    ContainerCreateBody {
        entrypoint: Some(vec!["/usr/libexec/svc/box".to_owned()]),
        cmd: Some(ports.collect()),
        host_config: Some(HostConfig {
            mounts: Some([disk, egress].into_iter().chain(base).collect()),
            ..host(memory, isolation)
        }),
        user: Some(KEEPER.to_owned()),
        ..named(image, isolation)
    }
}

/// The container that brings a base image to this volume.
pub(super) fn bringer(
    image: &str,
    memory: u64,
    isolation: &Isolation,
    volume: &str,
) -> ContainerCreateBody {
    ContainerCreateBody {
        entrypoint: Some(vec!["cat".to_owned()]),
        user: Some(KEEPER.to_owned()),
        host_config: Some(HostConfig {
            mounts: Some(vec![mount(Some(volume), bases::MOUNT, isolation)]),
            ..host(memory, isolation)
        }),
        ..named(image, isolation)
    }
}

/// A volume with the labels of builds. Without a name, it goes with the container. A new one gets the owner of the
/// folder in the image.
fn mount(volume: Option<&str>, target: &str, isolation: &Isolation) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: volume.map(str::to_owned),
        target: Some(target.to_owned()),
        volume_options: Some(MountVolumeOptions {
            labels: Some(map(&isolation.labels)),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

/// What `buildah` needs, and the limits of a build.
fn host(memory: u64, isolation: &Isolation) -> HostConfig {
    let memory = signed(memory);
    HostConfig {
        // With these, `newuidmap` and `newgidmap` give a user namespace its users.
        cap_add: Some(vec!["SETUID".to_owned(), "SETGID".to_owned()]),
        // Not `no-new-privileges`, which takes these from the two programs. AppArmor's profile of
        // Docker forbids to mount; the mounts of a user namespace harm nobody else.
        security_opt: Some(vec![
            format!("seccomp={}", seccomp::profile()),
            "apparmor=unconfined".to_owned(),
        ]),
        memory: Some(memory),
        memory_swap: Some(memory),
        nano_cpus: Some(i64::from(isolation.cpu_millis) * 1_000_000),
        // Somebody waits for what an instance does, so it comes before a build.
        cpu_shares: Some(LEAST_CPU_SHARES),
        pids_limit: Some(PIDS),
        oom_score_adj: Some(OOM_SCORE),
        // Only the disk has room.
        readonly_rootfs: Some(true),
        tmpfs: Some(["/tmp", "/run"].map(|path| (path.to_owned(), SCRATCH.to_owned())).into()),
        init: Some(true),
        ..bare()
    }
}

fn named(image: &str, isolation: &Isolation) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.to_owned()),
        labels: Some(map(&isolation.labels)),
        ..ContainerCreateBody::default()
    }
}
