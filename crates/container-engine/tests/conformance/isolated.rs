//! Isolated builds on the real engine: what they can do, and what they cannot.

use super::{
    images::{archive, built},
    real::{Real, on_docker},
};
use bytes::Bytes;
use container_engine::{
    BuildEvent, BuildSpec, Engine, EngineError, Isolation, Labels, Mount, Secrets,
};
use futures_util::{
    StreamExt,
    future::join_all,
    stream::{self, BoxStream},
};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixListener,
};

/// A proxy that refuses everything, and remembers what it was asked for.
struct Door {
    folder: tempfile::TempDir,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Door {
    fn open() -> Door {
        use std::os::unix::fs::PermissionsExt;
        let (folder, asked) = (tempfile::tempdir().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let everybody = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path(), everybody(0o755)).unwrap();
        let socket = folder.path().join("proxy.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, everybody(0o666)).unwrap();
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let length = connection.read(&mut request).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&request[..length]).into_owned();
                seen.lock().unwrap().extend(text.lines().next().map(str::to_owned));
                let _ = connection.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await;
            }
        });
        Door { folder, asked }
    }
}

fn spec(real: &Real, door: &Door, what: &str) -> BuildSpec {
    let bench = real.bench();
    BuildSpec {
        tag: format!("svc-test/{}-{what}:1", bench.run()),
        dockerfile: "Dockerfile".to_owned(),
        args: BTreeMap::from([("WHOM".to_owned(), "the build".to_owned())]),
        labels: Labels::from([("svc.test".to_owned(), bench.run().to_owned())]),
        memory: 512 << 20,
        isolation: Some(Isolation {
            owner: format!("test-{}", bench.run()),
            base: Some(bench.image().to_owned()),
            egress: door.folder.path().to_owned(),
            loopback: Vec::new(),
            cpu_millis: 1000,
            disk: 2 << 30,
            within: Duration::from_secs(600),
            labels: bench.labels(),
            secrets: Secrets::default(),
        }),
    }
}

#[test]
fn an_isolated_build_does_what_others_do() {
    let name = "isolated::an_isolated_build_does_what_others_do";
    on_docker(name, |real| Box::pin(does_what_others_do(real)));
}

async fn does_what_others_do(real: &Real) {
    let (bench, door) = (real.bench(), Door::open());
    let mut spec = spec(real, &door, "made");
    let secret = ("TOKEN_1".to_owned(), "s3,cr=t \"$it\"\nand more".to_owned());
    spec.isolation.as_mut().unwrap().secrets = Secrets([secret].into());
    let dockerfile = "ARG BASE_IMAGE
FROM $BASE_IMAGE AS first
ARG WHOM
RUN <<END
set -e
echo hello from $WHOM
ls /sys/class/net /egress 2>&1 | sed 's/^/seen: /'
useradd --uid 7777 somebody
echo made >/made
chown somebody /made
END
RUN --mount=type=cache,target=/kept date >>/kept/times
FROM $BASE_IMAGE
LABEL svc.test=forged svc.app=forged maintainer=me
COPY --link --from=first --chmod=0644 /made /made
RUN --mount=type=bind,from=first,source=/,target=/other test -e /other/made
RUN --mount=type=secret,id=TOKEN_1 md5sum /run/secrets/TOKEN_1
RUN test ! -s /run/secrets/TOKEN_1 && ! env | grep -i -e secret -e s3,cr
CMD [\"cat\", \"/made\"]
";
    let (lines, end) = built(bench, spec.clone(), dockerfile).await;
    let id = end.unwrap_or_else(|e| panic!("{e}: {lines:#?}"));
    let has = |lines: &[String], text: &str| lines.iter().any(|line| line.contains(text));
    assert!(has(&lines, "hello from the build"), "{lines:#?}");
    assert!(has(&lines, "seen: lo") && !has(&lines, "proxy.sock"), "{lines:#?}");
    assert!(has(&lines, "ebacf3f8f9ccb7df39b38124d526d98a"), "{lines:#?}");
    let image = bench.engine().image(&spec.tag).await.unwrap().unwrap();
    assert_eq!((&image.id, &image.tags), (&id, &vec![spec.tag.clone()]));
    let mut labels = spec.labels.clone();
    labels.insert("maintainer".to_owned(), "me".to_owned());
    assert_eq!(image.labels, labels, "those of the service come from the service only");
    let mut container = bench.spec("a");
    container.image = id;
    container.command = None;
    bench.start(&container).await;

    // The next build finds what this one left, and does not have to begin anew.
    let (lines, end) = built(bench, spec, dockerfile).await;
    assert!(end.is_ok() && has(&lines, "Using cache"), "{lines:#?}");
    assert!(!has(&lines, "hello from"), "{lines:#?}");
}

#[test]
fn an_isolated_build_gets_no_further_than_its_walls() {
    let name = "isolated::an_isolated_build_gets_no_further_than_its_walls";
    on_docker(name, |real| Box::pin(no_further(real)));
}

async fn no_further(real: &Real) {
    let (bench, door) = (real.bench(), Door::open());
    let build = async |dockerfile: &str| {
        let text = format!("ARG BASE_IMAGE\nFROM $BASE_IMAGE\n{dockerfile}");
        let (lines, end) = built(bench, spec(real, &door, "walls"), &text).await;
        match end {
            Err(EngineError::Refused(why)) => why,
            end => panic!("{end:?}: {lines:#?}"),
        }
    };
    assert!(build("RUN exit 3\n").await.contains("exit status 3"));
    assert!(build("NONSENSE\n").await.contains("NONSENSE"));
    // As root of a network of its own, a build would reach parts of the kernel that others never do.
    let network = build("RUN unshare --net true && exit 0; exit 6\n").await;
    assert!(network.contains("exit status 6"), "{network}");
    let full = build("RUN dd if=/dev/zero of=/full bs=1M\n").await;
    assert!(full.contains("a build has 2048 MiB of disk"), "{full}");
    let large = build("RUN head -c 1G /dev/zero | tail\n").await;
    assert!(large.contains("a build has 512 MiB of memory"), "{large}");
    let bomb = "RUN bash -c 'bomb() { bomb | bomb & }; bomb; sleep 1; exit 5'\n";
    build(bomb).await;
    // Neither a name nor an id of what only this machine has.
    let id = bench.engine().image(bench.image_name()).await.unwrap().unwrap().id;
    for from in [bench.image_name(), id.trim_start_matches("sha256:")] {
        let mut spec = spec(real, &door, "walls");
        let isolation = spec.isolation.as_mut().unwrap();
        (isolation.base, isolation.owner) = (None, format!("test-{}-other", bench.run()));
        let end = built(bench, spec, &format!("FROM {from}\n")).await.1;
        assert!(matches!(end, Err(EngineError::Refused(_))), "{end:?}");
    }
    assert!(door.asked.lock().unwrap().iter().any(|line| line.starts_with("CONNECT ")));
    let missing = {
        let mut elsewhere = spec(real, &door, "walls");
        elsewhere.dockerfile = "elsewhere/Dockerfile".to_owned();
        built(bench, elsewhere, "FROM scratch\n").await.1
    };
    assert!(matches!(missing, Err(EngineError::Refused(_))), "{missing:?}");
    let whole = archive("Dockerfile", &format!("FROM scratch\n{}", "# more\n".repeat(500)));
    for wrong in [b"no archive".to_vec(), whole[..1500].to_vec()] {
        let context = stream::iter([Ok::<_, io::Error>(Bytes::from(wrong))]).boxed();
        let events = bench.engine().build(spec(real, &door, "walls"), context).await.unwrap();
        let last = events.collect::<Vec<_>>().await.pop().unwrap();
        assert!(matches!(last, Err(EngineError::Refused(_))), "{last:?}");
    }
    assert_eq!(bench.engine().images(&bench.labels()).await.unwrap(), []);
}

/// Begins a build that says so. Returns what comes after that.
async fn begun(
    real: &Real,
    door: &Door,
    text: &str,
) -> BoxStream<'static, Result<BuildEvent, EngineError>> {
    let context = Bytes::from(archive("Dockerfile", text));
    let context = stream::iter([Ok::<_, io::Error>(context)]).boxed();
    let mut events = real.docker().build(spec(real, door, "ended"), context).await.unwrap();
    while let Some(event) = events.next().await {
        if matches!(event.unwrap(), BuildEvent::Line(line) if line == "begun") {
            break;
        }
    }
    events
}

#[test]
fn an_isolated_build_has_its_share_of_the_machine() {
    let name = "isolated::an_isolated_build_has_its_share_of_the_machine";
    on_docker(name, |real| Box::pin(has_its_share(real)));
}

async fn has_its_share(real: &Real) {
    let (bench, door) = (real.bench(), Door::open());
    let text = "ARG BASE_IMAGE\nFROM $BASE_IMAGE\nRUN echo begun && sleep 3\n";
    let events = begun(real, &door, text).await;
    let running = bench.engine().inventory(&bench.labels()).await.unwrap().containers;
    let [running] = running.as_slice() else { panic!("{running:?}") };
    let shown = real.behind().inspect_container(&running.name, None).await.unwrap();
    let host = shown.host_config.unwrap();
    let share = (host.pids_limit, host.nano_cpus, host.memory);
    assert_eq!(share, (Some(2048), Some(1_000_000_000), Some(512 << 20)));
    assert_eq!(host.cpu_shares, Some(2), "instances come before builds");
    assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    let mounts = shown.mounts.unwrap();
    let base = mounts.iter().find(|mount| mount.destination.as_deref() == Some("/base")).unwrap();
    assert_eq!(base.rw, Some(false), "what others build upon stays as it is");
    let last = events.collect::<Vec<_>>().await.pop().unwrap();
    assert!(matches!(last, Ok(BuildEvent::Built(_))), "{last:?}");
}

#[test]
fn isolated_builds_of_all_owners_read_one_copy_of_their_base_image() {
    let name = "isolated::isolated_builds_of_all_owners_read_one_copy_of_their_base_image";
    on_docker(name, |real| Box::pin(read_one_copy(real)));
}

async fn read_one_copy(real: &Real) {
    let (bench, door) = (real.bench(), Door::open());
    let text = "ARG BASE_IMAGE\nFROM $BASE_IMAGE\nRUN echo made >/made\nCMD [\"cat\", \"/made\"]\n";
    let build = async |owner: &str| {
        let mut spec = spec(real, &door, owner);
        spec.isolation.as_mut().unwrap().owner = format!("test-{}-{owner}", bench.run());
        let (lines, end) = built(bench, spec, text).await;
        end.unwrap_or_else(|e| panic!("{e}: {lines:#?}"));
        lines
    };
    let copies = async || {
        let volumes = bench.engine().inventory(&bench.labels()).await.unwrap().volumes;
        let names = volumes.into_iter().map(|volume| volume.name);
        names.filter(|name| name.starts_with("svc-base-")).collect::<Vec<_>>()
    };
    join_all(["a", "b", "c"].map(build)).await;
    let copy = copies().await;
    assert_eq!(copy.len(), 1, "{copy:?}");

    // A build that stands on nothing does not meet steps of which the lower half is missing.
    let mut alone = spec(real, &door, "a");
    let isolation = alone.isolation.as_mut().unwrap();
    (isolation.owner, isolation.base) = (format!("test-{}-a", bench.run()), None);
    let (lines, end) = built(bench, alone, "FROM scratch\nCOPY Dockerfile /\n").await;
    end.unwrap_or_else(|e| panic!("{e}: {lines:#?}"));

    // A copy that was damaged, or is gone, comes back, and the finished steps upon it count again.
    let mut damages = bench.spec("damages");
    damages.mounts = vec![Mount { volume: copy[0].clone(), path: "/base".to_owned() }];
    damages.user = Some("1000:1000".to_owned());
    bench.start(&damages).await;
    let cut = "echo '[{' >/base/store/overlay-images/images.json";
    assert_eq!(bench.run_in(&damages.name, &["sh", "-c", cut]).await.exit, Some(0));
    bench.engine().remove_container(&damages.name).await.unwrap();
    let comes_back = async || {
        let lines = build("a").await;
        assert!(lines.iter().any(|line| line.contains("Using cache")), "{lines:#?}");
        assert_eq!(copies().await, copy);
    };
    comes_back().await;
    bench.engine().remove_volume(&copy[0]).await.unwrap();
    comes_back().await;
}

#[test]
fn the_newest_disks_and_base_images_of_earlier_builds_are_kept() {
    let name = "isolated::the_newest_disks_and_base_images_of_earlier_builds_are_kept";
    on_docker(name, |real| Box::pin(disks_are_kept(real)));
}

async fn disks_are_kept(real: &Real) {
    let (bench, labels) = (real.bench(), real.bench().labels());
    // Of those of one second, the first names go.
    let disks: Vec<_> = (0..18).map(|n| bench.name(&format!("disk-{n:02}"))).collect();
    let bases: Vec<_> = (0..10).map(|n| format!("svc-base-{}-{n:02}", bench.run())).collect();
    for name in disks.iter().chain(&bases) {
        bench.engine().ensure_volume(name, &labels).await.unwrap();
    }
    let a_week = Duration::from_secs(7 * 24 * 3600);
    bench.engine().prune_build_caches(&labels, a_week).await.unwrap();
    let kept = bench.engine().inventory(&labels).await.unwrap().volumes;
    let mut kept: Vec<_> = kept.into_iter().map(|volume| volume.name).collect();
    kept.sort();
    let mut newest = [&disks[2..], &bases[2..]].concat();
    newest.sort();
    assert_eq!(kept, newest);
}

#[test]
fn an_isolated_build_that_nobody_waits_for_ends() {
    let name = "isolated::an_isolated_build_that_nobody_waits_for_ends";
    on_docker(name, |real| Box::pin(ends(real)));
}

async fn ends(real: &Real) {
    let (bench, door) = (real.bench(), Door::open());
    let text = "ARG BASE_IMAGE\nFROM $BASE_IMAGE\nRUN echo begun && sleep 1 && kill -STOP -1\n";
    let events = begun(real, &door, text).await;
    let left = async || bench.engine().inventory(&bench.labels()).await.unwrap().containers;
    assert_eq!(left().await.len(), 1);
    // A build that stops all that it can does not stay.
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(events);
    let until = Instant::now() + Duration::from_secs(20);
    while !left().await.is_empty() {
        assert!(Instant::now() < until, "{:?}", left().await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Its disk is no longer what the next one finds, and is free at once.
    let context = Bytes::from(archive("Dockerfile", &text.replace("kill -STOP -1", "true")));
    let context = stream::iter([Ok::<_, io::Error>(context)]).boxed();
    let events = bench.engine().build(spec(real, &door, "ended"), context).await.unwrap();
    let last = events.collect::<Vec<_>>().await.pop().unwrap();
    assert!(matches!(last, Ok(BuildEvent::Built(_))), "{last:?}");
}
