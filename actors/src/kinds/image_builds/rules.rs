//! The rules of a build: `queued → building → pushing → succeeded | failed | cancelled`.

use crate::{
    runtime::{
        deadline::due,
        resource::{Input, Intent, Kept, Moment, Resource, Retry, Step},
    },
    world::World,
};
use contract::{
    Fault, JobId, Timestamp,
    image_builds::{BuildJob, BuildJobState as S, BuildSource},
    text::ImageDigest,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The builds of images.
#[derive(Debug, Clone, Copy)]
pub struct ImageBuilds;

/// How long a build may take, from its turn to its end.
const WITHIN: Duration = Duration::from_secs(2 * 3600);
/// How often one that waits looks whether it is its turn.
const POLL: Duration = Duration::from_millis(500);
/// The index entry of those that are under way or wait.
pub(super) const OPEN: &str = "open";

/// What is kept of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What is shown. How far it is while it is being built is in its log.
    pub job: BuildJob,
    /// What is built.
    pub source: BuildSource,
    /// The end of a state that must end.
    pub deadline: Option<Timestamp>,
}

/// What can be asked of a build.
#[derive(Debug, Clone)]
pub enum Command {
    /// Make it.
    Create(Box<State>),
    /// Nobody wants it any more.
    Cancel,
    /// A state that must end has not.
    Overdue,
}

/// What a build does outside of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Look whether it is its turn.
    AwaitTurn,
    /// Build the image.
    Build,
    /// Send it to its registry, and add it to the registered image.
    Push,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Not yet.
    Wait,
    /// It is its turn.
    Turn,
    /// The image is on this machine.
    Built,
    /// The registered image has the version.
    Pushed(ImageDigest),
    /// It will not be done.
    Failed(String),
}

impl Resource for ImageBuilds {
    const KIND: &'static str = "imageBuild";
    const TIME_LIMIT: Duration = Duration::from_secs(2 * 3600 + 60);
    type Id = JobId;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn step(
        at: &Moment<Self>,
        state: Option<&State>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault> {
        match (state, input) {
            (None, Input::Command(Command::Create(state))) => {
                Ok(Step::put(*state).intend(Intent::Now(Effect::AwaitTurn)))
            }
            (None, Input::Command(_)) => Err(Fault::NotFound("build")),
            (None, Input::Outcome(_)) => Ok(Step::keep()),
            (Some(state), Input::Command(command)) => state.clone().take(at, command),
            (Some(state), Input::Outcome(outcome)) => Ok(state.clone().learn(at, outcome)),
        }
    }

    fn index(state: &State) -> Vec<String> {
        let mut entries = vec!["all".into(), format!("image/{}", state.job.image_id)];
        entries.extend(state.is_open().then(|| OPEN.to_owned()));
        entries.extend(state.deadline.map(due));
        entries
    }

    /// Two builds of one version would overwrite each other.
    fn claims(state: &State) -> Vec<String> {
        let of = format!("version/{}/{}", state.job.image_id, state.job.version);
        if state.is_open() { vec![of] } else { vec![] }
    }

    fn taken(_: &str) -> Fault {
        Fault::Exists("this version is being built already".into())
    }

    fn perform(
        effect: Effect,
        id: JobId,
        kept: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl State {
    fn is_open(&self) -> bool {
        matches!(self.job.state, S::Queued | S::Building | S::Pushing)
    }

    fn take(self, at: &Moment<ImageBuilds>, command: Command) -> Result<Step<ImageBuilds>, Fault> {
        match command {
            Command::Create(_) => Err(Fault::Exists("this build exists already".into())),
            // What is being done is dropped with the intent, and the engine ends the build.
            Command::Cancel => match self.job.state {
                S::Queued | S::Building => Ok(self.end(S::Cancelled, None, at)),
                S::Cancelled => Ok(Step::keep()),
                S::Pushing => Err(Fault::NotNow("this build is being pushed already".into())),
                S::Succeeded | S::Failed => {
                    Err(Fault::NotNow("this build has come to its end already".into()))
                }
            },
            Command::Overdue if self.deadline.is_some_and(|deadline| at.now >= deadline) => {
                Ok(self.end(S::Failed, Some("it was not done within two hours".into()), at))
            }
            Command::Overdue => Ok(Step::keep()),
        }
    }

    fn learn(mut self, at: &Moment<ImageBuilds>, outcome: Outcome) -> Step<ImageBuilds> {
        match (self.job.state, outcome) {
            (S::Queued, Outcome::Turn) => {
                self.job.state = S::Building;
                self.job.started_at = Some(at.now);
                self.deadline = Some(at.now + WITHIN);
                Step::put(self).intend(Intent::Now(Effect::Build))
            }
            (S::Building, Outcome::Built) => {
                self.job.state = S::Pushing;
                self.job.progress = 90;
                Step::put(self).intend(Intent::Now(Effect::Push))
            }
            (S::Pushing, Outcome::Pushed(digest)) => {
                self.job.digest = Some(digest);
                self.job.progress = 100;
                self.end(S::Succeeded, None, at)
            }
            (S::Building | S::Pushing, Outcome::Failed(why)) => self.end(S::Failed, Some(why), at),
            (S::Queued, Outcome::Wait) => {
                Step::keep().intend(Intent::After(POLL, Effect::AwaitTurn))
            }
            // the outcome of something that was overtaken
            _ => Step::keep(),
        }
    }

    fn end(mut self, state: S, why: Option<String>, at: &Moment<ImageBuilds>) -> Step<ImageBuilds> {
        self.job.state = state;
        self.job.error = why;
        self.job.finished_at = Some(at.now);
        self.deadline = None;
        Step::put(self).intend(Intent::None)
    }
}
