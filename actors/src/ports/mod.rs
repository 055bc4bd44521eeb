//! What the platform needs of the outside world, as traits. The service passes the adapters in.

pub mod advisories;
pub mod attestations;
pub mod ci;
pub mod credentials;
pub mod folders;
pub mod parse;
pub mod receivers;
pub mod recipes;
pub mod registries;
pub mod sealed;
#[cfg(feature = "nothing")]
pub mod unavailable;

use self::{
    advisories::Advisories, attestations::Attestations, ci::Ci, credentials::CredentialFiles,
    folders::Folders, parse::ParseServers, receivers::Receivers, recipes::Recipes,
    registries::Registries, sealed::Sealer,
};
use crate::runtime::{clock::Clock, turns::Tenant};
use app_stores::Store;
use async_trait::async_trait;
use bytes::Bytes;
use commerce::Shop;
use container_engine::{Engine, EngineError};
use contract::{
    AppId, ArtifactId, BackupId, Email, Fault, Id, InstanceId, Password, PasswordAttempt, Sha256,
    Timestamp, WebUrl,
    artifacts::{ArtifactKind, Signer},
    authentication::Tier,
    checkouts::PaymentProvider,
    instances::InstanceKind,
    operators::DiskUsage,
    releases::Target,
    runners::SshAccess,
    service::Registration,
    ssh::{SshHostKey, SshPrivateKey, SshPublicKey},
    text::{AccessToken, GitRef, GitUrl, IdentityToken, PlanCode},
    trusted_publishers::CiRun,
};
use futures_util::stream::BoxStream;
use payments::Provider;
use repository::Files;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use ulid::Ulid;

/// Why work in the container engine or with a repository was not done.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// Another attempt would fail too.
    #[error("{0}")]
    Refused(String),
    /// The other side does not answer, or cut the work off. Another attempt may succeed.
    #[error("{0}")]
    Unreachable(String),
}

impl From<EngineError> for NotDone {
    fn from(e: EngineError) -> Self {
        match e {
            EngineError::Unreachable(why) => NotDone::Unreachable(why),
            e => NotDone::Refused(e.to_string()),
        }
    }
}

#[derive(Clone)]
pub struct Ports {
    pub clock: Clock,
    pub random: Random,
    pub passwords: Arc<dyn Passwords>,
    pub binaries: Arc<dyn Binaries>,
    pub mail: Arc<dyn Mail>,
    /// The stores that publish apps.
    pub stores: Arc<HashMap<Target, Arc<dyn Store>>>,
    pub credential_files: Arc<dyn CredentialFiles>,
    /// The providers that take payments.
    pub payments: Arc<HashMap<PaymentProvider, Arc<dyn Provider>>>,
    /// The shops in which orders are built.
    pub shop: Arc<dyn Shop>,
    pub engine: Arc<dyn Engine>,
    pub machine: Arc<dyn Machine>,
    pub upstream: Arc<dyn Upstream>,
    pub parse: Arc<dyn ParseServers>,
    pub sources: Arc<dyn Sources>,
    pub folders: Arc<dyn Folders>,
    /// `None`: the service is not registered as an application at a host of repositories.
    pub ci: Option<Arc<dyn Ci>>,
    pub identities: Arc<dyn Identities>,
    pub attestations: Arc<dyn Attestations>,
    pub dumps: Arc<dyn Dumps>,
    pub receivers: Arc<dyn Receivers>,
    pub registries: Arc<Registries>,
    pub recipes: Arc<Recipes>,
    pub advisories: Arc<Advisories>,
    pub sealer: Sealer,
    pub site: Arc<Site>,
}

/// The identity and the configuration of this installation.
#[derive(Debug, Clone)]
pub struct Site {
    /// The application id. Labels the objects of this installation in the container engine.
    pub installation: String,
    /// The base address for clients, without a slash at the end.
    pub api_url: String,
    /// Whether the settings say that other machines reach the service.
    pub is_reachable: bool,
    /// Whether the operator lets users build repositories though others reach the service. Builds are not
    /// isolated from this machine.
    pub trusts_builds: bool,
    pub registration: Registration,
    /// The address of the GitHub whose repositories the service reaches through its GitHub App.
    pub github: Option<WebUrl>,
    /// The app to whose plans people subscribe for a higher tier here.
    pub platform_app: Option<AppId>,
    /// The tiers that the plans of that app give.
    pub platform_plans: BTreeMap<PlanCode, Tier>,
    /// How long a deployment may take from its turn until it serves.
    pub deployment_limit: Duration,
    /// How long a build of an image may take from its turn.
    pub image_build_limit: Duration,
}

impl Site {
    /// The base URL of functions.
    pub fn functions_url(&self) -> String {
        format!("{}{}", self.api_url, contract::endpoint::BASE_PATH)
    }

    /// The public address of the server of an instance.
    pub fn instance_url(&self, id: InstanceId, app: AppId, kind: InstanceKind) -> String {
        match kind {
            InstanceKind::Backend => format!("{}/instances/{app}", self.api_url),
            InstanceKind::Market => format!("{}/instances/{id}", self.api_url),
        }
    }
}

/// Ids that sort by the time they were made, and secrets that cannot be guessed.
#[derive(Clone, Default)]
pub struct Random(Arc<Mutex<Option<Ulid>>>);

/// The operating system gave no random bytes, so no secret can be generated.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no random bytes: {0}")]
pub struct NoRandomness(String);

impl Random {
    /// A new id, higher than all earlier ids of this process.
    pub fn id<I: Id>(&self, now: Timestamp) -> I {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let next = match *last {
            // Within one millisecond, or after the clock went back: continue from the last id.
            Some(before) if before.timestamp_ms() >= millis => after(before),
            _ => Ulid::from_parts(millis, Ulid::generate().random()),
        };
        *last = Some(next);
        I::of(next)
    }

    /// `prefix`, followed by `length` random letters and digits, each one of 62.
    pub fn secret(&self, prefix: &str, length: usize) -> Result<String, NoRandomness> {
        const LETTERS: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut secret = String::from(prefix);
        let mut bytes = [0_u8; 64];
        while secret.len() < prefix.len() + length {
            getrandom::fill(&mut bytes).map_err(|e| NoRandomness(e.to_string()))?;
            // 248 is a multiple of 62: bytes from 248 up would make some letters likelier.
            let letters =
                bytes.iter().filter(|b| **b < 248).filter_map(|b| LETTERS.get(usize::from(b % 62)));
            secret
                .extend(letters.take(prefix.len() + length - secret.len()).map(|b| char::from(*b)));
        }
        Ok(secret)
    }

    /// A session token: `r:` and 32 hexadecimal digits.
    pub fn session_token(&self) -> Result<String, NoRandomness> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|e| NoRandomness(e.to_string()))?;
        Ok(format!("r:{:032x}", u128::from_be_bytes(bytes)))
    }
}

/// A later id of the same millisecond. The random step makes the next id hard to guess.
fn after(before: Ulid) -> Ulid {
    let step = Ulid::generate().random() >> 32;
    let next = before.random().saturating_add(step).saturating_add(1);
    if next < 1 << 80 {
        Ulid::from_parts(before.timestamp_ms(), next)
    } else {
        before.increment().unwrap_or(before)
    }
}

/// Something outside failed. A retry may help.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PortError(pub String);

/// Hashes passwords, off the request threads. The work waits for turns, which tenants share.
#[async_trait]
pub trait Passwords: Send + Sync {
    async fn hash(&self, tenant: Tenant, password: Password) -> Result<String, PortError>;
    /// Whether the password matches the hash. Without a hash, takes as long and returns false.
    async fn verify(
        &self,
        tenant: Tenant,
        password: PasswordAttempt,
        hash: Option<String>,
    ) -> Result<bool, PortError>;
}

/// The bytes of artifacts: staged during the upload, kept once they are verified.
#[async_trait]
pub trait Binaries: Send + Sync {
    /// How many bytes are staged. `None`: nothing is staged.
    async fn staged(&self, id: ArtifactId) -> Result<Option<u64>, PortError>;
    /// Fails if the store of kept bytes does not answer.
    async fn reach(&self, id: ArtifactId) -> Result<(), PortError>;
    /// Reads all staged (or already kept) bytes: their size, hash and content. Waits for a turn;
    /// the artifacts of one tenant do not block those of others.
    async fn examine(
        &self,
        tenant: Tenant,
        id: ArtifactId,
        kind: ArtifactKind,
    ) -> Result<Examined, PortError>;
    /// Moves the staged bytes to the store of kept bytes. Idempotent.
    async fn keep(&self, id: ArtifactId, examined: &Examined) -> Result<(), PortError>;
    /// Reads some of the kept bytes.
    async fn part(&self, id: ArtifactId, offset: u64, length: u64) -> Result<Bytes, PortError>;
    /// Deletes all bytes of an artifact. Idempotent.
    async fn discard(&self, id: ArtifactId) -> Result<(), PortError>;
}

/// What [`Binaries::examine`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// In bytes.
    pub size: u64,
    pub sha256: Sha256,
    /// The error says why the file is not valid for its kind.
    pub content: Result<Content, String>,
}

/// The metadata in the file of an app.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Bundle identifier or package name.
    pub identifier: String,
    /// `CFBundleShortVersionString` or `versionName`. An Android app may leave it out.
    pub version: Option<String>,
    /// `CFBundleVersion` or `versionCode`.
    pub build_number: Option<String>,
    /// The certificate that signed it.
    pub signer: Option<Signer>,
}

/// Git repositories. The work waits for turns, which tenants share.
#[async_trait]
pub trait Sources: Send + Sync {
    /// Checks a repository out. Refuses one without this Dockerfile.
    async fn fetch(
        &self,
        remote: &Remote,
        dockerfile: &str,
        within: Duration,
    ) -> Result<Fetched, SourceError>;
    /// Reads the files that make a repository managed, without its history.
    async fn inspect(&self, remote: &Remote, within: Duration) -> Result<Inspected, SourceError>;
    /// Asks the host of an ssh address for its key, without signing in.
    async fn host_key(
        &self,
        tenant: Tenant,
        url: &GitUrl,
        within: Duration,
    ) -> Result<SshHostKey, SourceError>;
    /// Makes a key pair at random, whose public half ends with this comment.
    fn new_key_pair(&self, comment: &str) -> Result<KeyPair, PortError>;
}

/// A key pair for ssh.
#[derive(Debug)]
pub struct KeyPair {
    pub private: SshPrivateKey,
    pub public: SshPublicKey,
}

/// The address of a repository, and the permission to read it.
pub struct Remote {
    /// For whom it is read.
    pub tenant: Tenant,
    pub url: GitUrl,
    pub revision: Revision,
    /// `None`: everybody may read it.
    pub credential: Option<Credential>,
}

/// The permission to read a repository.
#[derive(Debug)]
pub enum Credential {
    /// For https.
    Token(AccessToken),
    /// For ssh.
    DeployKey {
        access: SshAccess,
        /// The half that the host must know.
        public: SshPublicKey,
    },
}

/// Which commit of a repository is read.
pub enum Revision {
    /// The newest commit of the repository's own default branch.
    DefaultBranch,
    /// The newest commit of this branch.
    Branch(GitRef),
    /// A tag or a branch with this name, in this order, or a commit.
    Named(GitRef),
}

impl Revision {
    /// The commit that a name stands for, or the newest one if there is no name.
    pub fn of(name: Option<GitRef>) -> Revision {
        name.map_or(Revision::DefaultBranch, Revision::Named)
    }
}

/// The files of a repository at one commit.
pub struct Inspected {
    pub commit: String,
    /// The branch, tag or commit that was read.
    pub git_ref: String,
    pub files: Files,
}

/// A repository at one commit.
pub struct Fetched {
    pub commit: String,
    /// The files as a tar archive.
    pub context: BoxStream<'static, std::io::Result<Bytes>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The repository, branch or file does not exist or may not be read.
    #[error("{0}")]
    Refused(String),
    /// The host does not answer.
    #[error("{0}")]
    Unreachable(String),
}

/// The bytes of backups, compressed and hashed. A dump becomes visible when it is kept.
#[async_trait]
pub trait Dumps: Send + Sync {
    /// Writes a dump that is not visible yet. An error of the stream leaves nothing behind.
    async fn write(
        &self,
        id: BackupId,
        plain: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<Written, DumpError>;
    /// Makes the written dump visible and durable. Idempotent.
    async fn keep(&self, id: BackupId) -> Result<(), DumpError>;
    /// Checks that the whole file has this hash, and then returns the uncompressed dump.
    async fn read(
        &self,
        id: BackupId,
        sha256: &Sha256,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>, DumpError>;
    /// Deletes everything that was written. Idempotent.
    async fn discard(&self, id: BackupId) -> Result<(), DumpError>;
}

/// A dump that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The size of the compressed file in bytes.
    pub size: u64,
    /// The hash of the compressed file.
    pub sha256: Sha256,
    /// The first bytes of the uncompressed dump, at most 4 KiB.
    pub head: Vec<u8>,
    /// The last bytes of the uncompressed dump, at most 4 KiB.
    pub tail: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// The stream to write ended with an error.
    #[error("{0}")]
    Source(String),
    /// The disk failed, or the file is missing or damaged.
    #[error("{0}")]
    Disk(String),
}

/// The machine that the service runs on.
pub trait Machine: Send + Sync {
    /// The disk of the data directory. `None` if the system does not tell.
    fn disk(&self) -> Option<DiskUsage>;

    /// Refuses work that brings so many bytes while the disk is nearly full. What is left is for the
    /// store, so that the service can still write what is small, such as a deletion.
    fn check_room(&self, bytes: u64) -> Result<(), Fault> {
        match self.disk() {
            Some(disk) if !has_room(disk, bytes) => Err(Fault::NoRoom),
            _ => Ok(()),
        }
    }
}

/// Whether the disk keeps a twentieth free, at least 128 MiB and at most 2 GiB, with so many bytes
/// more. A disk of less than 256 MiB keeps half.
fn has_room(disk: DiskUsage, bytes: u64) -> bool {
    let kept = (disk.bytes / 20).clamp(128 << 20, 2 << 30).min(disk.bytes / 2);
    disk.free_bytes.saturating_sub(bytes) >= kept
}

/// The servers in the containers of this service, at ports of the loopback address.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// Whether the path responds in time with a status from 200 to 399.
    async fn is_healthy(&self, port: u16, path: &str, within: Duration) -> bool;
}

#[async_trait]
pub trait Mail: Send + Sync {
    /// Sends a message. Without a mail server, the adapter logs the message for the operator.
    async fn send(&self, to: &Email, subject: &str, text: &str) -> Result<(), PortError>;
}

/// The identity tokens of CI jobs.
#[async_trait]
pub trait Identities: Send + Sync {
    /// Verifies the signature, the issuer, the times and the audience of a token. The audience is this
    /// address of the service, or that of an app there, `{audience}/apps/{appId}`.
    async fn verify(
        &self,
        token: &IdentityToken,
        audience: &str,
        now: Timestamp,
    ) -> Result<Proven, IdentityError>;
}

/// What an identity token proves.
pub struct Proven {
    pub run: CiRun,
    /// The digest of the issuer and the id of the token.
    pub unique: String,
    /// When the token is no longer accepted.
    pub expires_at: Timestamp,
    /// The app that the audience names.
    pub app: Option<AppId>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The token proves nothing, for this reason.
    #[error("{0}")]
    Invalid(String),
    /// The issuer does not answer.
    #[error("{0}")]
    Unreachable(String),
}
