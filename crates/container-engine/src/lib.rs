//! The container engine, shaped by our need, and the description that every implementation is held
//! to.
//!
//! All of it can be repeated: what is there already is a success, and so is what is gone already.
//! Objects are found by name and by label, never by memory. A name is made by us, of an id of ours;
//! no text of a caller's is part of one.

mod container;
#[cfg(feature = "docker")]
pub mod docker;
#[cfg(feature = "fake")]
pub mod fake;
mod image;
mod label;

pub use container::{
    Capability, Container, ContainerSpec, Health, HealthCommand, Limits, Mount, Phase, Usage,
};
pub use image::{BuildEvent, BuildSpec, Built, Image, Login};
pub use label::{Labels, Owned};

use async_trait::async_trait;
use bytes::Bytes;
use contract::Timestamp;
use futures_core::stream::BoxStream;
use std::{collections::BTreeMap, fmt, time::Duration};

/// Why the engine did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It cannot be reached, does not answer, or has a fault of its own. Trying again may help, and
    /// nothing is known of what was asked.
    #[error("the container engine cannot be reached: {0}")]
    Unreachable(String),
    /// There is no such object.
    #[error("there is no {0}")]
    Missing(String),
    /// Something under this name is not ours, or not what was asked for.
    #[error("{0}")]
    Conflict(String),
    /// The image is nowhere to be had.
    #[error("the image {image} cannot be had: {why}")]
    NoImage {
        /// The reference that was asked for.
        image: String,
        /// What the engine or the registry said.
        why: String,
    },
    /// The engine refused it for what was asked; asking again changes nothing.
    #[error("the container engine refused: {0}")]
    Refused(String),
}

/// What the engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub version: String,
    /// The version of the API that is spoken with it.
    pub api: String,
}

/// All objects that carry a label, as they were at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    /// When it was asked for. Events since then say what changed after it.
    pub at: Timestamp,
    /// Running or not.
    pub containers: Vec<Container>,
    /// Their names and labels.
    pub networks: Vec<Owned>,
    /// Their names and labels.
    pub volumes: Vec<Owned>,
}

/// Something happened to a container of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub at: Timestamp,
    /// The name of the container.
    pub container: String,
    pub labels: Labels,
    pub what: Happening,
}

/// What happens to containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    Started,
    Died,
    Removed,
    /// The engine's own health check changed its mind.
    Health(Health),
}

/// Which lines of a container's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogQuery {
    pub tail: u32,
    /// Only those since then.
    pub since: Option<Timestamp>,
    /// Only those of this stream.
    pub stream: Option<Stream>,
}

/// One line of a container's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When the engine got it.
    pub at: Timestamp,
    /// Where the container wrote it.
    pub stream: Stream,
    /// The line, without its end. What is not UTF-8 is replaced.
    pub text: String,
}

/// Where a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// A program to run inside of a running container. The container needs a shell (`sh`), and `timeout`
/// and `sleep` of coreutils or busybox.
#[derive(Clone, PartialEq, Eq)]
pub struct Exec {
    /// The program and its arguments. No shell, unless it is one.
    pub command: Vec<String>,
    /// Secrets go here: arguments are visible to everyone on the machine.
    pub env: BTreeMap<String, String>,
    /// As which user of the container.
    pub user: Option<String>,
    /// After this long it is ended, and killed ten seconds later; its exit code is 124 then, or 137.
    pub within: Duration,
}

impl fmt::Debug for Exec {
    /// Without the environment, which holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec")
            .field("command", &self.command)
            .field("user", &self.user)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// What comes out of a program, as it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Bytes of its standard output.
    Out(Bytes),
    /// Bytes of its standard error.
    Err(Bytes),
    /// It ended with this code, and all of its output came before. Always last, and only where it
    /// is certain: a stream that ends without it was cut off, whatever came before.
    Exit(i64),
}

/// The container engine.
#[async_trait]
pub trait Engine: Send + Sync {
    async fn about(&self) -> Result<About, EngineError>;

    /// All containers, networks and volumes that carry these labels.
    async fn inventory(&self, labels: &Labels) -> Result<Inventory, EngineError>;

    /// What happens to containers with these labels from `since` on. Ends with an error when the
    /// connection is lost; what happened meanwhile is in the next inventory.
    async fn events(
        &self,
        labels: &Labels,
        since: Timestamp,
    ) -> Result<BoxStream<'static, Result<Event, EngineError>>, EngineError>;

    /// A bridge network of its own, with this name. One that is there with other labels is a
    /// conflict.
    async fn ensure_network(&self, name: &str, labels: &Labels) -> Result<(), EngineError>;

    /// Removes a network. Containers that are still on it make that [`EngineError::Refused`].
    async fn remove_network(&self, name: &str) -> Result<(), EngineError>;

    /// A named volume. One that is there with other labels is a conflict.
    async fn ensure_volume(&self, name: &str, labels: &Labels) -> Result<(), EngineError>;

    /// Removes a volume with all that is in it.
    async fn remove_volume(&self, name: &str) -> Result<(), EngineError>;

    /// A container that is as the spec says; where it has to be made, not started. Its network and
    /// its volumes must be there. One of that name with another spec hash is a conflict, unless it is
    /// ours and not running: then it is made anew, as is one whose network was replaced.
    async fn ensure_container(&self, spec: &ContainerSpec) -> Result<Container, EngineError>;

    /// The container of this name, with all that the engine knows of it.
    async fn container(&self, name: &str) -> Result<Option<Container>, EngineError>;

    /// Starts it. Running already: fine. A port that is taken is [`EngineError::Refused`].
    async fn start(&self, name: &str) -> Result<(), EngineError>;

    /// Asks it to end, and kills it after `grace`. Not running, or not there: fine.
    async fn stop(&self, name: &str, grace: Duration) -> Result<(), EngineError>;

    /// Kills and removes it, without its named volumes. Not there: fine.
    async fn remove_container(&self, name: &str) -> Result<(), EngineError>;

    /// The last lines of its output, oldest first.
    async fn logs(&self, name: &str, query: LogQuery) -> Result<Vec<LogLine>, EngineError>;

    /// What it uses now; `None`: it does not run, or is not there.
    async fn usage(&self, name: &str) -> Result<Option<Usage>, EngineError>;

    /// Runs a program in a running container, and gives its output as it comes. `input` is what it
    /// reads. Dropping the stream ends the program.
    async fn exec(
        &self,
        name: &str,
        exec: Exec,
        input: Option<BoxStream<'static, Bytes>>,
    ) -> Result<BoxStream<'static, Result<Output, EngineError>>, EngineError>;

    /// The image of this reference on this machine.
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError>;

    /// The digest that a registry has for this reference now.
    async fn resolve(&self, reference: &str, login: Option<&Login>) -> Result<String, EngineError>;

    /// The image, brought to this machine where it is not there yet.
    async fn ensure_image(
        &self,
        reference: &str,
        login: Option<&Login>,
    ) -> Result<Image, EngineError>;

    /// Builds an image of a context: a tar archive with a Dockerfile. Dropping the stream ends the
    /// build. The last event is [`BuildEvent::Built`], unless there was an error.
    async fn build(
        &self,
        spec: BuildSpec,
        context: BoxStream<'static, Result<Bytes, std::io::Error>>,
    ) -> Result<BoxStream<'static, Result<BuildEvent, EngineError>>, EngineError>;

    /// Gives an image another name, `repository:tag`.
    async fn tag(&self, reference: &str, repository: &str, tag: &str) -> Result<(), EngineError>;

    /// Sends an image to its registry; its digest there.
    async fn push(
        &self,
        repository: &str,
        tag: &str,
        login: Option<&Login>,
    ) -> Result<String, EngineError>;

    /// The images that carry these labels.
    async fn images(&self, labels: &Labels) -> Result<Vec<Image>, EngineError>;

    /// Removes a name of an image, and its bytes with the last one. One that a container uses is
    /// [`EngineError::Refused`]; one that is not there is fine.
    async fn remove_image(&self, reference: &str) -> Result<(), EngineError>;

    /// Removes what builds have cached and nobody used for this long; how many bytes that freed.
    async fn prune_build_cache(&self, unused_for: Duration) -> Result<u64, EngineError>;
}
