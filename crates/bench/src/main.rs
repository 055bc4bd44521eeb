//! Measures the service and writes `BENCHMARKS.md`. Each figure has a yardstick from the same run
//! on the same machine.
//!
//! `bench` measures all figures, each in its own process. `bench calls` measures one and prints it.
//! The measured service is the program `svc` beside this program.

mod app_store;
mod backend;
mod builds;
mod calls;
mod checkouts;
mod client;
mod echo;
mod engine;
mod fleet;
mod github;
mod group_commit;
mod helper;
mod image_builds;
mod instances;
mod limiter;
mod machine;
mod neighbours;
mod nodes;
mod outcome;
mod owners;
mod pages;
mod payment_provider;
mod postgres;
mod proxy;
mod publications;
mod receiver;
mod reverse_proxy;
mod seed;
mod server;
mod startup;
mod table;
mod tls;
mod upload;
mod webhooks;
mod world;
mod writes;
mod wrk;

use clap::{Args, Parser, Subcommand};
use group_commit::Rows;
use outcome::{Explain, Outcome};
use std::{path::PathBuf, process::ExitCode};
use table::Row;

/// The allocator of the service, so that the yardsticks have the same one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the service against yardsticks.
#[derive(Parser)]
struct Bench {
    #[command(flatten)]
    pace: Pace,
    /// Print the rows as JSON instead of a table.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

/// The duration and the number of measurements.
#[derive(Debug, Clone, Copy, Args)]
pub struct Pace {
    /// How often each measurement is repeated. The median counts.
    #[arg(long, global = true, default_value_t = 3)]
    pub rounds: usize,
    /// How long one measurement under load takes.
    #[arg(long, global = true, default_value_t = 6)]
    pub seconds: u64,
    /// HTTP worker threads of the service and of its yardstick; by default half of the processors,
    /// because the load comes from the other half.
    #[arg(long, global = true)]
    pub workers: Option<usize>,
}

impl Pace {
    fn http_workers(&self) -> usize {
        self.workers.unwrap_or_else(machine::half_of_the_processors)
    }
}

#[derive(Subcommand)]
enum What {
    /// Function calls a second, against a bare web server.
    Calls,
    /// Durable changes a second, against a bare group commit.
    Writes,
    /// Calls of a service whose store is in PostgreSQL, against one whose store is in a folder.
    Postgres,
    /// Three nodes against one, a takeover, and moves of a store.
    Nodes,
    /// An upload of 1 GiB, against copying and hashing the file.
    Upload,
    /// Start-up with a million stored resources, against an empty store.
    Startup,
    /// Bringing 100,000 owners into memory, against bare actors.
    Owners,
    /// Counting a million callers, against a bare hash map.
    Limiter,
    /// Observing instances at rest, and reading one meanwhile.
    Instances,
    /// Requests passed on to an instance, against nginx and Caddy.
    Proxy,
    /// Requests over TLS to an instance by its host name, against nginx with TLS.
    Tls,
    /// Lines of logs, checks of repositories, and builds that are followed.
    Builds,
    /// Deliveries of events, against a client that signs and posts.
    Webhooks,
    /// Publications in review that are followed.
    Publications,
    /// Checkouts that are opened, and gates that ask about payments.
    Checkouts,
    /// Pages of the dashboard, against a bare web server.
    Pages,
    /// What one tenant's attacks cost another one.
    Neighbours(neighbours::Options),
    /// The start of a backend in real containers, against the same containers started by hand.
    Backend,
    /// Isolated builds of images, against `docker build` of the same files.
    ImageBuilds,
    /// The engine of `instances`, `proxy` and `tls`, which lists the containers in the file.
    #[command(hide = true)]
    Engine { port: u16, containers: PathBuf },
    /// The host of repositories of `builds`.
    #[command(hide = true)]
    Github { port: u16 },
    /// The store of `publications`.
    #[command(hide = true)]
    AppStore { port: u16 },
    /// The payment provider of `checkouts`.
    #[command(hide = true)]
    PaymentProvider { port: u16 },
    /// The receiver of `webhooks`.
    #[command(hide = true)]
    Receiver { port: u16 },
    /// The yardstick of `calls`, which echoes every JSON body. With a store, the yardstick of
    /// `writes`, which answers after a durable write.
    #[command(hide = true)]
    Echo { port: u16, workers: usize, store: Option<PathBuf>, rows: Option<Rows> },
}

/// The figures with their methods, in the order of the report.
const FIGURES: [(&str, &str); 19] = [
    ("calls", calls::METHOD),
    ("writes", writes::METHOD),
    ("postgres", postgres::METHOD),
    ("nodes", nodes::METHOD),
    ("upload", upload::METHOD),
    ("startup", startup::METHOD),
    ("owners", owners::METHOD),
    ("limiter", limiter::METHOD),
    ("instances", instances::METHOD),
    ("proxy", proxy::METHOD),
    ("tls", tls::METHOD),
    ("builds", builds::METHOD),
    ("webhooks", webhooks::METHOD),
    ("publications", publications::METHOD),
    ("checkouts", checkouts::METHOD),
    ("pages", pages::METHOD),
    ("neighbours", neighbours::METHOD),
    ("backend", backend::METHOD),
    ("image-builds", image_builds::METHOD),
];

fn main() -> ExitCode {
    match run(&Bench::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(bench: &Bench) -> Outcome<()> {
    let rows = match &bench.what {
        Some(What::Echo { port, workers, store, rows }) => {
            let durable = store.as_deref().zip(*rows);
            return echo::run(*port, *workers, durable);
        }
        Some(What::Calls) => calls::measure(bench.pace)?,
        Some(What::Writes) => writes::measure(bench.pace)?,
        Some(What::Postgres) => postgres::measure(bench.pace)?,
        Some(What::Nodes) => nodes::measure(bench.pace)?,
        Some(What::Upload) => upload::measure(bench.pace)?,
        Some(What::Startup) => startup::measure(bench.pace)?,
        Some(What::Owners) => owners::measure()?,
        Some(What::Limiter) => limiter::measure()?,
        Some(What::Engine { port, containers }) => return engine::run(*port, containers),
        Some(What::Instances) => instances::measure(bench.pace)?,
        Some(What::Proxy) => proxy::measure(bench.pace)?,
        Some(What::Tls) => tls::measure(bench.pace)?,
        Some(What::Github { port }) => return github::run(*port),
        Some(What::Builds) => builds::measure(bench.pace)?,
        Some(What::AppStore { port }) => return app_store::run(*port),
        Some(What::Receiver { port }) => return receiver::run(*port),
        Some(What::Webhooks) => webhooks::measure(bench.pace)?,
        Some(What::Publications) => publications::measure(bench.pace)?,
        Some(What::PaymentProvider { port }) => return payment_provider::run(*port),
        Some(What::Checkouts) => checkouts::measure(bench.pace)?,
        Some(What::Pages) => pages::measure(bench.pace)?,
        Some(What::Neighbours(options)) => neighbours::measure(bench.pace, options)?,
        Some(What::Backend) => backend::measure(bench.pace)?,
        Some(What::ImageBuilds) => image_builds::measure(bench.pace)?,
        None => return run_all(bench.pace),
    };
    let text = match bench.json {
        true => serde_json::to_string(&rows).or_say("the rows")?,
        false => table::rows(&rows),
    };
    print(&text);
    Ok(())
}

/// Measures each figure in its own process, so that none inherits the memory of another. A figure that
/// cannot be measured does not keep the others out of the report.
fn run_all(pace: Pace) -> Outcome<()> {
    let (mut all, mut methods, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (figure, method) in FIGURES {
        eprintln!("{figure} …");
        match run_one(figure, pace) {
            Ok(rows) => {
                eprint!("{}", table::rows(&rows));
                all.extend(rows);
                methods.push((figure, method));
            }
            Err(e) => {
                eprintln!("{figure} was not measured: {e}");
                missing.push(figure);
            }
        }
    }
    let report = table::report(&machine::describe()?, &all, &methods, &missing);
    std::fs::write("BENCHMARKS.md", report).or_say("BENCHMARKS.md")?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("these figures were not measured: {}", missing.join(", "))),
    }
}

fn run_one(figure: &str, pace: Pace) -> Outcome<Vec<Row>> {
    let mut command = std::process::Command::new(machine::this_program()?);
    command.args([figure, "--json", "--rounds", &pace.rounds.to_string()]);
    command.args(["--seconds", &pace.seconds.to_string()]);
    if let Some(workers) = pace.workers {
        command.args(["--workers", &workers.to_string()]);
    }
    let done = command.stderr(std::process::Stdio::inherit()).output().or_say(figure)?;
    match done.status.success() {
        true => serde_json::from_slice(&done.stdout).or_say(figure),
        false => Err(done.status.to_string()),
    }
}

#[allow(clippy::print_stdout, reason = "it is what the program is for")]
fn print(text: &str) {
    println!("{text}");
}
