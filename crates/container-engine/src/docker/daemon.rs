//! The connection to the daemon: made on first use, and again after it was lost.

use super::{errors::DaemonFailure, ssh::OverSsh, tls::Encrypted};
use crate::{Credentials, EngineError};
use bollard::{API_DEFAULT_VERSION, BollardRequest, errors::Error};
use contract::text::EngineAddress;
use futures_core::future::BoxFuture;
use futures_util::{Stream, StreamExt};
use std::{
    env,
    future::Future,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::timeout;

/// The limit of a look-up.
pub(super) const LOOK: Duration = Duration::from_secs(10);
/// The limit of creating, starting or removing an object.
pub(super) const CHANGE: Duration = Duration::from_secs(30);
/// The longest silence of a transfer to or from a registry.
pub(super) const TRANSFER_IDLE: Duration = Duration::from_secs(120);
/// The longest silence of a build: compilers and package managers are silent for minutes.
pub(super) const BUILD_IDLE: Duration = Duration::from_secs(600);

/// The client's limit for an answer. Each request has a shorter one.
const LONGEST_SECONDS: u64 = 24 * 60 * 60;

const LOCAL: &str = "unix:///var/run/docker.sock";

/// The client of the daemon. Copies share the connection.
#[derive(Clone)]
pub(super) struct Daemon {
    way: Way,
    /// The address of the daemon's machine on which the ports of containers are published.
    pub publishes_at: IpAddr,
    client: Arc<Mutex<Option<bollard::Docker>>>,
    /// Who says whether this is the right engine.
    recognizes: Option<Arc<dyn Recognizes>>,
}

/// How the daemon is reached.
#[derive(Clone)]
enum Way {
    /// `unix:///path`.
    Socket(Arc<str>),
    /// `tcp://host:port`, which anybody may read and change on the way.
    Plain(Arc<str>),
    Encrypted(Arc<Encrypted>),
    Ssh(OverSsh),
}

/// Says whether an engine is the one that the program means. Each new connection is asked for.
pub trait Recognizes: Send + Sync {
    /// `id` is what the engine calls itself; it keeps that as long as it keeps its data. The error says what to do.
    fn recognizes(&self, id: String) -> BoxFuture<'_, Result<(), String>>;
}

impl Daemon {
    /// The daemon need not run yet.
    pub fn at(address: Option<&str>) -> Result<Daemon, EngineError> {
        let from_environment = env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
        let address = match address {
            Some(path) if path.starts_with('/') => format!("unix://{path}"),
            Some(address) => address.to_owned(),
            None => from_environment.unwrap_or_else(|| LOCAL.to_owned()),
        };
        let is_tcp = address.starts_with("tcp://") || address.starts_with("http://");
        if !is_tcp && !address.starts_with("unix://") {
            return Err(EngineError::Refused(format!(
                "{address} is no address of Docker that is spoken here; unix://… and tcp://… are"
            )));
        }
        if is_tcp && env::var("DOCKER_TLS_VERIFY").is_ok_and(|verify| !verify.is_empty()) {
            return Err(EngineError::Refused(format!(
                "{address} is to be reached by TLS: use a local socket, or add it as an engine of its own"
            )));
        }
        let way = if is_tcp { Way::Plain } else { Way::Socket };
        Ok(Daemon::by(way(address.into()), Ipv4Addr::LOCALHOST.into()))
    }

    /// The daemon of another machine, which publishes ports at this address.
    pub fn elsewhere(
        address: &EngineAddress,
        credentials: &Credentials,
        publishes_at: IpAddr,
        folder: &Path,
    ) -> Result<Daemon, EngineError> {
        let way = match credentials {
            Credentials::Tls(certificates) => Encrypted::new(address.as_str(), certificates)
                .map(|way| Way::Encrypted(Arc::new(way))),
            Credentials::Ssh(access) => OverSsh::new(address, access, folder.to_owned())
                .map(Way::Ssh)
                .ok_or_else(|| format!("{address} is no address of ssh")),
        };
        Ok(Daemon::by(way.map_err(EngineError::Refused)?, publishes_at))
    }

    fn by(way: Way, publishes_at: IpAddr) -> Daemon {
        Daemon { way, publishes_at, client: Arc::default(), recognizes: None }
    }

    /// The client, after it negotiated an API version with the daemon.
    pub async fn client(&self) -> Result<bollard::Docker, DaemonFailure> {
        let known = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(client) = known {
            return Ok(client);
        }
        let (longest, version) = (LONGEST_SECONDS, API_DEFAULT_VERSION);
        let client = match &self.way {
            Way::Socket(address) => bollard::Docker::connect_with_unix(address, longest, version),
            Way::Plain(address) => bollard::Docker::connect_with_http(address, longest, version),
            Way::Encrypted(way) => way.client(longest, version),
            Way::Ssh(way) => way.client(longest, version),
        }?;
        let client = client.with_request_modifier(url_safe_login);
        let client = timeout(LOOK, client.negotiate_version())
            .await
            .map_err(|_| DaemonFailure::late(LOOK))??;
        if let Some(recognizes) = &self.recognizes {
            let info =
                timeout(LOOK, client.info()).await.map_err(|_| DaemonFailure::late(LOOK))??;
            let id = info.id.unwrap_or_default();
            let recognized = timeout(LOOK, recognizes.recognizes(id)).await;
            recognized
                .map_err(|_| DaemonFailure::late(LOOK))?
                .map_err(DaemonFailure::Unreachable)?;
        }
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }

    /// Uses only an engine that is recognized.
    pub fn recognized_by(&mut self, recognizes: Arc<dyn Recognizes>) {
        self.recognizes = Some(recognizes);
    }

    /// Sends a request and reads its whole answer.
    pub async fn ask<T, F>(
        &self,
        limit: Duration,
        request: impl FnOnce(bollard::Docker) -> F,
    ) -> Result<T, DaemonFailure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let client = self.client().await?;
        let answer = match timeout(limit, request(client)).await {
            Ok(answer) => answer.map_err(DaemonFailure::from),
            Err(_) => Err(DaemonFailure::late(limit)),
        };
        answer.inspect_err(|failure| self.heed(failure))
    }

    /// The next item of an answer that comes in parts. `None`: the end.
    pub async fn next<T>(
        &self,
        idle: Duration,
        parts: &mut (impl Stream<Item = Result<T, Error>> + Unpin),
    ) -> Option<Result<T, DaemonFailure>> {
        let part = match timeout(idle, parts.next()).await {
            Ok(part) => part?.map_err(DaemonFailure::from),
            Err(_) => {
                Err(DaemonFailure::Unreachable(format!("nothing came for {} s", idle.as_secs())))
            }
        };
        Some(part.inspect_err(|failure| self.heed(failure)))
    }

    /// Drops the client of an unreachable daemon, which may come back with another API version.
    pub fn heed(&self, failure: &DaemonFailure) {
        if matches!(failure, DaemonFailure::Unreachable(_)) {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// Docker reads a login only in the URL-safe alphabet of base64, and ignores any other. Bollard
/// writes the standard alphabet.
fn url_safe_login(mut request: BollardRequest) -> BollardRequest {
    if let Some(login) = request.headers_mut().get_mut("X-Registry-Auth") {
        let safe = login.to_str().map(|text| text.replace('+', "-").replace('/', "_"));
        if let Some(safe) = safe.ok().and_then(|text| text.parse().ok()) {
            *login = safe;
            login.set_sensitive(true);
        }
    }
    request
}
