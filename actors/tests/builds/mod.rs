//! The state machine of a build alone: the test takes all sequences of inputs up to a length, and
//! checks each state that they reach.

mod ci;

use actors::{
    kinds::delivery::builds::{
        BuildPlace, BuildPlan, Builds, Command, Effect, LEASE, Outcome, State, WAITS_FOR_RUNNER,
    },
    runtime::{
        entries::due,
        resource::{Input, Kept, Moment, Resource, step},
        uses::Uses,
    },
};
use contract::{
    ArtifactId, BuildId, EventId, Fault, Id, OrganizationId, Timestamp,
    apps::Platform,
    artifacts::ProvenancePath,
    builds::{Build, BuildState as S},
    quotas::Quota,
    repositories::RepositoryMode,
    retention::Retention,
};
use std::{collections::HashSet, time::Duration};
use ulid::Ulid;

const LIMIT: Duration = Duration::from_secs(7200);

fn new() -> State {
    let (profile, path) = ("production".parse().unwrap(), ProvenancePath::CliTrigger);
    let (id, app, now) = (BuildId::of(Ulid(7)), Id::of(Ulid(1)), Timestamp::from_millis(0));
    let build = Build::queued(id, app, Platform::Android, profile, path, now);
    State::new(build, OrganizationId::of(Ulid(9)), BuildPlace::Any, LIMIT)
}

fn plan() -> BuildPlan {
    BuildPlan {
        url: "https://git.example.com/team/app.git".parse().unwrap(),
        mode: RepositoryMode::ArtifactOnly,
        git_ref: "main".into(),
        commit: "c0ffee".into(),
        command: "make".into(),
        artifact: "app.apk".into(),
    }
}

#[derive(Debug, Clone)]
enum Event {
    Passes(Duration),
    /// The sweeper tells that something is due, if it is.
    Due,
    /// The sweeper tells that what has ended was kept long enough, if it was.
    Over(Retention),
    Command(Command),
    Outcome(Outcome),
}

fn claim(runner: &str) -> Command {
    Command::Claim { runner: runner.into(), name: runner.parse().unwrap() }
}

fn report(runner: &str, from: u32) -> Command {
    let lines = vec!["one".into(), "two".into()];
    let (room, key) = (u64::MAX, EventId::of(Ulid(9)));
    Command::Report { runner: runner.into(), from, lines, room, key }
}

/// A report of one line of 100 bytes, for which the organization has this room.
fn report_into(room: u64, from: u32) -> Command {
    let (lines, key) = (vec!["x".repeat(99)], EventId::of(Ulid(9)));
    Command::Report { runner: "a".into(), from, lines, room, key }
}

fn finish(runner: &str, made: Result<u128, &str>) -> Command {
    let made = made.map(|id| ArtifactId::of(Ulid(id))).map_err(str::to_owned);
    Command::Finish { runner: runner.into(), made }
}

fn events() -> Vec<Event> {
    let commands = [
        claim("a"),
        claim("b"),
        report("a", 0),
        report("a", 2),
        report("b", 0),
        finish("a", Ok(5)),
        finish("b", Err("make failed")),
        Command::Cancel,
        Command::Remove,
    ];
    let outcomes = [
        Outcome::Planned(Box::new(plan()), None),
        Outcome::Impossible("no config".into()),
        Outcome::Patience,
        Outcome::Made(ArtifactId::of(Ulid(6))),
        Outcome::Lost,
        Outcome::Forgotten(true),
    ];
    let passing = [LEASE, WAITS_FOR_RUNNER].map(Event::Passes);
    let commands = commands.into_iter().map(Event::Command);
    let over = [Retention::BuildLogs, Retention::Builds].map(Event::Over);
    let time = passing.into_iter().chain([Event::Due]).chain(over);
    time.chain(commands).chain(outcomes.into_iter().map(Event::Outcome)).collect()
}

/// Takes an event. `None`: the build is gone.
fn take(
    kept: &Kept<Builds>,
    now: &mut Timestamp,
    event: &Event,
) -> Result<Option<Kept<Builds>>, Fault> {
    let input = match event.clone() {
        Event::Passes(time) => {
            *now = *now + time;
            return Ok(Some(kept.clone()));
        }
        Event::Due if due(kept).is_none_or(|due| due > *now) => return Ok(Some(kept.clone())),
        Event::Due => Input::Due,
        Event::Over(retention) => Input::RetentionOver(retention, *now),
        Event::Command(command) => Input::Command(command),
        Event::Outcome(outcome) => Input::Outcome(outcome),
    };
    let at = Moment { id: BuildId::of(Ulid(7)), now: *now };
    step(&at, Some(kept), input)?.apply(Some(kept))
}

fn begun() -> Kept<Builds> {
    let at = Moment { id: BuildId::of(Ulid(7)), now: Timestamp::from_millis(0) };
    let begun = step::<Builds>(&at, None, Input::Create(Box::new(new())));
    begun.unwrap().apply(None).unwrap().unwrap()
}

/// The effect that a state asks for, now or later.
fn asked(kept: &Kept<Builds>) -> Option<Effect> {
    Builds::next(&kept.state)?.effect
}

/// Checks what holds in every state.
fn is_sound(kept: &Kept<Builds>) {
    let State { build, lease, plan, removing, .. } = &kept.state;
    let held = matches!(build.state, S::Dispatched | S::Running);
    let is_in_ci = kept.state.run.as_ref().is_some_and(|run| run.id.is_some());
    assert_eq!(lease.is_some(), held && !is_in_ci, "{kept:?}");
    assert!(build.attempts <= 2, "{kept:?}");
    assert_eq!(build.state.is_final(), build.finished_at.is_some(), "{kept:?}");
    assert_eq!(build.state == S::Succeeded, build.artifact_id.is_some(), "{kept:?}");
    let ended_badly = build.state.is_final() && build.state != S::Succeeded;
    assert_eq!(ended_badly, build.error.is_some(), "{kept:?}");
    if *removing {
        assert!(asked(kept).is_some(), "{kept:?}");
        return;
    }
    let is_being_planned = build.state == S::Queued && plan.is_none();
    assert_eq!(asked(kept) == Some(Effect::Plan), is_being_planned, "{kept:?}");
    // A build never waits forever.
    let has_end = Builds::next(&kept.state)
        .is_some_and(|work| work.until.is_some() || work.effect == Some(Effect::Forget));
    assert!(has_end || !kept.retained().is_empty(), "{kept:?}");
}

/// Checks what holds of every change.
fn follows(before: &Kept<Builds>, event: &Event, after: &Kept<Builds>) {
    let (from, to) = (&before.state.build, &after.state.build);
    if from.state.is_final() {
        assert_eq!(from, to, "{event:?}: an ended build does not change");
    }
    let reporter = match event {
        Event::Command(Command::Report { runner, .. } | Command::Finish { runner, .. }) => runner,
        _ => return,
    };
    let holder = before.state.lease.as_ref().map(|lease| &lease.runner);
    assert!(holder == Some(reporter) || from == to, "{event:?}: only its runner moves a build");
}

/// Takes all sequences of events up to a length, and checks every state and every change. Returns
/// the states of the builds.
fn explore(
    events: &[Event],
    length: usize,
    mut check: impl FnMut(&Kept<Builds>, &Event, &Kept<Builds>) -> bool,
) -> HashSet<S> {
    let mut seen = HashSet::new();
    let mut reached = vec![(begun(), Timestamp::from_millis(0))];
    let mut states = HashSet::new();
    for _ in 0..length {
        let mut next = Vec::new();
        for (kept, now) in reached {
            for event in events {
                let mut now = now;
                let Ok(Some(after)) = take(&kept, &mut now, event) else { continue };
                if !check(&kept, event, &after) {
                    continue;
                }
                is_sound(&after);
                follows(&kept, event, &after);
                states.insert(after.state.build.state);
                if seen.insert(format!("{now:?} {after:?}")) {
                    next.push((after, now));
                }
            }
        }
        reached = next;
    }
    states
}

#[test]
fn a_build_on_a_runner_is_sound_after_every_sequence_of_inputs() {
    let states = explore(&events(), 7, |_, _, _| true);
    assert_eq!(states.len(), 7, "each state was reached: {states:?}");
}

/// Two runners take a build and are never heard of again.
#[test]
fn a_lost_build_is_tried_once_more_and_then_fails() {
    let (mut kept, mut now) = (begun(), Timestamp::from_millis(0));
    let mut go = |kept: &mut Kept<Builds>, event: Event| {
        *kept = take(kept, &mut now, &event).unwrap().unwrap();
    };
    go(&mut kept, Event::Outcome(Outcome::Planned(Box::new(plan()), None)));
    for (runner, then) in [("a", S::Queued), ("b", S::Failed)] {
        go(&mut kept, Event::Command(claim(runner)));
        go(&mut kept, Event::Command(report(runner, 0)));
        go(&mut kept, Event::Passes(LEASE));
        go(&mut kept, Event::Due);
        assert_eq!(kept.pending(), Some(Effect::FindOut));
        go(&mut kept, Event::Outcome(Outcome::Lost));
        assert_eq!(kept.state.build.state, then);
    }
    assert!(kept.state.build.error.as_ref().unwrap().contains("lost"));
}

#[test]
fn lines_are_kept_once_and_in_their_order() {
    let (mut kept, mut now) = (begun(), Timestamp::from_millis(0));
    for event in [
        Event::Outcome(Outcome::Planned(Box::new(plan()), None)),
        Event::Command(claim("a")),
        Event::Command(report("a", 0)),
        Event::Command(report("a", 0)),
        Event::Command(report("a", 1)),
    ] {
        kept = take(&kept, &mut now, &event).unwrap().unwrap();
    }
    assert_eq!(kept.state.lease.as_ref().unwrap().lines, 3);
    let refused = take(&kept, &mut now, &Event::Command(report("a", 4)));
    assert!(matches!(refused, Err(Fault::NotNow(why)) if why.contains("from line 3 on")));
}

#[test]
fn a_log_of_an_attempt_has_sixteen_mebibytes() {
    let (mut kept, mut now) = (begun(), Timestamp::from_millis(0));
    for event in
        [Event::Outcome(Outcome::Planned(Box::new(plan()), None)), Event::Command(claim("a"))]
    {
        kept = take(&kept, &mut now, &event).unwrap().unwrap();
    }
    let held = |kept: &Kept<Builds>| kept.uses().of(Quota::LogBytes);
    for n in 0..200 {
        let (lines, key) = (vec!["x".repeat(999); 100], EventId::of(Ulid(9)));
        let from = n * 100;
        let report = Command::Report { runner: "a".into(), from, lines, room: u64::MAX, key };
        kept = take(&kept, &mut now, &Event::Command(report)).unwrap().unwrap();
        assert!(held(&kept) <= (16 << 20) + 1_100, "{n}");
    }
    assert!(held(&kept) >= 16 << 20);
    assert_eq!(kept.state.lease.as_ref().unwrap().lines, 20_000, "the runner goes on");
}

#[test]
fn a_log_ends_where_its_organization_has_no_room_and_counts_until_it_is_removed() {
    let (mut kept, mut now) = (begun(), Timestamp::from_millis(0));
    let go = |kept: &mut Kept<Builds>, event: Event, now: &mut Timestamp| {
        *kept = take(kept, now, &event).unwrap().unwrap();
    };
    go(&mut kept, Event::Outcome(Outcome::Planned(Box::new(plan()), None)), &mut now);
    go(&mut kept, Event::Command(claim("a")), &mut now);
    go(&mut kept, Event::Command(report_into(1_000, 0)), &mut now);
    assert_eq!(kept.uses().of(Quota::LogBytes), 100);
    // The line that fills the room is kept, and one that says why no more are.
    go(&mut kept, Event::Command(report_into(50, 1)), &mut now);
    let full = kept.uses().of(Quota::LogBytes);
    assert!((200..400).contains(&full), "{full}");
    go(&mut kept, Event::Command(report_into(1_000, 2)), &mut now);
    assert_eq!(kept.uses().of(Quota::LogBytes), full);
    assert_eq!(kept.state.lease.as_ref().unwrap().lines, 3, "the runner goes on");
    go(&mut kept, Event::Command(finish("a", Err("no"))), &mut now);
    assert_eq!(kept.uses(), Uses::default().and(Quota::LogBytes, full));
    go(&mut kept, Event::Over(Retention::BuildLogs), &mut now);
    go(&mut kept, Event::Outcome(Outcome::Forgotten(true)), &mut now);
    assert_eq!(kept.uses(), Uses::default());
}
