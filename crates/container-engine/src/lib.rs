//! The container engine as this program needs it, and the behaviour that every implementation must
//! have.
//!
//! Every operation can be repeated: creating an object that exists and removing one that does not
//! both succeed. Objects are found by name and by label, never from memory. Names are made of our
//! ids and never contain a caller's text.

mod container;
mod credentials;
#[cfg(feature = "docker")]
pub mod docker;
#[cfg(feature = "fake")]
pub mod fake;
mod image;
mod label;

pub use container::{
    Capability, Container, ContainerSpec, Health, HealthCommand, Limits, Mount, Phase, Usage,
};
pub use credentials::{Certificates, Credentials};
pub use image::{
    BASE_IMAGE, BuildEvent, BuildSpec, Built, Image, Isolation, PROXY_PORT, RegistryLogin, Secrets,
};
pub use label::{LabelledObject, Labels};

use async_trait::async_trait;
use bytes::Bytes;
use contract::Timestamp;
use futures_core::stream::BoxStream;
use std::{collections::BTreeMap, fmt, net::SocketAddr, time::Duration};

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot be reached, does not answer, or has a fault of its own. A repetition may
    /// succeed. Whether the operation was carried out is unknown.
    #[error("the container engine cannot be reached: {0}")]
    Unreachable(String),
    #[error("there is no {0}")]
    Missing(String),
    /// An object of this name is not ours, or is not as requested.
    #[error("{0}")]
    Conflict(String),
    /// The image cannot be obtained.
    #[error("the image {image} cannot be had: {why}")]
    NoImage {
        /// The requested reference.
        image: String,
        /// What the engine or the registry said.
        why: String,
    },
    /// Containers would reach what they must not, because of this.
    #[error("this machine does not keep containers from what they must not reach: {0}")]
    Exposed(String),
    /// The engine refused the request, and would refuse it again.
    #[error("the container engine refused: {0}")]
    Refused(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// What the engine calls itself. It stays the same as long as its data is there. Empty: it does not tell.
    pub id: String,
    pub version: String,
    /// The API version that is spoken with the engine.
    pub api: String,
    /// The memory of the machine that the engine runs on, in bytes.
    pub memory: u64,
    /// The processors of that machine.
    pub cpus: u32,
}

/// Bytes on the disk of the engine's machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// What each volume holds, by its name. `None`: it is not known, such as where many files cannot be
    /// counted in time.
    pub volumes: BTreeMap<String, Option<u64>>,
    /// What each container has written outside of these volumes, by its name. `None`: as above.
    pub containers: BTreeMap<String, Option<u64>>,
    /// The disk that has the volumes; of several, the one with the least room. `None`: there are no volumes.
    pub disk: Option<Disk>,
}

/// A disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    pub bytes: u64,
    /// What programs without special rights may still write.
    pub free: u64,
}

impl Disk {
    /// A disk of which only that is known that nothing can be written.
    pub const FULL: Disk = Disk { bytes: u64::MAX, free: 0 };
}

/// All objects that carry the labels, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    /// When the inventory was requested. Events since then tell what changed.
    pub at: Timestamp,
    /// Running or not.
    pub containers: Vec<Container>,
    pub networks: Vec<LabelledObject>,
    pub volumes: Vec<LabelledObject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub at: Timestamp,
    /// The container's name.
    pub container: String,
    pub labels: Labels,
    pub what: Happening,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    Started,
    Died,
    Removed,
    /// The result of the engine's health check changed.
    Health(Health),
}

/// Which lines of a container's output to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogQuery {
    pub tail: u32,
    /// Only lines since then.
    pub since: Option<Timestamp>,
    /// Only lines of this stream.
    pub stream: Option<Stream>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When the engine received the line.
    pub at: Timestamp,
    pub stream: Stream,
    /// Without the line ending. Invalid UTF-8 is replaced.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// A program to run in a running container. The container needs a shell (`sh`), and `timeout` and
/// `sleep` of coreutils or busybox.
#[derive(Clone, PartialEq, Eq)]
pub struct Exec {
    /// The program and its arguments, run without a shell.
    pub command: Vec<String>,
    /// Secrets belong here: every user of the machine can read arguments.
    pub env: BTreeMap<String, String>,
    /// A user of the container. `None`: the container's default user.
    pub user: Option<String>,
    /// After this time the program gets TERM, and KILL ten seconds later. Its exit code is then
    /// 124, or 137.
    pub within: Duration,
}

impl fmt::Debug for Exec {
    /// Omits the environment, which holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec")
            .field("command", &self.command)
            .field("user", &self.user)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// A part of a program's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Bytes of standard output.
    Out(Bytes),
    /// Bytes of standard error.
    Err(Bytes),
    /// The exit code. Always the last item, after all output. A stream that ends without it was cut
    /// off.
    Exit(i64),
}

/// What containers on walled networks reach of what is closed to them, over TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peers {
    /// From every network.
    pub of_all: Vec<SocketAddr>,
    /// From the network of this name.
    pub of_network: BTreeMap<String, Vec<SocketAddr>>,
}

/// A tar archive that comes in pieces. One that is cut off ends with an error.
pub type Archive = BoxStream<'static, Result<Bytes, EngineError>>;

#[async_trait]
pub trait Engine: Send + Sync {
    async fn about(&self) -> Result<About, EngineError>;

    /// All containers, networks and volumes that carry these labels.
    async fn inventory(&self, labels: &Labels) -> Result<Inventory, EngineError>;

    /// The events of containers with these labels from `since` on. The stream ends with an error
    /// when the connection is lost; the next inventory shows what was missed.
    async fn events(
        &self,
        labels: &Labels,
        since: Timestamp,
    ) -> Result<BoxStream<'static, Result<Event, EngineError>>, EngineError>;

    /// Ensures a bridge network of this name. A network with other labels is a conflict.
    async fn ensure_network(&self, name: &str, labels: &Labels) -> Result<(), EngineError>;

    /// Raises the walls around the networks that the implementation was told to wall, or makes sure that
    /// they stand. Until that was done, and after it failed, no such network is ensured.
    ///
    /// Containers there reach each other on one network, name servers, public addresses, and these
    /// peers. [`EngineError::Exposed`]: they would reach more.
    async fn raise_walls(&self, peers: &Peers) -> Result<(), EngineError>;

    /// Removes a network. [`EngineError::Refused`] while containers are on it.
    async fn remove_network(&self, name: &str) -> Result<(), EngineError>;

    /// Ensures a volume of this name. A volume with other labels is a conflict.
    async fn ensure_volume(&self, name: &str, labels: &Labels) -> Result<(), EngineError>;

    /// Removes a volume with its data.
    async fn remove_volume(&self, name: &str) -> Result<(), EngineError>;

    /// The content of a volume as an archive, for [`write_volume`](Engine::write_volume) of another engine. Nothing may
    /// write to the volume meanwhile.
    async fn read_volume(&self, name: &str) -> Result<Archive, EngineError>;

    /// Writes the content of a volume that is empty, and makes sure that all of it is there.
    async fn write_volume(&self, name: &str, archive: Archive) -> Result<(), EngineError>;

    /// Ensures a container as the spec says, and does not start it. Its network and its volumes
    /// must exist. A container with another spec hash is a conflict, unless it is ours and not
    /// running: then it is created anew, as is one whose network was replaced.
    async fn ensure_container(&self, spec: &ContainerSpec) -> Result<Container, EngineError>;

    /// The container of this name, with everything that the engine knows of it.
    async fn container(&self, name: &str) -> Result<Option<Container>, EngineError>;

    /// Starts a container that may already run. A port that is taken is [`EngineError::Refused`].
    async fn start(&self, name: &str) -> Result<(), EngineError>;

    /// Asks a container to end, and kills it after `grace`. It may be stopped or missing already.
    async fn stop(&self, name: &str, grace: Duration) -> Result<(), EngineError>;

    /// Kills and removes a container, but not its named volumes. It may be missing already.
    async fn remove_container(&self, name: &str) -> Result<(), EngineError>;

    /// The last lines of a container's output, oldest first.
    async fn logs(&self, name: &str, query: LogQuery) -> Result<Vec<LogLine>, EngineError>;

    /// The current usage. `None`: the container does not run or does not exist.
    async fn usage(&self, name: &str) -> Result<Option<Usage>, EngineError>;

    /// What the volumes with these labels, and the containers with them, hold on the disk of the engine's
    /// machine. Takes as long as reading all of their folders does.
    async fn disk_use(&self, labels: &Labels) -> Result<DiskUse, EngineError>;

    /// Runs a program in a running container and streams its output. `input` is its standard input.
    /// Dropping the stream ends the program. One that cannot be started ends with 126 or 127, or is
    /// [`EngineError::Refused`], as the version of the engine has it.
    async fn exec(
        &self,
        name: &str,
        exec: Exec,
        input: Option<BoxStream<'static, Bytes>>,
    ) -> Result<BoxStream<'static, Result<Output, EngineError>>, EngineError>;

    /// The image of this reference on this machine.
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError>;

    /// The current digest of this reference in its registry.
    async fn resolve(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<String, EngineError>;

    /// The image, pulled if it is not on this machine.
    async fn ensure_image(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<Image, EngineError>;

    /// Builds an image from a context, a tar archive with a Dockerfile. Dropping the stream ends
    /// the build. Without an error, the last event is [`BuildEvent::Built`].
    async fn build(
        &self,
        spec: BuildSpec,
        context: BoxStream<'static, Result<Bytes, std::io::Error>>,
    ) -> Result<BoxStream<'static, Result<BuildEvent, EngineError>>, EngineError>;

    /// The whole image as an archive, for [`load_image`](Engine::load_image) of another engine.
    async fn save_image(&self, reference: &str) -> Result<Archive, EngineError>;

    /// Takes over an image from another engine. It keeps its id and its names if both keep images in the same way.
    async fn load_image(&self, archive: Archive) -> Result<(), EngineError>;

    /// Gives an image one more name, `repository:tag`.
    async fn tag(&self, reference: &str, repository: &str, tag: &str) -> Result<(), EngineError>;

    /// Pushes an image to its registry. Returns its digest there.
    async fn push(
        &self,
        repository: &str,
        tag: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<String, EngineError>;

    /// The images that carry these labels.
    async fn images(&self, labels: &Labels) -> Result<Vec<Image>, EngineError>;

    /// Removes a name of an image, and with the last name the image. [`EngineError::Refused`] while
    /// a container uses the image. The image may be missing already.
    async fn remove_image(&self, reference: &str) -> Result<(), EngineError>;

    /// Removes the caches of isolated builds with these labels that are older than this, and cache of the
    /// engine's own builder that was unused for this long. Returns the bytes that the builder freed.
    async fn prune_build_caches(&self, labels: &Labels, age: Duration) -> Result<u64, EngineError>;
}
