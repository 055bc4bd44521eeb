//! The start of a backend in real containers.

use crate::{
    Pace,
    client::Client,
    machine,
    outcome::{Explain, Outcome},
    server::{Server, free_port, local},
    table::Row,
};
use serde_json::{Value, json};
use std::{
    process::Command,
    time::{Duration, Instant},
};

pub const METHOD: &str = "A backend of the default template is created: a Parse Server with a \
    PostgreSQL. Timed is from the call to the state `running`, images present. The yardstick is \
    the same two containers with the same limits, started by hand: `docker run`, \
    `pg_isready` until it succeeds, `docker run`, the health check of the server until it succeeds. \
    Needs the `docker` command; set `SVC_IMAGE_MIRRORS` where the public registry is out of reach.";

const BINDS: &str =
    "a health check must pass twice, and both containers are created before the first one starts.";
/// The time limit of a start.
const WITHIN: Duration = Duration::from_secs(300);
/// The pause between two looks, here and there.
const PAUSE: Duration = Duration::from_millis(20);
/// The network and the prefix of the other names of what is started by hand.
const HAND: &str = "svc-bench";

/// The images of the two containers, by their ids on this machine.
pub(crate) struct Images {
    database: String,
    server: String,
}

/// Measures the start of a backend. Without Docker there are no rows.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    if !has_docker() {
        return Ok(Vec::new());
    }
    let home = machine::scratch()?;
    let server = Server::start_with(home.path(), machine::half_of_the_processors(), &[])?;
    let session = server.register(1)?.into_iter().next().or_say("a session")?;
    let service = MeasuredService { client: &server.client, session };
    let project = service.project()?;
    // The first backend pulls the images.
    let (_, images) = service.start(&project)?;
    let (mut ours, mut hand) = (Vec::new(), Vec::new());
    for _ in 0..pace.rounds {
        hand.push(by_hand(&images)?);
        ours.push(service.start(&project)?.0);
    }
    server.stop()?;
    let median = |mut all: Vec<Duration>| {
        all.sort();
        let seconds = all.get(all.len() / 2).or_say("a measurement")?.as_secs_f64();
        Ok::<_, String>((seconds, format!("{seconds:.1} s")))
    };
    let (ours, hand) = (median(ours)?, median(hand)?);
    let row = Row::new("start of a backend", ours, (hand.0, format!("{}, by hand", hand.1)));
    let met = row.ratio <= 1.15;
    Ok(vec![row.aim("ratio at most 1.15".into(), met, BINDS)])
}

/// The service, as the owner of backends calls it.
pub(crate) struct MeasuredService<'a> {
    pub client: &'a Client,
    pub session: String,
}

impl MeasuredService<'_> {
    fn call(&self, function: &str, params: &Value) -> Outcome<Value> {
        let answer = self.client.call(Some(&self.session), function, params)?;
        answer.body.get("result").cloned().or_say("the result")
    }

    /// Makes a project, and returns its id.
    pub fn project(&self) -> Outcome<String> {
        text(&self.call("svc_createProject", &json!({"name": "Bench"}))?, "id")
    }

    /// Creates a backend, and returns its id.
    pub fn create(&self, project: &str) -> Outcome<String> {
        let new = json!({"projectId": project, "name": "Bench"});
        text(&self.call("svc_createBackendInstance", &new)?, "id")
    }

    /// Deletes a backend with its data.
    pub fn delete(&self, id: &str) -> Outcome<()> {
        let gone = json!({"instanceId": id, "deleteData": true});
        self.call("svc_deleteBackendInstance", &gone).map(drop)
    }

    /// Waits until no container of a backend is left.
    pub fn until_gone(&self, id: &str) -> Outcome<()> {
        let (name, begun) = (format!("name=^svc-{}", unique(id)), Instant::now());
        while !docker(&["ps", "-aq", "--filter", &name])?.is_empty() {
            if begun.elapsed() > WITHIN {
                return Err(format!("containers of {id} are left"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Creates a backend, waits until it runs, and deletes it. Returns how long the start took, and
    /// the images.
    pub fn start(&self, project: &str) -> Outcome<(Duration, Images)> {
        let begun = Instant::now();
        let id = self.create(project)?;
        let of = json!({"instanceId": id});
        let within = loop {
            let seen = self.call("svc_getBackendInstance", &of)?;
            match text(&seen, "state")?.as_str() {
                "running" => break begun.elapsed(),
                "failed" => return Err(format!("the backend failed: {seen}")),
                _ if begun.elapsed() > WITHIN => return Err(format!("it does not run: {seen}")),
                _ => std::thread::sleep(PAUSE),
            }
        };
        let image = |role: &str| {
            docker(&["inspect", "--format={{.Image}}", &format!("svc-{}-{role}-1", unique(&id))])
        };
        let images = Images { database: image("sqldb")?, server: image("server")? };
        self.delete(&id)?;
        self.until_gone(&id)?;
        machine::wait_until_quiet();
        Ok((within, images))
    }
}

/// What the names of the containers of a backend have of its id.
fn unique(id: &str) -> String {
    id.trim_start_matches("ins_").to_lowercase()
}

/// Starts both containers with the `docker` command, and removes them. Returns how long it took
/// until both were healthy.
fn by_hand(images: &Images) -> Outcome<Duration> {
    remove_by_hand();
    let begun = Instant::now();
    let (database, server) = (format!("{HAND}-sqldb"), format!("{HAND}-server"));
    docker(&["network", "create", HAND])?;
    let limits = "--cpus=1 --pids-limit=512 --read-only --tmpfs=/tmp --tmpfs=/run --init \
                  --cap-drop=ALL --security-opt=no-new-privileges";
    let run = |own: &str, image: &str| {
        let words = format!("run --detach --network={HAND} {limits} {own} {image}");
        docker(&words.split_whitespace().collect::<Vec<_>>())
    };
    let own = format!(
        "--name={database} --network-alias=sqldb --memory=256m --cap-add=CHOWN \
         --cap-add=DAC_OVERRIDE --cap-add=FOWNER --cap-add=KILL --cap-add=SETGID --cap-add=SETUID \
         --volume={HAND}:/var/lib/postgresql/data --env=POSTGRES_USER=svc \
         --env=POSTGRES_PASSWORD=bench --env=POSTGRES_DB=parse"
    );
    run(&own, &images.database)?;
    let ready = ["exec", &database, "pg_isready", "-h", "127.0.0.1", "-U", "svc", "-d", "parse"];
    until(|| docker(&ready).is_ok())?;
    let port = free_port()?;
    let own = format!(
        "--name={server} --memory=512m --publish=127.0.0.1:{port}:1337 \
         --env=PARSE_SERVER_APPLICATION_ID=bench --env=PARSE_SERVER_MASTER_KEY=bench \
         --env=PARSE_SERVER_DATABASE_URI=postgres://svc:bench@sqldb:5432/parse \
         --env=PARSE_SERVER_MOUNT_PATH=/parse \
         --env=PARSE_SERVER_URL=http://127.0.0.1:1337/parse \
         --env=PARSE_SERVER_LOGS_FOLDER=/tmp/logs --env=PARSE_SERVER_MOUNT_GRAPHQL=true \
         --env=PORT=1337"
    );
    run(&own, &images.server)?;
    let client = Client::to(local(port));
    until(|| client.get("/parse/health").is_some_and(|answer| answer.status == 200))?;
    let within = begun.elapsed();
    remove_by_hand();
    machine::wait_until_quiet();
    Ok(within)
}

/// Removes what an interrupted run may have left, too.
fn remove_by_hand() {
    let (database, server) = (format!("{HAND}-sqldb"), format!("{HAND}-server"));
    for words in [
        &["rm", "--force", &database, &server][..],
        &["volume", "rm", HAND],
        &["network", "rm", HAND],
    ] {
        // What is not there need not be removed.
        let _ = docker(words);
    }
}

fn until(done: impl Fn() -> bool) -> Outcome<()> {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > WITHIN {
            return Err("what was started by hand does not become healthy".into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Whether there is a Docker Engine. Prints a remark if there is none.
pub(crate) fn has_docker() -> bool {
    let is_there = docker(&["version"]).is_ok();
    if !is_there {
        eprintln!("left out: there is no Docker Engine");
    }
    is_there
}

/// Runs the `docker` command, and returns its output.
pub(crate) fn docker(words: &[&str]) -> Outcome<String> {
    let done = Command::new("docker").args(words).output().or_say("docker")?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if done.status.success() { Ok(said(&done.stdout)) } else { Err(said(&done.stderr)) }
}

fn text(value: &Value, field: &str) -> Outcome<String> {
    Ok(value.get(field).and_then(Value::as_str).or_say(field)?.to_owned())
}
