//! The decision over plain facts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use contract::{
    InstanceId,
    backups::{BackupKind, Restore},
    operators::{Handling, Mailbox, Panic},
};

const HOUR: Duration = Duration::from_secs(3600);

fn now() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000)
}

fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(prefix: &str, n: u8) -> T {
    format!("{prefix}_01J000000000000000000000{n:02}").parse().unwrap()
}

fn actor(n: u8, state: ActorState, restarts: u64, panicked: Duration) -> Actor {
    Actor {
        id: format!("actor {n}"),
        kind: "backupSchedule".into(),
        resource: None,
        state,
        mailbox: Mailbox { length: 0, capacity: 1 },
        handled: 1,
        restarts,
        last_panic: Some(Panic { at: now() - panicked, message: "no room".into() }),
        handling: Some(Handling { message: "Overdue".into(), elapsed_ms: 90_000 }),
        uptime_ms: 0,
        restartable: n != 2,
        node: None,
    }
}

fn backup(n: u8, state: BackupState, checked: Option<RestoreState>) -> Backup {
    Backup {
        id: id("bak", n),
        instance_id: id::<InstanceId>("ins", 1),
        instance_kind: None,
        app_id: id("app", 1),
        kind: BackupKind::SqlDb,
        state,
        scheduled: true,
        size: None,
        sha256: None,
        error: None,
        restore: None,
        verification: checked.map(|state| Restore {
            state,
            error: None,
            started_at: now(),
            finished_at: None,
        }),
        created_at: now(),
        finished_at: None,
    }
}

fn work(series: &str, failed: Option<Duration>) -> Work {
    Work {
        id: series.into(),
        app_id: Some(id("app", 1)),
        noun: "build",
        series: series.into(),
        failed: failed.map(|age| (now() - age, Some("exit code 1".into()))),
    }
}

fn told(facts: &Facts) -> Vec<(Why, Option<String>, Act)> {
    let list = decide(facts, now());
    list.into_iter().map(|entry| (entry.reason, entry.subject, entry.action)).collect()
}

fn about(reason: Why, subject: impl Into<String>, action: Act) -> (Why, Option<String>, Act) {
    (reason, Some(subject.into()), action)
}

#[test]
fn a_calm_installation_needs_nobody() {
    let facts = Facts {
        disk: Some(DiskUsage { bytes: 100 << 30, free_bytes: 10 << 30 }),
        actors: vec![
            actor(1, ActorState::Running, LOOP - 1, Duration::ZERO),
            actor(2, ActorState::Running, 50, RECENT),
        ],
        ..Facts::default()
    };
    assert!(told(&facts).is_empty(), "{:?}", told(&facts));
}

#[test]
fn the_most_urgent_comes_first_and_each_trouble_once() {
    let late = |id: &str| Overdue { id: id.into(), noun: "build", due: now() - HOUR };
    let facts = Facts {
        store_refuses: true,
        disk: Some(DiskUsage { bytes: 100 << 30, free_bytes: 9 << 30 }),
        engines: vec![EngineFacts {
            away: Some(now()),
            egress_open: true,
            orphans: 2,
            ..EngineFacts::default()
        }],
        actors: vec![
            actor(1, ActorState::Restarting, LOOP, Duration::ZERO),
            actor(2, ActorState::Stuck, 0, HOUR),
            actor(3, ActorState::GaveUp, 5, HOUR),
        ],
        overdue: vec![late("actor 3"), late("bld")],
        ..Facts::default()
    };
    let whole = |reason, action| (reason, None, action);
    assert_eq!(
        told(&facts),
        [
            whole(Why::StoreReadOnly, Act::CheckMachine),
            whole(Why::DiskNearlyFull, Act::CheckMachine),
            whole(Why::EngineUnreachable, Act::CheckMachine),
            whole(Why::EgressOpen, Act::CheckMachine),
            about(Why::ActorGaveUp, "actor 3", Act::RestartActor),
            about(Why::ActorStuck, "actor 2", Act::CheckMachine),
            about(Why::CrashLoop, "actor 1", Act::RestartActor),
            about(Why::WorkStuck, "bld", Act::RestartActor),
            whole(Why::Orphans, Act::Wait),
        ]
    );
    let list = decide(&facts, now());
    assert_eq!(
        list[4].detail,
        "The backup schedule panicked too often and waits for a restart. It said: no room"
    );
    assert_eq!(list[5].since, Some(now() - Duration::from_secs(90)));
}

#[test]
fn a_database_needs_a_last_backup_that_is_ready_and_a_recent_one_that_is_verified() {
    use BackupState::{Failed, Ready, Running};
    use RestoreState::Succeeded;
    let unverified = |n: u8| vec![about(Why::BackupNotVerified, id_of(n), Act::VerifyBackup)];
    let failed = |n: u8| vec![about(Why::BackupFailed, id_of(n), Act::OpenApp)];
    fn id_of(n: u8) -> String {
        id::<contract::BackupId>("bak", n).to_string()
    }
    for (newest, expected) in [
        (vec![], vec![]),
        (vec![backup(1, Running, None)], vec![]),
        (vec![backup(1, Ready, None)], unverified(1)),
        (vec![backup(1, Ready, Some(Succeeded))], vec![]),
        (vec![backup(2, Ready, None), backup(1, Ready, Some(Succeeded))], vec![]),
        (
            vec![backup(2, Ready, Some(RestoreState::Failed)), backup(1, Ready, Some(Succeeded))],
            unverified(2),
        ),
        (vec![backup(2, Failed, None), backup(1, Ready, Some(Succeeded))], failed(2)),
        (vec![backup(3, Running, None), backup(2, Failed, None)], failed(2)),
    ] {
        let facts = Facts { backups: vec![newest], ..Facts::default() };
        assert_eq!(told(&facts), expected, "{facts:?}");
    }
}

#[test]
fn only_the_last_of_a_series_counts_and_only_for_a_day() {
    let facts = Facts {
        work: vec![
            work("mended", None),
            work("mended", Some(HOUR)),
            work("broken", Some(HOUR)),
            work("broken", Some(HOUR * 2)),
            work("long ago", Some(HOUR * 25)),
        ],
        ..Facts::default()
    };
    assert_eq!(told(&facts), [about(Why::WorkFailed, "broken", Act::OpenApp)]);
}

/// A release of a channel with one publication at Google Play.
fn release(n: u8, channel: &str, state: &str, publication: &str) -> Release {
    let at = now();
    serde_json::from_value(serde_json::json!({
        "id": id::<contract::ReleaseId>("rel", n), "appId": id::<AppId>("app", 1),
        "version": format!("1.{n}.0"), "channel": channel, "notes": null, "artifactIds": [],
        "state": state, "rolledBackTo": null, "createdBy": null, "createdAt": at, "publishedAt": null,
        "publications": [{
            "id": id::<contract::PublicationId>("pub", n),
            "releaseId": id::<contract::ReleaseId>("rel", n),
            "artifactId": id::<contract::ArtifactId>("art", n), "target": "google-play",
            "state": publication, "remoteId": null, "url": null, "error": "no room", "log": [],
            "updatedAt": at,
        }],
    }))
    .unwrap()
}

#[test]
fn the_last_release_of_a_channel_counts_unless_it_was_rolled_back() {
    for (newest, refused) in [
        (vec![release(1, "beta", "failed", "failed")], vec![1]),
        (vec![release(1, "beta", "published", "live")], vec![]),
        (vec![release(1, "beta", "rolledBack", "failed")], vec![]),
        (
            vec![release(2, "beta", "published", "live"), release(1, "beta", "failed", "failed")],
            vec![],
        ),
        (
            vec![release(2, "beta", "draft", "failed"), release(1, "beta", "failed", "failed")],
            vec![1],
        ),
        (
            vec![
                release(2, "beta", "failed", "failed"),
                release(1, "production", "partiallyPublished", "failed"),
            ],
            vec![2, 1],
        ),
    ] {
        let facts = Facts { releases: vec![newest], ..Facts::default() };
        let found = decide(&facts, now());
        let subjects: Vec<_> = found.iter().filter_map(|entry| entry.subject.clone()).collect();
        let expected: Vec<_> =
            refused.iter().map(|n| id::<contract::ReleaseId>("rel", *n).to_string()).collect();
        assert_eq!(subjects, expected, "{facts:?}");
        assert!(found.iter().all(|entry| entry.reason == Why::PublicationFailed));
    }
}
