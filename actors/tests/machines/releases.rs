//! Releases: every state that can be reached.

use super::{World, artifacts::upload};
use actors::{
    kinds::delivery::{
        artifacts::Artifacts,
        releases::{self, Current, Releases},
    },
    runtime::resource::{Input, Kept, Moment, Next, Resource, Work, step},
};
use contract::{
    ArtifactId, Id, Patch, PublicationId, ReleaseId, Timestamp,
    apps::Platform,
    publishing::StoreOptions,
    releases::{Publication, PublicationState, Release, ReleaseState, Target},
};
use std::{collections::BTreeSet, sync::Arc};
use store::{Snapshot, Stored};
use ulid::Ulid;

fn release(state: ReleaseState) -> releases::State {
    releases::State::new(
        Release {
            id: ReleaseId::of(Ulid(7)),
            app_id: Id::of(Ulid(1)),
            version: "1.0.0".parse().unwrap(),
            channel: "production".parse().unwrap(),
            notes: None,
            artifact_ids: vec![ArtifactId::of(Ulid(2))],
            state,
            publications: vec![],
            rolled_back_to: None,
            created_by: None,
            created_at: Timestamp::from_millis(0),
            published_at: None,
            options: StoreOptions::default(),
        },
        None,
    )
}

/// The release that a rollback goes to.
fn other() -> Snapshot<Releases> {
    let mut state = release(ReleaseState::Superseded);
    state.release.id = Id::of(Ulid(6));
    Arc::new(Stored::after(None, Kept::at_rest(state)))
}

fn current(release: u128) -> Snapshot<Current> {
    let record = Current { release: Id::of(Ulid(release)), since: Timestamp::from_millis(0) };
    Arc::new(Stored::after(None, record))
}

/// A possible publication, with a unique id.
fn offer(artifact_id: ArtifactId, target: Target) -> releases::Offer {
    let number = if artifact_id == ArtifactId::of(Ulid(2)) { 10 } else { 20 };
    releases::Offer { id: PublicationId::of(Ulid(number + target as u128)), artifact_id, target }
}

/// A verified artifact for iOS.
fn verified(id: ArtifactId) -> Snapshot<Artifacts> {
    let mut upload = upload(Some(10));
    upload.artifact.id = id;
    upload.artifact.platform = Platform::Ios;
    Arc::new(Stored::after(None, Kept::at_rest(upload)))
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Publish,
    /// Publish to a store too.
    PublishInStore,
    /// The publication in the store tells that it is in this state.
    Reported(PublicationState),
    /// The withdrawal of a release that no user has got.
    Withdraw,
    /// The withdrawal of the current release.
    WithdrawCurrent,
    /// The first request of a rollback is asked.
    Asked,
    /// The artifact of the other platform joins.
    Join,
    /// The artifact joins, with an outdated list of the artifacts that the release holds.
    JoinAsReadBefore,
    /// Another artifact of the other platform joins.
    JoinTwice,
    Delete,
    /// The targets accept (`true`) or refuse the first two queued publications.
    Answered(bool, bool),
    Supersede,
    RollBack,
    RollBackAsStranger,
    Reinstate,
    Told(u128),
}

const EVENTS: [Event; 20] = [
    Event::Publish,
    Event::PublishInStore,
    Event::Reported(PublicationState::InReview),
    Event::Reported(PublicationState::Live),
    Event::Reported(PublicationState::Failed),
    Event::Withdraw,
    Event::WithdrawCurrent,
    Event::Asked,
    Event::Join,
    Event::JoinAsReadBefore,
    Event::JoinTwice,
    Event::Delete,
    Event::Answered(true, true),
    Event::Answered(true, false),
    Event::Answered(false, false),
    Event::Supersede,
    Event::RollBack,
    Event::RollBackAsStranger,
    Event::Reinstate,
    Event::Told(6),
];

fn input(event: Event, state: &releases::State) -> Input<Releases> {
    use releases::{Command, Outcome, TargetReply};
    let answer = |p: &Publication, yes| match (p.target, yes) {
        (Target::Ota, true) => TargetReply::Live { url: "http://svc.test/install".into() },
        (_, true) => TargetReply::Begun,
        (_, false) => TargetReply::Refused("no".into()),
    };
    let publish = |targets: &[Target]| {
        let held = state.release.artifact_ids.clone();
        let offers = held.iter().flat_map(|id| targets.iter().map(|target| offer(*id, *target)));
        // The store takes the Android file only.
        let is_taken = |o: &releases::Offer| o.target == Target::Ota || o.artifact_id == held[0];
        let wanted = offers.filter(is_taken).collect();
        Input::Command(Command::Publish { held, wanted, notes: None, rollout: None, options: None })
    };
    match event {
        Event::Publish => publish(&[Target::Ota]),
        Event::PublishInStore => publish(&[Target::GooglePlay]),
        Event::Reported(now) => {
            let known = in_store(state).cloned();
            let mut publication = known.unwrap_or_else(|| strangers_publication(state));
            publication.state = now;
            let current = Some(current(if state.release.published_at.is_some() { 7 } else { 6 }));
            Input::Command(Command::Report { publication: Box::new(publication), current })
        }
        Event::Withdraw => Input::Command(Command::Withdraw(None)),
        Event::WithdrawCurrent => Input::Command(Command::Withdraw(Some(current(7)))),
        Event::Asked => match state.requests.first() {
            Some(request) => Input::Outcome(Outcome::Asked(*request)),
            None => Input::Outcome(Outcome::Asked(releases::PublicationRequest::Withdraw(Id::of(
                Ulid(99),
            )))),
        },
        Event::Join | Event::JoinAsReadBefore | Event::JoinTwice => {
            let (joins, before) = match event {
                Event::JoinTwice => (5, state.release.artifact_ids.clone()),
                Event::Join => (3, state.release.artifact_ids.clone()),
                _ => (3, vec![ArtifactId::of(Ulid(2)), ArtifactId::of(Ulid(9))]),
            };
            let android = ArtifactId::of(Ulid(2));
            let platform = |id| if id == android { Platform::Android } else { Platform::Ios };
            let joins = ArtifactId::of(Ulid(joins));
            Input::Command(Command::Update {
                held: before.into_iter().map(|id| (id, platform(id))).collect(),
                joining: vec![verified(joins)],
                offers: Target::ALL.map(|target| offer(joins, target)).into(),
                notes: Patch::Keep,
            })
        }
        Event::Delete => Input::Command(Command::Delete),
        Event::Answered(first, second) => {
            let queued = state.release.publications.iter();
            let queued = queued.filter(|p| p.state == PublicationState::Queued);
            let waiting = queued.filter(|p| waits(state, p));
            let answers = [first, second].into_iter().cycle();
            let results = waiting.zip(answers).map(|(p, yes)| (p.id, answer(p, yes))).collect();
            Input::Outcome(Outcome::Published(results, Some(current(6))))
        }
        Event::Supersede => Input::Command(Command::Follow(current(6))),
        Event::RollBack => {
            let restore = vec![Id::of(Ulid(98))];
            Input::Command(Command::RollBack { to: other(), current: current(7), restore })
        }
        Event::RollBackAsStranger => {
            let restore = vec![];
            Input::Command(Command::RollBack { to: other(), current: current(99), restore })
        }
        Event::Reinstate => Input::Command(Command::Follow(current(7))),
        Event::Told(other) => Input::Outcome(Outcome::Told(Id::of(Ulid(other)))),
    }
}

/// Whether a queued publication waits for its target.
fn waits(state: &releases::State, publication: &Publication) -> bool {
    publication.state == PublicationState::Queued
        && (publication.target == Target::Ota || state.unsent.contains(&publication.id))
}

/// The publication in a store whose owner reports.
fn in_store(state: &releases::State) -> Option<&Publication> {
    let is_told =
        |p: &&Publication| p.target == Target::GooglePlay && !state.unsent.contains(&p.id);
    state.release.publications.iter().find(is_told)
}

/// A publication that the release does not have.
fn strangers_publication(state: &releases::State) -> Publication {
    Publication {
        id: Id::of(Ulid(97)),
        release_id: state.release.id,
        artifact_id: ArtifactId::of(Ulid(96)),
        target: Target::GooglePlay,
        state: PublicationState::Queued,
        rollout: None,
        store_state: None,
        remote_id: None,
        url: None,
        error: None,
        log: vec![],
        updated_at: Timestamp::from_millis(0),
    }
}

/// An outcome is possible only while its effect is pending.
fn can_happen(event: Event, kept: &Kept<Releases>) -> bool {
    let pending = kept.pending();
    match event {
        // Only a release that users have got is the current one.
        Event::RollBack | Event::WithdrawCurrent => kept.state.release.published_at.is_some(),
        Event::Answered(..) => matches!(pending, Some(releases::Effect::Publish)),
        Event::Told(_) => matches!(pending, Some(releases::Effect::Tell(_))),
        // A publication that failed is silent until somebody publishes again.
        Event::Reported(_) => {
            in_store(&kept.state).is_none_or(|p| p.state != PublicationState::Failed)
        }
        Event::Asked => matches!(pending, Some(releases::Effect::Ask(_))),
        _ => true,
    }
}

fn is_current(state: ReleaseState) -> bool {
    matches!(state, ReleaseState::Published | ReleaseState::PartiallyPublished)
}

/// The invariants of a release after any event.
fn check(before: &releases::State, world: &World<Releases>, event: Event) {
    let Some(kept) = world.kept.as_ref() else {
        let unseen = matches!(before.release.state, ReleaseState::Draft | ReleaseState::Failed);
        assert!(unseen && matches!(event, Event::Delete), "{event:?} removed {before:?}");
        return;
    };
    let state = &kept.state;
    let (old, new) = (before.release.state, state.release.state);
    let publications = &state.release.publications;
    let is_live =
        |p: &&Publication| matches!(p.state, PublicationState::Live | PublicationState::Halted);
    let live = publications.iter().filter(is_live).count();
    let waiting = publications.iter().any(|p| waits(state, p));
    let pending = waiting || !state.requests.is_empty() || !state.to_tell.is_empty();
    assert_eq!(kept.pending().is_some(), pending, "work is pending if and only if some is left");
    assert!(!waiting || new == ReleaseState::Publishing, "nobody waits for nothing: {event:?}");
    let held = (before.release.artifact_ids.len(), state.release.artifact_ids.len());
    match held {
        (1, 2) => assert!(matches!(event, Event::Join | Event::JoinTwice), "{event:?} joins"),
        (old, new) => assert_eq!(old, new, "an artifact joins once and stays: {event:?}"),
    }
    assert!(
        held == (1, 1) || held == (2, 2) || !is_current(old) || new == ReleaseState::Publishing,
        "what joins a published release is published"
    );
    let of_whom = |id: &ArtifactId| state.release.publications.iter().any(|p| p.artifact_id == *id);
    let none_or_all = state.release.artifact_ids.iter().filter(|id| of_whom(id)).count();
    let takes_all = publications.iter().all(|p| p.target == Target::Ota);
    assert!(
        !is_current(new) || !takes_all || none_or_all == state.release.artifact_ids.len(),
        "users get every artifact, or hear that they do not: {event:?}"
    );
    match new {
        ReleaseState::Published => assert!(live == publications.len() && live > 0),
        ReleaseState::PartiallyPublished => assert!(live > 0),
        ReleaseState::Failed => assert_eq!(live, 0),
        ReleaseState::RolledBack => {
            let is_replaced = matches!(event, Event::RollBack) && old != new;
            let had = before.release.rolled_back_to.is_some();
            assert_eq!(state.release.rolled_back_to.is_some(), is_replaced || had, "{event:?}");
            let is_open =
                |p: &&Publication| p.target == Target::Ota && p.state == PublicationState::Live;
            assert_eq!(publications.iter().find(is_open), None, "{event:?} leaves a page open");
        }
        _ => {}
    }
    assert!(old != ReleaseState::RolledBack || new == old, "rolled back is the end: {event:?}");
    assert!(new != ReleaseState::Draft || old == new, "nothing becomes a draft again: {event:?}");
    let how = matches!(event, Event::Answered(..) | Event::Reinstate | Event::Reported(_));
    assert!(
        is_current(old) || !is_current(new) || how,
        "only its targets, or a rollback to it, make it current: {event:?}"
    );
    assert!(
        !matches!(event, Event::RollBackAsStranger) || old == new,
        "only the current release is rolled back"
    );
}

#[test]
fn every_state_of_a_release_that_can_be_reached_is_sound() {
    let first = World::<Releases>::new(release(ReleaseState::Draft)).kept;
    let (mut seen, mut open) = (BTreeSet::new(), Vec::from_iter(first));
    let mut states = BTreeSet::new();
    while let Some(kept) = open.pop() {
        let before = serde_json::to_string(&kept).unwrap();
        for event in EVENTS.into_iter().filter(|event| can_happen(*event, &kept)) {
            let mut world = World::<Releases>::new(kept.state.clone());
            world.kept = Some(kept.clone());
            if world.take(input(event, &kept.state)).is_err() {
                assert_eq!(
                    serde_json::to_string(&world.kept.unwrap()).unwrap(),
                    before,
                    "a refusal changes nothing"
                );
                continue;
            }
            check(&kept.state, &world, event);
            let Some(next) = world.kept else { continue };
            states.insert(format!("{:?}", next.state.release.state));
            if seen.insert(serde_json::to_string(&next).unwrap()) {
                open.push(next);
            }
        }
    }
    let all = [
        "Draft",
        "Failed",
        "PartiallyPublished",
        "Published",
        "Publishing",
        "RolledBack",
        "Superseded",
    ];
    println!("{} situations", seen.len());
    assert_eq!(states.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn taking_a_release_back_makes_the_other_one_current_in_the_same_change() {
    let mut state = release(ReleaseState::Published);
    state.release.published_at = Some(Timestamp::from_millis(1));
    let at = Moment { id: ReleaseId::of(Ulid(7)), now: Timestamp::from_millis(2) };
    let step =
        step(&at, Some(&Kept::at_rest(state.clone())), input(Event::RollBack, &state)).unwrap();
    let restore = releases::PublicationRequest::Restore(Id::of(Ulid(98)));
    let Next::Put(state) = &step.next else { panic!("it changes") };
    let asks = Work::now(releases::Effect::Ask(restore));
    assert_eq!(Releases::next(state), Some(asks), "the stores come first");
    assert!(!step.also.is_empty(), "the channel's pointer moves with it");
}
