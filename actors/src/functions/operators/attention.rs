//! What needs the attention of an operator. Pure: [`decide`] sees plain facts.

mod engines;
mod expiry;

use contract::{
    AppId, Timestamp,
    backups::{Backup, BackupState, RestoreState},
    builds::{Build, BuildState},
    certificates::ServerCertificate,
    checkouts::{Checkout, CheckoutState},
    credentials::Credential,
    deployments::{Deployment, DeploymentState},
    endpoint::ClockCheck,
    instances::InstanceState,
    operators::{
        Actor, ActorState, Attention, AttentionAction as Act, AttentionReason as Why, DiskUsage,
    },
    releases::{Publication, PublicationState, Release, ReleaseState},
};
pub use engines::EngineFacts;
use engines::of_engine;
use expiry::{of_certificate, of_credential};
use std::{collections::HashSet, time::Duration};

/// The most entries of the list.
const MOST: usize = 200;
/// Restarts of one actor after which it counts as a crash loop, as long as the last panic is recent.
const LOOP: u64 = 3;
/// How long a panic is recent.
const RECENT: Duration = Duration::from_secs(600);
/// How long after its deadline work counts as stuck. The sweeper needs a part of a minute.
pub const OVERDUE_AFTER: Duration = Duration::from_secs(300);
/// How long failed work is shown.
const FAILED_FOR: Duration = Duration::from_secs(24 * 3600);
/// A disk with less free space than both is nearly full: a tenth, and this many bytes.
const FREE_ENOUGH: u64 = 10 << 30;

/// What is known about the installation.
#[derive(Debug, Default)]
pub struct Facts {
    /// Whether the store refuses changes.
    pub store_refuses: bool,
    pub disk: Option<DiskUsage>,
    pub engines: Vec<EngineFacts>,
    /// Whether the clock runs evenly.
    pub clock: ClockCheck,
    /// The actors that are not well, or were restarted.
    pub actors: Vec<Actor>,
    /// The checkouts whose money arrived, and which are not settled.
    pub checkouts: Vec<Checkout>,
    pub instances: Vec<InstanceFacts>,
    /// The last backups of each instance, newest first.
    pub backups: Vec<Vec<Backup>>,
    pub overdue: Vec<Overdue>,
    /// The last builds and deployments, newest first.
    pub work: Vec<Work>,
    /// The credentials that expire soon, or are expired.
    pub credentials: Vec<Credential>,
    /// The certificates of this server whose last attempt failed.
    pub certificates: Vec<ServerCertificate>,
    /// The last releases of each app, newest first.
    pub releases: Vec<Vec<Release>>,
}

/// An instance, and its crashes of the last ten minutes.
#[derive(Debug)]
pub struct InstanceFacts {
    pub id: String,
    pub app_id: AppId,
    pub name: String,
    pub state: InstanceState,
    pub error: Option<String>,
    pub crashes: usize,
    pub since: Timestamp,
    /// The security advisories that concern its images.
    pub advisories: Vec<String>,
}

/// An object whose deadline passed, and whose owner did nothing about it.
#[derive(Debug)]
pub struct Overdue {
    pub id: String,
    pub noun: &'static str,
    pub due: Timestamp,
}

/// A build or a deployment that ended or is under way.
#[derive(Debug)]
pub struct Work {
    pub id: String,
    pub app_id: Option<AppId>,
    pub noun: &'static str,
    /// The later one of a series replaces the earlier ones.
    pub series: String,
    /// When it failed, and why.
    pub failed: Option<(Timestamp, Option<String>)>,
}

impl Work {
    pub fn of_build(build: &Build) -> Work {
        let failed = matches!(build.state, BuildState::Failed | BuildState::TimedOut);
        Work {
            id: build.id.to_string(),
            app_id: Some(build.app_id),
            noun: "build",
            series: format!("{} {} {}", build.app_id, build.platform.name(), build.profile),
            failed: build.finished_at.filter(|_| failed).map(|at| (at, build.error.clone())),
        }
    }

    pub fn of_deployment(deployment: &Deployment) -> Work {
        let failed = deployment.state == DeploymentState::Failed;
        let failed = deployment.finished_at.filter(|_| failed);
        Work {
            id: deployment.id.to_string(),
            app_id: Some(deployment.app_id),
            noun: "deployment",
            series: format!("{} {:?}", deployment.instance_id, deployment.target),
            failed: failed.map(|at| (at, deployment.error.clone())),
        }
    }
}

/// The list, the most urgent entries first.
pub fn decide(facts: &Facts, now: Timestamp) -> Vec<Attention> {
    let mut list = machine(facts);
    list.extend(facts.actors.iter().filter_map(|actor| of_actor(actor, now)));
    list.extend(facts.checkouts.iter().map(of_checkout));
    list.extend(facts.instances.iter().filter_map(of_instance));
    list.extend(facts.instances.iter().filter_map(of_outdated));
    list.extend(facts.backups.iter().flat_map(|newest| of_backups(newest)));
    // A parked actor is listed already.
    let parked: HashSet<_> = list.iter().filter_map(|entry| entry.subject.clone()).collect();
    list.extend(facts.overdue.iter().filter(|late| !parked.contains(&late.id)).map(of_overdue));
    list.extend(of_work(&facts.work, now));
    list.extend(facts.releases.iter().flat_map(|newest| of_releases(newest)));
    list.extend(facts.certificates.iter().map(|it| of_certificate(it, now)));
    list.extend(facts.credentials.iter().filter_map(|credential| of_credential(credential, now)));
    list.sort_by_key(|entry| (entry.reason, entry.since));
    list.truncate(MOST);
    list
}

fn entry(reason: Why, detail: impl Into<String>, action: Act) -> Attention {
    Attention { reason, subject: None, app_id: None, detail: detail.into(), since: None, action }
}

fn machine(facts: &Facts) -> Vec<Attention> {
    let mut list = Vec::new();
    if facts.store_refuses {
        let detail = "The store takes no changes; the log says why.";
        list.push(entry(Why::StoreReadOnly, detail, Act::CheckMachine));
    }
    if let Some(disk) =
        facts.disk.filter(|disk| disk.free_bytes < FREE_ENOUGH && disk.free_bytes < disk.bytes / 10)
    {
        let left = disk.free_bytes / (1 << 20);
        let detail = format!("{left} MiB are left on the disk of the data directory.");
        list.push(entry(Why::DiskNearlyFull, detail, Act::CheckMachine));
    }
    if let Some(seconds) = facts.clock.jumped_seconds {
        let (hours, way) =
            (seconds.unsigned_abs() / 3600, if seconds < 0 { "back" } else { "ahead" });
        let detail = format!(
            "The clock went {hours} hours {way}, so nothing is deleted by time. Set it, or confirm it with \
             svc_admin_confirmClock."
        );
        let jumped = entry(Why::ClockJumped, detail, Act::CheckMachine);
        list.push(Attention { since: facts.clock.since, ..jumped });
    }
    list.extend(facts.engines.iter().flat_map(of_engine));
    list
}

fn of_actor(actor: &Actor, now: Timestamp) -> Option<Attention> {
    let panic = actor.last_panic.as_ref();
    let said = panic.map(|panic| format!(" It said: {}", panic.message)).unwrap_or_default();
    let (reason, detail, since) = match actor.state {
        ActorState::GaveUp => (
            Why::ActorGaveUp,
            format!("The {} panicked too often and waits for a restart.{said}", words(&actor.kind)),
            panic.map(|panic| panic.at),
        ),
        ActorState::Stuck => {
            let handling = actor.handling.as_ref();
            let message = handling.map_or("a message", |handling| handling.message.as_str());
            let elapsed = handling.map(|handling| Duration::from_millis(handling.elapsed_ms));
            let detail = format!("The {} does not finish {message}.", words(&actor.kind));
            (Why::ActorStuck, detail, elapsed.map(|elapsed| now - elapsed))
        }
        ActorState::Running | ActorState::Restarting => {
            let last = panic.filter(|panic| now.since(panic.at) < RECENT)?;
            if actor.restarts < LOOP {
                return None;
            }
            let times = actor.restarts;
            let detail = format!("The {} was restarted {times} times.{said}", words(&actor.kind));
            (Why::CrashLoop, detail, Some(last.at))
        }
    };
    let action = if actor.restartable { Act::RestartActor } else { Act::CheckMachine };
    let found = entry(reason, detail, action);
    Some(Attention { subject: Some(actor.id.clone()), since, ..found })
}

/// A kind of actor in words, such as `backup schedule`.
fn words(kind: &str) -> String {
    let mut words = String::with_capacity(kind.len() + 2);
    for c in kind.chars() {
        if c.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

fn of_checkout(checkout: &Checkout) -> Attention {
    let why = checkout.problem.as_deref().unwrap_or("the money arrived, and is not settled");
    let detail = format!("The payment {} is not settled: {why}.", checkout.reference);
    // Another sum than was to be paid is for a person to decide about.
    let action = match checkout.state {
        CheckoutState::AmountMismatch => Act::OpenApp,
        _ => Act::SettleCheckout,
    };
    Attention {
        subject: Some(checkout.reference.to_string()),
        app_id: Some(checkout.app_id),
        since: checkout.paid_at,
        ..entry(Why::CheckoutNotSettled, detail, action)
    }
}

fn of_instance(instance: &InstanceFacts) -> Option<Attention> {
    let why = instance.error.as_deref().map(|why| format!(" {why}")).unwrap_or_default();
    let (reason, detail) = match instance.state {
        InstanceState::Failed => {
            (Why::InstanceFailed, format!("The instance {} failed.{why}", instance.name))
        }
        _ if instance.crashes as u64 >= LOOP => (
            Why::CrashLoop,
            format!(
                "Containers of the instance {} exited {} times within ten minutes.{why}",
                instance.name, instance.crashes
            ),
        ),
        _ => return None,
    };
    Some(Attention {
        subject: Some(instance.id.clone()),
        app_id: Some(instance.app_id),
        since: Some(instance.since),
        ..entry(reason, detail, Act::OpenApp)
    })
}

fn of_outdated(instance: &InstanceFacts) -> Option<Attention> {
    if instance.advisories.is_empty() {
        return None;
    }
    let (name, advisories) = (&instance.name, instance.advisories.join(", "));
    let detail =
        format!("Security advisories concern images of the instance {name}: {advisories}.");
    Some(Attention {
        subject: Some(instance.id.clone()),
        app_id: Some(instance.app_id),
        ..entry(Why::InstanceOutdated, detail, Act::OpenApp)
    })
}

/// The entries of the backups of one instance, newest first: of each database, the last backup that
/// ended must be ready, and one of them must be verified.
fn of_backups(newest: &[Backup]) -> Vec<Attention> {
    let mut list = Vec::new();
    let mut seen = HashSet::new();
    for last in newest.iter().filter(|backup| backup.state != BackupState::Running) {
        if !seen.insert(last.kind) {
            continue;
        }
        let about = |reason, detail: String, action| Attention {
            subject: Some(last.id.to_string()),
            app_id: Some(last.app_id),
            since: Some(last.created_at),
            ..entry(reason, detail, action)
        };
        if last.state == BackupState::Failed {
            let why = last.error.as_deref().unwrap_or("the reason is not known");
            let detail = format!("The last backup of a database failed: {why}.");
            list.push(about(Why::BackupFailed, detail, Act::OpenApp));
            continue;
        }
        let state = |backup: &Backup| backup.verification.as_ref().map(|check| check.state);
        let of_database = newest.iter().filter(|backup| backup.kind == last.kind);
        let is_good =
            |state| matches!(state, Some(RestoreState::Succeeded | RestoreState::Running));
        let detail = match state(last) {
            Some(RestoreState::Failed) => {
                let check = last.verification.as_ref();
                let why = check.and_then(|check| check.error.as_deref());
                format!(
                    "The last backup of a database could not be verified: {}.",
                    why.unwrap_or("the reason is not known")
                )
            }
            _ if of_database.map(state).any(is_good) => continue,
            _ => "No recent backup of a database is verified.".to_owned(),
        };
        list.push(about(Why::BackupNotVerified, detail, Act::VerifyBackup));
    }
    list
}

fn of_overdue(late: &Overdue) -> Attention {
    let detail = format!("The {} passed its deadline, and its actor did nothing.", late.noun);
    Attention {
        subject: Some(late.id.clone()),
        since: Some(late.due),
        ..entry(Why::WorkStuck, detail, Act::RestartActor)
    }
}

/// The last of each series, if it failed within a day.
fn of_work(work: &[Work], now: Timestamp) -> Vec<Attention> {
    let mut seen = HashSet::new();
    let last = work.iter().filter(|work| seen.insert((work.noun, work.series.as_str())));
    let failed = last.filter_map(|work| {
        let (at, why) = work.failed.as_ref()?;
        if now.since(*at) > FAILED_FOR {
            return None;
        }
        let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        Some(Attention {
            subject: Some(work.id.clone()),
            app_id: work.app_id,
            since: Some(*at),
            ..entry(
                Why::WorkFailed,
                format!("The last {} failed{why}.", work.noun),
                if work.app_id.is_some() { Act::OpenApp } else { Act::CheckMachine },
            )
        })
    });
    failed.collect()
}

/// The last release of each channel, if a target refused it.
fn of_releases(newest: &[Release]) -> Vec<Attention> {
    let mut seen = HashSet::new();
    let last = newest.iter().filter(|release| release.state != ReleaseState::Draft);
    let last = last.filter(|release| seen.insert(&release.channel));
    let last = last.filter(|release| release.state != ReleaseState::RolledBack);
    let refused = last.filter_map(|release| {
        let failed = |p: &&Publication| p.state == PublicationState::Failed;
        let refused = release.publications.iter().find(failed)?;
        let why = refused.error.as_deref().unwrap_or("it gave no reason");
        let (version, channel, target) =
            (&release.version, &release.channel, refused.target.name());
        Some(Attention {
            subject: Some(release.id.to_string()),
            app_id: Some(release.app_id),
            since: Some(refused.updated_at),
            ..entry(
                Why::PublicationFailed,
                format!("{version} of {channel} did not get to {target}: {why}."),
                Act::OpenApp,
            )
        })
    });
    refused.collect()
}

#[cfg(test)]
mod tests;
