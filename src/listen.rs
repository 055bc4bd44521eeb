//! The listeners: what is accepted becomes connections of HTTP, within their limits.

use crate::http::{
    ConnectionPermit, Secure, Shared,
    paced::Paced,
    proxy::{HalfClose, Watched},
    served::Served,
    tls::Tls,
};
use actix_http::{
    Extensions, HttpService, Protocol, Response, body::BoxBody, error::DispatchError,
};
use actix_rt::net::TcpStream;
use actix_server::{Server, ServerBuilder};
use actix_service::{ServiceFactoryExt, fn_service};
use contract::Fault;
use rustix::net::Shutdown;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;

/// How long running calls may take to end after the service stops, in seconds.
const STOP_WITHIN: u64 = 30;
/// How long a client may take to send its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// How long the server keeps reading a connection after an early refusal. Closing it at once would
/// reset the connection, and a client that is still sending would never see the answer.
const LINGER: Duration = Duration::from_secs(5);
/// How long a connection may stay idle between two requests.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Takes the place of a connection.
pub type Connect = fn(&Shared, IpAddr) -> Result<ConnectionPermit, Fault>;

/// What is done with an accepted connection before HTTP begins.
pub trait Handshake: Clone + Send + 'static {
    type Io: AsyncRead + AsyncWrite + Unpin + 'static;
    /// Whether nobody between the two ends can read the connection.
    const IS_SECURE: bool;
    fn shake(&self, io: TcpStream) -> impl Future<Output = io::Result<Self::Io>>;
}

/// HTTP begins at once.
#[derive(Clone)]
pub struct Plain;

impl Handshake for Plain {
    type Io = TcpStream;
    const IS_SECURE: bool = false;

    async fn shake(&self, io: TcpStream) -> io::Result<TcpStream> {
        Ok(io)
    }
}

impl Handshake for Arc<Tls> {
    type Io = TlsStream<TcpStream>;
    const IS_SECURE: bool = true;

    async fn shake(&self, io: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.accept(io).await
    }
}

/// Where a server listens, and what it shares with the others of this process.
pub struct Listener<H> {
    /// The option that sets the address.
    pub option: &'static str,
    pub address: SocketAddr,
    /// See [`Paced`].
    pub piece: usize,
    /// Takes the place of a connection.
    pub connect: Connect,
    pub handshake: H,
    pub workers: usize,
    pub shared: Arc<Shared>,
}

impl Listener<Plain> {
    /// The same with a handshake before HTTP.
    pub fn with<H>(self, handshake: H) -> Listener<H> {
        let Listener { option, address, piece, connect, handshake: Plain, workers, shared } = self;
        Listener { option, address, piece, connect, handshake, workers, shared }
    }
}

impl<H: Handshake> Listener<H> {
    /// Accepts connections and serves the app on them. `actix_web::HttpServer` offers no hook for the
    /// fast path and for [`Watched`] connections.
    pub fn serve<A, F>(
        self,
        server: ServerBuilder,
        app: impl Fn() -> F + Send + Clone + 'static,
    ) -> Result<Server, String>
    where
        A: Into<Response<BoxBody>> + 'static,
        F: Served<A>,
    {
        let Listener { option, address, piece, connect, handshake, workers, shared } = self;
        let server = server.workers(workers).shutdown_timeout(STOP_WITHIN);
        let stopping = server.graceful_shutdown_signal();
        let service = move || {
            let (shared, handshake, stopping) =
                (shared.clone(), handshake.clone(), stopping.clone());
            let accept = fn_service(move |io: TcpStream| {
                let (shared, handshake) = (shared.clone(), handshake.clone());
                async move {
                    let _ = io.set_nodelay(true);
                    let peer = io.peer_addr()?;
                    let Ok(permit) = connect(&shared, peer.ip()) else {
                        let _ = rustix::net::shutdown(&io, Shutdown::Both);
                        return Err(io::Error::other("too many connections").into());
                    };
                    let io = handshake.shake(io).await?;
                    let io = Watched::new(Paced::new(io, piece), permit);
                    Ok::<_, DispatchError>((io, Protocol::Http1, Some(peer)))
                }
            });
            let http = HttpService::build()
                .graceful_shutdown_signal(move || {
                    let stopping = stopping.clone();
                    async move { stopping.notified().await }
                })
                .on_connect_ext(
                    |io: &Watched<Paced<H::Io>, ConnectionPermit>, data: &mut Extensions| {
                        data.insert::<HalfClose>(io.half_close().clone());
                        if H::IS_SECURE {
                            data.insert(Secure);
                        }
                    },
                )
                .keep_alive(KEEP_ALIVE)
                .client_request_timeout(HEADERS_WITHIN)
                .client_disconnect_timeout(LINGER)
                .local_addr(address);
            let http: HttpService<_, _, BoxBody, _, _> = http.finish(app());
            accept.and_then(http)
        };
        let cannot =
            |e| format!("cannot listen on {address}: {e}; choose another address with {option}");
        Ok(server.bind("http", address, service).map_err(cannot)?.run())
    }
}
