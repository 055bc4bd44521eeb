//! HTTP requests to servers in containers.

use actors::ports::upstream::Upstream;
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    client::conn::http1,
    header::{CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use std::{net::SocketAddr, time::Duration};
use tokio::net::TcpStream;

pub struct Servers;

const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// The maximum size of an answer, in bytes.
const LARGEST_ANSWER: usize = 1 << 20;

/// A `POST` request if there is a body, else a `GET` request.
pub struct ServerRequest {
    pub to: SocketAddr,
    /// The path with the query.
    pub path: String,
    /// In addition to the standard headers.
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<serde_json::Value>,
    /// The deadline, from the connection to the last byte of the answer.
    pub within: Duration,
}

pub struct ServerResponse {
    pub status: u16,
    body: Bytes,
}

impl ServerResponse {
    /// The body, if it is JSON.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerError {
    /// The request was not sent.
    NotConnected,
    /// The request may have been executed.
    NoAnswer,
    TooLarge,
}

#[async_trait]
impl Upstream for Servers {
    async fn is_healthy(&self, to: SocketAddr, path: &str, within: Duration) -> bool {
        let path = path.to_owned();
        let answer = send(ServerRequest { to, path, headers: vec![], body: None, within }).await;
        // A healthy server may send a large answer.
        matches!(answer, Ok(ServerResponse { status: 200..=399, .. }) | Err(ServerError::TooLarge))
    }
}

pub async fn send(request: ServerRequest) -> Result<ServerResponse, ServerError> {
    let within = request.within;
    tokio::time::timeout(within, exchange(request)).await.unwrap_or(Err(ServerError::NoAnswer))
}

/// Sends one request on its own connection.
async fn exchange(request: ServerRequest) -> Result<ServerResponse, ServerError> {
    let connecting = TcpStream::connect(request.to);
    let connected = tokio::time::timeout(CONNECT_LIMIT, connecting).await;
    let Ok(Ok(stream)) = connected else { return Err(ServerError::NotConnected) };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|_| ServerError::NotConnected)?;
    let request = encode(request)?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(|_| ServerError::NoAnswer)?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
        let body = body.map_err(|e| match e.is::<LengthLimitError>() {
            true => ServerError::TooLarge,
            false => ServerError::NoAnswer,
        })?;
        Ok(ServerResponse { status, body: body.to_bytes() })
    };
    tokio::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The connection may end right after the answer.
        _ = connection => answer.await,
    }
}

fn encode(request: ServerRequest) -> Result<hyper::Request<Full<Bytes>>, ServerError> {
    let method = if request.body.is_some() { "POST" } else { "GET" };
    let mut encoded = hyper::Request::builder()
        .method(method)
        .uri(request.path)
        .header(HOST, request.to.ip().to_string());
    for (name, value) in request.headers {
        encoded = encoded.header(name, value);
    }
    let body = request.body.map(|body| Bytes::from(body.to_string()));
    if body.is_some() {
        encoded = encoded.header(CONTENT_TYPE, "application/json");
    }
    // An invalid request is never sent.
    encoded.body(Full::new(body.unwrap_or_default())).map_err(|_| ServerError::NotConnected)
}
