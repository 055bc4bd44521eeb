//! Function calls per second: a function that needs a session, and a public one.

use crate::{
    Pace,
    client::Client,
    echo,
    helper::Helper,
    machine,
    outcome::Outcome,
    seed,
    server::Server,
    table::Row,
    wrk::{self, Answers, Load},
};
use serde_json::{Value, json};
use std::path::Path;

pub const METHOD: &str = "`wrk` with 64 connections sends the same requests to the service and to \
    a bare actix-web server that reads a JSON body and answers it, with as many workers and the \
    same allocator, in turns. The body that the bare server gets is the reply of the service, so \
    both send as much; it parses that body first, so a long reply flatters the service. The row \
    below it has the bare server echo the request's own few bytes instead. \
    `svc_getLatestRelease` is asked of a release that was put into the store.";

const USERS: usize = 64;
const AIM: f64 = 0.8;
/// The replies are longer than the requests.
const AIM_OF_ECHO: f64 = 0.6;
const BINDS: &str = "processor time, in small parts: looking up header names, \
    the hop to the router's mailbox, SHA-256 of the token with its look-ups, the limiter, and a \
    longer head of the answer.";

/// Measures both functions against the echo server.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let store = seed::open(home.path())?;
    let app = actix_rt::System::new().block_on(seed::release(&store))?;
    store.close();
    drop(store);

    let workers = pace.http_workers();
    let server = Server::start(home.path(), workers)?;
    let echo = echo::start(workers)?;
    let sessions = server.register(USERS)?;
    let latest = json!({"appId": app, "channel": "production", "platform": "android"});
    let signed_in = Function::new(&server.client, "getCurrentUser", &sessions, &json!({}))?;
    let public = Function::new(&server.client, "svc_getLatestRelease", &[], &latest)?;
    let mut rows = Vec::new();
    for function in [signed_in, public] {
        rows.extend(function.measure(home.path(), &server, &echo, pace)?);
    }
    Ok(rows)
}

/// A function under load, and the load of its yardstick.
pub struct Function {
    name: &'static str,
    ours: Load,
    echoed: Vec<(String, String)>,
}

impl Function {
    pub fn new(
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

    /// The calls per second and the processor time of each call, which is the more reliable figure
    /// when other programs use the machine.
    pub fn measure(
        &self,
        scratch: &Path,
        server: &Server,
        echo: &Helper,
        pace: Pace,
    ) -> Outcome<[Row; 3]> {
        let short = Load { address: echo.address, ..self.ours.clone() };
        let bare = Load { requests: self.echoed.clone(), ..short.clone() };
        let (mut ours, mut yardstick, mut shorts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..pace.rounds {
            machine::wait_until_quiet();
            yardstick.push(run(&bare, scratch, echo.process(), pace)?);
            shorts.push(run(&short, scratch, echo.process(), pace)?);
            ours.push(run(&self.ours, scratch, server.process(), pace)?);
        }
        let micros = |rounds: &[(Answers, f64)]| {
            let mut all: Vec<f64> = rounds.iter().map(|(_, micros)| *micros).collect();
            all.sort_by(f64::total_cmp);
            let micros = all.get(all.len() / 2).copied().unwrap_or(f64::NAN);
            (micros, format!("{micros:.1} µs"))
        };
        let (our_micros, bare_micros) = (micros(&ours), micros(&yardstick));
        let answers = |rounds: Vec<(Answers, f64)>| {
            wrk::median(rounds.into_iter().map(|(answers, _)| answers).collect())
        };
        let (ours, yardstick, short) = (answers(ours)?, answers(yardstick)?, answers(shorts)?);
        let what = format!("`{}` calls", self.name);
        let bare = |text: &str| format!("{text}, bare actix-web");
        Ok([
            Row::new(
                &what,
                (ours.rate, ours.to_string()),
                (yardstick.rate, bare(&yardstick.to_string())),
            )
            .at_least(AIM, BINDS),
            Row::new(
                &what,
                (ours.rate, ours.to_string()),
                (short.rate, format!("{short}, bare actix-web echoing the request")),
            )
            .at_least(AIM_OF_ECHO, BINDS),
            Row::new(
                &format!("processor time of each `{}` call", self.name),
                our_micros,
                (bare_micros.0, bare(&bare_micros.1)),
            )
            .at_most(1.0 / AIM, BINDS),
        ])
    }
}

/// The answers, and the microseconds of processor time that the process took for each.
fn run(load: &Load, scratch: &Path, process: u32, pace: Pace) -> Outcome<(Answers, f64)> {
    let before = machine::processor_time(process)?;
    let answers = load.run(scratch, pace.seconds)?;
    let taken = machine::processor_time(process)? - before;
    Ok((answers, taken * 1e6 / (answers.rate * pace.seconds as f64)))
}
