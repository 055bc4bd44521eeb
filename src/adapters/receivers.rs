//! Receivers of webhooks, over HTTPS.
//!
//! A receiver's address comes from a user, and must not lead into the internal network.

use actors::ports::receivers::{Answered, Posted, Receivers};
use async_trait::async_trait;
use contract::WebUrl;
use remote::{Guarded, NoAddress, PrivateHosts};
use reqwest::{
    Client, Response,
    header::{CONTENT_TYPE, DATE, RETRY_AFTER},
};
use std::{
    error::Error,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use url::Url;

/// How long one attempt may take, the reply included.
const WITHIN: Duration = Duration::from_secs(15);
/// How many bytes of a reply are read.
const REPLY: usize = 1024;

pub struct HttpReceivers(Guarded);

impl HttpReceivers {
    pub fn new(private_hosts: PrivateHosts) -> Result<HttpReceivers, String> {
        Guarded::new("SVC_WEBHOOK_PRIVATE_HOSTS", private_hosts).map(HttpReceivers)
    }

    /// The address, and the client that may connect to it.
    fn open(&self, url: &WebUrl) -> Result<(Url, &Client), String> {
        self.0.open(url.as_str())
    }

    async fn send(
        &self,
        url: &WebUrl,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Result<Answered, String> {
        let begun = Instant::now();
        let (url, client) = self.open(url)?;
        let request = client.post(url).header(CONTENT_TYPE, "application/json").body(body);
        let request = headers.into_iter().fold(request, |r, (name, value)| r.header(name, value));
        let late = || format!("the receiver did not answer within {} seconds", WITHIN.as_secs());
        let answer = timeout(WITHIN, request.send()).await.map_err(|_| late())?;
        let mut answer = answer.map_err(|e| in_words(&e))?;
        let retry_after = retry_after(&answer);
        let left = WITHIN.saturating_sub(begun.elapsed());
        let mut reply = Vec::new();
        // The status counts. A reply that breaks off or comes slowly is shown as far as it came.
        let _ = timeout(left, read(&mut answer, &mut reply)).await;
        reply.truncate(REPLY);
        Ok(Answered {
            status: answer.status().as_u16(),
            retry_after,
            reply: String::from_utf8_lossy(&reply).into_owned(),
        })
    }
}

async fn read(answer: &mut Response, reply: &mut Vec<u8>) -> Result<(), reqwest::Error> {
    while reply.len() < REPLY {
        let Some(piece) = answer.chunk().await? else { break };
        reply.extend_from_slice(&piece);
    }
    Ok(())
}

/// Why there is no reply, in words that people understand.
fn in_words(e: &reqwest::Error) -> String {
    if let Some(no_address) = NoAddress::among(e) {
        return no_address.to_string();
    }
    let mut cause: &dyn Error = e;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    if e.is_connect() {
        format!("the receiver cannot be reached: {cause}")
    } else {
        format!("the connection broke: {cause}")
    }
}

/// The header `Retry-After` of the statuses that have it: seconds, or a date by the clock of the
/// receiver (RFC 9110).
fn retry_after(answer: &Response) -> Option<Duration> {
    if ![429, 503].contains(&answer.status().as_u16()) {
        return None;
    }
    let header = |name| answer.headers().get(name)?.to_str().ok().map(str::trim);
    let date = |text| httpdate::parse_http_date(text).ok();
    let after = header(RETRY_AFTER)?;
    match after.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => date(after)?.duration_since(date(header(DATE)?)?).ok(),
    }
}

#[async_trait]
impl Receivers for HttpReceivers {
    fn check(&self, url: &WebUrl) -> Result<(), String> {
        self.open(url).map(|_| ())
    }

    async fn post(
        &self,
        url: &WebUrl,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Posted {
        let begun = Instant::now();
        let result = self.send(url, headers, body).await;
        Posted { took: begun.elapsed(), result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    /// A server on the loopback address that sends this to every connection. Counts connections.
    async fn server(reply: String) -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let counted = count.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, SeqCst);
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(reply.as_bytes()).await;
            }
        });
        (port, count)
    }

    async fn post(receivers: &HttpReceivers, url: &str) -> Result<Answered, String> {
        receivers.post(&url.parse().unwrap(), vec![], "{}".into()).await.result
    }

    #[tokio::test]
    async fn a_reply_is_read_in_part_and_a_redirect_is_not_followed() {
        let to = |port: u16| {
            let hosts = vec![("127.0.0.1".into(), port)].into();
            (HttpReceivers::new(hosts).unwrap(), format!("http://127.0.0.1:{port}/"))
        };
        let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{}", "x".repeat(5000));
        let (port, _) = server(long).await;
        let (receivers, url) = to(port);
        let answered = post(&receivers, &url).await.unwrap();
        assert_eq!((answered.status, answered.reply.len()), (200, REPLY));

        let (elsewhere, connections) = server("HTTP/1.1 200 OK\r\n\r\n".into()).await;
        let moved =
            format!("HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:{elsewhere}/\r\n\r\n");
        let (port, _) = server(moved).await;
        let (receivers, url) = to(port);
        assert_eq!(post(&receivers, &url).await.unwrap().status, 307);
        assert_eq!(connections.load(SeqCst), 0);

        let by_date = "Date: Wed, 21 Oct 2026 07:26:00 GMT\r\n\
             Retry-After: Wed, 21 Oct 2026 07:28:00 GMT";
        for headers in ["Retry-After: 120", by_date] {
            let (port, _) = server(format!("HTTP/1.1 429 Busy\r\n{headers}\r\n\r\n")).await;
            let (receivers, url) = to(port);
            let asked = post(&receivers, &url).await.unwrap().retry_after;
            assert_eq!(asked, Some(Duration::from_secs(120)), "{headers}");
        }
        let (receivers, _) = to(port);
        assert!(post(&receivers, "http://127.0.0.1:1/").await.is_err(), "another port of the host");
    }
}
