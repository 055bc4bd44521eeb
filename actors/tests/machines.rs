//! The state machines of artifacts and releases alone: the tests reach many states by random and
//! exhaustive inputs, and check the invariants in each of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say so by failing"
)]

use actors::{
    kinds::{
        artifacts::{self, Artifacts, Declared, Expected, Upload},
        releases::{self, Current, Releases},
    },
    ports::{Content, Examined},
    runtime::resource::{Input, Intent, Kept, Moment, Next, Resource, step},
};
use contract::{
    ArtifactId, Fault, Id, Patch, PublicationId, ReleaseId, Sha256, Timestamp,
    apps::Platform,
    artifacts::{Artifact, ArtifactKind, ArtifactState, Provenance, ProvenancePath, Trust},
    publishing::StoreOptions,
    releases::{Publication, PublicationState, Release, ReleaseState, Target},
};
use proptest::prelude::*;
use std::{collections::BTreeSet, sync::Arc};
use store::{Snapshot, Stored};
use ulid::Ulid;

/// A resource in the memory of its owner, without a store.
struct World<R: Resource> {
    at: Moment<R>,
    kept: Option<Kept<R>>,
}

impl<R: Resource> World<R> {
    fn new(state: R::State) -> Self {
        let at = Moment { id: R::Key::of(Ulid(7)), now: Timestamp::from_millis(1_000) };
        World { at, kept: Some(Kept { state, intent: None }) }
    }

    /// Applies a step as the owner does.
    fn take(&mut self, input: Input<R>) -> Result<(), Fault> {
        let kept = self.kept.as_ref();
        let step = step(&self.at, kept.map(|kept| &kept.state), input)?;
        self.kept = step.apply(kept)?;
        Ok(())
    }
}

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
    Arc::new(Stored::after(None, Kept { state: upload, intent: None }))
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
    /// The first wish of a rollback is asked.
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

const EVENTS: [Event; 19] = [
    Event::Publish,
    Event::PublishInStore,
    Event::Reported(PublicationState::InReview),
    Event::Reported(PublicationState::Live),
    Event::Reported(PublicationState::Failed),
    Event::Withdraw,
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
    use releases::{Answer, Command, Outcome};
    let answer = |p: &Publication, yes| match (p.target, yes) {
        (Target::Ota, true) => Answer::Live { url: "http://svc.test/install".into() },
        (_, true) => Answer::Begun,
        (_, false) => Answer::Refused("no".into()),
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
        Event::Withdraw => Input::Command(Command::Withdraw),
        Event::Asked => match state.wishes.first() {
            Some(wish) => Input::Outcome(Outcome::Asked(*wish)),
            None => Input::Outcome(Outcome::Asked(releases::Wish::Withdraw(Id::of(Ulid(99))))),
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
            Input::Command(Command::RollBack { to: Id::of(Ulid(6)), current: current(7), restore })
        }
        Event::RollBackAsStranger => {
            let restore = vec![];
            Input::Command(Command::RollBack { to: Id::of(Ulid(6)), current: current(99), restore })
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
    let pending = kept.intent.as_ref();
    match event {
        // Only a release that users have got is the current one.
        Event::RollBack => kept.state.release.published_at.is_some(),
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
    let Some(Kept { state, intent }) = world.kept.as_ref() else {
        let unseen = matches!(before.release.state, ReleaseState::Draft | ReleaseState::Failed);
        assert!(unseen && matches!(event, Event::Delete), "{event:?} removed {before:?}");
        return;
    };
    let (old, new) = (before.release.state, state.release.state);
    let publications = &state.release.publications;
    let is_live =
        |p: &&Publication| matches!(p.state, PublicationState::Live | PublicationState::Halted);
    let live = publications.iter().filter(is_live).count();
    let waiting = publications.iter().any(|p| waits(state, p));
    let pending = waiting || !state.wishes.is_empty() || !state.to_tell.is_empty();
    assert_eq!(intent.is_some(), pending, "an intent is pending if and only if something is left");
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
            let was_seen = state.release.published_at.is_some();
            assert_eq!(state.release.rolled_back_to.is_some(), was_seen, "{event:?}");
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
    let step = step(&at, Some(&state), input(Event::RollBack, &state)).unwrap();
    let restore = releases::Wish::Restore(Id::of(Ulid(98)));
    assert_eq!(step.intent, Intent::Now(releases::Effect::Ask(restore)), "the stores come first");
    assert!(!step.also.is_empty(), "the channel's pointer moves with it");
}

fn hash(letter: char) -> Sha256 {
    letter.to_string().repeat(64).parse().unwrap()
}

fn upload(size: Option<u64>) -> Upload {
    Upload {
        artifact: Artifact {
            id: Id::of(Ulid(7)),
            app_id: Id::of(Ulid(1)),
            platform: Platform::Android,
            kind: ArtifactKind::Apk,
            file_name: "app.apk".parse().unwrap(),
            size,
            sha256: None,
            version: "1.0.0".parse().ok(),
            build_number: None,
            identifier: None,
            provenance: Provenance {
                path: ProvenancePath::ExternalCi,
                uploaded_by: None,
                repository: None,
                commit: None,
                git_ref: None,
                run_url: None,
                profile: None,
                build_id: None,
                claimed: true,
            },
            attestation: None,
            trust: Trust::Token,
            signer: None,
            state: ArtifactState::Pending,
            problem: None,
            created_at: Timestamp::from_millis(0),
            finalized_at: None,
        },
        offset: 0,
        length: size,
        declared: Declared { size, sha256: None, build_number: None, version: None },
        expires_at: Timestamp::from_millis(500),
        claims_bytes: false,
    }
}

fn examined(size: u64, letter: char) -> Examined {
    let content = Content {
        identifier: "com.example.app".into(),
        version: Some("1.0.0".into()),
        build_number: Some("1".into()),
        signer: None,
    };
    Examined { size, sha256: hash(letter), content: Ok(content) }
}

fn artifact_inputs() -> Vec<Input<Artifacts>> {
    use artifacts::{Command, Outcome};
    let finalize = |letter| Command::Finalize { sha256: hash(letter), size: None };
    let commands = [
        Command::Received(5, None),
        Command::Received(10, Some(10)),
        Command::Renew(Timestamp::from_millis(600)),
        finalize('a'),
        finalize('b'),
        Command::Expire,
        Command::Delete,
        Command::Remove,
    ];
    let outcomes = [
        Outcome::Accepted(Box::new(examined(10, 'a'))),
        Outcome::Refused("no".into()),
        Outcome::Nothing,
        Outcome::Discarded,
    ];
    commands
        .into_iter()
        .map(Input::Command)
        .chain(outcomes.into_iter().map(Input::Outcome))
        .collect()
}

proptest! {
    /// Any inputs to an artifact, in any order.
    #[test]
    fn an_artifact_keeps_its_word(choices in proptest::collection::vec(0..12_usize, 1..40), size in proptest::option::of(Just(10_u64))) {
        let mut world = World::<Artifacts>::new(upload(size));
        for choice in choices {
            let Some(Kept { state: before, intent }) = world.kept.clone() else { break };
            let input = artifact_inputs()[choice].clone();
            let ended = match (&input, &intent) {
                (Input::Create(_) | Input::Command(_), _) => true,
                (Input::Outcome(artifacts::Outcome::Accepted(_) | artifacts::Outcome::Refused(_)), Some(artifacts::Effect::Verify(_))) => true,
                (Input::Outcome(artifacts::Outcome::Nothing), Some(artifacts::Effect::Release)) => true,
                (Input::Outcome(artifacts::Outcome::Discarded), Some(artifacts::Effect::Discard { .. })) => true,
                // An outcome is possible only while its effect is pending.
                (Input::Outcome(_), _) => false,
            };
            if !ended {
                continue;
            }
            let told = format!("{:?} in {:?}", input, before.artifact.state);
            if world.take(input).is_err() {
                prop_assert_eq!(&world.kept.as_ref().unwrap().state, &before, "a refusal changes nothing");
                continue;
            }
            let Some(Kept { state: after, intent: pending }) = &world.kept else {
                prop_assert_eq!(before.artifact.state, ArtifactState::Deleted, "only deleted ones go: {}", told);
                break;
            };
            let (old, new) = (before.artifact.state, after.artifact.state);
            prop_assert_eq!(new == ArtifactState::Verifying, matches!(pending, Some(artifacts::Effect::Verify(_))), "{}", told);
            if old == ArtifactState::Verified && new == ArtifactState::Verified {
                prop_assert_eq!(&before.artifact, &after.artifact, "verified does not change: {}", told);
            }
            if new == ArtifactState::Verified {
                prop_assert!(after.artifact.sha256.is_some() && after.artifact.size.is_some());
            }
            if matches!(old, ArtifactState::Rejected | ArtifactState::Expired | ArtifactState::Deleted) {
                prop_assert!(new == old || new == ArtifactState::Deleted, "the end is the end: {}", told);
            }
            if old != ArtifactState::Pending {
                prop_assert_eq!(before.offset, after.offset, "bytes come only while it waits for them: {}", told);
            }
            if old == ArtifactState::Pending && new == ArtifactState::Verifying {
                prop_assert!(before.is_complete(), "{}", told);
            }
        }
    }
}

#[test]
fn a_verification_that_comes_to_no_end_is_given_up() {
    let mut world = World::<Artifacts>::new(upload(Some(10)));
    let finalize = artifacts::Command::Finalize { sha256: hash('a'), size: None };
    for command in [artifacts::Command::Received(10, None), finalize] {
        world.take(Input::Command(command)).unwrap();
    }
    let verifying = world.kept.clone().unwrap().state;
    let expire = |after: i64| {
        let now = Timestamp::from_millis(verifying.expires_at.as_millis() + after);
        let at = Moment::<Artifacts> { id: verifying.artifact.id, now };
        let input = Input::Command(artifacts::Command::Expire);
        step(&at, Some(&verifying), input).unwrap()
    };
    assert!(matches!(expire(-1).next, Next::Keep), "there is time left");
    let given_up = expire(0);
    let Next::<Upload>::Put(upload) = given_up.next else { panic!("it stays") };
    assert_eq!(upload.artifact.state, ArtifactState::Rejected);
    assert!(upload.artifact.problem.is_some_and(|why| why.contains("upload the file again")));
    let discard = Intent::Now(artifacts::Effect::Discard { forget: false });
    assert_eq!(format!("{:?}", given_up.intent), format!("{discard:?}"));
}

#[test]
fn bytes_are_held_to_what_was_declared() {
    let expected = |letter, size| Expected { sha256: hash(letter), size };
    let judge = |upload: &Upload, expected: &Expected, found: &Examined| {
        upload.judge(expected, found).map(|_| ())
    };
    let plain = upload(None);
    assert_eq!(judge(&plain, &expected('a', Some(10)), &examined(10, 'a')), Ok(()));
    let refused = |upload: &Upload, expected: &Expected, found: &Examined, why: &str| {
        let error = judge(upload, expected, found).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    refused(&plain, &expected('a', Some(11)), &examined(10, 'a'), "expected 11 bytes, got 10");
    refused(&plain, &expected('a', None), &examined(10, 'b'), &format!("got {}", hash('b')));
    let declared = Upload {
        declared: Declared { sha256: Some(hash('c')), ..Declared::default() },
        ..plain.clone()
    };
    refused(&declared, &expected('a', None), &examined(10, 'a'), "SHA-256");
    let other = Examined {
        content: Ok(Content { version: Some("2.0.0".into()), ..examined(1, 'a').content.unwrap() }),
        ..examined(10, 'a')
    };
    refused(&plain, &expected('a', None), &other, "expected 1.0.0, got 2.0.0");
    let silent = Examined {
        content: Ok(Content { version: None, ..examined(1, 'a').content.unwrap() }),
        ..examined(10, 'a')
    };
    let version = |upload: &Upload| {
        upload.judge(&expected('a', None), &silent).map(|content| content.version)
    };
    assert_eq!(
        version(&plain),
        Ok(Some("1.0.0".into())),
        "the declared one, where the file has none"
    );
    let mut undeclared = plain.clone();
    undeclared.artifact.version = None;
    assert!(version(&undeclared).unwrap_err().contains("declare one"));
    assert_eq!(judge(&undeclared, &expected('a', None), &other), Ok(()), "the file's own");
    let built = Upload {
        declared: Declared { build_number: Some("2".into()), ..Declared::default() },
        ..plain.clone()
    };
    refused(&built, &expected('a', None), &examined(10, 'a'), "expected 2, got 1");
    let broken = Examined { content: Err("not a zip".into()), ..examined(10, 'a') };
    refused(&plain, &expected('a', None), &broken, "not a zip");
}
