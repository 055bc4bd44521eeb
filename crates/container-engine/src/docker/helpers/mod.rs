//! Containers that do for this program what only the engine's machine can do. All of them run from one
//! image, which is made here, and live no longer than this process needs them.

pub(super) mod bodies;
mod image;
pub(super) mod in_use;
pub(super) mod tether;

use super::{Docker, daemon::Daemon};
use crate::{BuildEvent, EngineError};
use in_use::InUse;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Where the lines of a build go.
pub(super) type Sends = Sender<Result<BuildEvent, EngineError>>;

/// The helpers of a client.
#[derive(Clone)]
pub(super) struct Helpers {
    pub daemon: Daemon,
    /// The image from which theirs is made.
    base: String,
    pub containers: InUse,
    /// Held while their image is looked for or made.
    making: Arc<tokio::sync::Mutex<()>>,
}

impl Helpers {
    pub fn new(daemon: Daemon, base: &str) -> Helpers {
        let (base, containers) = (base.to_owned(), InUse::default());
        Helpers { daemon, base, containers, making: Arc::default() }
    }

    /// The id of their image. If it has to be made, its log goes to `sends`.
    pub async fn image(&self, sends: Option<&Sends>) -> Result<String, EngineError> {
        let _one_at_a_time = self.making.lock().await;
        image::ensure(&self.daemon, &self.base, sends).await
    }
}

impl Docker {
    /// Makes the image of helpers from this one: Debian 13 or later, or 14 for `COPY --link` in isolated
    /// builds. Its packages are installed from the network, unless it has them.
    #[must_use]
    pub fn with_builder_base(mut self, image: &str) -> Docker {
        self.helpers = Helpers::new(self.helpers.daemon, image);
        self
    }
}
