//! Ports without an outside world, for tests and measurements: almost every call fails.

use super::{
    PortError, Ports,
    advisories::Advisories,
    attestations::{Attestations, Attested},
    audit_archive::AuditArchive,
    binaries::{Binaries, Examined, Staged},
    credentials::{CredentialContents, CredentialFiles, CredentialUpload, Refused},
    domain_records::DomainRecords,
    dumps::{DumpError, Dumps, Written},
    egress::{Door, Egress, Reached},
    engines::{Access, Engines},
    folders::Folders,
    identities::{Identities, IdentityError, Proven},
    machine::Machine,
    mail::Mail,
    parse::{FunctionCall, ParseError, ParseServer, ParseServers, UserCounts},
    passwords::Passwords,
    random::Random,
    receivers::{Posted, Receivers},
    recipes::Recipes,
    registries::Registries,
    sealed::Sealer,
    site::{BuildSize, Overcommit, Site},
    sources::{Fetched, Inspected, KeyPair, Remote, SourceError, Sources},
    upstream::Upstream,
};
use crate::runtime::{
    clock::Clock,
    turns::{NoTurn, Tenant},
};
use async_trait::async_trait;
use bytes::Bytes;
use commerce::{Built, Channel, OrderProgress, PurchaseOrder, RemoteError, Shop};
use container_engine::Engine;
use contract::{
    AppId, ArtifactId, BackupId, Email, EventId, OrganizationId, Password, PasswordAttempt, Sha256,
    Timestamp, WebUrl,
    artifacts::ArtifactKind,
    checkouts::Reference,
    money::Money,
    operators::DiskUsage,
    quotas::Quotas,
    retention::Retentions,
    service::Registration,
    ssh::SshHostKey,
    text::{GitUrl, IdentityToken},
};
use futures_util::{future::BoxFuture, stream::BoxStream};
use repository::folder::FolderKind;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::Duration,
};

/// Ports of which only the clock, the random ids, the sealer and the container engine work.
pub fn ports(clock: Clock, engine: Arc<dyn Engine>) -> Ports {
    let unavailable = Arc::new(Unavailable);
    Ports {
        clock,
        random: Random::default(),
        passwords: unavailable.clone(),
        binaries: unavailable.clone(),
        mail: unavailable.clone(),
        app_stores: Arc::default(),
        credential_files: unavailable.clone(),
        payments: Arc::default(),
        shop: unavailable.clone(),
        engine,
        engines: unavailable.clone(),
        machine: unavailable.clone(),
        upstream: unavailable.clone(),
        parse: unavailable.clone(),
        sources: unavailable.clone(),
        folders: unavailable.clone(),
        audit_archive: unavailable.clone(),
        ci: None,
        identities: unavailable.clone(),
        attestations: unavailable.clone(),
        certificates: None,
        domain_records: unavailable.clone(),
        dumps: unavailable.clone(),
        egress: unavailable.clone(),
        receivers: unavailable,
        registries: Arc::new(Registries::default()),
        recipes: Arc::new(Recipes::default()),
        advisories: Arc::new(Advisories::default()),
        sealer: Sealer::new([7; 32]),
        site: Arc::new(Site {
            quotas: Quotas::default(),
            retentions: Retentions::default(),
            installation: "svc_nothing".into(),
            api_url: "http://svc.test".into(),
            instance_domain: None,
            sandboxes_paths: false,
            own_hosts: Vec::new(),
            registration: Registration::Open,
            github: None,
            platform_app: None,
            platform_plans: BTreeMap::new(),
            overcommit: Overcommit { memory: 1.0, cpus: 1.0 },
            deployment_limit: Duration::from_secs(30 * 60),
            image_build_limit: Duration::from_secs(2 * 3600),
            build_size: BuildSize { memory: 1 << 30, cpu_millis: 1000, disk: 1 << 30 },
        }),
    }
}

struct Unavailable;

impl Machine for Unavailable {
    fn name(&self) -> String {
        "nowhere".into()
    }
    fn disk(&self) -> Option<DiskUsage> {
        None
    }
}

fn refused<T>() -> Result<T, PortError> {
    Err(PortError("there is no world outside".into()))
}

#[async_trait]
impl Identities for Unavailable {
    async fn verify(
        &self,
        _: &IdentityToken,
        _: &str,
        _: Timestamp,
    ) -> Result<Proven, IdentityError> {
        Err(IdentityError::Unreachable("there is no world outside".into()))
    }
}

impl Egress for Unavailable {
    /// A door that leads nowhere: the model of the engine does not look at it.
    fn open(&self, _: Option<OrganizationId>) -> Result<Box<dyn Door>, PortError> {
        Ok(Box::new(Unavailable))
    }

    fn of_instances(&self) -> BoxFuture<'_, Option<Reached>> {
        Box::pin(async { None })
    }
}

impl Door for Unavailable {
    fn folder(&self) -> &Path {
        Path::new("/nowhere")
    }

    fn loopback(&self) -> Vec<u16> {
        Vec::new()
    }

    fn refused(&self) -> Vec<String> {
        Vec::new()
    }
}

#[async_trait]
impl DomainRecords for Unavailable {
    async fn texts(&self, _: Tenant, _: &str) -> Result<Vec<String>, String> {
        Err("there is no world outside".into())
    }
}

#[async_trait]
impl AuditArchive for Unavailable {
    async fn append(&self, _: &str, _: (EventId, EventId), _: Vec<u8>) -> Result<(), PortError> {
        refused()
    }
}

fn nobody<T>() -> Result<T, RemoteError> {
    Err(RemoteError::Busy {
        why: "there is no world outside".into(),
        after: Duration::from_secs(1),
    })
}

#[async_trait]
impl Shop for Unavailable {
    async fn build(
        &self,
        _: &Channel,
        _: &PurchaseOrder,
        _: &OrderProgress,
    ) -> Result<(OrderProgress, Option<Built>), RemoteError> {
        nobody()
    }
    async fn settle(
        &self,
        _: &Channel,
        _: &str,
        _: Reference,
        _: &Money,
    ) -> Result<(), RemoteError> {
        nobody()
    }
    async fn cancel(&self, _: &Channel, _: &str, _: Reference) -> Result<(), RemoteError> {
        nobody()
    }
    async fn check_access(&self, _: &Channel) -> Result<String, RemoteError> {
        nobody()
    }
}

#[async_trait]
impl CredentialFiles for Unavailable {
    async fn open(
        &self,
        _: Tenant,
        _: CredentialUpload,
        _: Timestamp,
    ) -> Result<Result<CredentialContents, Refused>, NoTurn> {
        Ok(Err(Refused { field: "data", why: "there is no world outside".into() }))
    }
}

#[async_trait]
impl Attestations for Unavailable {
    async fn verify(&self, _: Vec<u8>, _: &Sha256) -> Result<Attested, String> {
        Err("there is no world outside".into())
    }
}

#[async_trait]
impl Folders for Unavailable {
    async fn renew(&self, _: AppId, _: &Sha256) -> Result<Option<FolderKind>, PortError> {
        refused()
    }
    async fn context(
        &self,
        _: AppId,
        _: &Sha256,
        _: FolderKind,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>, PortError> {
        refused()
    }
    async fn forget(&self) -> Result<u64, PortError> {
        refused()
    }
}

#[async_trait]
impl Sources for Unavailable {
    async fn fetch(&self, _: &Remote, _: &str, _: Duration) -> Result<Fetched, SourceError> {
        Err(SourceError::Unreachable("there is no world outside".into()))
    }
    async fn inspect(&self, _: &Remote, _: Duration) -> Result<Inspected, SourceError> {
        Err(SourceError::Unreachable("there is no world outside".into()))
    }
    async fn host_key(
        &self,
        _: Tenant,
        _: &GitUrl,
        _: Duration,
    ) -> Result<SshHostKey, SourceError> {
        Err(SourceError::Unreachable("there is no world outside".into()))
    }
    fn new_key_pair(&self, _: &str) -> Result<KeyPair, PortError> {
        refused()
    }
}

#[async_trait]
impl Passwords for Unavailable {
    async fn hash(&self, _: Tenant, _: Password) -> Result<String, PortError> {
        refused()
    }
    async fn verify(
        &self,
        _: Tenant,
        _: PasswordAttempt,
        _: Option<String>,
    ) -> Result<bool, PortError> {
        refused()
    }
}

#[async_trait]
impl Binaries for Unavailable {
    async fn reach(&self, _: ArtifactId) -> Result<(), PortError> {
        refused()
    }
    async fn staged(&self, _: ArtifactId, _: &Staged) -> Result<u64, PortError> {
        refused()
    }
    async fn examine(
        &self,
        _: Tenant,
        _: ArtifactId,
        _: ArtifactKind,
        _: &Staged,
    ) -> Result<Examined, PortError> {
        refused()
    }
    async fn keep(&self, _: ArtifactId, _: &Examined) -> Result<(), PortError> {
        refused()
    }
    async fn part(&self, _: ArtifactId, _: u64, _: u64) -> Result<Bytes, PortError> {
        refused()
    }
    async fn discard(&self, _: ArtifactId) -> Result<(), PortError> {
        refused()
    }
}

#[async_trait]
impl Mail for Unavailable {
    async fn send(&self, _: &Email, _: &str, _: &str) -> Result<(), PortError> {
        refused()
    }
}

#[async_trait]
impl Dumps for Unavailable {
    async fn write(
        &self,
        _: BackupId,
        _: u64,
        _: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<Written, DumpError> {
        Err(DumpError::Disk("there is no world outside".into()))
    }
    async fn keep(&self, _: BackupId, _: &Sha256) -> Result<(), DumpError> {
        Ok(())
    }
    async fn read(
        &self,
        _: BackupId,
        _: &Sha256,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>, DumpError> {
        Err(DumpError::Disk("there is no world outside".into()))
    }
    async fn discard(&self, _: BackupId) -> Result<(), DumpError> {
        Ok(())
    }
}

#[async_trait]
impl Upstream for Unavailable {
    async fn is_healthy(&self, _: SocketAddr, _: &str, _: Duration) -> bool {
        false
    }
}

#[async_trait]
impl ParseServers for Unavailable {
    async fn functions(&self, _: &ParseServer) -> Result<BTreeSet<String>, ParseError> {
        Err(ParseError::NotConnected)
    }
    async fn run(&self, _: &ParseServer, _: FunctionCall) -> Result<Value, ParseError> {
        Err(ParseError::NotConnected)
    }
    async fn count_users(&self, _: &ParseServer, _: Timestamp) -> Result<UserCounts, ParseError> {
        Err(ParseError::NotConnected)
    }
}

#[async_trait]
impl Receivers for Unavailable {
    fn check(&self, _: &WebUrl) -> Result<(), String> {
        Ok(())
    }
    async fn post(&self, _: &WebUrl, _: Vec<(&'static str, String)>, _: String) -> Posted {
        Posted { took: Duration::ZERO, result: Err("there is no world outside".into()) }
    }
}

impl Engines for Unavailable {
    fn connect(&self, _: &Access) -> Result<Arc<dyn Engine>, String> {
        Err("no engine is reached".to_owned())
    }

    fn expiry(&self, _: &str) -> Result<Timestamp, String> {
        Err("no certificate is read".to_owned())
    }
}
