//! Faults that a test injects into operations, and how often each operation was called.

use crate::EngineError;
use std::{collections::HashMap, fmt};
use tokio::sync::watch;

macro_rules! operations {
    ($($variant:ident => $name:literal),* $(,)?) => {
        /// The operations of the port.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operation {
            $($variant),*
        }

        impl Operation {
            pub const ALL: &[Operation] = &[$(Operation::$variant),*];

            /// The name of the port's function.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Operation::$variant => $name),*
                }
            }
        }
    };
}

operations! {
    About => "about",
    Inventory => "inventory",
    Events => "events",
    EnsureNetwork => "ensure_network",
    RaiseWalls => "raise_walls",
    RemoveNetwork => "remove_network",
    EnsureVolume => "ensure_volume",
    RemoveVolume => "remove_volume",
    ReadVolume => "read_volume",
    WriteVolume => "write_volume",
    EnsureContainer => "ensure_container",
    Container => "container",
    Start => "start",
    Stop => "stop",
    RemoveContainer => "remove_container",
    Logs => "logs",
    Usage => "usage",
    DiskUse => "disk_use",
    Exec => "exec",
    Image => "image",
    Resolve => "resolve",
    EnsureImage => "ensure_image",
    Build => "build",
    SaveImage => "save_image",
    LoadImage => "load_image",
    Tag => "tag",
    Push => "push",
    Images => "images",
    RemoveImage => "remove_image",
    PruneBuildCaches => "prune_build_caches",
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How an operation fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InjectedFault {
    /// The call is not carried out, and fails with `Unreachable`.
    FailBefore,
    /// The call is carried out, and fails with `Unreachable`.
    FailAfter,
    /// The call is not carried out, and fails with this error.
    Refuse(EngineError),
    /// The call is not carried out, and never returns.
    HangBefore,
    /// The call is carried out, and never returns.
    HangAfter,
    /// The call panics.
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    Once,
    /// Until [`calm`](super::Fake::calm) is called.
    Always,
}

/// The planned faults, the gates and the counts of calls.
#[derive(Default)]
pub(super) struct Injections {
    planned: HashMap<Operation, (InjectedFault, Times)>,
    gates: HashMap<Operation, Gate>,
    calls: HashMap<Operation, u64>,
    met: HashMap<Operation, u64>,
}

#[derive(Clone)]
pub(super) struct Gate {
    open: watch::Receiver<bool>,
    waiting: watch::Sender<u32>,
}

impl Gate {
    /// Waits until the gate is open.
    pub async fn pass(mut self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        // A dropped hold opens its gate.
        let _ = self.open.wait_for(|open| *open).await;
    }
}

/// Holds the calls of an operation, before they are carried out, until this value is dropped.
#[derive(Debug)]
pub struct Hold {
    open: watch::Sender<bool>,
    waiting: watch::Receiver<u32>,
}

impl Hold {
    /// Waits until so many calls are held.
    pub async fn reached(&mut self, calls: u32) {
        let _ = self.waiting.wait_for(|waiting| *waiting >= calls).await;
    }

    pub fn release(self) {
        self.open.send_replace(true);
    }
}

impl Injections {
    /// Counts a call, and returns its gate and its fault.
    pub fn next(&mut self, operation: Operation) -> (Option<Gate>, Option<InjectedFault>) {
        *self.calls.entry(operation).or_default() += 1;
        let gate = self.gates.get(&operation).cloned();
        let fault = match self.planned.get(&operation) {
            Some((_, Times::Once)) => self.planned.remove(&operation).map(|(fault, _)| fault),
            Some((fault, Times::Always)) => Some(fault.clone()),
            None => None,
        };
        if fault.is_some() {
            *self.met.entry(operation).or_default() += 1;
        }
        (gate, fault)
    }

    pub fn plan(&mut self, operation: Operation, fault: InjectedFault, times: Times) {
        self.planned.insert(operation, (fault, times));
    }

    pub fn calm(&mut self, operation: Operation) {
        self.planned.remove(&operation);
    }

    pub fn met(&self, operation: Operation) -> u64 {
        self.met.get(&operation).copied().unwrap_or(0)
    }

    pub fn hold(&mut self, operation: Operation) -> Hold {
        let (open, opened) = watch::channel(false);
        let (arrived, waiting) = watch::channel(0);
        self.gates.insert(operation, Gate { open: opened, waiting: arrived });
        Hold { open, waiting }
    }

    pub fn calls(&self, operation: Operation) -> u64 {
        self.calls.get(&operation).copied().unwrap_or(0)
    }
}
