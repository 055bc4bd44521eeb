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

/// The label of helpers that names the program that started them.
const NODE: &str = "svc.node";

/// Where the lines of a build go.
pub(super) type Sends = Sender<Result<BuildEvent, EngineError>>;

/// The helpers of a client.
#[derive(Clone)]
pub(super) struct Helpers {
    pub daemon: Daemon,
    /// The image from which theirs is made.
    base: String,
    /// Tells the helpers of this program from those of others with the same labels.
    node: String,
    pub containers: InUse,
    /// Held while their image is looked for or made.
    making: Arc<tokio::sync::Mutex<()>>,
}

impl Helpers {
    pub fn new(daemon: Daemon, base: &str) -> Helpers {
        let (base, node, containers) = (base.to_owned(), "only".to_owned(), InUse::default());
        Helpers { daemon, base, node, containers, making: Arc::default() }
    }

    /// The label that all helpers of this program have, and no others.
    fn of_node(&self) -> (String, String) {
        (NODE.to_owned(), self.node.clone())
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
        self.helpers.base = image.to_owned();
        self
    }

    /// Several programs use the daemon, with the same labels. This one removes only the helpers that it left
    /// itself, under this name.
    #[must_use]
    pub fn of_node(mut self, name: &str) -> Docker {
        self.helpers.node = name.to_owned();
        self
    }
}
