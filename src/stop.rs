//! Why the server stops: a signal, or a broken store that a new start mends.

use actors::call::platform::Platform;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often a broken store is looked at.
const LOOKS_EVERY: Duration = Duration::from_secs(1);
/// The shortest time from one start to the next one that the service makes itself.
const STARTS_EVERY: Duration = Duration::from_secs(10);

/// Why the server stops.
pub enum Stop {
    /// Calls that are under way may end.
    Soon,
    /// Calls that are under way are broken off.
    AtOnce,
    /// The program starts again: a full disk broke its store, and there is room again.
    ToGoOn,
}

/// The signals that stop the server. The servers of actix do not hear them themselves: the one that stops
/// first would stop the threads of the other.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl Signals {
    /// Takes the signals over from the system, which would end the program.
    pub fn hear() -> Result<Signals, String> {
        let hear = |kind| signal(kind).map_err(|e| format!("signals cannot be heard: {e}"));
        Ok(Signals {
            terminate: hear(SignalKind::terminate())?,
            interrupt: hear(SignalKind::interrupt())?,
            quit: hear(SignalKind::quit())?,
        })
    }

    /// Waits until the server must stop.
    pub async fn reason_to_stop(mut self, platform: &Platform) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::Soon,
            _ = self.interrupt.recv() => Stop::AtOnce,
            _ = self.quit.recv() => Stop::AtOnce,
            () = opens_again(platform) => Stop::ToGoOn,
        }
    }
}

/// Waits until a store that takes no changes would take them in a new process.
async fn opens_again(platform: &Platform) {
    let world = &platform.world;
    world.ports.clock.sleep(STARTS_EVERY).await;
    while !world.store.raw().would_open_again() {
        world.ports.clock.sleep(LOOKS_EVERY).await;
    }
    tracing::error!("the store takes no changes until it is opened anew: the service starts again");
}
