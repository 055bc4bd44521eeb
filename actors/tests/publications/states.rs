//! The state machine of a publication alone: every sequence of inputs up to a depth, and what must
//! hold after each.

use actors::{
    kinds::delivery::{
        publications::{Command, Effect, New, Ordered, Outcome, Publications, State},
        releases::{self, Draft, Offer, Releases},
    },
    runtime::resource::{Input, Kept, Moment, Resource, step},
};
use app_stores::{Advanced, DesiredState, NextStep, Options, Progress, RemoteError};
use contract::{
    Fault, Id, PublicationId, Timestamp,
    publishing::{GooglePlayOptions, Percent, TestflightOptions},
    releases::{Publication, PublicationState as S, Target},
};
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};
use ulid::Ulid;

fn id() -> PublicationId {
    Id::of(Ulid(7))
}

fn percent(percent: f64) -> Percent {
    percent.try_into().unwrap()
}

fn new(target: Target, rollout: Option<Percent>) -> New {
    let options = match target {
        Target::GooglePlay => Options::GooglePlay(GooglePlayOptions::default()),
        _ => Options::Testflight(TestflightOptions::default()),
    };
    New {
        publication: Publication {
            id: id(),
            release_id: Id::of(Ulid(1)),
            artifact_id: Id::of(Ulid(2)),
            target,
            state: S::Queued,
            rollout: None,
            store_state: None,
            remote_id: None,
            url: None,
            error: None,
            log: vec![],
            updated_at: Timestamp::from_millis(0),
        },
        app_id: Id::of(Ulid(3)),
        order: ordered(options, rollout),
    }
}

fn ordered(options: Options, rollout: Option<Percent>) -> Ordered {
    Ordered { default_notes: None, notes: Default::default(), options, rollout }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    /// The store answers a step.
    Stepped(S, bool),
    Refused,
    Busy,
    Unclear,
    Reported,
    Again,
    SetRollout(u16),
    Halt,
    Resume,
    Withdraw,
    Restore,
    Look,
    GiveUp,
}

const EVENTS: [Event; 20] = [
    Event::Stepped(S::Uploading, true),
    Event::Stepped(S::Processing, false),
    Event::Stepped(S::InReview, false),
    Event::Stepped(S::Live, false),
    Event::Stepped(S::Live, true),
    Event::Stepped(S::Halted, false),
    Event::Stepped(S::Failed, false),
    Event::Refused,
    Event::Busy,
    Event::Unclear,
    Event::Reported,
    Event::Again,
    Event::SetRollout(2_000),
    Event::SetRollout(10_000),
    Event::Halt,
    Event::Resume,
    Event::Withdraw,
    Event::Restore,
    Event::Look,
    Event::GiveUp,
];

fn input(event: Event, state: &State) -> Input<Publications> {
    let stepped = |result| Input::Outcome(Outcome::Stepped(Box::new(result), None));
    match event {
        Event::Stepped(now, more) => stepped(Ok(Advanced {
            progress: Progress::Testflight(Default::default()),
            state: now,
            words: Some(format!("{now:?}").to_uppercase()),
            remote_id: None,
            url: None,
            log: vec![],
            error: (now == S::Failed).then(|| "the store says no".into()),
            next: match (more, now) {
                (true, _) => NextStep::Now,
                (false, S::Live | S::Halted) => NextStep::Done,
                (false, _) => NextStep::After(Duration::from_secs(30)),
            },
        })),
        Event::Refused => stepped(Err(RemoteError::Refused("no".into()))),
        Event::Busy => {
            stepped(Err(RemoteError::Busy { why: "wait".into(), after: Duration::from_secs(9) }))
        }
        Event::Unclear => stepped(Err(RemoteError::Unclear("silence".into()))),
        Event::Reported => Input::Outcome(Outcome::Reported(Box::new(state.publication.clone()))),
        Event::Again => Input::Command(Command::Again(state.order.clone())),
        Event::SetRollout(share) => {
            Input::Command(Command::SetRollout(Percent::of_hundredths(share).unwrap()))
        }
        Event::Halt => Input::Command(Command::Halt),
        Event::Resume => Input::Command(Command::Resume),
        Event::Withdraw => Input::Command(Command::Withdraw),
        Event::Restore => Input::Command(Command::Restore),
        Event::Look => Input::Command(Command::Look),
        Event::GiveUp => Input::Due,
    }
}

/// An outcome is possible only while its effect is pending.
fn can_happen(event: Event, pending: Option<&Effect>) -> bool {
    match event {
        Event::Stepped(..) | Event::Refused | Event::Busy | Event::Unclear => {
            pending == Some(&Effect::Advance)
        }
        Event::Reported => pending == Some(&Effect::Report),
        _ => true,
    }
}

/// The effect that a state asks for.
fn asked(state: &State) -> Option<Effect> {
    Publications::next(state)?.effect
}

fn at(event: Event) -> Moment<Publications> {
    let days = if event == Event::GiveUp { 3 } else { 0 };
    Moment { id: id(), now: Timestamp::from_millis(1_000 + days * 24 * 3600 * 1_000) }
}

fn check(before: &State, kept: &Kept<Publications>, event: Event) {
    let state = &kept.state;
    let (old, now) = (before.publication.state, state.publication.state);
    assert!(
        asked(state).is_some() == (state.unreported || state.due.is_some()),
        "work is asked for if and only if something is left to do: {event:?}"
    );
    let moves = matches!(now, S::Queued | S::Uploading | S::Processing | S::InReview);
    let is_refused = state.publication.error.is_some();
    assert!(!moves || state.due.is_some(), "it goes on by itself: {event:?}");
    assert!(now != S::Failed || state.due.is_none(), "what failed is at rest: {event:?}");
    assert!(now != S::Failed || is_refused, "who failed says why: {event:?}");
    if before.publication != state.publication
        && matches!(event, Event::Stepped(..) | Event::Refused | Event::GiveUp)
    {
        assert!(state.unreported, "the release hears of it: {event:?}");
    }
    if old == S::Failed && now != S::Failed {
        assert_eq!(event, Event::Again, "only a new request goes on after a failure");
        assert_eq!(state.due, Some(Timestamp::from_millis(1_000)));
    }
    if before.fulfilled.is_some() && event == Event::Refused {
        assert_eq!(old, now, "the refusal of a wish leaves what users have");
        assert_eq!(Some(state.wanted), before.fulfilled, "what the store refuses is not wanted on");
    }
    if before.wanted == DesiredState::Withdrawn && state.wanted != DesiredState::Withdrawn {
        let how = matches!(event, Event::Restore | Event::Again | Event::Refused);
        assert!(how, "a withdrawal is not forgotten: {event:?}");
    }
    if state.wanted != before.wanted && !matches!(event, Event::Refused) {
        assert!(state.due.is_some() && !state.at_rest, "a wish is acted on: {event:?}");
    }
    let share = |state: &State| match state.wanted {
        DesiredState::Released(Some(share)) => Some(share),
        _ => None,
    };
    if let (Some(less), Some(more), false) =
        (share(state), share(before), matches!(event, Event::Again | Event::Refused))
    {
        assert!(less >= more, "a share only grows: {event:?}");
    }
    let settles = state.at_rest && !before.at_rest;
    assert!(
        !settles || matches!(event, Event::Stepped(..) | Event::Refused | Event::GiveUp),
        "only its store settles it: {event:?}"
    );
}

#[test]
fn every_state_of_a_publication_that_can_be_reached_is_sound() {
    let starts = [
        new(Target::GooglePlay, Some(percent(10.0))),
        new(Target::GooglePlay, None),
        new(Target::Testflight, None),
    ];
    for start in starts {
        let made = step(&at(Event::Again), None, Input::Create(Box::new(start))).unwrap();
        let first = made.apply(None).unwrap().unwrap();
        assert_eq!(first.pending(), Some(Effect::Advance));
        let (mut seen, mut open) = (BTreeSet::new(), vec![first]);
        let mut states = BTreeSet::new();
        while let Some(kept) = open.pop() {
            let pending = asked(&kept.state);
            for event in EVENTS.into_iter().filter(|e| can_happen(*e, pending.as_ref())) {
                let taken = step(&at(event), Some(&kept), input(event, &kept.state));
                let Ok(step) = taken else { continue };
                let mut next = step.apply(Some(&kept)).unwrap().unwrap();
                check(&kept.state, &next, event);
                states.insert(format!("{:?}", next.state.publication.state));
                // What grows for ever makes no new situation.
                next.state.publication.log.clear();
                next.state.unclear = next.state.unclear.min(1);
                if seen.insert(serde_json::to_string(&next).unwrap()) {
                    open.push(next);
                }
            }
        }
        let all = ["Failed", "Halted", "InReview", "Live", "Processing", "Queued", "Uploading"];
        assert_eq!(states.into_iter().collect::<Vec<_>>(), all);
        println!("{} situations", seen.len());
    }
}

/// A live publication, as its store left it.
fn live(rollout: Option<Percent>) -> State {
    let at = Moment { id: id(), now: Timestamp::from_millis(1_000) };
    let new = new(Target::GooglePlay, rollout);
    let made = step::<Publications>(&at, None, Input::Create(Box::new(new))).unwrap();
    let kept = made.apply(None).unwrap().unwrap();
    let lives = input(Event::Stepped(S::Live, false), &kept.state);
    let step = step(&at, Some(&kept), lives).unwrap();
    step.apply(Some(&kept)).unwrap().unwrap().state
}

fn refusal(state: &State, command: Command) -> String {
    let at = Moment { id: id(), now: Timestamp::from_millis(2_000) };
    match Publications::on_command(state.clone(), &at, command) {
        Err(Fault::NotNow(why)) => why,
        Err(fault) => panic!("{fault}"),
        Ok(_) => panic!("it was accepted"),
    }
}

#[test]
fn a_share_is_not_taken_back_and_a_full_release_is_not_halted() {
    let staged = live(Some(percent(10.0)));
    assert!(refusal(&staged, Command::SetRollout(percent(5.0))).contains("svc_haltRollout"));
    let full = live(None);
    assert!(refusal(&full, Command::SetRollout(percent(50.0))).contains("all users"));
    assert!(refusal(&full, Command::Halt).contains("svc_rollbackRelease"));
}

#[test]
fn a_report_during_the_hand_over_is_asked_for_again() {
    let publication = new(Target::GooglePlay, None).publication;
    let at = Moment { id: publication.release_id, now: Timestamp::from_millis(1_000) };
    let draft = json!({
        "id": publication.release_id, "appId": "app_00000000000000000000000003",
        "version": "1.0.0", "channel": "production", "artifactIds": [publication.artifact_id],
        "state": "draft", "publications": [], "createdAt": at.now,
    });
    let release = serde_json::from_value(draft).unwrap();
    let draft = Draft { release, by_token: None, artifacts: vec![], wanted: vec![] };
    let made = step::<Releases>(&at, None, Input::Create(Box::new(draft))).unwrap();
    let kept = made.apply(None).unwrap().unwrap();
    let Publication { id, artifact_id, target, .. } = publication;
    let publish = releases::Command::Publish {
        held: vec![artifact_id],
        wanted: vec![Offer { id, artifact_id, target }],
        notes: None,
        rollout: None,
        options: None,
    };
    let asked = step(&at, Some(&kept), Input::Command(publish)).unwrap();
    let kept = asked.apply(Some(&kept)).unwrap().unwrap();
    let failed = Publication { state: S::Failed, error: Some("no".into()), ..publication };
    let report =
        || releases::Command::Report { publication: Box::new(failed.clone()), current: None };
    let early = Releases::on_command(kept.state.clone(), &at, report());
    assert!(matches!(early, Err(Fault::Stale)), "it would be lost");
    let begun = releases::Outcome::Published(vec![(id, releases::TargetReply::Begun)], None);
    let kept = step(&at, Some(&kept), Input::Outcome(begun)).unwrap();
    let kept = kept.apply(None).unwrap().unwrap();
    assert!(Releases::on_command(kept.state, &at, report()).is_ok());
}
