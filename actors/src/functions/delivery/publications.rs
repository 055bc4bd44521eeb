//! The handlers of staged rollouts, and the waits for stores.

use super::releases::read_release;
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        delivery::publications::{Command, Publications, State},
        world::World,
    },
    runtime::resource::Input,
};
use contract::{
    BoundedSet, Fault, PublicationId, Serves,
    releases::{
        HaltRollout, Publication, PublicationState, Release, ResumeRollout, SetRollout, Target,
    },
};
use std::time::Duration;

/// How long a call waits for the stores.
const WITHIN: Duration = Duration::from_secs(25);
/// How long a call waits to hear where publications stand.
const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// The pause between two looks at a record.
const LOOK_EVERY: Duration = Duration::from_millis(50);

type Targets = Option<BoundedSet<Target, 1, 5>>;

impl Serves<SetRollout> for Platform {
    async fn serve(&self, cx: &Call, p: SetRollout) -> Result<Release, Fault> {
        let is_open = |p: &Publication| p.rollout.is_some() || waits_for_approval(p);
        control(cx, p.targets, is_open, Command::SetRollout(p.rollout)).await
    }
}

impl Serves<HaltRollout> for Platform {
    async fn serve(&self, cx: &Call, p: HaltRollout) -> Result<Release, Fault> {
        let is_open = |p: &Publication| p.rollout.is_some();
        control(cx, p.targets, is_open, Command::Halt).await
    }
}

impl Serves<ResumeRollout> for Platform {
    async fn serve(&self, cx: &Call, p: ResumeRollout) -> Result<Release, Fault> {
        let is_halted =
            |p: &Publication| p.rollout.is_some() && p.state == PublicationState::Halted;
        control(cx, p.targets, is_halted, Command::Resume).await
    }
}

/// Whether an approved version waits until somebody releases it.
fn waits_for_approval(publication: &Publication) -> bool {
    publication.target == Target::AppStore && publication.state == PublicationState::InReview
}

/// Sends a command to the publications of a release, and waits for their stores. Without
/// targets, the command is for those that it fits.
async fn control(
    cx: &Call,
    targets: Targets,
    fits: impl Fn(&Publication) -> bool,
    command: Command,
) -> Result<Release, Fault> {
    let (release_id, seen) = cx.ancestry.release()?;
    let publications = seen.state.release.publications.iter();
    let is_meant = |p: &&Publication| match &targets {
        Some(targets) => targets.contains(&p.target),
        None => p.target != Target::Ota && fits(p),
    };
    let meant: Vec<_> = publications.filter(is_meant).collect();
    if meant.is_empty() {
        return Err(Fault::NotNow(
            "no publication of this release has a rollout to which this applies".into(),
        ));
    }
    if meant.iter().any(|p| p.target == Target::Ota) {
        return Err(Fault::NotNow(
            "ota has no staged rollout: its page serves everybody who has its address".into(),
        ));
    }
    for publication in &meant {
        cx.to::<Publications>(publication.id).tell(Input::Command(command.clone())).await?;
    }
    let ids: Vec<_> = meant.iter().map(|p| p.id).collect();
    wait_until_fulfilled(&cx.world, &ids).await?;
    read_release(&cx.world, release_id)
}

/// Waits until the stores do what was wanted last, or refuse it, at most [`WITHIN`].
pub(in crate::functions) async fn wait_until_fulfilled(
    world: &World,
    ids: &[PublicationId],
) -> Result<(), Fault> {
    let done = |state: &State| state.at_rest && !state.unreported;
    wait_for(world, ids, WITHIN, |_, state| done(state)).await
}

/// Asks the stores where publications stand, and waits for their answers, at most
/// [`SEEN_WITHIN`].
pub(in crate::functions) async fn poll(world: &World, ids: &[PublicationId]) -> Result<(), Fault> {
    let mut asked = Vec::new();
    for id in ids {
        match world.to::<Publications>(*id).ask(Command::Look).await {
            Ok(state) => asked.push((*id, state.due)),
            Err(Fault::NotFound(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    let answered = |id, state: &State| {
        let is_asked = asked.iter().any(|(of, due)| *of == id && *due == state.due);
        (!is_asked || state.due.is_none()) && !state.unreported
    };
    wait_for(world, ids, SEEN_WITHIN, answered).await
}

async fn wait_for(
    world: &World,
    ids: &[PublicationId],
    within: Duration,
    done: impl Fn(PublicationId, &State) -> bool,
) -> Result<(), Fault> {
    let (store, clock) = (&world.store, &world.ports.clock);
    let all_done = || -> Result<bool, Fault> {
        for id in ids {
            if store.get::<Publications>(id)?.is_some_and(|seen| !done(*id, &seen.state)) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let wait = async {
        while !all_done()? {
            clock.sleep(LOOK_EVERY).await;
        }
        Ok(())
    };
    clock.limit(within, wait).await.unwrap_or(Ok(()))
}
