//! Function calls a second: one that a session proves, and one that anybody may call.

use crate::{
    Pace,
    client::Client,
    echo::Echo,
    machine,
    outcome::Outcome,
    seed,
    server::Server,
    table::Row,
    wrk::{self, Answers, Load},
};
use serde_json::{Value, json};

/// How it is measured.
pub const METHOD: &str = "`wrk` with 64 connections sends the same requests to the service and to \
    a bare actix-web server that reads a JSON body and answers it, with as many workers and the \
    same allocator, in turns. The body that the bare server gets is the reply of the service, so \
    both send as much. `svc_getLatestRelease` is asked of a release that was put into the store.";

const USERS: usize = 64;
const AIM: f64 = 0.8;
const BINDS: &str = "";

/// Both functions against the echo server.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let store = seed::open(home.path())?;
    let app = actix_rt::System::new().block_on(seed::release(&store))?;
    store.close();
    drop(store);

    let workers = pace.workers.unwrap_or_else(machine::half_of_the_processors);
    let server = Server::start(home.path(), workers)?;
    let echo = Echo::start(workers)?;
    let sessions = server.register(USERS)?;
    let latest = json!({"appId": app, "channel": "production", "platform": "android"});
    let signed_in = Function::new(&server.client, "getCurrentUser", &sessions, &json!({}))?;
    let public = Function::new(&server.client, "svc_getLatestRelease", &[], &latest)?;
    let measure = |function: &Function| function.measure(home.path(), &echo, pace);
    Ok(vec![measure(&signed_in)?, measure(&public)?])
}

/// A function under load, and the load that its yardstick gets.
struct Function {
    name: &'static str,
    ours: Load,
    echoed: Vec<(String, String)>,
}

impl Function {
    fn new(
        client: &Client,
        name: &'static str,
        sessions: &[String],
        params: &Value,
    ) -> Outcome<Function> {
        let first = sessions.first().map(String::as_str);
        let reply = client.call(first, name, params)?.body.to_string();
        let nobody = [String::new()];
        let callers = if sessions.is_empty() { &nobody } else { sessions };
        let with = |body: &str| -> Vec<(String, String)> {
            callers.iter().map(|session| (session.clone(), body.to_owned())).collect()
        };
        let ours = Load {
            address: client.address,
            path: format!("/backend/functions/{name}"),
            application_id: client.application_id.clone(),
            requests: with(&params.to_string()),
        };
        Ok(Function { name, ours, echoed: with(&reply) })
    }

    fn measure(&self, scratch: &std::path::Path, echo: &Echo, pace: Pace) -> Outcome<Row> {
        let bare = Load {
            address: echo.address,
            requests: self.echoed.clone(),
            ..self.ours.clone()
        };
        let (mut ours, mut yardstick) = (Vec::new(), Vec::new());
        for _ in 0..pace.rounds {
            machine::wait_until_quiet();
            yardstick.push(bare.run(scratch, pace.seconds)?);
            ours.push(self.ours.run(scratch, pace.seconds)?);
        }
        let (ours, yardstick) = (wrk::median(ours)?, wrk::median(yardstick)?);
        let row = Row::new(
            &format!("`{}` calls", self.name),
            (ours.rate, said(ours)),
            (yardstick.rate, format!("{}, bare actix-web", said(yardstick))),
        );
        Ok(row.at_least(AIM, BINDS))
    }
}

fn said(answers: Answers) -> String {
    let Answers { rate, median_ms, p99_ms } = answers;
    format!("{rate:.0}/s (median {median_ms:.2} ms, p99 {p99_ms:.2} ms)")
}
