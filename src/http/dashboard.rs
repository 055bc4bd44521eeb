//! Calls functions for the pages of the dashboard, as the router does for any client.

use super::{
    Edge, body,
    budget::Share,
    functions::{self, Exchange},
    reply::Heading,
    request,
};
use actix_http::RequestHead;
use actix_web::http::header::HeaderMap;
use actors::{
    call::{
        authn::Credentials,
        pipeline::{Counts, Request, Target},
        rate_limit::RateKey,
    },
    runtime::permit::Permit,
};
use bytes::Bytes;
use contract::{Fault, Timestamp, fault::Failure};
use dashboard::{CallResponse, Room, Service, ServiceCall};
use futures_util::{
    StreamExt,
    future::{self, Either, FutureExt, LocalBoxFuture},
    stream::{self, LocalBoxStream},
};
use reqwest::{Body, Client};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    time::Duration,
};
use tokio::sync::mpsc;

/// The service, for one worker's pages.
pub struct Pages {
    edge: Edge,
    /// Sends files to the service itself, at this address.
    files: Client,
    service: String,
}

/// How long a file may pause on its way, and the answer after it.
const PAUSE: Duration = Duration::from_secs(60);
/// Chunks of a file between the browser and the service.
const QUEUE: usize = 8;

impl Pages {
    /// `listen` is the address on which the service listens.
    pub fn new(edge: Edge, listen: SocketAddr) -> Result<Pages, reqwest::Error> {
        let address = match listen.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let service = format!("http://{}", SocketAddr::new(address, listen.port()));
        let files = Client::builder().no_proxy().build()?;
        Ok(Pages { edge, files, service })
    }
}

impl Service for Pages {
    fn now(&self) -> Timestamp {
        self.edge.platform.world.ports.clock.now()
    }

    fn sleep(&self, time: Duration) -> LocalBoxFuture<'static, ()> {
        let clock = self.edge.platform.world.ports.clock.clone();
        async move { clock.sleep(time).await }.boxed_local()
    }

    fn is_stopping(&self) -> bool {
        self.edge.platform.world.is_stopping()
    }

    fn room(&self, head: &RequestHead) -> Result<Box<dyn Room>, Fault> {
        let holder = RateKey::address(request::origin(head, &self.edge).address);
        Ok(Box::new(self.edge.shared.arriving.share(Some(holder), body::WAITING)?))
    }

    fn call<'a>(&'a self, call: ServiceCall<'a>) -> LocalBoxFuture<'a, CallResponse> {
        async move {
            let (edge, head) = (&self.edge, call.head);
            let Some(_permit) = Permit::take(&edge.shared.in_flight) else {
                return CallResponse { reply: Err(Fault::Busy), headers: self.headers(head) };
            };
            let request = Request {
                target: match call.target {
                    dashboard::CallTarget::Function(name) => Target::Function(name.to_owned()),
                    dashboard::CallTarget::Endpoint(name, path) => Target::Endpoint { name, path },
                },
                credentials: credentials(edge, call.session, call.master_key),
                body: call.params.into(),
                origin: request::origin(call.head, edge),
                request_id: request::request_id(call.head, edge),
                idempotency_key: call.idempotency_key,
                user_agent: request::user_agent(call.head),
                counts: if call.counts { Counts::Page } else { Counts::Nothing },
            };
            let Exchange { request_id, reply, allowance } =
                functions::send(head, edge, request).await;
            let heading = Heading { head, edge, request_id, allowance: Some(allowance) };
            CallResponse { reply, headers: heading.limits() }
        }
        .boxed_local()
    }

    fn headers(&self, head: &RequestHead) -> HeaderMap {
        Heading::uncounted(head, &self.edge).limits()
    }

    fn upload<'a>(
        &'a self,
        address: &'a str,
        mut file: LocalBoxStream<'static, Result<Bytes, Fault>>,
    ) -> LocalBoxFuture<'a, Result<(), Fault>> {
        async move {
            let api_url = &self.edge.platform.settings.api_url;
            let path = address.strip_prefix(api_url.as_str()).ok_or(Fault::Internal)?;
            let (to, from) = mpsc::channel::<io::Result<Bytes>>(QUEUE);
            let body =
                stream::unfold(from, async |mut from| from.recv().await.map(|bytes| (bytes, from)));
            let put = self.files.put(format!("{}{path}", self.service));
            let answer = put.body(Body::wrap_stream(body)).send();
            let clock = &self.edge.platform.world.ports.clock;
            // The file comes on this thread; the client may send on another.
            let pass = async move {
                loop {
                    let next = clock.limit(PAUSE, file.next()).await;
                    let paused = || Some(Err(Fault::Malformed("the file stopped to come".into())));
                    // At the end of the file, nothing is broken.
                    let bytes = next.unwrap_or_else(paused)?;
                    let broken = bytes.as_ref().err().cloned();
                    let bytes = bytes.map_err(|fault| io::Error::other(fault.to_string()));
                    let sent = clock.limit(PAUSE, to.send(bytes)).await;
                    if broken.is_some() || !matches!(sent, Some(Ok(()))) {
                        return broken;
                    }
                }
            };
            let answer = match future::select(pin!(answer), pin!(pass)).await {
                // The service has refused the file, and takes no more of it.
                Either::Left((answer, _)) => Some(answer),
                Either::Right((Some(fault), _)) => return Err(fault),
                Either::Right((None, answer)) => clock.limit(PAUSE, answer).await,
            };
            let answer = answer.and_then(Result::ok).ok_or(Fault::NoAnswer("the upload"))?;
            if answer.status().is_success() {
                return Ok(());
            }
            let failure: Failure =
                answer.json().await.map_err(|_| Fault::NoAnswer("the upload"))?;
            Err(Fault::NotNow(failure.error))
        }
        .boxed_local()
    }
}

impl Room for Share {
    fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        Share::grow(self, bytes)
    }
}

/// A page needs no application id of its own: it is this installation's.
fn credentials(edge: &Edge, session: Option<&str>, master_key: Option<String>) -> Credentials {
    let settings = &edge.platform.settings;
    Credentials {
        application_id: Some(settings.application_id.clone()),
        javascript_key: settings.javascript_key.clone(),
        session_token: session.map(str::to_owned),
        master_key,
        ..Credentials::default()
    }
}
