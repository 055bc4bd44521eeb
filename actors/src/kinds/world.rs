//! The world: the store, the ports, the owners, and what is known in memory only.

use super::{
    commerce::notice_limit::NoticeLimit,
    creation::{self, Creation},
    delivery::builds::{SeenRunners, WaitingBuilds},
    events::webhooks::{Subscribers, outbox},
    hosting::{
        backup_schedules,
        backups::restore_check_turns,
        certificates,
        engines::{Hosts, in_use},
        image_builds::queue::BuildQueue,
        instances::{container_turns, metrics::LastReadings},
    },
    people::usage,
    table::{self, Owned, Owners},
};
use crate::{
    ports::Ports,
    runtime::{
        self,
        clock::Clock,
        clock_watch,
        directory::Rules,
        handle::OwnerOf,
        health::Registry,
        host::Host,
        resource::{Moment, Resource, Retry},
        store::Store,
        told::Told,
        turns::{Tenant, Turns},
        uses::{LimitsCount, Uses},
    },
};
use actix_rt::ArbiterHandle;
use contract::{Fault, Id, Timestamp};
use futures_util::future::LocalBoxFuture;
use std::{
    any::Any,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};
use store::Change;
use ulid::Ulid;

/// The state that owners and handlers share.
pub struct World {
    /// Holds everything durable.
    pub store: Store,
    pub ports: Ports,
    /// The health of every actor in memory.
    pub registry: Registry,
    pub started_at: Timestamp,
    /// The container engines.
    pub hosts: Hosts,
    /// The last resource reading of each container.
    pub last_readings: LastReadings,
    /// The builds that are under way and those that wait.
    pub builds: BuildQueue,
    /// The containers of instances that are created and started, and those that wait.
    pub(crate) container_turns: Turns<Tenant>,
    /// The restore checks of backups that are under way and those that wait.
    pub(crate) restore_checks: Turns<Tenant>,
    /// The certificates that an authority works on, and those that wait.
    pub(crate) certificate_turns: Turns<Tenant>,
    /// Tells idle runners of builds.
    pub waiting_builds: WaitingBuilds,
    /// Turns of those who create something of which its parent may have only so many, or one at a
    /// time. The holder is the id of the parent.
    creations: Turns<Ulid>,
    /// The runners that asked for builds.
    pub seen_runners: SeenRunners,
    /// Who hears of events.
    pub webhooks: Subscribers,
    /// The notices of payment providers that each app has left.
    pub notice_limit: NoticeLimit,
    /// The actors that operators asked other nodes to restart.
    pub restarts: Mutex<Told<String>>,
    owners: OnceLock<Owners>,
    leaving: AtomicBool,
    stopping: AtomicBool,
}

impl World {
    /// Starts the directories on the arbiters, then wakes the owners that were awake when the process last
    /// ended.
    pub async fn start(
        store: store::Store,
        ports: Ports,
        arbiters: &[ArbiterHandle],
        rules: Rules,
    ) -> Result<Arc<World>, Fault> {
        let started_at = ports.clock.now();
        let store = runtime::store::Store::from(store);
        let hosts = Hosts::new(ports.engine.clone());
        let world = Arc::new(World {
            store,
            started_at,
            hosts,
            ports,
            registry: Registry::default(),
            last_readings: LastReadings::default(),
            builds: BuildQueue::default(),
            container_turns: container_turns(),
            restore_checks: restore_check_turns(),
            certificate_turns: certificates::turns(),
            waiting_builds: WaitingBuilds::default(),
            creations: Turns::apart(1),
            seen_runners: SeenRunners::default(),
            webhooks: Subscribers::default(),
            notice_limit: NoticeLimit::default(),
            restarts: Mutex::default(),
            owners: OnceLock::new(),
            leaving: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        });
        if let Err(fault) = clock_watch::look(&world.store, &world.ports.clock).await {
            tracing::error!(error = %fault, "the clock was not looked at");
        }
        // Owners remember their records, so this runs before any owner exists.
        if let Err(fault) = backup_schedules::carry_over(&world).await {
            tracing::error!(error = %fault, "schedules of an earlier version were not carried over");
        }
        if let Err(fault) = table::reindex(&world.store).await {
            tracing::error!(error = %fault, "lists lack records of an earlier version until the next start");
        }
        if let Err(fault) = usage::count_once(&world.store).await {
            tracing::error!(error = %fault, "it was not counted what organizations use of their quotas; the next start counts again");
        }
        if let Err(fault) = world.webhooks.read(&world.store) {
            tracing::error!(error = %fault, "the webhooks were not read; their events are missed");
        }
        let owners = Owners::start(&world, arbiters, rules).await?;
        let _ = world.owners.set(owners.clone());
        owners.resume().await;
        Ok(world)
    }

    /// Refuses work that brings so many bytes while the disk of the data directory or that of the engine which
    /// builds images is nearly full.
    pub fn check_room(&self, bytes: u64) -> Result<(), Fault> {
        self.ports.machine.check_room(bytes)?;
        self.hosts.own().health.check_room(bytes)
    }

    /// The turn to create a child of this parent, for whoever counts the children first. It must be
    /// held until the child exists.
    pub(crate) async fn creation(&self, parent: impl Id) -> Result<Creation, Fault> {
        let Ports { clock, random, .. } = &self.ports;
        creation::take(&self.creations, parent.unique(), (&self.store, clock, random)).await
    }

    /// Says that the service stops soon: it is no longer ready, and goes on answering until balancers have seen that.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Whether the service stops soon.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Says that the service is about to stop: calls that wait for something to happen end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the service is about to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// The owner of a resource.
    pub fn to<R: Owned>(&self, id: R::Key) -> OwnerOf<'_, R> {
        OwnerOf::new(self.owners().map(R::owners), id, &self.store)
    }

    /// The handles of the owners; [`Fault::Busy`] while they are being started.
    pub fn owners(&self) -> Result<&Owners, Fault> {
        self.owners.get().ok_or(Fault::Busy)
    }
}

impl Host for World {
    fn store(&self) -> &Store {
        &self.store
    }

    fn clock(&self) -> &Clock {
        &self.ports.clock
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What the change adds to the outbox of webhooks.
    fn outgoing<R: Resource<Host = World>>(
        &self,
        at: &Moment<R>,
        before: Option<&R::State>,
        after: &R::State,
    ) -> Result<Change, Fault> {
        outbox::records(self, at, before, after)
    }

    fn accounted<R: Resource<Host = World>>(
        &self,
        id: &R::Key,
        before: (Option<&R::State>, Uses),
        after: (Option<&R::State>, Uses),
        limits: LimitsCount,
    ) -> Result<Change, Fault> {
        let engines = in_use::counted::<R>(before.0, after.0);
        Ok(usage::accounted::<R>(self, id, before, after, limits)?.and(engines))
    }

    fn has_outgoing(&self) {
        self.webhooks.news.notify_one();
    }

    fn delete_children<'a>(
        &'a self,
        id: &'a (dyn Any + Send + Sync),
    ) -> LocalBoxFuture<'a, Result<bool, Retry>> {
        Box::pin(async move { Owners::delete_children(self, id).await })
    }
}
