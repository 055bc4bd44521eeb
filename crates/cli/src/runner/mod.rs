//! `svc runner`: asks the service for builds, and executes them one after another.
//!
//! Each build runs in a folder of its own and with an environment of its own. The runner may be
//! killed at any moment: its build dies with it, and the service gives the build to another runner.

mod checkout;
mod execute;
mod folder;
mod process;
mod reporter;

use crate::{Context, args, client::Client, failure::Failure};
use contract::{
    Name,
    builds::Labels,
    runners::{BuildOrder, ClaimBuild},
    text::RunnerKey,
};
use data_encoding::HEXLOWER;
use folder::WorkFolder;
use std::{path::PathBuf, thread, time::Duration};
use svc_client::{Patience, varied};

/// The longest pause after the service could not be reached.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);

pub fn runner(cx: &Context<'_>, args: args::Runner) -> Result<(), Failure> {
    let client = cx.client()?.with_patience(Patience::LASTING);
    let base = args.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    WorkFolder::remove_leftovers(&base).map_err(|error| Failure::file(&base, &error))?;
    let runner = Runner {
        client,
        key: key()?,
        name: args.name.clone().map_or_else(host_name, Ok)?,
        labels: Failure::list("--labels", args.labels.clone())?,
        base,
    };
    let labels: Vec<_> = runner.labels.iter().map(|label| label.as_str()).collect();
    cx.printer.note(format_args!("{} waits for builds: {}", runner.name, labels.join(", ")));
    let mut heard = true;
    loop {
        match runner.ask(&args) {
            Ok(None) => heard = true,
            Ok(Some(order)) => {
                heard = true;
                runner.execute(cx, &args, &order)?;
                if args.once {
                    return Ok(());
                }
            }
            Err(failure) if failure.is_passing() => {
                if heard {
                    cx.printer.note(format_args!("{failure}; asking again until it answers"));
                }
                heard = false;
                thread::sleep(varied(ASK_AGAIN_AFTER));
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// A running `svc runner`.
struct Runner {
    client: Client,
    key: RunnerKey,
    name: Name,
    labels: Labels,
    /// Holds the folders of builds.
    base: PathBuf,
}

impl Runner {
    /// Asks for a build. The service waits for one some seconds.
    fn ask(&self, args: &args::Runner) -> Result<Option<BuildOrder>, Failure> {
        let claim = ClaimBuild {
            runner: self.key.clone(),
            name: self.name.clone(),
            labels: self.labels.clone(),
            app_id: args.app,
        };
        let claimed = self.client.call(&claim).map_err(|failure| match failure {
            Failure::Refused(_) if !failure.is_passing() => failure.advise(
                "a runner needs a token: svc token create --name runner \
                 --scope build:run,artifact:upload",
            ),
            failure => failure,
        })?;
        Ok(claimed.job)
    }
}

/// A key that nobody can guess.
fn key() -> Result<RunnerKey, Failure> {
    let mut bytes = [0; 24];
    let filled = getrandom::fill(&mut bytes).map_err(|error| error.to_string());
    let key = filled.and_then(|()| HEXLOWER.encode(&bytes).parse());
    key.map_err(|problem| Failure::local(format!("no random key: {problem}"), "run it again"))
}

/// The name of this machine.
fn host_name() -> Result<Name, Failure> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.parse().map_err(|problem: String| {
        Failure::usage(format!("the name of this machine, {name:?}, {problem}"), "say --name")
    })
}
