//! What one tenant's attacks cost another one.

mod bombs;
mod connections;
mod containers;
mod deliveries;
mod git;
mod keys;
mod lists;
mod logs;
mod polls;
mod visitor;

use crate::{
    Pace,
    builds::app,
    machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
};
use clap::{Args, ValueEnum};
use contract::{AppId, OrganizationId};
use serde_json::json;
use std::path::Path;
use visitor::Visitor;

pub const METHOD: &str = "One tenant without a rate limit attacks; another one, at another address, calls \
    `getCurrentUser` and opens the start page of the dashboard in turns, each over a new connection. The \
    yardstick is the same before the attack. The ratio is the larger one of those of the median and of the \
    95th percentile. Of several windows, before the attack and during it, the one counts in which other \
    programs of the machine worked the least, whatever its figures. The service has as many workers as the \
    machine has processors, so the visitor competes with it for them; attackers outside of containers have \
    the lowest priority, because nobody attacks from the machine itself. Where containers attack, the service and \
    the visitor have ten times the weight of all containers together, as `docs/OPERATING.md` gives \
    it to the service without systemd, and the window counts in which the visitor waited the longest. The \
    attacks: four calls at a time that list 100,000 records (`--records` sets another number); 30 runners that \
    wait for builds, beside 20,000 waiting builds of others; 16 repositories on a server that sends a few bytes a second; key files with nearly as many \
    rounds as are accepted, of three accounts; apps of 300 KB that inflate to 250 MB, four at a time of each \
    of three accounts; 16 checks at a time of repositories whose packs of 110 KB expand to \
    400 MB; 100,000 deliveries that are due when the service starts, to 64 receivers that never answer; \
    2,100 half-sent heads, and 1,500 unfinished forms; 720 MB of logs of \
    builds; eight containers, with the limits of instances and an image of `SVC_RECIPE_BASE_IMAGE` \
    (`node:22-slim`), that compute, fork, fill their memory, log or write to the disk without end; and 40 \
    backends that are created at once. The attacks on connections come from one address, and the visitor \
    from another one. Memory is the most that the service had during the attack, beyond what it had before.";

const SLOWEST: f64 = 2.0;
const BINDS: &str = "processor time: the service shares the processors with the visitor.";

/// What is measured.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The attacks; by default all of them.
    attacks: Vec<Attack>,
    /// How many records are listed.
    #[arg(long, default_value_t = 100_000)]
    records: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Attack {
    /// Lists of very many records.
    Lists,
    /// Runners that wait for builds.
    Polls,
    /// Repositories that trickle.
    Git,
    /// Costly key files.
    Keys,
    /// Apps and repositories that expand to much.
    Bombs,
    /// Due deliveries to receivers that never answer.
    Deliveries,
    /// Half-open connections and unfinished forms.
    Connections,
    /// Large logs of builds.
    Logs,
    /// Containers that take what they can get, and very many instances at once.
    Containers,
}

pub fn measure(pace: Pace, options: &Options) -> Outcome<Vec<Row>> {
    let attacks = match options.attacks.as_slice() {
        [] => Attack::value_variants(),
        some => some,
    };
    let rows = attacks.iter().map(|attack| match attack {
        Attack::Lists => lists::measure(pace, options.records),
        Attack::Polls => polls::measure(pace),
        Attack::Git => git::measure(pace),
        Attack::Keys => keys::measure(pace),
        Attack::Bombs => bombs::measure(pace),
        Attack::Deliveries => deliveries::measure(pace),
        Attack::Connections => connections::measure(pace),
        Attack::Logs => logs::measure(pace),
        Attack::Containers => containers::measure(pace),
    });
    Ok(rows.collect::<Outcome<Vec<_>>>()?.concat())
}

/// Starts the service with as many workers as by default, and these settings.
fn start(home: &Path, pace: Pace, settings: &[(&str, &str)]) -> Outcome<Server> {
    let workers = pace.workers.unwrap_or_else(machine::processors);
    let settings = [&[("SVC_DOCKER_HOST", "unix:///nonexistent")], settings].concat();
    Server::start_with(home, workers, &settings)
}

/// The sessions of the two tenants. Neither has a rate limit.
struct Tenants {
    attacker: String,
    visitor: Visitor,
}

impl Tenants {
    fn register(server: &Server) -> Outcome<Tenants> {
        let mut sessions = server.register(2)?;
        let visitor = Visitor { session: sessions.pop().or_say("the visitor")? };
        Ok(Tenants { attacker: sessions.pop().or_say("the attacker")?, visitor })
    }
}

/// So many attackers with an app each, and the visitor. Nobody has a rate limit.
fn attackers(server: &Server, count: usize) -> Outcome<(Vec<(String, AppId)>, Visitor)> {
    let mut sessions = server.register(count + 1)?;
    let visitor = Visitor { session: sessions.pop().or_say("the visitor")? };
    let with_app = |session: String| {
        let app = app_of(server, &session)?;
        Ok((session, app))
    };
    let attackers = sessions.into_iter().map(with_app).collect::<Outcome<_>>()?;
    Ok((attackers, visitor))
}

/// Makes an app.
fn app_of(server: &Server, session: &str) -> Outcome<AppId> {
    app(server, session)?.parse().or_say("the app")
}

/// Makes an organization.
fn organization_of(server: &Server, session: &str) -> Outcome<OrganizationId> {
    let named = json!({"name": "A team"});
    let made = server.client.call(Some(session), "createOrganization", &named)?;
    made.text("/result/id")?.parse().or_say("the organization")
}
