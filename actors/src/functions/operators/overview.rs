//! The state of the installation, as operators and monitors see it.
//!
//! An overview reads the health of the actors in memory, index entries, the records of the instances
//! with their last backups, and a bounded number of the last builds and deployments. It never reads
//! a whole other kind.

use super::{
    attention::{self, EngineFacts, Facts, InstanceFacts, OVERDUE_AFTER, Overdue, Work},
    nodes,
};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        commerce::checkouts::{self, CheckoutIndex, Checkouts},
        delivery::{
            builds::Builds,
            credentials::{CredentialIndex, Credentials},
        },
        events::webhooks::outbox::OutboxIndex,
        hosting::{
            backups::Backups,
            certificates::{Certificates, id_of, own_names},
            deployments::Deployments,
            engines::{Egress, Engines, Host},
            image_builds::ImageBuilds,
            instances::{Instance, InstanceIndex, Instances},
        },
        table::{self, KindVisitor, Owned},
        world::World,
    },
    runtime::{
        clock_watch,
        entries::{self, Deadline, Under},
        resource::{Moment, Resource, removes_for_good},
        store::{Keyed, Store},
    },
};
use contract::{
    Fault, InstanceId, Serves, Timestamp,
    endpoint::{
        ActorsCheck, Checks, ClockCheck, EgressCheck, EngineCheck, Readiness, ReadyState,
        StoreCheck,
    },
    image_builds::BuildJobState,
    operators::{Actor, ActorCount, ActorState, GetOverview, Overview, StoreUsage},
};
use std::{collections::BTreeMap, iter, sync::Arc};

/// The most objects of one kind that an overview names.
const MOST: usize = 50;
/// The backups of an instance that are looked at.
const BACKUPS: usize = 8;

impl Serves<GetOverview> for Platform {
    async fn serve(&self, cx: &Call, _: GetOverview) -> Result<Overview, Fault> {
        let (store, now) = (&self.world.store, cx.now);
        let (mut counts, mut troubled, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
        let readiness = readiness(&self.world, now);
        let own = nodes::own(&self.world, now, readiness.status);
        for report in iter::once(own).chain(nodes::others(&self.world)) {
            count(&mut counts, report.counts);
            troubled.extend(report.troubled);
            statuses.push(report.status);
        }
        let unsettled = store.oldest::<Checkouts>(&CheckoutIndex::Unsettled, None).take(MOST);
        let disk = self.world.ports.machine.disk();
        let mut facts = Facts {
            store_refuses: !readiness.checks.store.ok,
            disk,
            clock: readiness.checks.clock.clone(),
            engines: engine_facts(&self.world)?,
            actors: troubled,
            checkouts: read(unsettled, |id, seen| checkouts::view(id, &seen.state))?,
            overdue: overdue(store, now, readiness.checks.clock.ok)?,
            work: work(store)?,
            ..Facts::default()
        };
        let expiring = store.oldest::<Credentials>(&CredentialIndex::Expiring, None).take(MOST);
        facts.credentials = read(expiring, |_, seen| seen.credential.clone())?;
        // Those of a tenant's names are the tenant's to mend.
        for id in own_names(&self.world.ports.site).map(|name| id_of(&name)) {
            let known = store.get::<Certificates>(&id)?;
            let failing = known.filter(|certificate| certificate.failures > 0);
            facts.certificates.extend(failing.map(|certificate| certificate.view(id, now)));
        }
        for found in store.newest::<Instances>(&InstanceIndex::All, None) {
            let (id, seen) = found?;
            if seen.is_deleted() {
                continue;
            }
            facts.instances.push(instance_facts(&self.world, id, &seen.state));
            let newest = store.newest::<Backups>(&Under::<Instances>(id), None).take(BACKUPS);
            facts.backups.push(read(newest, |_, seen| seen.backup.clone())?);
        }
        Ok(Overview {
            at: now,
            readiness,
            store: StoreUsage {
                bytes: store.raw().size_on_disk(),
                changes_waiting: store.raw().waiting(),
                events_waiting: store.count(&OutboxIndex::All)?,
            },
            disk,
            nodes: statuses,
            actors: counts,
            attention: attention::decide(&facts, now),
        })
    }
}

/// What is known about the engines.
fn engine_facts(world: &World) -> Result<Vec<EngineFacts>, Fault> {
    let facts = |host: Arc<Host>| {
        let known = host.id.map(|id| world.store.get::<Engines>(&id)).transpose()?.flatten();
        let status = host.health.status();
        Ok(EngineFacts {
            added: host.id.zip(known).map(|(id, known)| (id.to_string(), known.name.to_string())),
            away: status.unreachable.map(|(since, _)| since),
            egress_open: matches!(status.egress, Egress::Open(_)),
            orphans: status.orphans,
        })
    };
    world.all_hosts()?.into_iter().map(facts).collect()
}

/// What is known about an instance.
pub fn instance_facts(world: &World, id: InstanceId, instance: &Instance) -> InstanceFacts {
    InstanceFacts {
        id: id.to_string(),
        app_id: instance.app_id,
        name: instance.name.to_string(),
        state: instance.state,
        error: instance.last_error.clone(),
        crashes: instance.crashes.len(),
        since: instance.updated_at,
        advisories: instance.advisories(world).into_iter().collect(),
    }
}

/// Whether the service answers calls, and the state of its parts.
pub fn readiness(world: &World, now: Timestamp) -> Readiness {
    let flush = world.store.raw().last_flush_ms();
    let (mut restarting, mut gave_up, mut stuck) = (0, 0, 0);
    world.registry.each(|health| match health.state(now) {
        ActorState::Running => {}
        ActorState::Restarting => restarting += 1,
        ActorState::GaveUp => gave_up += 1,
        ActorState::Stuck => stuck += 1,
    });
    let actors_ok = gave_up == 0 && stuck == 0;
    let clock = clock_check(world);
    let engine = world.hosts.status();
    // The reason names programs and addresses of this machine: only the log has it.
    let error = match engine.egress {
        Egress::Restricted => None,
        Egress::Unknown => Some("what instances reach is not restricted yet"),
        Egress::Open(_) => Some("what instances reach is not restricted; the log says why"),
    };
    let egress = EgressCheck { ok: error.is_none(), error: error.map(str::to_owned) };
    let is_well = actors_ok && clock.ok && egress.ok && engine.unreachable.is_none();
    let status = match (&flush, is_well) {
        _ if world.is_leaving() || !engine.checked => ReadyState::Starting,
        (Err(_), _) => ReadyState::Starting,
        (Ok(_), true) => ReadyState::Ready,
        (Ok(_), false) => ReadyState::Degraded,
    };
    Readiness {
        status,
        checks: Checks {
            store: StoreCheck { ok: flush.is_ok(), flush_ms: flush.ok().flatten() },
            actors: ActorsCheck { ok: actors_ok, restarting, gave_up },
            engine: EngineCheck {
                ok: engine.unreachable.is_none(),
                since: engine.unreachable.as_ref().map(|(since, _)| *since),
                // The engine's own error names paths of this machine: only the log has it.
                error: engine
                    .unreachable
                    .map(|_| "the container engine does not answer; the log says why".into()),
                orphans: engine.orphans,
            },
            clock,
            egress,
        },
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_ms: now.since(world.started_at).as_millis() as u64,
    }
}

/// Whether the clock runs evenly. A store that cannot be read has its own check.
pub fn clock_check(world: &World) -> ClockCheck {
    let jump = clock_watch::jump(&world.store).ok().flatten();
    ClockCheck {
        ok: jump.is_none(),
        since: jump.map(|jump| jump.at),
        jumped_seconds: jump.map(|jump| jump.by_ms / 1000),
    }
}

/// The number of actors by kind, and those that are not well or were restarted.
pub fn census(world: &World, now: Timestamp) -> (Vec<ActorCount>, Vec<Actor>) {
    let mut kinds = BTreeMap::new();
    let mut troubled = Vec::new();
    world.registry.each(|health| {
        let (state, restarts) = (health.state(now), health.restarts());
        let count = kinds.entry(health.kind()).or_insert_with(|| ActorCount {
            kind: health.kind().to_owned(),
            running: 0,
            restarting: 0,
            gave_up: 0,
            stuck: 0,
            messages: 0,
            restarts: 0,
        });
        match state {
            ActorState::Running => count.running += 1,
            ActorState::Restarting => count.restarting += 1,
            ActorState::GaveUp => count.gave_up += 1,
            ActorState::Stuck => count.stuck += 1,
        }
        count.messages += health.queue().taken();
        count.restarts += restarts;
        if state != ActorState::Running || restarts > 0 {
            troubled.push(health.observe(now));
        }
    });
    (kinds.into_values().collect(), troubled)
}

/// Adds the actors of another node.
fn count(all: &mut Vec<ActorCount>, more: Vec<ActorCount>) {
    for more in more {
        match all.iter_mut().find(|known| known.kind == more.kind) {
            Some(known) => {
                known.running += more.running;
                known.restarting += more.restarting;
                known.gave_up += more.gave_up;
                known.stuck += more.stuck;
                known.messages += more.messages;
                known.restarts += more.restarts;
            }
            None => all.push(more),
        }
    }
}

/// What `view` shows of these records.
pub fn read<R: Resource, T>(
    list: impl Iterator<Item = Result<Keyed<R>, Fault>>,
    view: impl Fn(R::Key, &R::Content) -> T,
) -> Result<Vec<T>, Fault> {
    list.map(|found| found.map(|(key, seen)| view(key, &seen))).collect()
}

/// The objects whose deadline has passed for a while. Those that wait for the clock are not.
fn overdue(store: &Store, now: Timestamp, is_certain: bool) -> Result<Vec<Overdue>, Fault> {
    struct Late<'a> {
        store: &'a Store,
        now: Timestamp,
        is_certain: bool,
        found: Vec<Overdue>,
    }
    impl KindVisitor for Late<'_> {
        type Error = Fault;
        fn visit<R: Owned>(&mut self) -> Result<(), Fault> {
            let passed = Deadline(self.now - OVERDUE_AFTER);
            for found in self.store.before::<R>(&passed).take(MOST) {
                let (id, seen) = found?;
                let due = entries::due(&seen).filter(|due| *due < self.now - OVERDUE_AFTER);
                if let Some(due) = due
                    && (self.is_certain || !removes_for_good(&Moment { id, now: self.now }, &seen))
                {
                    self.found.push(Overdue { id: id.to_string(), noun: R::NOUN, due });
                }
            }
            Ok(())
        }
    }
    let mut late = Late { store, now, is_certain, found: Vec::new() };
    table::visit(&mut late)?;
    Ok(late.found)
}

/// The last builds and deployments.
fn work(store: &Store) -> Result<Vec<Work>, Fault> {
    let builds = store.whole::<Builds>(None).take(MOST);
    let deployments = store.whole::<Deployments>(None).take(MOST);
    let mut work = read(builds, |_, seen| Work::of_build(&seen.build))?;
    work.extend(read(deployments, |_, seen| Work::of_deployment(&seen.deployment))?);
    work.extend(read(store.whole::<ImageBuilds>(None).take(MOST), |id, seen| {
        let job = &seen.job;
        let failed = job.finished_at.filter(|_| job.state == BuildJobState::Failed);
        Work {
            id: id.to_string(),
            app_id: None,
            noun: "image build",
            series: job.image_id.to_string(),
            failed: failed.map(|at| (at, job.error.clone())),
        }
    })?);
    Ok(work)
}
