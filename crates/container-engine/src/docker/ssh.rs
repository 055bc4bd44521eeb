//! The way to a daemon over ssh: each connection is a `docker system dial-stdio` on its machine, as with Docker's own
//! client.

use super::transport;
use bollard::{ClientVersion, errors::Error};
use contract::{git_url::SshAddress, runners::SshAccess, text::EngineAddress};
use futures_util::future::BoxFuture;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use remote::ssh::{HOST, IN_FOLDER, SshFolder};
use std::{
    io,
    path::PathBuf,
    pin::Pin,
    process::Stdio,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Semaphore,
    time::timeout,
};

/// What runs on the machine of the daemon. The line says that ssh has signed in.
const DIAL: &str = "echo && exec docker system dial-stdio";
/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
/// How many connections are made at a time: sshd refuses some where ten have not signed in yet.
const BEGUN_AT_ONCE: usize = 4;
/// What is read of the messages of ssh, in bytes.
const MESSAGE: u64 = 4 << 10;

/// The way to one daemon.
#[derive(Clone)]
pub(super) struct OverSsh {
    server: Arc<Server>,
}

struct Server {
    user: String,
    host: String,
    port: u16,
    access: SshAccess,
    /// Where the files are that ssh reads while it signs in.
    folder: PathBuf,
    begins: Semaphore,
}

impl OverSsh {
    /// `None`: the address is not one of ssh.
    pub fn new(address: &EngineAddress, access: &SshAccess, folder: PathBuf) -> Option<OverSsh> {
        let SshAddress { user, host, port } = address.ssh()?;
        let (user, host) = (user.to_owned(), host.to_owned());
        let begins = Semaphore::new(BEGUN_AT_ONCE);
        let server = Server { user, host, port, access: access.clone(), folder, begins };
        Some(OverSsh { server: Arc::new(server) })
    }

    /// A client that keeps its connections. It makes the first one when it is asked.
    pub fn client(&self, longest: u64, version: &ClientVersion) -> Result<bollard::Docker, Error> {
        // The daemon does not look at the host that a request names.
        transport::client(self.clone(), "http://localhost", longest, version)
    }
}

impl Server {
    /// Signs in, and has the daemon dialed. The files with the key are gone when this returns.
    async fn connect(&self) -> io::Result<Pipe> {
        let _turn = self.begins.acquire().await.map_err(io::Error::other)?;
        let folder = tempfile::tempdir_in(&self.folder)?;
        let files = SshFolder::create(folder.path().join("ssh"), &self.access, None)?;
        let mut ssh = Command::new("ssh");
        ssh.current_dir(files.path()).env_clear().args(IN_FOLDER).arg("-T");
        ssh.args(["-l", &self.user, "-p", &self.port.to_string()]);
        // The user and the host are plain: `EngineAddress` has no other characters.
        ssh.args(["-o", &format!("HostName={}", self.host), HOST, DIAL]);
        if let Some(path) = std::env::var_os("PATH") {
            ssh.env("PATH", path);
        }
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let cannot = |e: io::Error| io::Error::new(e.kind(), format!("ssh cannot be run: {e}"));
        let mut child = ssh.spawn().map_err(cannot)?;
        let missing = || io::Error::other("ssh has no pipes");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let mut stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        if !has_signed_in(&mut stdout).await? {
            let mut said = Vec::new();
            stderr.take(MESSAGE).read_to_end(&mut said).await?;
            let said = String::from_utf8_lossy(&said);
            return Err(io::Error::other(format!("ssh does not reach it: {}", said.trim())));
        }
        Ok(Pipe { stdin: Some(stdin), stdout, _child: child })
    }
}

/// Reads the line that comes before the daemon is dialed. `false`: ssh ended without it.
async fn has_signed_in(stdout: &mut ChildStdout) -> io::Result<bool> {
    // Nothing follows the line before the daemon is asked.
    loop {
        match stdout.read_u8().await {
            Ok(b'\n') => return Ok(true),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
    }
}

impl tower_service::Service<hyper::Uri> for OverSsh {
    type Response = TokioIo<Pipe>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Pipe>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: hyper::Uri) -> Self::Future {
        let server = self.server.clone();
        Box::pin(async move {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "ssh does not reach it in time");
            let connected = timeout(CONNECT_WITHIN, server.connect()).await.map_err(late)?;
            connected.map(TokioIo::new)
        })
    }
}

/// A connection to the daemon.
pub(super) struct Pipe {
    /// `None`: nothing more is sent. Only then the pipe is closed.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Killed with this value.
    _child: Child,
}

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdout).poll_read(context, buffer)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stdin {
            Some(stdin) => Pin::new(stdin).poll_write(context, buffer),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stdin {
            Some(stdin) => Pin::new(stdin).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stdin = None;
        Poll::Ready(Ok(()))
    }
}
