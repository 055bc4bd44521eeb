//! Artifacts: random sequences of inputs.

use super::World;
use actors::{
    kinds::delivery::artifacts::{
        self, Artifacts, Declared, Expected, Received, SharedBytes, StoredArtifact,
    },
    ports::binaries::{AppMetadata, Examined, Segment, Staged},
    runtime::resource::{Begins, Input, Kept, Moment, Next, Resource, Work, step},
};
use contract::{
    Id, Sha256, Timestamp,
    apps::Platform,
    artifacts::{Artifact, ArtifactKind, ArtifactState, Provenance, ProvenancePath, Trust},
    retention::Retention,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;
use ulid::Ulid;

/// Whatever has ended, ended before it.
const LATE: Timestamp = Timestamp::from_millis(4_000_000_000_000);

fn hash(letter: char) -> Sha256 {
    letter.to_string().repeat(64).parse().unwrap()
}

pub fn upload(size: Option<u64>) -> StoredArtifact {
    StoredArtifact {
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
            profile: None,
            state: ArtifactState::Pending,
            problem: None,
            created_at: Timestamp::from_millis(0),
            finalized_at: None,
        },
        staged: Staged::default(),
        length: size,
        declared: Declared { size, sha256: None, build_number: None, version: None },
        expires_at: Timestamp::from_millis(500),
        expected: None,
        discarding: false,
        claims_bytes: false,
    }
}

fn examined(size: u64, letter: char) -> Examined {
    let content = AppMetadata {
        identifier: "com.example.app".into(),
        version: Some("1.0.0".into()),
        build_number: Some("1".into()),
        signer: None,
        profile: None,
    };
    Examined { size, sha256: hash(letter), content: Ok(content) }
}

/// So many bytes lie in the file of the only node.
fn received(offset: u64, length: Option<u64>) -> artifacts::Command {
    artifacts::Command::Received(Received { offset, length, shared: None })
}

/// A node has added these bytes, which other nodes share.
fn added(after: u64, end: u64) -> artifacts::Command {
    let segment = Some(Segment { end, name: format!("{after} to {end}") });
    let shared = Some(SharedBytes { after, segment });
    artifacts::Command::Received(Received { offset: end, length: Some(10), shared })
}

fn artifact_inputs() -> Vec<Input<Artifacts>> {
    use artifacts::{Command, Outcome};
    let finalize = |letter| Command::Finalize { sha256: hash(letter), size: None };
    let commands = [
        received(5, None),
        received(10, Some(10)),
        added(0, 5),
        added(5, 10),
        added(0, 10),
        Command::Renew(Timestamp::from_millis(600)),
        finalize('a'),
        finalize('b'),
        Command::Delete,
        Command::Remove,
    ];
    let outcomes = [
        Outcome::Accepted(Box::new(examined(10, 'a'))),
        Outcome::Refused("no".into()),
        Outcome::Discarded,
    ];
    commands
        .into_iter()
        .map(Input::Command)
        .chain([Input::Due, Input::RetentionOver(Retention::RejectedArtifacts, LATE)])
        .chain(outcomes.into_iter().map(Input::Outcome))
        .collect()
}

proptest! {
    /// Any inputs to an artifact, in any order.
    #[test]
    fn an_artifact_keeps_its_word(choices in proptest::collection::vec(0..15_usize, 1..40), size in proptest::option::of(Just(10_u64))) {
        let mut world = World::<Artifacts>::new(upload(size));
        for choice in choices {
            let Some(kept) = world.kept.clone() else { break };
            let (pending, before) = (kept.pending(), kept.state);
            let input = artifact_inputs()[choice].clone();
            let ended = match (&input, &pending) {
                (Input::Create(_) | Input::Command(_) | Input::Due | Input::RetentionOver(..), _) => true,
                (Input::Outcome(artifacts::Outcome::Accepted(_) | artifacts::Outcome::Refused(_)), Some(artifacts::Effect::Verify(_))) => true,
                (Input::Outcome(artifacts::Outcome::Discarded), Some(artifacts::Effect::Discard)) => true,
                // An outcome is possible only while its effect is pending.
                (Input::Outcome(_) | Input::Emptied(_), _) => false,
            };
            if !ended {
                continue;
            }
            let told = format!("{:?} in {:?}", input, before.artifact.state);
            if world.take(input).is_err() {
                prop_assert_eq!(&world.kept.as_ref().unwrap().state, &before, "a refusal changes nothing");
                continue;
            }
            let Some(kept) = &world.kept else {
                prop_assert_eq!(before.artifact.state, ArtifactState::Deleted, "only deleted ones go: {}", told);
                break;
            };
            let (after, pending) = (&kept.state, kept.pending());
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
                prop_assert_eq!(before.staged.offset, after.staged.offset, "bytes come only while it waits for them: {}", told);
            }
            let ends: Vec<_> = after.staged.segments.iter().map(|segment| segment.end).collect();
            prop_assert!(ends.is_sorted_by(|one, next| one < next), "{}: {:?}", told, ends);
            if let Some(last) = ends.last() {
                prop_assert_eq!(*last, after.staged.offset, "no segment is missing: {}", told);
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
    for command in [received(10, None), finalize] {
        world.take(Input::Command(command)).unwrap();
    }
    let verifying = world.kept.clone().unwrap();
    let expire = |after: i64| {
        let now = Timestamp::from_millis(verifying.expires_at.as_millis() + after);
        let at = Moment::<Artifacts> { id: verifying.artifact.id, now };
        step(&at, Some(&verifying), Input::Due).unwrap()
    };
    assert!(matches!(expire(-1).next, Next::Keep), "there is time left");
    let given_up = expire(0);
    assert_eq!(given_up.begins, Begins::After(Duration::ZERO));
    let Next::<StoredArtifact>::Put(upload) = given_up.next else { panic!("it stays") };
    assert_eq!(upload.artifact.state, ArtifactState::Rejected);
    assert_eq!(Artifacts::next(&upload), Some(Work::now(artifacts::Effect::Discard)));
    assert!(upload.artifact.problem.is_some_and(|why| why.contains("upload the file again")));
}

/// The effect of a record that an earlier version of the program stored.
fn taken_over(state: ArtifactState, intent: Value) -> Option<artifacts::Effect> {
    let mut stored = serde_json::to_value(upload(Some(10))).unwrap();
    stored["artifact"]["state"] = serde_json::to_value(state).unwrap();
    let kept: Kept<Artifacts> =
        serde_json::from_value(json!({"state": stored, "intent": intent})).unwrap();
    kept.pending()
}

#[test]
fn what_an_earlier_version_was_about_to_do_is_done() {
    let expected = Expected { sha256: hash('a'), size: Some(10) };
    let verify = json!({"Verify": expected});
    let verifying = taken_over(ArtifactState::Verifying, verify);
    assert_eq!(verifying, Some(artifacts::Effect::Verify(expected)));
    let discard = json!({"Discard": {"forget": false}});
    let rejected = taken_over(ArtifactState::Rejected, discard);
    assert_eq!(rejected, Some(artifacts::Effect::Discard));
    // The program does nothing of this name any more.
    assert_eq!(taken_over(ArtifactState::Verified, json!("Release")), None);
    assert_eq!(taken_over(ArtifactState::Rejected, Value::Null), None);
}

#[test]
fn bytes_are_held_to_what_was_declared() {
    let expected = |letter, size| Expected { sha256: hash(letter), size };
    let judge = |upload: &StoredArtifact, expected: &Expected, found: &Examined| {
        upload.judge(expected, found).map(|_| ())
    };
    let plain = upload(None);
    assert_eq!(judge(&plain, &expected('a', Some(10)), &examined(10, 'a')), Ok(()));
    let refused = |upload: &StoredArtifact, expected: &Expected, found: &Examined, why: &str| {
        let error = judge(upload, expected, found).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    refused(&plain, &expected('a', Some(11)), &examined(10, 'a'), "expected 11 bytes, got 10");
    refused(&plain, &expected('a', None), &examined(10, 'b'), &format!("got {}", hash('b')));
    let declared = StoredArtifact {
        declared: Declared { sha256: Some(hash('c')), ..Declared::default() },
        ..plain.clone()
    };
    refused(&declared, &expected('a', None), &examined(10, 'a'), "SHA-256");
    let other = Examined {
        content: Ok(AppMetadata {
            version: Some("2.0.0".into()),
            ..examined(1, 'a').content.unwrap()
        }),
        ..examined(10, 'a')
    };
    refused(&plain, &expected('a', None), &other, "expected 1.0.0, got 2.0.0");
    let silent = Examined {
        content: Ok(AppMetadata { version: None, ..examined(1, 'a').content.unwrap() }),
        ..examined(10, 'a')
    };
    let version = |upload: &StoredArtifact| {
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
    let built = StoredArtifact {
        declared: Declared { build_number: Some("2".into()), ..Declared::default() },
        ..plain.clone()
    };
    refused(&built, &expected('a', None), &examined(10, 'a'), "expected 2, got 1");
    let broken = Examined { content: Err("not a zip".into()), ..examined(10, 'a') };
    refused(&plain, &expected('a', None), &broken, "not a zip");
}
