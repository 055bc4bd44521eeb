//! A client of a daemon over connections of our own.

use bollard::{BollardRequest, ClientVersion, errors::Error};
use hyper_util::{
    client::legacy::{Client, connect::Connect},
    rt::{TokioExecutor, TokioTimer},
};
use std::time::Duration;

/// How long an unused connection is kept. A new one takes far longer than a request.
const IDLE: Duration = Duration::from_secs(60);

/// A client that keeps its connections. It makes the first one when it is asked.
pub(super) fn client(
    connector: impl Connect + Clone + Send + Sync + 'static,
    address: &str,
    longest: u64,
    version: &ClientVersion,
) -> Result<bollard::Docker, Error> {
    let client: Client<_, _> = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(connector);
    let send = move |request: BollardRequest| {
        let answer = client.request(request);
        async move { answer.await.map_err(Error::from) }
    };
    bollard::Docker::connect_with_custom_transport(send, Some(address), longest, version)
}
