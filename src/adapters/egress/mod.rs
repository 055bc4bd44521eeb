//! The way out of isolated builds, a proxy for HTTP on a Unix socket, one for each build; and the exceptions for
//! instances.
//!
//! The proxy looks each host up once and connects to an address that it has checked, so a name whose
//! answer changes gains nothing.

mod proxy;
mod reach;

pub use reach::Reach;

use actors::ports::{
    PortError,
    egress::{Door, Egress},
};
use container_engine::PROXY_PORT;
use futures_util::future::BoxFuture;
use proxy::Proxy;
use remote::PrivateHosts;
use std::{
    fs::{self, File, Permissions},
    io,
    net::SocketAddr,
    os::{
        fd::AsRawFd,
        unix::{fs::PermissionsExt, net::UnixListener},
    },
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::task::AbortHandle;

/// The setting with the private hosts.
const SETTING: &str = "SVC_BUILD_PRIVATE_HOSTS";

/// The folders with the sockets.
pub struct Proxies {
    folder: PathBuf,
    private_hosts: Arc<PrivateHosts>,
    instances: Option<Reach>,
}

impl Proxies {
    /// Removes what an earlier process left. The proxies lead to `private_hosts`; `instances` are no matter
    /// of theirs.
    pub fn open(
        folder: PathBuf,
        private_hosts: PrivateHosts,
        instances: Option<Reach>,
    ) -> io::Result<Proxies> {
        if private_hosts.contains("127.0.0.1", PROXY_PORT) {
            return Err(io::Error::other(format!(
                "port {PROXY_PORT} of 127.0.0.1 in {SETTING} is that of the proxy in a build; let yours \
                 listen on another one"
            )));
        }
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        // The daemon needs a path that is the same wherever it runs.
        let (folder, private_hosts) = (folder.canonicalize()?, Arc::new(private_hosts));
        Ok(Proxies { folder, private_hosts, instances })
    }

    fn listen(&self) -> io::Result<(tempfile::TempDir, UnixListener)> {
        let folder = tempfile::tempdir_in(&self.folder)?;
        // The user of a build is another one. Only the container sees the folder: it lies in a folder that
        // nobody else may enter.
        fs::set_permissions(&folder, Permissions::from_mode(0o711))?;
        // The path of a socket has at most 107 bytes, and that of the data may be longer.
        let opened = File::open(folder.path())?;
        let path = format!("/proc/self/fd/{}/proxy.sock", opened.as_raw_fd());
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(folder.path().join("proxy.sock"), Permissions::from_mode(0o666))?;
        listener.set_nonblocking(true)?;
        Ok((folder, listener))
    }
}

impl Egress for Proxies {
    fn open(&self) -> Result<Box<dyn Door>, PortError> {
        let failed = |e: io::Error| PortError(format!("the proxy of a build: {e}"));
        let (folder, listener) = self.listen().map_err(failed)?;
        let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
        let proxy = Arc::new(Proxy::new(self.private_hosts.clone()));
        let serving = tokio::spawn(proxy.clone().serve(listener)).abort_handle();
        Ok(Box::new(Open { folder, proxy, serving }))
    }

    fn of_instances(&self) -> BoxFuture<'_, Option<Vec<SocketAddr>>> {
        Box::pin(async { Some(self.instances.as_ref()?.addresses().await) })
    }
}

/// A proxy at work.
struct Open {
    folder: tempfile::TempDir,
    proxy: Arc<Proxy>,
    serving: AbortHandle,
}

impl Door for Open {
    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn loopback(&self) -> Vec<u16> {
        self.proxy.private_hosts.ports_of_loopback()
    }

    fn refused(&self) -> Vec<String> {
        self.proxy.take_refused()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
