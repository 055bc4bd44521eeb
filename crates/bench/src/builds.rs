//! Builds: lines of logs from runners, checks of repositories, and runs in a CI that are followed.

use crate::{
    Pace, echo,
    group_commit::Rows,
    helper::Helper,
    machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
};
use actors::{
    kinds::delivery::builds::{BuildPlace, BuildPlan, Builds, CiRun, State, Workflow},
    ports::random::Random,
    runtime::resource::Kept,
};
use contract::{
    AppId, BuildId, Timestamp,
    apps::Platform,
    artifacts::ProvenancePath,
    builds::{Build, BuildState},
    repositories::RepositoryMode,
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

pub const METHOD: &str = "64 runners have a build each, and report 100 lines of 80 bytes with each \
    call; a reply comes when the lines are on the disk. The yardstick is a bare actix-web server \
    that gets the same requests and makes three rows of 500 bytes durable for each of them. The \
    repository of 8 apps, on a server of this machine, is checked without a pause: first always under \
    another address, so that no commit is known, and then under the same one. The yardstick is `git \
    fetch --depth=1` of the same commit into an empty repository, 4 at a time, as the service does it. \
    2,000 builds run in a CI when the service starts; timed is until it has looked at each run once, at \
    a server that says that nothing changed. The yardstick is a client that sends as many requests to \
    that server, two at a time. Multiplied by the longest pause between two looks, a minute, the rate \
    is the number of builds that can be followed.";

const RUNNERS: usize = 64;
const LINES: usize = 100;
const LINE: usize = 80;
const REPOSITORIES: usize = 8;
/// Addresses of the one repository that is checked.
const ADDRESSES: u64 = 10_000;
const CHECKS: f64 = 0.8;
const CHECKS_BIND: &str = "requests to the host: one asks for the end of the branch, one fetches the \
    commit and its folders, and one the three files, so that little of a large repository is read. The \
    yardstick fetches all of a small one at once.";
const FOLLOWED_AIM: f64 = 0.5;
const FOLLOWED_BIND: &str = "processor time: each look has an owner and a signed-in client, and the time \
    of the start counts.";
const LINES_AIM: f64 = 0.8;
const LINES_BIND: &str = "processor time: the lines are parsed, checked and encoded, and make three \
    records of 4 KiB with their index entries. The yardstick parses as much, and writes 1.5 KiB.";
/// How many repositories of one host the service reads at a time.
const READ_AT_A_TIME: usize = 4;
const FOLLOWED: usize = 2_000;
/// The longest pause between two looks at a run, in seconds.
const LONGEST_PAUSE: f64 = 60.0;

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let (lines, [new, known]) = (lines(pace)?, checks(pace)?);
    Ok(vec![lines, new, known, followed(pace)?])
}

/// An app of a user without a rate limit.
pub struct OwnedApp {
    pub app: String,
    pub session: String,
}

pub fn own(server: &Server) -> Outcome<OwnedApp> {
    let session = server.register(1)?.pop().or_say("a session")?;
    let app = app(server, &session)?;
    Ok(OwnedApp { app, session })
}

pub fn app(server: &Server, session: &str) -> Outcome<String> {
    let call = |function, params| server.client.call(Some(session), function, &params);
    let project = call("svc_createProject", json!({"name": "Builds"}))?;
    let project = project.text("/result/id")?;
    let app = call("createApp", json!({"projectId": project, "name": "App"}))?;
    Ok(app.text("/result/id")?.to_owned())
}

/// How often `work` was done in a second, by so many threads. Each gets its number.
pub fn rate(
    threads: usize,
    seconds: u64,
    work: impl Fn(usize, u64) -> Outcome<()> + Sync,
) -> Outcome<f64> {
    let (begun, done) = (Instant::now(), AtomicU64::new(0));
    let worker = |number| {
        let mut round = 0;
        while begun.elapsed() < Duration::from_secs(seconds) {
            work(number, round)?;
            round += 1;
        }
        done.fetch_add(round, Relaxed);
        Outcome::Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|number| scope.spawn(move || worker(number))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(_) => Err("a thread panicked".into()),
        })
    })?;
    Ok(done.into_inner() as f64 / begun.elapsed().as_secs_f64())
}

fn lines(pace: Pace) -> Outcome<Row> {
    let home = machine::scratch()?;
    let server = Server::start(home.path(), pace.http_workers())?;
    let OwnedApp { app, session } = own(&server)?;
    server.stop()?;
    let app: AppId = app.parse().or_say("the app")?;
    let waiting = |id, _| Ok(Kept::at_rest(State { plan: Some(plan()?), ..state(id, app)? }));
    seed_builds(home.path(), RUNNERS, waiting)?;
    let server = Server::start(home.path(), pace.http_workers())?;
    let key = |runner: usize| format!("the-key-of-the-runner-{runner}");
    let builds = (0..RUNNERS).map(|runner| {
        let claim = json!({"runner": key(runner), "name": "runner", "labels": ["android"],
            "appIds": [app]});
        let claimed = server.client.call(Some(&session), "svc_claimBuild", &claim)?;
        Ok(claimed.text("/result/job/buildId")?.to_owned())
    });
    let builds = builds.collect::<Outcome<Vec<_>>>()?;
    let text: Vec<_> = (0..LINES).map(|_| "x".repeat(LINE)).collect();
    let report = |runner: usize, from: u64| {
        let build = builds.get(runner);
        json!({"buildId": build, "runner": key(runner), "from": from, "lines": text})
    };
    let reports = AtomicU64::new(0);
    let ours = rate(RUNNERS, pace.seconds, |runner, round| {
        let report = report(runner, round * LINES as u64);
        reports.fetch_add(1, Relaxed);
        server.client.call(Some(&session), "svc_reportBuild", &report).map(|_| ())
    })?;
    let echo = echo::start_durable(pace.http_workers(), &home.path().join("bare"), Rows::Three)?;
    let bare = crate::client::Client::to(echo.address);
    let bare = rate(RUNNERS, pace.seconds, |runner, round| {
        bare.post(None, "/", &report(runner, round * LINES as u64)).map(|_| ())
    })?;
    let lines = |reports: f64, who: &str| {
        let lines = reports * LINES as f64;
        (lines, format!("{lines:.0}/s{who}"))
    };
    let bare = lines(bare, ", bare server over group commit, the same with three rows");
    Ok(Row::new("durable lines of logs from 64 runners", lines(ours, ""), bare)
        .at_least(LINES_AIM, LINES_BIND))
}

/// A git server of this machine. Dropping the value kills it.
pub struct Git {
    child: Child,
    pub port: String,
}

impl Git {
    /// Serves the repositories of a folder.
    pub fn start(folder: &Path) -> Outcome<Git> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/support/git/server.py");
        let mut python = Command::new("python3");
        let child = python.arg(script).arg(folder).stdout(Stdio::piped()).spawn();
        let mut child = child.or_say("python3")?;
        let mut port = String::new();
        let output = child.stdout.take().or_say("its output")?;
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut port)
            .or_say("its port")?;
        Ok(Git { child, port: port.trim().to_owned() })
    }
}

impl Drop for Git {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs git in a folder.
pub fn git(folder: &Path, arguments: &[&str]) -> Outcome<()> {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    let done = Command::new("git").current_dir(folder).args(identity).args(arguments).output();
    let done = done.or_say("git")?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr))),
    }
}

/// Makes a repository with the three files of a managed one.
pub fn repository(folder: &Path) -> Outcome<()> {
    let from = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/fixtures/managed"));
    for path in ["package.json", ".svc/config.json", ".github/workflows/svc-build.yml"] {
        let to = folder.join(path);
        std::fs::create_dir_all(to.parent().or_say(path)?).or_say(path)?;
        std::fs::copy(from.join(path), to).or_say(path)?;
    }
    git(folder, &["init", "--quiet", "--initial-branch=main"])?;
    git(folder, &["add", "--all"])?;
    git(folder, &["commit", "--quiet", "--message", "An app"])
}

/// A check of a repository reads the commit that a branch has. Rows: of commits that no check has read
/// before, and of commits that one has.
fn checks(pace: Pace) -> Outcome<[Row; 2]> {
    let (home, folder) = (machine::scratch()?, machine::scratch()?);
    let repository_of = |number: u64| format!("app-{number}.git");
    repository(&folder.path().join(repository_of(0)))?;
    for number in 1..ADDRESSES {
        let at = folder.path().join(repository_of(number));
        std::os::unix::fs::symlink(repository_of(0), at).or_say("a link to the repository")?;
    }
    let served = Git::start(folder.path())?;
    let host = format!("127.0.0.1:{}", served.port);
    let url = |number: u64| format!("http://{host}/{}", repository_of(number % ADDRESSES));
    let settings =
        [("SVC_GIT_PRIVATE_HOSTS", host.as_str()), ("SVC_DOCKER_HOST", "unix:///nonexistent")];
    let server = Server::start_with(home.path(), pace.http_workers(), &settings)?;
    let OwnedApp { app: first, session } = own(&server)?;
    let mut apps = vec![first];
    while apps.len() < REPOSITORIES {
        apps.push(app(&server, &session)?);
    }
    let check = |function, params| {
        let checked = server.client.call(Some(&session), function, &params)?;
        match checked.body.pointer("/result/mode").and_then(Value::as_str) {
            Some("managed") => Ok(()),
            _ => Err(format!("the check found {}", checked.body)),
        }
    };
    // A commit is known by the address that it was read from.
    let addresses = AtomicU64::new(0);
    let new = rate(REPOSITORIES, pace.seconds, |number, _| {
        let url = url(addresses.fetch_add(1, Relaxed));
        check("svc_connectRepository", json!({"appId": apps.get(number), "url": url}))
    })?;
    if addresses.into_inner() > ADDRESSES {
        return Err("the repositories have too few addresses for a new one in each check".into());
    }
    let known = rate(REPOSITORIES, pace.seconds, |number, _| {
        check("svc_checkRepository", json!({"appId": apps.get(number)}))
    })?;
    let fetch = rate(READ_AT_A_TIME, pace.seconds, |_, _| {
        let empty = machine::scratch()?;
        git(empty.path(), &["init", "--quiet", "--bare"])?;
        git(empty.path(), &["fetch", "--quiet", "--depth=1", "--no-tags", &url(0), "HEAD"])
    })?;
    let row = |what: &str, ours: f64| {
        Row::new(
            what,
            (ours, format!("{ours:.1}/s")),
            (fetch, format!("{fetch:.1}/s, `git fetch`")),
        )
        .at_least(CHECKS, CHECKS_BIND)
    };
    Ok([
        row("checks of repositories, of commits not read before", new),
        row("checks of repositories, of known commits", known),
    ])
}

fn followed(pace: Pace) -> Outcome<Row> {
    let home = machine::scratch()?;
    let ci = Helper::start("github", [])?;
    let key = home.path().join("key.pem");
    let mut openssl = Command::new("openssl");
    openssl.args(["genrsa", "-out"]).arg(&key).arg("2048").stderr(Stdio::null());
    openssl.status().or_say("openssl")?;
    let start = || {
        let settings = [
            ("SVC_GITHUB_APP_ID", "1".to_owned()),
            ("SVC_GITHUB_APP_KEY", key.display().to_string()),
            ("SVC_GITHUB_API_URL", format!("http://{}", ci.address)),
            ("SVC_DOCKER_HOST", "unix:///nonexistent".to_owned()),
        ];
        let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
        Server::start_with(home.path(), pace.http_workers(), &settings)
    };
    let server = start()?;
    let app: AppId = own(&server)?.app.parse().or_say("the app")?;
    server.stop()?;
    let running = |id: BuildId, number: u64| {
        let mut state = State { plan: Some(plan()?), ..state(id, app)? };
        state.build.state = BuildState::Running;
        state.run = Some(run(number)?);
        Ok(Kept { awake: true, ..Kept::at_rest(state) })
    };
    seed_builds(home.path(), FOLLOWED, running)?;
    let looks = |ci: &Helper| -> Outcome<f64> {
        let client = crate::client::Client::to(ci.address);
        let answer = client.get("/looks").or_say("the looks")?;
        answer.body.as_f64().or_say("the looks")
    };
    let begun = Instant::now();
    let _server = start()?;
    while looks(&ci)? < FOLLOWED as f64 {
        if begun.elapsed() > Duration::from_secs(60) {
            return Err("the service does not look at its builds".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let ours = FOLLOWED as f64 / begun.elapsed().as_secs_f64();
    let client = crate::client::Client::to(ci.address);
    let bare = rate(2, pace.seconds, |_, _| {
        client.get("/repos/acme/app/actions/runs/0").or_say("the run").map(|_| ())
    })?;
    let text = |looks: f64, who: &str| {
        let text = format!("{:.0} ({looks:.0} looks/s){who}", looks * LONGEST_PAUSE);
        (looks, text)
    };
    Ok(Row::new("builds followed at a time", text(ours, ""), text(bare, ", a client"))
        .at_least(FOLLOWED_AIM, FOLLOWED_BIND))
}

/// Writes builds to the store of a stopped service. Returns their ids.
pub fn seed_builds(
    home: &Path,
    count: usize,
    record: impl Fn(BuildId, u64) -> Outcome<Kept<Builds>>,
) -> Outcome<Vec<BuildId>> {
    let (random, mut ids) = (Random::default(), Vec::new());
    seed::fill(home, count, |change, number| {
        let id = random.id(now());
        ids.push(id);
        Ok(change.create::<Builds>(&id, record(id, number as u64)?))
    })?;
    Ok(ids)
}

#[allow(clippy::disallowed_methods, reason = "deadlines of the records are compared with it")]
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// A build whose deadlines are an hour away.
pub fn state(id: BuildId, app_id: AppId) -> Outcome<State> {
    let (profile, path) = (seed::text("production")?, ProvenancePath::CliTrigger);
    let build = Build::queued(id, app_id, Platform::Android, profile, path, now());
    let organization = "org_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().or_say("an organization")?;
    let mut state = State::new(build, organization, BuildPlace::Any, Duration::from_secs(3600));
    state.queued_until = now() + Duration::from_secs(3600);
    Ok(state)
}

pub fn plan() -> Outcome<BuildPlan> {
    Ok(BuildPlan {
        url: seed::text("https://git.example.com/acme/app.git")?,
        mode: RepositoryMode::Managed,
        git_ref: "main".into(),
        commit: "9fceb02d0ae598e95dc970b74767f19372d61af8".into(),
        command: "make".into(),
        artifact: "app.apk".into(),
    })
}

/// A run whose last reply the CI gives again.
fn run(number: u64) -> Outcome<CiRun> {
    Ok(CiRun {
        workflow: Workflow::Own,
        repository: seed::text("acme/app")?,
        asked_at: now(),
        since: now(),
        id: Some(number),
        until: now() + Duration::from_secs(3600),
        tag: Some("\"same\"".into()),
        look_at: None,
        looks: 0,
        steps: Vec::new(),
        succeeded_at: None,
        over: false,
    })
}
