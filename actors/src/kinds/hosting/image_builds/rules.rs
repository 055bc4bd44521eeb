//! The rules of a build: `queued → building → pushing → succeeded | failed | cancelled`. The build of
//! a recipe is not pushed.

use crate::{
    kinds::{hosting::images::Images, world::World},
    runtime::{
        entries::{Under, wire_name},
        resource::{Moment, Resource, Retry, Step, Unique, Work},
    },
};
use contract::{
    Fault, ImageId, JobId, Timestamp, VersionName,
    image_builds::{BuildJob, BuildJobState as S, BuildSource},
    retention::Retention,
    text::{ImageDigest, Slug},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::{Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct ImageBuilds;

/// How much longer than the build an attempt at an effect may take: the deadline comes first.
const EFFECT_LONGER: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What callers see.
    pub job: BuildJob,
    pub source: Source,
    /// Set while the build is building or pushing.
    pub deadline: Option<Timestamp>,
    /// How long it may take from its turn to its end.
    #[serde(default = "limit_of_earlier_versions")]
    pub limit_seconds: u32,
    /// The log is being removed, and the build with it.
    #[serde(default)]
    pub removing: bool,
}

fn limit_of_earlier_versions() -> u32 {
    2 * 3600
}

/// What an image is built from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Source {
    /// A repository. The image is pushed to its registry, and becomes a version.
    Repository(Box<BuildSource>),
    /// A recipe of the program. The version exists already, and its image stays on this machine.
    Recipe { recipe: Slug },
}

impl State {
    pub fn new(
        id: JobId,
        (image_id, version): (ImageId, VersionName),
        source: Source,
        limit: Duration,
        now: Timestamp,
    ) -> State {
        let job = BuildJob {
            id,
            image_id,
            version,
            state: S::Queued,
            progress: 0,
            digest: None,
            error: None,
            created_at: now,
            started_at: None,
            finished_at: None,
        };
        let limit_seconds = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX);
        State { job, source, deadline: None, limit_seconds, removing: false }
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds.into())
    }
}

#[derive(Debug, Clone)]
pub enum Command {
    Cancel,
    /// The progress in percent.
    Reached(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Wait until the queue lets the build begin.
    AwaitTurn,
    Build,
    /// Push the image to its registry, and add the version to the registered image.
    Push,
    /// Remove a batch of the log.
    Forget,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The build may begin.
    Turn,
    /// The image of a repository is on this machine.
    Built,
    /// The image of a recipe is on this machine.
    Ready,
    /// The registered image has the version.
    Pushed(ImageDigest),
    /// Another attempt would fail too.
    Failed(String),
    /// Whether the whole log is removed.
    Forgotten(bool),
}

impl Resource for ImageBuilds {
    const INDEX: u16 = 3;
    type New = State;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn time_limit(state: &State) -> Duration {
        state.limit() + EFFECT_LONGER
    }

    fn create(_: &Moment<Self>, state: State) -> Result<Step<Self>, Fault> {
        Ok(Step::put(state))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        state.on_command(at, command)
    }

    fn on_outcome(state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        state.on_outcome(at, outcome)
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        let effect = match state.job.state {
            S::Queued => Effect::AwaitTurn,
            S::Building => Effect::Build,
            S::Pushing => Effect::Push,
            S::Succeeded | S::Failed | S::Cancelled if state.removing => Effect::Forget,
            S::Succeeded | S::Failed | S::Cancelled => return None,
        };
        Some(Work::now(effect).until(state.deadline))
    }

    fn is_deleted(state: &State) -> bool {
        state.removing
    }

    fn retained(state: &State) -> Vec<(Retention, Timestamp)> {
        let ended = state.job.finished_at.filter(|_| !state.is_open());
        ended.map(|ended| (Retention::ImageBuilds, ended)).into_iter().collect()
    }

    fn on_retention_over(
        state: State,
        _: &Moment<Self>,
        _: Retention,
    ) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State { removing: true, ..state }))
    }

    fn on_due(state: State, at: &Moment<Self>) -> Step<Self> {
        let limit = contract::time::span(state.limit().as_secs());
        state.end(S::Failed, Some(format!("it was not done within {limit}")), at)
    }

    fn index(state: &State) -> Entries<Self> {
        Entries::default()
            .and(ImageBuildIndex::All)
            .and(Under::<Images>(state.job.image_id))
            .and_all(state.is_open().then_some(ImageBuildIndex::Open))
    }

    /// Two builds of one version would overwrite each other.
    fn claims(state: &State) -> Vec<Unique<Self>> {
        let (image, version) = (state.job.image_id, state.job.version.clone());
        let taken = || {
            Fault::Exists("this version is being built already; wait for that, or cancel it with cancelDockerBuild".into())
        };
        let claim = ImageBuildClaim::Version { image, version };
        state.is_open().then(|| Unique::new(claim, taken)).into_iter().collect()
    }

    fn perform(
        effect: Effect,
        id: JobId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

store::entries! {
    pub enum ImageBuildIndex of ImageBuilds {
        All = "all",
        /// Builds that have not ended.
        Open = "open",
    }
}

store::claims! {
    pub enum ImageBuildClaim of ImageBuilds {
        /// The version that a build makes, until the build ends.
        Version { image: ImageId, version: VersionName } = "version",
    }
}

impl State {
    fn is_open(&self) -> bool {
        matches!(self.job.state, S::Queued | S::Building | S::Pushing)
    }

    fn on_command(
        mut self,
        at: &Moment<ImageBuilds>,
        command: Command,
    ) -> Result<Step<ImageBuilds>, Fault> {
        match command {
            // The owner drops the effect that nothing asks for any more, and the engine ends the build.
            Command::Cancel => match self.job.state {
                S::Queued | S::Building => Ok(self.end(S::Cancelled, None, at)),
                S::Cancelled => Ok(Step::keep()),
                S::Pushing => Err(Fault::NotNow("this build is being pushed already, which cannot be cancelled; wait for its end".into())),
                state @ (S::Succeeded | S::Failed) => {
                    let state = wire_name(state);
                    Err(Fault::NotNow(format!(
                        "this build is {state}, so there is nothing to cancel"
                    )))
                }
            },
            // A build that starts again after a crash does not lower its progress.
            Command::Reached(percent)
                if self.job.state == S::Building && percent > self.job.progress =>
            {
                self.job.progress = percent;
                Ok(Step::put(self))
            }
            Command::Reached(_) => Ok(Step::keep()),
        }
    }

    fn on_outcome(mut self, at: &Moment<ImageBuilds>, outcome: Outcome) -> Step<ImageBuilds> {
        match (self.job.state, outcome) {
            (S::Queued, Outcome::Turn) => {
                self.job.state = S::Building;
                self.job.started_at = Some(at.now);
                self.deadline = Some(at.now + self.limit());
                Step::put(self)
            }
            (S::Building, Outcome::Built) => {
                self.job.state = S::Pushing;
                self.job.progress = 90;
                Step::put(self)
            }
            (S::Building, Outcome::Ready) => {
                self.job.progress = 100;
                self.end(S::Succeeded, None, at)
            }
            (S::Pushing, Outcome::Pushed(digest)) => {
                self.job.digest = Some(digest);
                self.job.progress = 100;
                self.end(S::Succeeded, None, at)
            }
            (S::Building | S::Pushing, Outcome::Failed(why)) => self.end(S::Failed, Some(why), at),
            (_, Outcome::Forgotten(true)) if self.removing => Step::remove(),
            // The outcome of an overtaken effect.
            _ => Step::keep(),
        }
    }

    fn end(mut self, state: S, why: Option<String>, at: &Moment<ImageBuilds>) -> Step<ImageBuilds> {
        self.job.state = state;
        self.job.error = why;
        self.job.finished_at = Some(at.now);
        self.deadline = None;
        Step::put(self)
    }
}
