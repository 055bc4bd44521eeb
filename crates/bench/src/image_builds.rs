//! Isolated builds of container images.

use crate::{
    Pace,
    backend::{docker, has_docker},
    machine,
    outcome::{Explain, Outcome},
    table::Row,
};
use container_engine::{
    BuildEvent, BuildSpec, Engine, Isolation, Labels, Secrets,
    docker::{Docker, context},
};
use futures_util::{StreamExt, stream};
use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

pub const METHOD: &str = "An image is built upon that of `SVC_RECIPE_BASE_IMAGE` (`node:22-slim`): \
    20,000 small files are written, and 6 GB are hashed, which takes about as long as the \
    packages of a small server. The first build is the first of an app, upon an image on which another app was \
    built before, and the next one has other source files. The yardstick is `docker build` of the same files, with \
    `--no-cache` and without. Needs the `docker` command; set `SVC_BUILDER_BASE_IMAGE` where the public \
    registry is out of reach.";

const BINDS: &str = "containers, their disk, and the image that comes out.";
/// As much as the service allows a build by default.
const MEMORY: u64 = 2 << 30;
const DISK: u64 = 8 << 30;
const WITHIN: Duration = Duration::from_secs(600);
/// The label of what is built here, by which it is removed.
const LABEL: &str = "svc.bench";

const DOCKERFILE: &str = r#"ARG BASE_IMAGE
FROM $BASE_IMAGE
RUN node -e "const fs = require('fs'); fs.mkdirSync('/packages'); \
  for (let i = 0; i < 20000; i++) fs.writeFileSync('/packages/' + i, 'x'.repeat(2000)); \
  const hash = require('crypto').createHash('sha256'); \
  for (let i = 0; i < 6000; i++) hash.update(Buffer.alloc(1 << 20)); console.log(hash.digest('hex'))"
COPY source /source
CMD ["cat", "/source"]
"#;

/// Measures builds. Without Docker there are no rows.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    if !has_docker() {
        return Ok(Vec::new());
    }
    let base = base_image();
    let builder = named("SVC_BUILDER_BASE_IMAGE", container_engine::docker::BUILDER_BASE);
    let engine = Docker::connect(None).or_say("Docker")?.with_builder_base(&builder);
    let home = machine::scratch()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_say("a runtime")?;
    let build = |owner: &str, source: &str| {
        let isolated = isolated(&engine, home.path(), &base, owner, source);
        let within = runtime.block_on(isolated);
        machine::wait_until_quiet();
        within
    };
    // The first build of all makes the image of builds.
    build("warm", "0")?;
    let (mut first, mut next, mut cold, mut warm) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..pace.rounds {
        let owner = format!("round-{round}");
        cold.push(by_docker(home.path(), &base, &format!("{round} a"), &["--no-cache"])?);
        first.push(build(&owner, &format!("{round} a"))?);
        warm.push(by_docker(home.path(), &base, &format!("{round} b"), &[])?);
        next.push(build(&owner, &format!("{round} b"))?);
    }
    remove_all(pace.rounds);
    let median = |mut all: Vec<Duration>| {
        all.sort();
        let seconds = all.get(all.len() / 2).or_say("a measurement")?.as_secs_f64();
        Ok::<_, String>((seconds, format!("{seconds:.1} s")))
    };
    let row = |name: &str, ours, theirs| {
        let (ours, theirs): ((f64, String), (f64, String)) = (median(ours)?, median(theirs)?);
        let row = Row::new(name, ours, (theirs.0, format!("{}, by `docker build`", theirs.1)));
        Ok::<_, String>(row)
    };
    Ok(vec![
        row("first build of an image, isolated", first, cold)?.at_most(2.0, BINDS),
        // All steps but the last are there already: what is left is the way in and out.
        row("next build of an image, isolated", next, warm)?,
    ])
}

/// The image upon which is built.
pub(crate) fn base_image() -> String {
    named("SVC_RECIPE_BASE_IMAGE", "node:22-slim")
}

fn named(setting: &str, default: &str) -> String {
    std::env::var(setting).unwrap_or_else(|_| default.to_owned())
}

/// Builds an image as the service does. Returns how long it took.
async fn isolated(
    engine: &Docker,
    home: &Path,
    base: &str,
    owner: &str,
    source: &str,
) -> Outcome<Duration> {
    let labels = Labels::from([(LABEL.to_owned(), "1".to_owned())]);
    let spec = BuildSpec {
        tag: format!("svc-bench/{owner}:1"),
        dockerfile: "Dockerfile".to_owned(),
        args: BTreeMap::new(),
        labels: labels.clone(),
        memory: MEMORY,
        isolation: Some(Isolation {
            owner: format!("bench-{owner}"),
            base: Some(base.to_owned()),
            // No step asks for a network.
            egress: home.to_owned(),
            loopback: Vec::new(),
            cpu_millis: 1000 * u32::try_from(machine::half_of_the_processors()).unwrap_or(1),
            disk: DISK,
            within: WITHIN,
            labels,
            secrets: Secrets::default(),
        }),
    };
    let files = [("Dockerfile", DOCKERFILE), ("source", source)];
    let files = context(files.map(|(name, text)| (name, text.as_bytes()))).or_say("the files")?;
    let begun = Instant::now();
    let files = stream::iter([Ok(files)]).boxed();
    let mut events = engine.build(spec, files).await.or_say("the build")?;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.or_say("the build")?);
    }
    match last {
        Some(BuildEvent::Built(_)) => Ok(begun.elapsed()),
        _ => Err("the build was cut off".into()),
    }
}

/// Builds the same with `docker build`. Returns how long it took.
fn by_docker(home: &Path, base: &str, source: &str, options: &[&str]) -> Outcome<Duration> {
    let folder = home.join("files");
    std::fs::create_dir_all(&folder).or_say("the files")?;
    std::fs::write(folder.join("Dockerfile"), DOCKERFILE).or_say("the files")?;
    std::fs::write(folder.join("source"), source).or_say("the files")?;
    let base = format!("--build-arg=BASE_IMAGE={base}");
    let folder = folder.to_str().or_say("a path")?;
    let begun = Instant::now();
    let fixed = ["build", "--quiet", "--tag=svc-bench/yardstick:1", &base, folder];
    docker(&[&fixed[..], options].concat())?;
    let within = begun.elapsed();
    machine::wait_until_quiet();
    Ok(within)
}

fn remove_all(rounds: usize) {
    let owners = (0..rounds).map(|round| format!("round-{round}")).chain(["warm".to_owned()]);
    let images = owners.map(|owner| format!("svc-bench/{owner}:1"));
    // What is not there need not be removed.
    for image in images.chain(["svc-bench/yardstick:1".to_owned()]) {
        let _ = docker(&["rmi", &image]);
    }
    let filter = format!("label={LABEL}");
    let volumes = docker(&["volume", "ls", "--quiet", "--filter", &filter]).unwrap_or_default();
    for volume in volumes.lines() {
        let _ = docker(&["volume", "rm", volume]);
    }
}
