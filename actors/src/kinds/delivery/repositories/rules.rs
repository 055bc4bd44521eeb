//! The rules of a repository: one check runs at a time, and its result stays until the next one. A
//! check that is wanted meanwhile follows, because the running one may have read an earlier commit.
//!
//! Only checks learn the key of an ssh host, so two of them never learn different ones.

use super::deploy_key::{DeployKey, HostTrust};
use crate::{
    kinds::world::World,
    ports::sealed::Sealed,
    runtime::resource::{Child, Moment, Resource, Retry, Step, Unique, Work},
};
use contract::{
    AppId, Fault, RepositoryId, Timestamp,
    apps::Platform,
    repositories::{DetectedFile, Finding, RepositoryMode},
    ssh::SshHostKey,
    text::{GitRef, GitUrl, HostId},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use store::Snapshot;

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
    /// Exactly if the address is one of ssh.
    #[serde(default)]
    pub deploy_key: Option<DeployKey>,
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
    /// The profiles that can be built, by platform. `None` if the configuration cannot be read.
    #[serde(default)]
    pub profiles: Option<BTreeMap<Platform, BTreeSet<String>>>,
    pub at: Timestamp,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Replace the address, forget the last result, and check. The same address keeps its deploy key.
    Connect(Source),
    /// Check again, after the pending check if there is one.
    Check,
    Disconnect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Read the repository. It changes nothing there, so it may run twice.
    Check,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was read. The address may have been replaced meanwhile.
    pub source: Source,
    /// The key of the ssh host, if the check learned it.
    pub host_key: Option<SshHostKey>,
    /// The error says why the repository cannot be read.
    pub found: Result<Box<Checked>, String>,
}

impl Resource for Repositories {
    const INDEX: u16 = 2;
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
            Command::Connect(source) => {
                let source = source.in_place_of(repository.source);
                check(Repository::new(repository.app_id, source)).anew(Duration::ZERO)
            }
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
            return Step::keep();
        }
        let (checked, error) = match outcome.found {
            Ok(checked) => (Some(*checked), None),
            Err(why) => (repository.checked, Some(why)),
        };
        let source = repository.source.with_host_key(outcome.host_key);
        let after = Repository { source, checking: Checking::No, checked, error, ..repository };
        match repository.checking {
            Checking::Again => check(after),
            _ => Step::put(after),
        }
    }

    fn next(repository: &Repository) -> Option<Work<Effect>> {
        (repository.checking != Checking::No).then(|| Work::now(Effect::Check))
    }

    /// `Stale`: the call is decided again, and replaces the repository that exists.
    fn claims(repository: &Repository) -> Vec<Unique<Self>> {
        vec![Unique::new(RepositoryClaim::App { app: repository.app_id }, || Fault::Stale)]
    }

    fn perform(
        effect: Effect,
        _: RepositoryId,
        kept: Snapshot<Self>,
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

impl Checked {
    /// Whether builds of the branch run in the CI of the repository.
    pub fn runs_in_own_ci(&self) -> bool {
        self.mode == RepositoryMode::Managed && self.installation.is_some()
    }
}

impl Source {
    /// This source, after an earlier one was connected.
    fn in_place_of(self, earlier: Source) -> Source {
        let same = self.url == earlier.url;
        let deploy_key = match (self.deploy_key, earlier.deploy_key) {
            (Some(new), Some(old)) if same => Some(old.connected_again(new)),
            (key, _) => key,
        };
        Source { deploy_key, ..self }
    }

    /// This source, once the key of its host is known.
    pub(super) fn with_host_key(self, learned: Option<SshHostKey>) -> Source {
        let deploy_key = match (self.deploy_key, learned) {
            (Some(key), Some(learned)) => {
                Some(DeployKey { host: HostTrust::Pinned(learned), ..key })
            }
            (key, _) => key,
        };
        Source { deploy_key, ..self }
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ports::sealed::Sealer,
        runtime::resource::{Input, Kept, step},
    };
    use contract::Id;
    use ulid::Ulid;

    fn source(host: &str) -> Source {
        let url = format!("https://{host}/app.git").parse().unwrap();
        Source { url, branch: None, token: None, installation: None, deploy_key: None }
    }

    /// A source with the deploy key of this name.
    fn over_ssh(host: &str, name: &str, host_trust: HostTrust) -> Source {
        let url = format!("ssh://{host}/app.git").parse().unwrap();
        let public = format!("ssh-ed25519 AAAA {name}").parse().unwrap();
        let private = Sealer::new([7; 32]).seal("app_1", name).unwrap();
        let deploy_key = Some(DeployKey { public, private, host: host_trust });
        Source { url, deploy_key, ..source(host) }
    }

    fn host_key(n: u8) -> SshHostKey {
        format!("ssh-ed25519 AAA{n}").parse().unwrap()
    }

    fn checked(commit: u8) -> Box<Checked> {
        Box::new(Checked {
            installation: None,
            commit: commit.to_string(),
            branch: "main".into(),
            mode: RepositoryMode::Managed,
            detected: vec![],
            findings: vec![],
            profiles: None,
            at: Timestamp::from_millis(0),
        })
    }

    fn outcome(source: Source, found: Result<Box<Checked>, String>) -> Input<Repositories> {
        Input::Outcome(Outcome { source, host_key: None, found })
    }

    fn inputs() -> Vec<Input<Repositories>> {
        vec![
            Input::Command(Command::Connect(source("a.example"))),
            Input::Command(Command::Connect(source("b.example"))),
            Input::Command(Command::Check),
            Input::Command(Command::Disconnect),
            outcome(source("a.example"), Ok(checked(1))),
            outcome(source("a.example"), Err("gone".into())),
            outcome(source("b.example"), Ok(checked(2))),
        ]
    }

    /// Also outcomes of checks that began before the repository was connected again.
    fn inputs_over_ssh() -> Vec<Input<Repositories>> {
        let connect = |source| Input::Command(Command::Connect(source));
        let learned = |trust, key| {
            let source = over_ssh("a.example", "first", trust);
            Input::Outcome(Outcome { source, host_key: key, found: Err("denied".into()) })
        };
        let [one, two] = [1, 2].map(host_key);
        let expected = HostTrust::Expected(two.fingerprint());
        vec![
            connect(over_ssh("a.example", "second", HostTrust::FirstUse)),
            connect(over_ssh("a.example", "third", expected.clone())),
            connect(over_ssh("b.example", "other", HostTrust::FirstUse)),
            learned(HostTrust::FirstUse, Some(one.clone())),
            learned(expected, Some(two.clone())),
            learned(HostTrust::Pinned(one), None),
            learned(HostTrust::Pinned(two), None),
        ]
    }

    /// Takes all sequences of inputs up to a length, and looks at each record that they reach.
    fn explore(
        kept: &Kept<Repositories>,
        inputs: &[Input<Repositories>],
        length: usize,
        look: &mut impl FnMut(&Kept<Repositories>, &Input<Repositories>, Option<&Kept<Repositories>>),
    ) {
        let at = Moment { id: RepositoryId::of(Ulid(7)), now: Timestamp::from_millis(0) };
        for input in inputs {
            let step = step(&at, Some(kept), input.clone()).unwrap();
            let after = step.apply(Some(kept)).unwrap();
            look(kept, input, after.as_ref());
            if let (Some(after), 1..) = (after, length) {
                explore(&after, inputs, length - 1, look);
            }
        }
    }

    fn begun(source: Source) -> Kept<Repositories> {
        let at = Moment { id: RepositoryId::of(Ulid(7)), now: Timestamp::from_millis(0) };
        let new = Repository::new(AppId::of(Ulid(1)), source);
        let begun = step::<Repositories>(&at, None, Input::Create(Box::new(new)));
        begun.unwrap().apply(None).unwrap().unwrap()
    }

    #[test]
    fn a_check_is_pending_exactly_while_it_says_so() {
        explore(&begun(source("a.example")), &inputs(), 4, &mut |before, input, after| {
            let Some(after) = after else {
                assert!(matches!(input, Input::Command(Command::Disconnect)));
                return;
            };
            assert_eq!(after.checking != Checking::No, after.pending().is_some());
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

    #[test]
    fn a_deploy_key_stays_with_its_address_and_a_host_key_until_another_one_is_expected() {
        let first = over_ssh("a.example", "first", HostTrust::FirstUse);
        explore(&begun(first), &inputs_over_ssh(), 4, &mut |before, input, after| {
            let after = after.unwrap();
            let is_same = before.source.url == after.source.url;
            let [was, is] = [before, after].map(|kept| kept.source.deploy_key.clone().unwrap());
            match input {
                Input::Command(Command::Connect(source)) if is_same => {
                    let expected = source.deploy_key.clone().unwrap().host;
                    assert_eq!((&is.public, &is.private), (&was.public, &was.private));
                    assert_eq!(is.host, was.host.connected_again(expected));
                }
                Input::Command(Command::Connect(source)) => {
                    assert_eq!(Some(&is), source.deploy_key.as_ref());
                }
                Input::Outcome(Outcome { source, host_key: Some(learned), .. })
                    if *source == before.source =>
                {
                    assert_eq!(is.host, HostTrust::Pinned(learned.clone()));
                    assert!(was.host.accepts(learned));
                }
                // What was read of another source teaches nothing.
                _ => assert_eq!(is, was),
            }
        });
    }
}
