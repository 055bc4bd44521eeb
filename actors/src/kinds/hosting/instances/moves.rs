//! Moves of an instance to another engine. Pure.
//!
//! The images come first, while the instance serves. Then it stops, its volumes are copied and compared, and it
//! starts at the other engine. Until then the old one has everything: if a step fails, the instance starts there
//! again. A move to where the instance is calls off the one that is under way. What it leaves is removed after
//! [`KEEP_DATA`].

use super::{
    commands::Command,
    reconcile::apply::KEEP_DATA,
    record::{InitialRestore, Instance, LeftBehind, Move},
    rules::{Instances, PROVISION_WITHIN},
};
use crate::{kinds::hosting::engines::Engines, runtime::resource::Step};
use contract::{
    EngineId, Fault, InstanceId, Timestamp,
    instances::{InstanceState, Role, ServiceHealth, ServiceState},
};
use std::{collections::BTreeSet, time::Duration};
use store::{Change, Snapshot};

/// A step that failed so often ends the move.
const MOST_FAILURES: u32 = 3;
/// The pause before what was left at an engine that does not answer is removed again.
const FORGET_AGAIN: Duration = Duration::from_secs(3600);

impl Instance {
    /// Refuses what would change the instance while its volumes are copied.
    pub(super) fn may_change(&self, command: &Command) -> Result<(), Fault> {
        let changes = match command {
            Command::Start { .. }
            | Command::Restart
            | Command::AddService { .. }
            | Command::Replace { .. } => true,
            Command::Update { resources, env, .. } => resources.is_some() || env.is_some(),
            _ => false,
        };
        match self.moving.is_some() && changes {
            true => Err(Fault::NotNow(
                "this instance is being moved to another engine; wait until it has arrived".into(),
            )),
            false => Ok(()),
        }
    }

    pub(super) fn begin_move(
        mut self,
        to: Option<(EngineId, Snapshot<Engines>)>,
        now: Timestamp,
    ) -> Result<Step<Instances>, Fault> {
        use InstanceState::{Degraded, Failed, Running, Stopped};
        let engine = to.as_ref().map(|(id, _)| *id);
        match &self.moving {
            Some(moving) if moving.to == engine => return Ok(Step::keep()),
            Some(_) if self.engine == engine => {
                self.stay("an operator called it off", now);
                return Ok(Step::put(self).anew(Duration::ZERO));
            }
            Some(_) => return Err(self.not_now("it is being moved to another engine already")),
            None if self.engine == engine => return Ok(Step::keep()),
            None => {}
        }
        if !matches!(self.state, Running | Degraded | Stopped | Failed) {
            return Err(self.not_now("move it when it runs, is stopped or has failed"));
        }
        self.not_moved = None;
        self.moving = Some(Move {
            to: engine,
            prepared: BTreeSet::new(),
            copied: BTreeSet::new(),
            copying: None,
            failures: 0,
        });
        Ok(Step::put(self).anew(Duration::ZERO).also(unchanged(to)))
    }

    pub(super) fn recover(
        mut self,
        to: Option<(EngineId, Snapshot<Engines>)>,
        restore: InitialRestore,
        now: Timestamp,
    ) -> Result<Step<Instances>, Fault> {
        let engine = to.as_ref().map(|(id, _)| *id);
        if self.engine == engine {
            return Err(self.not_now("choose another engine than that which is lost"));
        }
        self.may_run()?;
        self.stay("its engine was lost", now);
        self.leave_for(engine, now);
        self.fail_candidates("the engine was lost");
        self.forget_volumes();
        self.initial_restore = Some(restore);
        self.unreachable_since = None;
        Ok(self.begin_start(now).also(unchanged(to)))
    }

    /// An engine is gone for good. A deleted instance whose data was there is gone, too.
    pub(super) fn lose_engine(
        mut self,
        id: InstanceId,
        engine: EngineId,
        now: Timestamp,
    ) -> Step<Instances> {
        if self.is_deleted() && self.engine == Some(engine) {
            return Instances::removed(id);
        }
        let before = self.clone();
        if self.moving.as_ref().is_some_and(|moving| moving.to == Some(engine)) {
            self.stay("the other engine was lost", now);
        }
        self.forgot(Some(engine));
        match self == before {
            true => Step::keep(),
            false => Step::put(self).anew(Duration::ZERO),
        }
    }

    pub(super) fn prepared(&mut self, role: Role) {
        self.forget_build(role);
        if let Some(moving) = &mut self.moving {
            moving.prepared.insert(role);
            moving.failures = 0;
        }
    }

    /// The image of a service is not waited for any more.
    pub(super) fn forget_build(&mut self, role: Role) {
        if let Some(service) = self.service_mut(role) {
            service.live.image.build = None;
        }
    }

    /// A container was stopped, so what it wrote is copied anew.
    pub(super) fn copy_anew(&mut self) {
        if let Some(moving) = &mut self.moving {
            moving.copied.clear();
            moving.copying = None;
        }
    }

    pub(super) fn copying(&mut self, role: Role) {
        if let Some(moving) = &mut self.moving {
            moving.copying = Some(role);
            // Volumes from an earlier stay are replaced.
            self.left_behind.retain(|left| left.engine != moving.to);
        }
    }

    pub(super) fn copied(&mut self, role: Role) {
        if let Some(moving) = &mut self.moving {
            moving.copied.insert(role);
            (moving.copying, moving.failures) = (None, 0);
        }
    }

    /// Its containers are made at the other engine from now on.
    pub(super) fn arrive(&mut self, now: Timestamp) {
        let Some(moving) = self.moving.take() else { return };
        self.leave_for(moving.to, now);
        self.deadline = None;
        if self.state == InstanceState::Restarting {
            self.coming_up = true;
            self.reset_attempts();
            self.deadline = Some(now + PROVISION_WITHIN);
        }
    }

    /// Its containers are made at this engine from now on. What it has at the old one stays for a while.
    fn leave_for(&mut self, engine: Option<EngineId>, now: Timestamp) {
        self.left_behind.retain(|left| left.engine != engine);
        self.left_behind.push(LeftBehind { engine: self.engine, until: Some(now + KEEP_DATA) });
        self.engine = engine;
        for service in &mut self.services {
            let live = &mut service.live;
            (live.state, live.health) = (ServiceState::Missing, ServiceHealth::Unknown);
            (live.port, live.started_at, live.passes) = (None, None, 0);
        }
    }

    /// A step of the move failed. Returns whether it is tried again.
    pub(super) fn move_failed(&mut self, why: &str, now: Timestamp) -> bool {
        let Some(moving) = &mut self.moving else { return false };
        moving.failures += 1;
        if moving.failures < MOST_FAILURES {
            self.last_error = Some(format!("the move to another engine is tried again: {why}"));
            return true;
        }
        self.stay(why, now);
        false
    }

    /// Ends the move: the instance stays where it is, and starts there again if it was stopped for the move.
    pub(super) fn stay(&mut self, why: &str, now: Timestamp) {
        let Some(moving) = self.moving.take() else { return };
        // What it has there from an earlier stay is kept, unless the copy replaced it.
        if self.left_behind.iter().all(|left| left.engine != moving.to) {
            self.left_behind.push(LeftBehind { engine: moving.to, until: None });
        }
        self.not_moved = Some(format!("it was not moved to another engine: {why}"));
        match self.state {
            InstanceState::Stopped => self.deadline = None,
            InstanceState::Restarting => self.deadline = Some(now + self.stop_within()),
            _ => {}
        }
        self.observing = !self.is_in_transition();
    }

    /// What it left at an engine is gone.
    pub(super) fn forgot(&mut self, engine: Option<EngineId>) {
        self.left_behind.retain(|left| left.engine != engine);
    }

    /// What it left at an engine cannot be removed now.
    pub(super) fn forgets_later(&mut self, engine: Option<EngineId>, now: Timestamp) {
        for left in self.left_behind.iter_mut().filter(|left| left.engine == engine) {
            left.until = Some(now + FORGET_AGAIN);
        }
    }

    /// When the time of the first of what it left elsewhere is over.
    pub(super) fn forgets_at(&self) -> Option<Timestamp> {
        self.left_behind.iter().filter_map(|left| left.until).min()
    }

    /// The time of what it left elsewhere is over.
    pub(super) fn forget_due(&mut self, now: Timestamp) {
        for left in &mut self.left_behind {
            left.until = left.until.filter(|until| *until > now);
        }
        self.observing = !self.is_in_transition();
    }

    /// The added engines that it needs, but for the one on which it is placed.
    pub(super) fn engines_elsewhere(&self) -> impl Iterator<Item = EngineId> {
        let moving = self.moving.iter().filter_map(|moving| moving.to);
        moving.chain(self.left_behind.iter().filter_map(|left| left.engine))
    }
}

/// The engine is still as it was read: it takes instances. That of the settings is not a record.
fn unchanged(to: Option<(EngineId, Snapshot<Engines>)>) -> Change {
    to.map_or_else(Change::new, |(id, seen)| Change::new().require(&id, &seen))
}
