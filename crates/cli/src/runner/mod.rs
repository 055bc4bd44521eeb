//! `svc runner`: asks the service for builds, and executes them one after another.
//!
//! Each build runs in a folder of its own and with an environment of its own. The runner may be
//! killed at any moment: its build dies with it, and the service gives the build to another runner.

mod checkout;
mod execute;
mod folder;
mod process;
mod reporter;
mod user;

use crate::{Context, args, client::Client, failure::Failure};
use contract::{
    AppId, BoundedSet, Name, OrganizationId,
    apps::Platform,
    builds::Labels,
    runners::{BuildOrder, ClaimBuild, MOST_SERVED},
    text::RunnerKey,
};
use data_encoding::HEXLOWER;
use folder::WorkFolder;
use process::Process;
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};
use svc_client::{Patience, varied};
use user::User;

/// The longest pause after the service could not be reached.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The code of a refusal because of the parameters.
const INVALID: u16 = 142;

/// Runs builds until it is stopped. `shown`: the token is on the command line, which every user of
/// the machine may read.
pub fn runner(cx: &Context<'_>, args: args::RunnerArgs, shown: bool) -> Result<(), Failure> {
    if shown {
        return Err(Failure::usage(
            "builds could read the token on the command line of the runner",
            "set SVC_TOKEN instead of --token",
        ));
    }
    hide()?;
    let client = cx.client()?.with_patience(Patience::LASTING);
    let base = args.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    WorkFolder::remove_leftovers(&base).map_err(|error| Failure::file(&base, &error))?;
    let user = User::choose(args.user.as_deref())?;
    check_folder(&base, user.as_ref())?;
    let (organizations, mut apps) = (args.organization.clone(), args.app.clone());
    if organizations.is_empty() && apps.is_empty() {
        apps.extend(cx.settings.app);
    }
    let runner = Runner {
        client,
        key: key()?,
        name: args.name.clone().map_or_else(host_name, Ok)?,
        labels: Failure::list("--labels", args.labels.clone())?,
        organizations: Failure::list("--organization", organizations)?,
        apps: Failure::list("--app", apps)?,
        base,
        user,
    };
    let labels: Vec<_> = runner.labels.iter().map(|label| label.as_str()).collect();
    if !Platform::ALL.iter().any(|platform| labels.contains(&platform.name())) {
        return Err(Failure::usage(
            format!("--labels {} names no platform", labels.join(",")),
            "every build is for android or ios: say --labels android, and further labels behind it",
        ));
    }
    cx.printer.note(format_args!("{} waits for builds: {}", runner.name, labels.join(", ")));
    if let Some(user) = &runner.user {
        cx.printer.note(format_args!("builds run as the user {}", user.name));
    }
    let mut heard = true;
    loop {
        match runner.ask() {
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
    organizations: BoundedSet<OrganizationId, 0, MOST_SERVED>,
    apps: BoundedSet<AppId, 0, MOST_SERVED>,
    /// Holds the folders of builds.
    base: PathBuf,
    /// Who runs the builds; `None` is the user of the runner.
    user: Option<User>,
}

impl Runner {
    /// Asks for a build. The service waits for one some seconds.
    fn ask(&self) -> Result<Option<BuildOrder>, Failure> {
        let claim = ClaimBuild {
            runner: self.key.clone(),
            name: self.name.clone(),
            labels: self.labels.clone(),
            organization_ids: self.organizations.clone(),
            app_ids: self.apps.clone(),
        };
        let names_nobody = self.organizations.is_none() && self.apps.is_none();
        let claimed = self.client.call(&claim).map_err(|failure| match failure {
            Failure::Refused(_) if names_nobody && failure.refused_with(INVALID).is_some() => {
                failure.advise(
                    "say whose builds this machine runs: --organization ORGANIZATION or --app APP, \
                     each as often as needed; or use a token of one app",
                )
            }
            Failure::Refused(_) if !failure.is_passing() => failure.advise(
                "a runner needs a token: svc token create --name runner \
                 --scope build:run,artifact:upload",
            ),
            failure => failure,
        })?;
        Ok(claimed.job)
    }
}

/// Lets no other process of the same user read the memory and the environment of this one, where
/// the token is. See `PR_SET_DUMPABLE` in prctl(2). Other systems than Linux have no such switch.
fn hide() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| {
            let why = format!("the token cannot be hidden from builds: {error}");
            Failure::local(why, "run the runner on another machine")
        })?;
    Ok(())
}

/// Refuses a folder that the user who runs builds cannot reach.
fn check_folder(base: &Path, user: Option<&User>) -> Result<(), Failure> {
    let Some(user) = user else { return Ok(()) };
    let folder = WorkFolder::create(base, Some(user));
    let folder = folder.map_err(|error| Failure::file(base, &error))?;
    let reached = Process::start(&[OsStr::new("true")], &folder.source(), &[], Some(user));
    reached.map(drop).map_err(|error| {
        Failure::usage(
            format!("the user {} cannot reach {}: {error}", user.name, base.display()),
            "say --work-dir with a folder that this user reaches, or --user with another user",
        )
    })
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
