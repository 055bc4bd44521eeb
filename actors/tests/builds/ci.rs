//! The state machine of a build in a CI.

use super::begun;
use super::{Event, asked, explore, plan, take};
use actors::{
    kinds::delivery::builds::{
        Builds, Command, Destination, Effect, Outcome, RunOutcome as R, RunReport, Workflow,
    },
    ports::ci::{BegunRun, Phase, RunProgress},
    runtime::resource::{Kept, Resource},
};
use contract::{ArtifactId, EventId, Id, Timestamp, builds::BuildState as S, retention::Retention};
use std::time::Duration;
use ulid::Ulid;

const RUN: u64 = 17_000_000_001;

fn destination() -> Destination {
    Destination {
        workflow: Workflow::Own,
        repository: "acme/app".parse().unwrap(),
        now: Timestamp::from_millis(0),
    }
}

fn planned() -> Event {
    Event::Outcome(Outcome::Planned(Box::new(plan()), Some(destination())))
}

fn run(outcome: R) -> Event {
    Event::Outcome(Outcome::Run(outcome))
}

fn begins() -> Event {
    run(R::Begun(BegunRun {
        id: RUN,
        url: "https://github.com/acme/app/actions/runs/17000000001".parse().ok(),
        title: String::new(),
        git_ref: None,
    }))
}

fn looked(phase: Phase, made: Option<u128>) -> Event {
    let tag = Some("a".to_owned());
    let progress = RunProgress { tag, phase, commit: "c0ffee".into(), steps: vec!["one".into()] };
    let made = made.map(|id| ArtifactId::of(Ulid(id)));
    run(R::Looked(Some(Box::new(RunReport { progress, made, key: EventId::of(Ulid(9)) }))))
}

fn events() -> Vec<Event> {
    let minutes = |n: u64| Event::Passes(Duration::from_secs(60 * n));
    let phases = [Phase::Waiting, Phase::Running, Phase::Cancelled];
    let phases = phases.map(|phase| looked(phase, None));
    let ends = ["failure", "timed_out"].map(|end| looked(Phase::Failed(end.into()), None));
    let others = [
        minutes(3),
        minutes(24 * 60),
        planned(),
        begins(),
        looked(Phase::Succeeded, Some(5)),
        looked(Phase::Succeeded, None),
        run(R::NotBegun(Duration::from_secs(7))),
        run(R::Unclear),
        run(R::NotFound),
        run(R::Looked(None)),
        run(R::Later(Duration::from_secs(7))),
        run(R::Gone("gone".into())),
        run(R::Ending),
        run(R::Ended),
        Event::Outcome(Outcome::Impossible("no".into())),
        Event::Outcome(Outcome::Forgotten(true)),
        Event::Command(Command::RunChanged { run: RUN }),
        Event::Command(Command::Cancel),
        Event::Due,
        Event::Over(Retention::BuildLogs),
        Event::Command(Command::Remove),
    ];
    phases.into_iter().chain(ends).chain(others).collect()
}

/// Whether an effect can have an outcome.
fn fits(effect: Option<&Effect>, event: &Event) -> bool {
    let outcome = match event {
        Event::Outcome(outcome) => outcome,
        _ => return true,
    };
    match (effect, outcome) {
        (Some(Effect::Plan), Outcome::Planned(..) | Outcome::Impossible(_)) => true,
        (Some(Effect::Dispatch), Outcome::Impossible(_)) => true,
        (Some(Effect::Forget), Outcome::Forgotten(_)) => true,
        (Some(effect), Outcome::Run(outcome)) => match outcome {
            R::Begun(_) => matches!(effect, Effect::Dispatch | Effect::Find),
            R::NotBegun(_) | R::Unclear => *effect == Effect::Dispatch,
            R::NotFound => *effect == Effect::Find,
            R::Looked(..) => *effect == Effect::Follow,
            R::Later(_) => matches!(effect, Effect::Find | Effect::Follow | Effect::CancelRun),
            R::Gone(_) => matches!(
                effect,
                Effect::Dispatch | Effect::Find | Effect::Follow | Effect::CancelRun
            ),
            R::Ending | R::Ended => *effect == Effect::CancelRun,
        },
        _ => false,
    }
}

#[test]
fn a_build_in_a_ci_is_sound_after_every_sequence_of_inputs() {
    let states = explore(&events(), 8, |before, event, after| {
        if !fits(asked(before).as_ref(), event) {
            return false;
        }
        let (from, to) = (&before.state, &after.state);
        // Once the host may have begun a run, the service asks for none again.
        let begun = [Effect::Find, Effect::Follow, Effect::CancelRun];
        if asked(before).is_some_and(|effect| begun.contains(&effect)) {
            let asks = [Some(Effect::Plan), Some(Effect::Dispatch)];
            assert!(!asks.contains(&asked(after)), "{event:?}: {before:?}");
        }
        // A build in a CI is followed until it ends.
        let followed = [Some(Effect::Dispatch), Some(Effect::Find), Some(Effect::Follow)];
        if to.run.is_some() && !to.build.state.is_final() && !to.removing {
            assert!(followed.contains(&asked(after)), "{event:?}: {after:?}");
        }
        // A run that nobody wants any more is looked for and cancelled until it is over, but not
        // forever.
        let unwanted = to.removing || to.build.state.is_final();
        if let Some(run) = to.run.as_ref().filter(|run| unwanted && !run.over) {
            let ends = match run.id {
                Some(_) => &[Effect::CancelRun][..],
                None => &[Effect::Dispatch, Effect::Find][..],
            };
            assert!(asked(after).is_some_and(|effect| ends.contains(&effect)), "{after:?}");
            assert!(Builds::next(to).unwrap().until.is_some(), "{after:?}");
        }
        // The app repeats the removal of its builds until they are gone.
        if from.removing && matches!(event, Event::Command(Command::Remove)) {
            assert_eq!((from, before.pending()), (to, after.pending()));
        }
        true
    });
    assert_eq!(states.len(), 7, "each state was reached: {states:?}");
}

/// Takes events one after another.
fn after(events: &[Event]) -> Kept<Builds> {
    let (mut kept, mut now) = (begun(), Timestamp::from_millis(0));
    for event in events {
        kept = take(&kept, &mut now, event).unwrap().unwrap();
    }
    kept
}

#[test]
fn a_run_that_the_host_never_shows_fails_the_build() {
    let unclear = [planned(), run(R::Unclear), run(R::NotFound)];
    assert_eq!(after(&unclear).pending(), Some(Effect::Find));
    let wait = Event::Passes(Duration::from_secs(121));
    let kept = after(&[&unclear[..], &[wait, run(R::NotFound)]].concat());
    assert_eq!((kept.state.build.state, kept.pending()), (S::Failed, None));
}

#[test]
fn a_run_that_begins_after_the_cancellation_is_cancelled() {
    let kept = after(&[planned(), Event::Command(Command::Cancel), begins()]);
    assert_eq!(kept.state.build.state, S::Cancelled);
    assert_eq!(kept.pending(), Some(Effect::CancelRun));
    assert_eq!(kept.state.run.unwrap().id, Some(RUN));
}

#[test]
fn a_successful_run_without_an_artifact_fails_the_build_after_a_minute() {
    let succeeded = [planned(), begins(), looked(Phase::Succeeded, None)];
    assert_eq!(after(&succeeded).pending(), Some(Effect::Follow));
    let wait = Event::Passes(Duration::from_secs(61));
    let kept = after(&[&succeeded[..], &[wait, looked(Phase::Succeeded, None)]].concat());
    assert_eq!(kept.state.build.state, S::Failed);
    assert!(kept.state.build.error.unwrap().contains("no artifact"));
}
