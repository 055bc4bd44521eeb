//! The way out of isolated builds, a proxy for HTTP on a Unix socket, one for each build; and what builds and
//! instances reach of the inside.
//!
//! The proxy looks each host up once and connects to an address that it has checked, so a name whose
//! answer changes gains nothing.

mod exceptions;
mod proxy;
mod reach;

pub use exceptions::Allowed;

use actors::ports::{
    PortError,
    egress::{Door, Egress, Reached},
};
use contract::OrganizationId;
use exceptions::Exceptions;
use futures_util::future::BoxFuture;
use proxy::Proxy;
use reach::Reach;
use std::{
    fs::{self, File, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::{fs::PermissionsExt, net::UnixListener},
    },
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::task::AbortHandle;

/// The settings with the private hosts.
const SETTING: &str = "SVC_BUILD_PRIVATE_HOSTS or SVC_ORGANIZATION_PRIVATE_HOSTS";

/// The ways to what is outside.
pub struct Ways {
    /// Holds the sockets of the proxies, each in a folder of its own.
    folder: PathBuf,
    exceptions: Exceptions,
}

impl Ways {
    /// Removes what an earlier process left.
    pub fn open(folder: PathBuf, allowed: Allowed) -> io::Result<Ways> {
        let exceptions = Exceptions::of(allowed)?;
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        // The daemon needs a path that is the same wherever it runs.
        Ok(Ways { folder: folder.canonicalize()?, exceptions })
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

impl Egress for Ways {
    fn open(&self, organization: Option<OrganizationId>) -> Result<Box<dyn Door>, PortError> {
        let failed = |e: io::Error| PortError(format!("the proxy of a build: {e}"));
        let (folder, listener) = self.listen().map_err(failed)?;
        let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
        let proxy = Arc::new(Proxy::new(self.exceptions.of_builds(organization)));
        let serving = tokio::spawn(proxy.clone().serve(listener)).abort_handle();
        Ok(Box::new(Open { folder, proxy, serving }))
    }

    fn of_instances(&self) -> BoxFuture<'_, Option<Reached>> {
        Box::pin(self.exceptions.of_instances())
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
