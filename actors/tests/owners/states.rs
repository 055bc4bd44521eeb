//! Every state that a deployment, a backup and an image build can reach, by any inputs in any
//! order.

use super::scene;
use actors::{
    kinds::hosting::{backups, deployments, image_builds},
    runtime::{
        entries::due,
        resource::{Input, Kept, Moment, Resource, step},
    },
};
use contract::{
    BackupId, DeploymentId, Id, ImageId, InstanceId, JobId, Timestamp,
    backups::{BackupState, Restore, RestoreState},
    deployments::{DeploymentState, StepState},
    image_builds::BuildJobState,
};
use std::collections::{BTreeMap, BTreeSet};
use ulid::Ulid;

const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

/// An event: its name, the input of the step, and the effect whose outcome it is.
type Happening<R> = (&'static str, Input<R>, Option<<R as Resource>::Effect>);

/// Explores all states from `first`, and returns their names. Each step is passed to `check`: the
/// state before, the state and pending effect after (`None` if the resource ended), and the event.
fn explore<R: Resource>(
    first: R::State,
    inputs: &[Happening<R>],
    name: impl Fn(&R::State) -> String,
    check: impl Fn(&R::State, Option<(&R::State, Option<&R::Effect>)>, &str),
) -> BTreeSet<String> {
    let at = |now| Moment::<R> { id: R::Key::of(Ulid(7)), now };
    let mut names = BTreeSet::from([name(&first)]);
    let first = Kept::<R> { awake: true, ..Kept::at_rest(first) };
    let (mut seen, mut open) = (BTreeSet::new(), vec![first]);
    while let Some(kept) = open.pop() {
        let state = &kept.state;
        // An outcome is possible only while its effect is pending.
        let happens = inputs.iter().filter(|(_, _, of)| of.is_none() || *of == kept.pending());
        for (told, input, _) in happens {
            let now = match input {
                Input::Due => due(&kept),
                _ => Some(NOW),
            };
            let Some(now) = now else { continue };
            let Ok(step) = step(&at(now), Some(&kept), input.clone()) else { continue };
            let Some(next) = step.apply(Some(&kept)).unwrap() else {
                check(state, None, told);
                continue;
            };
            check(state, Some((&next.state, next.pending().as_ref())), told);
            names.insert(name(&next.state));
            let known = serde_json::to_string(&next).unwrap();
            if seen.insert(known) {
                open.push(next);
            }
        }
    }
    names
}

#[test]
fn a_deployment_ends_and_leaves_its_lane() {
    use deployments::{Command, Deployments, Effect, Outcome};
    let command = |name, command| (name, Input::<Deployments>::Command(command), None);
    let outcome = |name, of, outcome| (name, Input::<Deployments>::Outcome(outcome), Some(of));
    let failed = || Outcome::Failed("no".into());
    let inputs = [
        command("cancel", Command::Cancel),
        command("superseded", Command::Supersede { rolled_back: false }),
        command("taken back", Command::Supersede { rolled_back: true }),
        ("overdue", Input::Due, None),
        command("remove", Command::Remove),
        outcome("turn", Effect::AwaitTurn, Outcome::Turn),
        outcome("not its turn", Effect::AwaitTurn, Outcome::Wait),
        outcome(
            "built",
            Effect::Build,
            Outcome::Built { reference: "sha256:0".into(), replaces: None, base: None },
        ),
        outcome("not built", Effect::Build, failed()),
        outcome(
            "offered",
            Effect::Offer,
            Outcome::Offered(Some((Box::new(scene::definition()), BTreeMap::new()))),
        ),
        outcome("not offered", Effect::Offer, failed()),
        outcome("offered later", Effect::Offer, Outcome::Wait),
        outcome("serves", Effect::Follow, Outcome::Serves(None)),
        outcome("not well", Effect::Follow, failed()),
        outcome("not well yet", Effect::Follow, Outcome::Wait),
        outcome("undone", Effect::Undo, Outcome::Undone { log_bytes: 3 }),
        outcome("too late", Effect::Undo, Outcome::Serves(None)),
        outcome("not undone yet", Effect::Undo, Outcome::Wait),
        outcome("finished", Effect::Finish, Outcome::Finished { log_bytes: 3 }),
        outcome("not finished yet", Effect::Finish, Outcome::Wait),
        outcome("forgotten", Effect::Forget, Outcome::Forgotten),
        outcome("not forgotten yet", Effect::Forget, Outcome::Wait),
    ];
    use DeploymentState as S;
    let ended = |s| matches!(s, S::Failed | S::Cancelled | S::Superseded | S::RolledBack);
    let found = explore::<Deployments>(
        scene::deploying(DeploymentId::of(Ulid(7)), InstanceId::of(Ulid(7)), NOW),
        &inputs,
        |state| format!("{:?}", state.deployment.state),
        |before, after, told| {
            let Some((after, pending)) = after else {
                assert!(before.removing, "{told}: only what is removed goes");
                return;
            };
            let (old, new) = (before.deployment.state, after.deployment.state);
            let told = format!("{told}: {old:?} to {new:?}, {pending:?}");
            if after.removing {
                assert_eq!(pending, Some(&Effect::Forget), "{told}");
                return;
            }
            assert!(!ended(old) || new == old, "the end is the end: {told}");
            let serves = matches!(new, S::Live | S::Superseded | S::RolledBack);
            assert_eq!(after.in_queue, pending.is_some(), "in the queue while it has work: {told}");
            assert!(serves || ended(new) != after.in_queue, "{told}");
            let running = after.deployment.steps.iter().filter(|s| s.state == StepState::Running);
            assert_eq!(running.count() == 1, after.in_queue, "one step at a time: {told}");
            assert_eq!(
                after.deployment.error.is_some(),
                new == S::Failed || after.failing,
                "{told}"
            );
            assert!(new != S::Cancelling || !after.failing, "a failure cancels nothing: {told}");
            assert!(
                !matches!(before.deployment.state, S::Live) || serves,
                "it does not unserve: {told}"
            );
        },
    );
    let all = [
        "Building",
        "Cancelled",
        "Cancelling",
        "Deploying",
        "Failed",
        "Live",
        "Queued",
        "RolledBack",
        "Superseded",
        "Verifying",
    ];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn a_backup_is_whole_or_none() {
    use backups::{Backups, Command, Effect, Outcome};
    let first = scene::backing_up(BackupId::of(Ulid(7)), InstanceId::of(Ulid(7)), NOW);
    let command = |name, command| (name, Input::<Backups>::Command(command), None);
    let outcome = |name, of, outcome| (name, Input::<Backups>::Outcome(outcome), Some(of));
    let inputs = [
        command("restore", Command::Restore),
        command("verify", Command::Verify),
        ("overdue", Input::Due, None),
        command("delete", Command::Delete),
        command("remove", Command::Remove),
        outcome("dumped", Effect::Dump, Outcome::Dumped(1, "0".repeat(64).parse().unwrap())),
        outcome("not dumped", Effect::Dump, Outcome::Failed("no".into())),
        outcome("restored", Effect::Restore, Outcome::Restored),
        outcome("not restored", Effect::Restore, Outcome::Failed("no".into())),
        outcome("restarted", Effect::Restart, Outcome::Restarted),
        outcome("usable", Effect::Verify, Outcome::Restored),
        outcome("not usable", Effect::Verify, Outcome::Failed("no".into())),
        outcome("not verified", Effect::Verify, Outcome::Unverified("no".into())),
        outcome("disposed", Effect::Dispose, Outcome::Disposed),
        outcome("thinned", Effect::Thin, Outcome::Thinned),
        outcome("clean", Effect::Clean, Outcome::Discarded),
        outcome("discarded", Effect::Discard, Outcome::Discarded),
    ];
    let running = |restore: &Option<Restore>| {
        restore.as_ref().is_some_and(|r| r.state == RestoreState::Running)
    };
    let found = explore::<Backups>(
        first,
        &inputs,
        |state| format!("{:?}", state.backup.state),
        |before, after, told| {
            let Some((after, pending)) = after else {
                assert!(before.removing, "{told}");
                return;
            };
            let (old, new) = (before.backup.state, after.backup.state);
            let told = format!("{told}: {old:?} to {new:?}, {pending:?}");
            assert!(
                after.has_check_database
                    || !before.has_check_database
                    || told.starts_with("disposed"),
                "{told}"
            );
            if after.removing {
                assert_eq!(pending, Some(&Effect::Discard), "{told}");
                return;
            }
            let (restoring, verifying) =
                (running(&after.backup.restore), running(&after.backup.verification));
            assert_eq!(new == BackupState::Running, pending == Some(&Effect::Dump), "{told}");
            let restores = [Some(&Effect::Restore), Some(&Effect::Restart)];
            assert_eq!(restoring, restores.contains(&pending), "{told}");
            assert_eq!(after.restored, pending == Some(&Effect::Restart), "{told}");
            assert_eq!(verifying, pending == Some(&Effect::Verify), "{told}");
            assert!(after.has_check_database || !verifying, "{told}");
            let untidy = after.has_check_database || after.surplus || after.has_left_bytes;
            assert!(pending.is_some() || !untidy, "what is left is tidied up: {told}");
            let told_useless = after.useless && !before.useless;
            assert!(!told_useless || told.starts_with("not usable"), "{told}");
            assert_eq!(
                after.deadline.is_some(),
                new == BackupState::Running || restoring || pending == Some(&Effect::Verify),
                "{told}"
            );
            assert_eq!(after.backup.sha256.is_some(), new == BackupState::Ready, "{told}");
            assert!(old == BackupState::Running || new == old, "the end is the end: {told}");
        },
    );
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["Failed", "Ready", "Running"]);
}

#[test]
fn a_build_ends() {
    use image_builds::{Command, Effect, ImageBuilds, Outcome};
    let first = scene::building(JobId::of(Ulid(7)), ImageId::of(Ulid(7)), "1.0.0", NOW);
    let command = |name, command| (name, Input::<ImageBuilds>::Command(command), None);
    let outcome = |name, of, outcome| (name, Input::<ImageBuilds>::Outcome(outcome), Some(of));
    let digest = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
    let inputs = [
        command("cancel", Command::Cancel),
        ("overdue", Input::Due, None),
        outcome("turn", Effect::AwaitTurn, Outcome::Turn),
        outcome("built", Effect::Build, Outcome::Built),
        outcome("not built", Effect::Build, Outcome::Failed("no".into())),
        outcome("pushed", Effect::Push, Outcome::Pushed(digest)),
        outcome("not pushed", Effect::Push, Outcome::Failed("no".into())),
    ];
    use BuildJobState as S;
    let found = explore::<ImageBuilds>(
        first,
        &inputs,
        |state| format!("{:?}", state.job.state),
        |before, after, told| {
            let (after, pending) = after.unwrap_or_else(|| panic!("{told} removed it"));
            let (old, new) = (before.job.state, after.job.state);
            let told = format!("{told}: {old:?} to {new:?}, {pending:?}");
            let open = matches!(new, S::Queued | S::Building | S::Pushing);
            assert_eq!(open, pending.is_some(), "transient if and only if work is pending: {told}");
            assert_eq!(after.deadline.is_some(), matches!(new, S::Building | S::Pushing), "{told}");
            assert_eq!(after.job.digest.is_some(), new == S::Succeeded, "{told}");
            let was_open = matches!(old, S::Queued | S::Building | S::Pushing);
            assert!(was_open || new == old, "the end is the end: {told}");
        },
    );
    let all = ["Building", "Cancelled", "Failed", "Pushing", "Queued", "Succeeded"];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), all);
}
