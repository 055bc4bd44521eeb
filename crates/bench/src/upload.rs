//! The time and the memory for an upload of 1 GiB.

use crate::{
    Pace, machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
};
use serde_json::json;
use std::{
    fs::File,
    io::Write,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

pub const METHOD: &str = "A file of 1 GiB goes to the service with one PUT to a signed address, \
    and is made durable; then it is finalized, which hashes it (and refuses it, because it is no \
    app). The yardstick is `cp` and `sha256sum` of the same file on the same disk, which makes \
    nothing durable. `sha256sum` may hash without the processor's instructions for it, so `cp` \
    alone is the sharper one.";

const SIZE: usize = 1 << 30;
const AIM: f64 = 0.95;
/// A copy passes no connection, and is not made durable.
const AIM_OF_COPY: f64 = 0.3;
/// The bytes of memory that the service may take beyond its idle memory.
const MOST_MEMORY: u64 = 64 << 20;
const BINDS: &str = "the bytes pass the loopback connection and are made durable, every 64 MiB and at the end; \
    the yardstick copies within the kernel and leaves them in the page cache.";

/// The paths of an open upload.
pub struct Upload {
    put: String,
    pub finalize: String,
}

impl Upload {
    /// Opens an upload of an app for Android.
    pub fn open(server: &Server, session: &str, app: &str) -> Outcome<Upload> {
        let wanted =
            json!({"appId": app, "platform": "android", "fileName": "app.apk", "version": "1.4.2"});
        let made = server.client.post(Some(session), "/api/v1/artifacts/upload-url", &wanted)?;
        let (id, url) = (made.text("/artifactId")?, made.text("/uploadUrl")?);
        let put = url.split_once(&server.client.address.to_string()).or_say("the address")?.1;
        Ok(Upload { put: put.to_owned(), finalize: format!("/api/v1/artifacts/{id}/finalize") })
    }

    /// Sends the file.
    pub fn put(&self, server: &Server, file: &Path) -> Outcome<()> {
        let answer = server.client.put_file(&self.put, file)?;
        match answer.status {
            200 => Ok(()),
            status => Err(format!("the upload was answered {status}: {}", answer.body)),
        }
    }
}

struct Round {
    copied: Duration,
    hashed: Duration,
    put: Duration,
    finalized: Duration,
    /// Bytes of memory beyond idle.
    memory: u64,
}

/// Measures PUT and finalize against `cp` and `sha256sum`.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let file = home.path().join("app.apk");
    write_file(&file)?;
    let server =
        Server::start(home.path(), pace.workers.unwrap_or_else(machine::half_of_the_processors))?;
    let sessions = server.register(1)?;
    let session = sessions.first().or_say("a session")?;
    let project = server.client.call(Some(session), "svc_createProject", &json!({"name": "P"}))?;
    let app = json!({"projectId": project.text("/result/id")?, "name": "A"});
    let app = server.client.call(Some(session), "createApp", &app)?;
    let app = app.text("/result/id")?;
    let mut rounds = Vec::new();
    for _ in 0..pace.rounds {
        machine::wait_until_quiet();
        rounds.push(round(&server, session, app, &file)?);
    }
    let median = |figure: fn(&Round) -> Duration| {
        let mut all: Vec<f64> = rounds.iter().map(|round| figure(round).as_secs_f64()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (put, finalized) = (median(|r| r.put), median(|r| r.finalized));
    let (copied, hashed) = (median(|r| r.copied), median(|r| r.hashed));
    let both = median(|r| r.copied + r.hashed);
    let memory = rounds.iter().map(|round| round.memory).max().unwrap_or(u64::MAX);
    let speed = |seconds: f64| 1024.0 / seconds;
    let row = |what: &str, ours: f64, yardstick: f64, name: &str| {
        let said = |seconds: f64| format!("{:.0} MiB/s ({seconds:.2} s)", speed(seconds));
        Row::new(
            what,
            (speed(ours), said(ours)),
            (speed(yardstick), format!("{}, {name}", said(yardstick))),
        )
    };
    Ok(vec![
        row("PUT of 1 GiB", put, both, "`cp` and `sha256sum`").at_least(AIM, BINDS),
        row("PUT of 1 GiB alone", put, copied, "`cp`").at_least(AIM_OF_COPY, BINDS),
        row("finalize of 1 GiB", finalized, hashed, "`sha256sum`").at_least(AIM, BINDS),
        row("PUT and finalize of 1 GiB", put + finalized, both, "`cp` and `sha256sum`")
            .at_least(AIM, BINDS),
        Row::new(
            "memory of an upload of 1 GiB, beyond idle",
            (memory as f64, format!("{:.1} MiB", mib(memory))),
            (MOST_MEMORY as f64, "64 MiB".into()),
        )
        .aim("under 64 MiB".into(), memory < MOST_MEMORY, ""),
    ])
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Writes random bytes, which no disk can compress.
fn write_file(path: &Path) -> Outcome<()> {
    let mut file = File::create(path).or_say("the file")?;
    let mut random = File::open("/dev/urandom").or_say("random bytes")?;
    let copied = std::io::copy(&mut std::io::Read::take(&mut random, SIZE as u64), &mut file);
    copied.or_say("the file")?;
    file.flush().or_say("the file")?;
    file.sync_all().or_say("the file")
}

fn round(server: &Server, session: &str, app: &str, file: &Path) -> Outcome<Round> {
    let copy = file.with_extension("copy");
    let copied = timed(|| run("cp", &[file, &copy]))?.1;
    let (digest, hashed) = timed(|| run("sha256sum", &[file]))?;
    std::fs::remove_file(&copy).or_say("the copy")?;
    let digest = digest.split(' ').next().or_say("the hash")?.to_owned();

    let upload = Upload::open(server, session, app)?;
    machine::forget_peak(server.process())?;
    let idle = machine::resident(Some(server.process()))?;
    let put = timed(|| upload.put(server, file))?.1;
    let memory = machine::peak(server.process())?.saturating_sub(idle);
    let expected = json!({"sha256": digest});
    let finalize = || server.client.post(Some(session), &upload.finalize, &expected);
    let (answer, finalized) = timed(finalize)?;
    match answer.status {
        // The hash is right, but the file is not an app.
        422 => Ok(Round { copied, hashed, put, finalized, memory }),
        status => Err(format!("finalizing was answered {status}: {}", answer.body)),
    }
}

fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Duration)> {
    let begun = Instant::now();
    let done = work()?;
    Ok((done, begun.elapsed()))
}

/// What a program writes about these files.
pub fn run(program: &str, files: &[&Path]) -> Outcome<String> {
    let output = Command::new(program).args(files).output().or_say(program)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
