//! The rules of a trusted publisher: the ids of its repository are fixed by the first exchange.

use crate::runtime::resource::{Child, Moment, Resource, Step, Unique, without_effects};
use contract::{
    AppId, Fault, UserId,
    text::{HostId, RepositoryName},
    trusted_publishers::TrustedPublisher,
};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use store::Entries;

#[derive(Debug, Clone, Copy)]
pub struct TrustedPublishers;

/// The stored state of a trusted publisher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Publisher {
    /// The part that callers see.
    #[serde(flatten)]
    pub shown: TrustedPublisher,
    /// The maker's token epoch at creation.
    #[serde(default)]
    pub maker_epoch: u32,
}

impl Deref for Publisher {
    type Target = TrustedPublisher;
    fn deref(&self) -> &TrustedPublisher {
        &self.shown
    }
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Fix the ids of the repository and of its owner.
    Pin {
        repository: HostId,
        owner: HostId,
    },
    Remove,
}

impl Resource for TrustedPublishers {
    const INDEX: u16 = 2;
    type New = Publisher;
    type State = Publisher;
    type Command = Command;
    without_effects!();

    fn create(_: &Moment<Self>, publisher: Publisher) -> Result<Step<Self>, Fault> {
        Ok(Step::put(publisher))
    }

    fn on_command(
        mut publisher: Publisher,
        _: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        let Command::Pin { repository, owner } = command else { return Ok(Step::remove()) };
        let (ours, theirs) =
            (&mut publisher.shown.repository_id, &mut publisher.shown.repository_owner_id);
        let is_another = ours.as_ref().is_some_and(|id| *id != repository)
            || theirs.as_ref().is_some_and(|id| *id != owner);
        if is_another {
            return Err(Fault::Unauthenticated(
                "the identity is that of another repository with the same name".into(),
            ));
        }
        if ours.is_some() && theirs.is_some() {
            return Ok(Step::keep());
        }
        (*ours, *theirs) = (Some(repository), Some(owner));
        Ok(Step::put(publisher))
    }

    fn index(publisher: &Publisher) -> Entries<Self> {
        Entries::default()
            .and(TrustedPublisherIndex::of(&publisher.repository))
            .and(TrustedPublisherIndex::Maker { user: publisher.created_by })
    }

    fn claims(publisher: &Publisher) -> Vec<Unique<Self>> {
        let taken = || {
            Fault::Exists(
                "this app trusts this workflow already; to change its conditions, remove it first"
                    .into(),
            )
        };
        vec![Unique::new(TrustedPublisherClaim::of(publisher), taken)]
    }
}

impl Child for TrustedPublishers {
    fn parent(publisher: &Publisher) -> Option<AppId> {
        Some(publisher.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    pub enum TrustedPublisherIndex of TrustedPublishers {
        /// The publishers for a repository, of all apps. The name is in lower case. Nothing looks there:
        /// anybody may name any repository, so who is trusted is looked up by app. The stores hold the
        /// entries, and each record must have those of its kind.
        Repository { name: String } = "repository",
        /// The publishers that a user added.
        Maker { user: UserId } = "maker",
    }
}

impl TrustedPublisherIndex {
    /// Hosts compare names of repositories without their case.
    pub fn of(repository: &RepositoryName) -> Self {
        TrustedPublisherIndex::Repository { name: repository.as_str().to_ascii_lowercase() }
    }
}

store::claims! {
    pub enum TrustedPublisherClaim of TrustedPublishers {
        /// An app trusts a workflow once for each environment.
        Workflow { app: AppId, issuer: String, name: String, workflow: String, environment: String } = "workflow",
        /// The same for each branch, tag or pattern of them, if only these are trusted.
        WorkflowOfRef { app: AppId, git_ref: String, issuer: String, name: String, workflow: String, environment: String } = "workflowOfRef",
    }
}

impl TrustedPublisherClaim {
    fn of(publisher: &TrustedPublisher) -> Self {
        let app = publisher.app_id;
        let issuer = publisher.issuer.as_str().to_owned();
        let name = publisher.repository.as_str().to_ascii_lowercase();
        let workflow = publisher.workflow.as_str().to_owned();
        let environment = publisher.environment.as_ref().map(|e| e.as_str().to_owned());
        let environment = environment.unwrap_or_default();
        match &publisher.git_ref {
            None => TrustedPublisherClaim::Workflow { app, issuer, name, workflow, environment },
            Some(git_ref) => TrustedPublisherClaim::WorkflowOfRef {
                app,
                git_ref: git_ref.as_str().to_owned(),
                issuer,
                name,
                workflow,
                environment,
            },
        }
    }
}
