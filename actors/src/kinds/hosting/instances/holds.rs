//! Why an instance may not run: its organization holds more on the disk than its quota, or it grew while the disk was
//! nearly full. Each is a reason of its own, and ends by itself. Pure.

use super::{record::Instance, rules::Instances};
use crate::runtime::resource::Step;
use contract::{
    Fault, Timestamp,
    instances::{DesiredState, InstanceState},
};

impl Instance {
    pub(super) fn hold(mut self, why: String, now: Timestamp) -> Step<Instances> {
        if self.held.is_some() {
            return Step::keep();
        }
        self.held = Some(why);
        self.stop_if_it_runs(now)
    }

    pub(super) fn await_room(mut self, now: Timestamp) -> Step<Instances> {
        if self.awaits_room {
            return Step::keep();
        }
        self.awaits_room = true;
        self.stop_if_it_runs(now)
    }

    fn stop_if_it_runs(self, now: Timestamp) -> Step<Instances> {
        if self.state == InstanceState::Stopped {
            return Step::put(self);
        }
        self.begin_stop(InstanceState::Stopping, DesiredState::Stopped, now)
    }

    pub(super) fn find_room(mut self) -> Step<Instances> {
        if !self.awaits_room {
            return Step::keep();
        }
        self.awaits_room = false;
        Step::put(self)
    }

    pub(super) fn release(mut self) -> Step<Instances> {
        match self.held.take() {
            Some(_) => Step::put(self),
            None => Step::keep(),
        }
    }

    pub(super) fn may_run(&self) -> Result<(), Fault> {
        match &self.held {
            Some(why) => Err(Fault::OverQuota(why.clone())),
            None if self.awaits_room => Err(Fault::NoRoom),
            None => Ok(()),
        }
    }

    /// Why the instance may not run, as its members read it.
    pub(super) fn why_held(&self) -> Option<String> {
        let of_room = "the disk of this server was nearly full, and this instance grew; start it when there is room";
        self.held.clone().or_else(|| self.awaits_room.then(|| of_room.to_owned()))
    }
}
