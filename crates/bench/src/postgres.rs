//! The same calls to a service whose store is in PostgreSQL, and to one whose store is in a folder.

use crate::{
    Pace, machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
    wrk::{self, Answers, Load},
};
use std::path::Path;
use test_support::postgres;

pub const METHOD: &str = "Two services, one with its store in a folder and one in a PostgreSQL of the same machine \
    and disk, which makes each change durable (`fsync` and `synchronous_commit` are on), reached over a socket. \
    `wrk` with 64 connections sends both the same calls, in turns: `getCurrentUser`, which waits for a fence, and \
    `updateProfile`, which waits for a commit and a fence. The database has no processors of its own: client, service \
    and database share those of the machine.";

const USERS: usize = 128;
const AIM_OF_READS: f64 = 0.7;
const AIM_OF_WRITES: f64 = 0.5;
const BINDS: &str =
    "processor time of the database, which shares the processors with the service and the client.";

/// The body of the call of a user, by the user's number.
type Body = fn(usize) -> String;

/// Measures reads and changes on both kinds of store.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let address = postgres::new_store("the benchmark").or_say("PostgreSQL")?;
    let (folder, database) = (machine::scratch()?, machine::scratch()?);
    let docker = ("SVC_DOCKER_HOST", "unix:///nonexistent");
    let with_folder = Service::start(folder.path(), pace, &[docker])?;
    let with_database = Service::start(database.path(), pace, &[docker, ("SVC_STORE", &address)])?;
    let calls: [(&str, f64, Body); 2] = [
        ("getCurrentUser", AIM_OF_READS, |_| "{}".to_owned()),
        ("updateProfile", AIM_OF_WRITES, |n| {
            format!(r#"{{"name":"User {n}","company":"Example"}}"#)
        }),
    ];
    let mut rows = Vec::new();
    for (function, aim, body) in calls {
        let (mut ours, mut yardstick) = (Vec::new(), Vec::new());
        for _ in 0..pace.rounds {
            machine::wait_until_quiet();
            yardstick.push(with_folder.answers(function, body, folder.path(), pace)?);
            ours.push(with_database.answers(function, body, database.path(), pace)?);
        }
        let (ours, yardstick) = (wrk::median(ours)?, wrk::median(yardstick)?);
        rows.push(
            Row::new(
                &format!("`{function}` calls with PostgreSQL"),
                (ours.rate, ours.to_string()),
                (yardstick.rate, format!("{yardstick}, with a folder")),
            )
            .at_least(aim, BINDS),
        );
    }
    Ok(rows)
}

/// A service and the sessions of its users.
struct Service {
    server: Server,
    sessions: Vec<String>,
}

impl Service {
    fn start(home: &Path, pace: Pace, settings: &[(&str, &str)]) -> Outcome<Service> {
        let server = Server::start_with(home, pace.http_workers(), settings)?;
        let sessions = server.register(USERS)?;
        Ok(Service { server, sessions })
    }

    fn answers(&self, function: &str, body: Body, scratch: &Path, pace: Pace) -> Outcome<Answers> {
        let client = &self.server.client;
        let requests =
            self.sessions.iter().enumerate().map(|(n, session)| (session.clone(), body(n)));
        let load = Load {
            address: client.address,
            path: format!("/backend/functions/{function}"),
            application_id: client.application_id.clone(),
            requests: requests.collect(),
        };
        load.run(scratch, pace.seconds)
    }
}
