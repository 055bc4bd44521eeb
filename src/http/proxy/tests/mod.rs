//! Tests the proxy between two plain sockets, a client and an upstream: they send and receive exact
//! bytes.

mod answers;
mod endings;
mod requests;
mod switches;
mod tunnels;

use super::{Forwarded, HalfClose, Limits, ProxyFault, Upstreams, Watched};
use actix_http::{
    Extensions, HttpService, Protocol, Request, Response, StatusCode, body::BoxBody,
    error::DispatchError,
};
use actix_rt::net::TcpStream as ActixStream;
use actix_server::{Server, ServerHandle};
use actix_service::{ServiceFactoryExt, fn_factory, fn_service};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

/// A test fails after waiting this long.
const WITHIN: Duration = Duration::from_secs(10);
const PREFIX: &str = "/instances/i1";

/// A server that forwards all paths that begin with [`PREFIX`].
struct Proxy {
    address: SocketAddr,
    to: Arc<Mutex<Vec<SocketAddr>>>,
    handle: ServerHandle,
    thread: Option<thread::JoinHandle<()>>,
}

impl Proxy {
    fn to(upstream: &Upstream) -> Proxy {
        Proxy::with(Limits::default(), &[upstream.address])
    }

    /// Forwards to the first address, and to the next one if the first accepts no connections.
    fn with(limits: Limits, to: &[SocketAddr]) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let to = Arc::new(Mutex::new(to.to_vec()));
        let known = to.clone();
        let service = move || {
            let (limits, to) = (limits.clone(), to.clone());
            let accept = fn_service(|io: ActixStream| async move {
                let peer = io.peer_addr().ok();
                Ok::<_, DispatchError>((Watched::new(io, ()), Protocol::Http1, peer))
            });
            let app = fn_factory(move || {
                let (upstreams, to) = (Upstreams::new(limits.clone()), to.clone());
                async move {
                    Ok::<_, ()>(fn_service(move |request: Request| {
                        let (upstreams, to) = (upstreams.clone(), to.clone());
                        async move { Ok::<_, actix_http::Error>(answer(&upstreams, request, &to).await) }
                    }))
                }
            });
            let http = HttpService::build()
                .keep_alive(Duration::from_secs(75))
                .client_disconnect_timeout(Duration::from_secs(5))
                .on_connect_ext(|io: &Watched<ActixStream>, data: &mut Extensions| {
                    data.insert::<HalfClose>(io.half_close().clone());
                });
            accept.and_then(http.finish(app))
        };
        let (started, starts) = mpsc::channel();
        let thread = thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let server = Server::build().workers(1).disable_signals();
                let server = server.listen("proxy", listener, service).unwrap().run();
                started.send(server.handle()).unwrap();
                server.await.unwrap();
            });
        });
        Proxy { address, to: known, handle: starts.recv().unwrap(), thread: Some(thread) }
    }

    fn connect(&self) -> Peer {
        Peer::new(TcpStream::connect(self.address).unwrap())
    }

    /// Opens a connection and sends the request.
    fn send(&self, request: &str) -> Peer {
        let mut client = self.connect();
        client.send(request);
        client
    }

    fn get(&self, path: &str) -> Peer {
        self.send(&format!("GET {PREFIX}{path} HTTP/1.1\r\nHost: a\r\n\r\n"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The stop runs without the returned future.
        drop(self.handle.stop(false));
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn answer(
    upstreams: &Upstreams,
    mut request: Request,
    to: &Mutex<Vec<SocketAddr>>,
) -> Response<BoxBody> {
    let all = request.uri().path_and_query().map_or("", |all| all.as_str()).to_owned();
    let path = all.strip_prefix(PREFIX).unwrap_or(&all);
    let facts =
        Forwarded { client: "10.1.1.1, 10.1.1.2", scheme: "https", host: "api", prefix: PREFIX };
    loop {
        let first = to.lock().unwrap()[0];
        let fault = match upstreams.forward(&mut request, first, path, &facts).await {
            Ok(answer) => return answer,
            Err(fault) => fault,
        };
        let mut to = to.lock().unwrap();
        if to.len() == 1 || !matches!(fault, ProxyFault::NotConnected(_)) {
            let status = match fault {
                ProxyFault::BadRequest(_) => StatusCode::BAD_REQUEST,
                _ => StatusCode::BAD_GATEWAY,
            };
            return Response::with_body(status, BoxBody::new(format!("{fault:?}: {fault}")));
        }
        to.remove(0);
    }
}

/// An upstream that the test drives by hand.
struct Upstream {
    address: SocketAddr,
    listener: TcpListener,
}

impl Upstream {
    fn new() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Upstream { address: listener.local_addr().unwrap(), listener }
    }

    fn accept(&self) -> Peer {
        self.listener.set_nonblocking(true).unwrap();
        let begun = Instant::now();
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => return Peer::new(stream),
                Err(_) if begun.elapsed() < WITHIN => thread::sleep(Duration::from_millis(1)),
                Err(e) => panic!("no connection: {e}"),
            }
        }
    }

    /// Whether another connection waits to be accepted.
    fn has_another(&self) -> bool {
        self.listener.set_nonblocking(true).unwrap();
        thread::sleep(Duration::from_millis(100));
        self.listener.accept().is_ok()
    }
}

/// The test's end of a connection.
struct Peer {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl Peer {
    fn new(stream: TcpStream) -> Peer {
        stream.set_nonblocking(false).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        stream.set_write_timeout(Some(WITHIN)).unwrap();
        Peer { stream, ahead: Vec::new() }
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads until `fits` returns a length. Keeps the bytes after it.
    fn read_until(&mut self, fits: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
        let mut block = vec![0; 64 << 10];
        loop {
            if let Some(n) = fits(&self.ahead) {
                let rest = self.ahead.split_off(n);
                return std::mem::replace(&mut self.ahead, rest);
            }
            match self.stream.read(&mut block) {
                Ok(n @ 1..) => self.ahead.extend_from_slice(&block[..n]),
                end => panic!("{end:?} after {:?}", String::from_utf8_lossy(&self.ahead)),
            }
        }
    }

    fn head(&mut self) -> String {
        let end = |bytes: &[u8]| bytes.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4);
        String::from_utf8(self.read_until(end)).unwrap()
    }

    fn bytes(&mut self, n: usize) -> String {
        String::from_utf8(self.read_until(|bytes| (bytes.len() >= n).then_some(n))).unwrap()
    }

    /// All bytes until the connection ends or breaks.
    fn rest(&mut self) -> String {
        let mut all = std::mem::take(&mut self.ahead);
        match self.stream.read_to_end(&mut all) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock) => panic!("it does not end"),
            _ => String::from_utf8(all).unwrap(),
        }
    }

    /// Closes the sending side.
    fn finish(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Whether nothing arrives for 100 ms.
    fn is_quiet(&mut self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let quiet = self.stream.peek(&mut [0]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
        self.stream.set_read_timeout(Some(WITHIN)).unwrap();
        quiet && self.ahead.is_empty()
    }
}

/// The sorted lines of a head in lower case, without lines that differ in every run.
fn lines(head: &str) -> Vec<String> {
    let lines = head.trim_end().lines().map(str::to_ascii_lowercase);
    let mut lines: Vec<_> = lines.filter(|line| !line.starts_with("date:")).collect();
    lines[1..].sort();
    lines
}
