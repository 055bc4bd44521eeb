//! The rules of a repository: one check runs at a time, and its result stays until the next one. A
//! check that is wanted meanwhile follows, because the running one may have read an earlier commit.

use crate::{
    ports::sealed::Sealed,
    runtime::resource::{Child, Intent, Kept, Moment, Resource, Retry, Step, Unique},
    world::World,
};
use contract::{
    AppId, Fault, RepositoryId, Timestamp,
    repositories::{DetectedFile, Finding, RepositoryMode},
    text::{GitRef, GitUrl, HostId},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

#[derive(Debug, Clone, Copy)]
pub struct Repositories;

/// The stored state of a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repository {
    pub app_id: AppId,
    pub source: Source,
    pub checking: Checking,
    /// The last check that could read the repository.
    pub checked: Option<Checked>,
    /// Why a later check could not read the repository.
    pub error: Option<String>,
}

/// Whether a check is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Checking {
    No,
    Yes,
    /// Another check follows the pending one.
    Again,
}

/// The address of a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub url: GitUrl,
    pub branch: Option<GitRef>,
    /// Sealed for the app.
    pub token: Option<Sealed>,
    /// The installation of the GitHub App that must have the repository.
    #[serde(default)]
    pub installation: Option<HostId>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The installation of the GitHub App that serves the app.
    #[serde(default)]
    pub installation: Option<HostId>,
    pub commit: String,
    pub branch: String,
    pub mode: RepositoryMode,
    pub detected: Vec<DetectedFile>,
    pub findings: Vec<Finding>,
    pub at: Timestamp,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Replace the address, forget the last result, and check.
    Connect(Source),
    /// Check again, after the pending check if there is one.
    Check,
    Disconnect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Read the repository. It changes nothing there, so it may run twice.
    Check,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was read. The address may have been replaced meanwhile.
    pub source: Source,
    /// The error says why the repository cannot be read.
    pub found: Result<Box<Checked>, String>,
}

impl Resource for Repositories {
    const TIME_LIMIT: Duration = Duration::from_secs(120);
    type New = Repository;
    type State = Repository;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, repository: Repository) -> Result<Step<Self>, Fault> {
        Ok(check(repository))
    }

    fn on_command(
        repository: Repository,
        _: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        Ok(match command {
            Command::Connect(source) => check(Repository::new(repository.app_id, source)),
            Command::Check => match repository.checking {
                Checking::No => check(repository),
                Checking::Yes => Step::put(Repository { checking: Checking::Again, ..repository }),
                Checking::Again => Step::keep(),
            },
            Command::Disconnect => Step::remove(),
        })
    }

    fn on_outcome(repository: Repository, _: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        if outcome.source != repository.source {
            return match repository.checking {
                Checking::No => Step::keep(),
                _ => Step::keep().intend(Intent::Now(Effect::Check)),
            };
        }
        let (checked, error) = match outcome.found {
            Ok(checked) => (Some(*checked), None),
            Err(why) => (repository.checked, Some(why)),
        };
        let after = Repository { checking: Checking::No, checked, error, ..repository };
        match repository.checking {
            Checking::Again => check(after),
            _ => Step::put(after).intend(Intent::None),
        }
    }

    fn is_deleted(_: &Repository) -> bool {
        false
    }

    /// `Stale`: the call is decided again, and replaces the repository that exists.
    fn claims(repository: &Repository) -> Vec<Unique<Self>> {
        vec![Unique::new(RepositoryClaim::App { app: repository.app_id }, || Fault::Stale)]
    }

    fn perform(
        effect: Effect,
        _: RepositoryId,
        kept: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, kept, world))
    }
}

impl Child for Repositories {
    fn parent(repository: &Repository) -> Option<AppId> {
        Some(repository.app_id)
    }

    fn delete() -> Command {
        Command::Disconnect
    }
}

store::claims! {
    /// An app has one repository.
    pub enum RepositoryClaim of Repositories {
        App { app: AppId } = "app",
    }
}

impl Repository {
    /// A repository that has not been checked.
    pub fn new(app_id: AppId, source: Source) -> Self {
        Repository { app_id, source, checking: Checking::No, checked: None, error: None }
    }
}

fn check(repository: Repository) -> Step<Repositories> {
    Step::put(Repository { checking: Checking::Yes, ..repository })
        .intend(Intent::Now(Effect::Check))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::runtime::resource::{Input, step};
    use contract::Id;
    use ulid::Ulid;

    fn source(host: &str) -> Source {
        let url = format!("https://{host}/app.git").parse().unwrap();
        Source { url, branch: None, token: None, installation: None }
    }

    fn checked(commit: u8) -> Box<Checked> {
        Box::new(Checked {
            installation: None,
            commit: commit.to_string(),
            branch: "main".into(),
            mode: RepositoryMode::Managed,
            detected: vec![],
            findings: vec![],
            at: Timestamp::from_millis(0),
        })
    }

    fn inputs() -> Vec<Input<Repositories>> {
        vec![
            Input::Command(Command::Connect(source("a.example"))),
            Input::Command(Command::Connect(source("b.example"))),
            Input::Command(Command::Check),
            Input::Command(Command::Disconnect),
            Input::Outcome(Outcome { source: source("a.example"), found: Ok(checked(1)) }),
            Input::Outcome(Outcome { source: source("a.example"), found: Err("gone".into()) }),
            Input::Outcome(Outcome { source: source("b.example"), found: Ok(checked(2)) }),
        ]
    }

    /// Takes all sequences of inputs up to a length, and looks at each record that they reach.
    fn explore(
        kept: &Kept<Repositories>,
        length: usize,
        look: &mut impl FnMut(&Kept<Repositories>, &Input<Repositories>, Option<&Kept<Repositories>>),
    ) {
        let at = Moment { id: RepositoryId::of(Ulid(7)), now: Timestamp::from_millis(0) };
        for input in inputs() {
            let step = step(&at, Some(&kept.state), input.clone()).unwrap();
            let after = step.apply(Some(kept)).unwrap();
            look(kept, &input, after.as_ref());
            if let (Some(after), 1..) = (after, length) {
                explore(&after, length - 1, look);
            }
        }
    }

    #[test]
    fn a_check_is_pending_exactly_while_it_says_so() {
        let state = Repository::new(AppId::of(Ulid(1)), source("a.example"));
        let begun = Repositories::create(
            &Moment { id: RepositoryId::of(Ulid(7)), now: Timestamp::from_millis(0) },
            state,
        );
        let begun = begun.unwrap().apply(None).unwrap().unwrap();
        explore(&begun, 4, &mut |before, input, after| {
            let Some(after) = after else {
                assert!(matches!(input, Input::Command(Command::Disconnect)));
                return;
            };
            assert_eq!(after.checking != Checking::No, after.intent.is_some());
            match input {
                // What is known of one repository is not shown of another.
                Input::Command(Command::Connect(source)) => {
                    assert_eq!((&after.source, &after.checked), (source, &None));
                }
                Input::Outcome(outcome) if outcome.source != before.source => {
                    assert_eq!(
                        (&after.checked, after.checking),
                        (&before.checked, before.checking)
                    );
                }
                Input::Outcome(outcome) => {
                    // A check that was wanted during another one is never lost.
                    let again = before.checking == Checking::Again;
                    assert_eq!(after.checking == Checking::Yes, again, "{:?}", after.checking);
                    let known = outcome.found.as_ref().ok().map(|found| &**found);
                    assert_eq!(after.checked.as_ref(), known.or(before.checked.as_ref()));
                    assert_eq!(after.error.as_ref(), outcome.found.as_ref().err());
                }
                _ => assert_eq!(after.checked, before.checked),
            }
        });
    }
}
