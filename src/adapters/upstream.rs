//! Servers in containers, at a port of the loopback address.

use actors::ports::{Answered, Ask, Upstream, UpstreamError};
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    Request,
    client::conn::http1,
    header::{CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;

/// Servers on the loopback address.
pub struct Loopback;

/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of an answer that are read.
const LARGEST_ANSWER: usize = 1 << 20;

#[async_trait]
impl Upstream for Loopback {
    async fn is_well(&self, port: u16, path: &str, within: Duration) -> bool {
        let path = path.to_owned();
        let answered = self.ask(Ask { port, path, headers: vec![], body: None, within }).await;
        // Of a healthy server that says more than is read, the status is what counts.
        matches!(answered, Ok(Answered { status: 200..=399, .. }) | Err(UpstreamError::TooLarge))
    }

    async fn ask(&self, ask: Ask) -> Result<Answered, UpstreamError> {
        let within = ask.within;
        let done = tokio::time::timeout(within, exchange(ask)).await;
        done.unwrap_or(Err(UpstreamError::NoAnswer))
    }
}

/// One request on a connection of its own.
async fn exchange(ask: Ask) -> Result<Answered, UpstreamError> {
    let connecting = TcpStream::connect(("127.0.0.1", ask.port));
    let connected = tokio::time::timeout(CONNECT_WITHIN, connecting).await;
    let Ok(Ok(stream)) = connected else { return Err(UpstreamError::NotConnected) };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|_| UpstreamError::NotConnected)?;
    let request = request(ask)?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(|_| UpstreamError::NoAnswer)?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
        let body = body.map_err(|e| match e.is::<LengthLimitError>() {
            true => UpstreamError::TooLarge,
            false => UpstreamError::NoAnswer,
        })?;
        Ok(Answered { status, body: body.to_bytes() })
    };
    tokio::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // It may have ended just after the answer.
        _ = connection => answer.await,
    }
}

fn request(ask: Ask) -> Result<Request<Full<Bytes>>, UpstreamError> {
    let method = if ask.body.is_some() { "POST" } else { "GET" };
    let mut request = Request::builder().method(method).uri(ask.path).header(HOST, "127.0.0.1");
    for (name, value) in ask.headers {
        request = request.header(name, value);
    }
    let body = ask.body.map(|body| Bytes::from(body.to_string()));
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    // What cannot be a request was never sent.
    request.body(Full::new(body.unwrap_or_default())).map_err(|_| UpstreamError::NotConnected)
}
