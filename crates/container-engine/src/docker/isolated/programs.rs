//! The programs that run in the container of a build.

use super::{bodies, output::Ended};
use crate::{
    EngineError, Exec, Output, PROXY_PORT,
    docker::{daemon::Daemon, exec, helpers::tether::Tethered},
};
use bytes::Bytes;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt, future::ready};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How long the steps around a build may take that depend on nobody else.
pub(super) const BRIEFLY: Duration = Duration::from_secs(60);
/// How long an image may take into a container or out of it.
pub(super) const COPIED_WITHIN: Duration = Duration::from_secs(15 * 60);

pub(super) type Variables = BTreeMap<String, String>;

/// A container, and the user of builds in it.
pub(super) struct Programs<'a> {
    pub daemon: &'a Daemon,
    pub container: Tethered,
}

impl Programs<'_> {
    /// Runs a program to its end. It may take a minute.
    pub async fn run(
        &self,
        command: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Ended, EngineError> {
        let output = self.start(Variables::new(), command, None, BRIEFLY).await?;
        Ended::after(output, None).await
    }

    /// Runs a program with this input to its end. An input that breaks is the failure.
    pub async fn feed(
        &self,
        variables: Variables,
        command: impl IntoIterator<Item = impl Into<String>>,
        input: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<Ended, EngineError> {
        let broken = Arc::new(Mutex::new(None));
        let seen = broken.clone();
        let whole = input.scan((), move |(), part| {
            ready(match part {
                Ok(bytes) => Some(bytes),
                Err(e) => {
                    *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(e.to_string());
                    None
                }
            })
        });
        let output = self.start(variables, command, Some(whole.boxed()), COPIED_WITHIN).await?;
        let ended = Ended::after(output, None).await?;
        match broken.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(EngineError::Unreachable(why)),
            None => Ok(ended),
        }
    }

    /// Starts a program with variables of its own.
    pub async fn start(
        &self,
        variables: Variables,
        command: impl IntoIterator<Item = impl Into<String>>,
        input: Option<BoxStream<'static, Bytes>>,
        within: Duration,
    ) -> Result<BoxStream<'static, Result<Output, EngineError>>, EngineError> {
        let proxies = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let mut env: Variables = proxies.map(|name| (name.to_owned(), proxy.clone())).into();
        env.insert("no_proxy".to_owned(), "localhost,127.0.0.1".to_owned());
        env.extend(variables);
        let command = command.into_iter().map(Into::into).collect();
        let exec = Exec { command, env, user: Some(bodies::USER.to_owned()), within };
        exec::exec(self.daemon, self.container.name(), exec, input).await
    }
}
