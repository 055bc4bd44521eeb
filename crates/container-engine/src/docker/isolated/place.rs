//! The container of a build, and what happens in it.

use super::{archive::Checked, bodies, caches, output::Ended};
use crate::{
    BASE_IMAGE, BuildSpec, EngineError, Exec, Isolation, Output, PROXY_PORT,
    docker::{
        daemon::Daemon,
        errors::DaemonFailure,
        exec,
        helpers::{
            Helpers, Sends,
            in_use::{InUse, Taken},
            tether::Tethered,
        },
        images, objects,
    },
};
use bollard::query_parameters::ImportImageOptions;
use bytes::Bytes;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt, future::ready};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The names of images in the container. Nobody outside of it sees them.
const MADE: &str = "localhost/svc-made:1";
const BASE: &str = "localhost/svc-base";
/// How long the steps around a build may take that depend on nobody else.
const BRIEFLY: Duration = Duration::from_secs(60);
/// How long an image may take into the container or out of it.
const COPIED_WITHIN: Duration = Duration::from_secs(15 * 60);

pub(super) struct Place<'a> {
    daemon: &'a Daemon,
    spec: &'a BuildSpec,
    isolation: &'a Isolation,
    container: Tethered,
}

impl<'a> Place<'a> {
    /// Starts the container, with the disk of an earlier build of this owner unless another build has it.
    pub async fn open(
        helpers: &'a Helpers,
        disks: &InUse,
        image: &str,
        spec: &'a BuildSpec,
        isolation: &'a Isolation,
    ) -> Result<Place<'a>, EngineError> {
        let disk = disks.take(&caches::volume(&isolation.owner));
        if let Some(disk) = &disk {
            objects::ensure_volume(&helpers.daemon, disk.name(), &isolation.labels).await?;
        }
        let body = bodies::disk(image, isolation, disk.as_ref().map(Taken::name));
        let mut maker = Tethered::start(helpers, image, body, None).await?;
        let device = maker.line().await.map_err(|e| match e {
            EngineError::Refused(why) => {
                EngineError::Refused(format!("builds cannot be isolated: {why}"))
            }
            other => other,
        })?;
        let body = bodies::container(image, spec.memory, isolation, &device);
        let container = Tethered::start(helpers, image, body, disk).await?;
        // The device belongs to the container now.
        maker.end().await;
        Ok(Place { daemon: &helpers.daemon, spec, isolation, container })
    }

    pub async fn close(self) {
        self.container.end().await;
    }

    /// Builds the image. A build that ended by itself leaves its disk to the next one.
    pub async fn build(
        &self,
        context: BoxStream<'static, io::Result<Bytes>>,
        sends: &Sends,
    ) -> Result<String, EngineError> {
        self.prepare(context).await?;
        let made = self.make(sends).await;
        let kept = self.run(["/usr/libexec/svc/keep"], None, BRIEFLY).await;
        if !kept.is_ok_and(|run| run.code == 0) {
            tracing::warn!("the disk of a build is not used again");
        }
        made
    }

    /// Puts the files of the build into the container.
    async fn prepare(
        &self,
        context: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), EngineError> {
        let ports = self.isolation.loopback.iter().map(u16::to_string);
        let command: Vec<String> =
            ["/usr/libexec/svc/prepare".to_owned()].into_iter().chain(ports).collect();
        self.feed(command, context).await.map(drop)
    }

    async fn make(&self, sends: &Sends) -> Result<String, EngineError> {
        let mut args = self.spec.args.clone();
        let pull = if self.isolation.base.is_some() { "missing" } else { "always" };
        if let Some(base) = &self.isolation.base {
            args.insert(BASE_IMAGE.to_owned(), self.bring(base).await?);
        }
        let mut command = vec!["buildah".to_owned(), "build".to_owned()];
        let fixed = ["--layers", "--format=docker", "--identity-label=false", "--retry=1"];
        command.extend(fixed.map(str::to_owned));
        command.push(format!("--pull={pull}"));
        command.push(format!("--tag={MADE}"));
        command.push(format!("--file=/build/context/{}", self.spec.dockerfile));
        command.extend(args.iter().map(|(name, value)| format!("--build-arg={name}={value}")));
        // The names of variables here are no names that buildah or a program of its own knows.
        let mut secrets = BTreeMap::new();
        for (name, value) in &self.isolation.secrets.0 {
            let variable = format!("SVC_SECRET_{name}");
            command.push(format!("--secret=id={name},env={variable}"));
            secrets.insert(variable, value.clone());
        }
        command.push("/build/context".to_owned());
        let within = self.isolation.within;
        let output = self.start_with(secrets, command, None, within).await?;
        let ended = Ended::after(output, Some(sends)).await?;
        self.succeeded(ended, within)?;
        self.load().await
    }

    /// Copies an image of this machine into the container, unless an earlier build of the owner did.
    /// Returns its name there.
    async fn bring(&self, image: &str) -> Result<String, EngineError> {
        let here = images::ensure(self.daemon, image, None).await?;
        let name = format!("{BASE}:{}", here.id.trim_start_matches("sha256:"));
        let known = self.run(["buildah", "inspect", "--type=image", &name], None, BRIEFLY).await?;
        if known.code == 0 {
            return Ok(name);
        }
        let client = self.daemon.client().await.map_err(|failure| failure.about_image(image))?;
        let archive = client.export_image(&here.id).map(|part| part.map_err(io::Error::other));
        let pull = ["buildah", "pull", "--quiet", "docker-archive:/dev/stdin"].map(str::to_owned);
        let pulled = self.feed(pull.into(), archive.boxed()).await?;
        let id = pulled.printed.last().cloned().unwrap_or_default();
        let tagged = self.run(["buildah", "tag", &id, &name], None, BRIEFLY).await?;
        self.succeeded(tagged, BRIEFLY).map(|_| name)
    }

    /// Takes the image out of the container and gives it to the daemon. Returns its id.
    async fn load(&self) -> Result<String, EngineError> {
        let push = ["buildah", "push", "--quiet", MADE, "docker-archive:/dev/stdout"];
        let output = self.start(push, None, COPIED_WITHIN).await?;
        let now = objects::now(self.daemon).await?;
        let (checked, parts) = Checked::new(output, self.spec, self.isolation.disk, now);
        let client = self.daemon.client().await.map_err(|failure| failure.about("builder"))?;
        let options = ImportImageOptions { quiet: true, platform: None };
        let mut said = client.import_image_stream(options, parts, None).boxed();
        let mut failed = None;
        // The daemon says nothing before it has read all.
        while let Some(part) = self.daemon.next(COPIED_WITHIN, &mut said).await {
            if let Err(failure) = part {
                failed = Some(failure);
                break;
            }
        }
        drop(said);
        match (checked.verdict().await, failed) {
            // If the archive is wrong, the daemon only knows that it ends too early.
            (Err(EngineError::Refused(why)), _) => return Err(EngineError::Refused(why)),
            (_, Some(failure)) => return Err(DaemonFailure::about_build(failure)),
            (verdict, None) => verdict?,
        }
        // With containerd's store of images, the id is not the one in the archive.
        let image = images::find(self.daemon, &self.spec.tag).await?;
        image.map(|image| image.id).ok_or_else(|| {
            let tag = &self.spec.tag;
            EngineError::Unreachable(format!("the image {tag} was not loaded to its end"))
        })
    }

    /// The program that ended, or why it failed, in words for people.
    fn succeeded(&self, ended: Ended, within: Duration) -> Result<Ended, EngineError> {
        if ended.code == 0 {
            return Ok(ended);
        }
        let mib = |bytes: u64| bytes >> 20;
        let why = ended.last_words();
        let is_killed = ended.says("status 137") || ended.says("signal: killed");
        let hint = if ended.code == 124 {
            format!(": it did not end within {} s", within.as_secs())
        } else if ended.code == 137 || is_killed {
            let memory = mib(self.spec.memory);
            format!(": a build has {memory} MiB of memory, and what takes more is killed")
        } else if ended.says("no space left on device") || ended.says("No space left on device") {
            format!(": a build has {} MiB of disk", mib(self.isolation.disk))
        } else {
            String::new()
        };
        Err(EngineError::Refused(format!("{why}{hint}")))
    }

    /// Runs a program with this input, until it succeeds. An input that breaks is the failure.
    async fn feed(
        &self,
        command: Vec<String>,
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
        let ended = self.run(command, Some(whole.boxed()), COPIED_WITHIN).await?;
        match broken.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(EngineError::Unreachable(why)),
            None => self.succeeded(ended, COPIED_WITHIN),
        }
    }

    /// Runs a program to its end.
    async fn run(
        &self,
        command: impl IntoIterator<Item = impl Into<String>>,
        input: Option<BoxStream<'static, Bytes>>,
        within: Duration,
    ) -> Result<Ended, EngineError> {
        let output = self.start(command, input, within).await?;
        Ended::after(output, None).await
    }

    /// Starts a program as the user of builds.
    async fn start(
        &self,
        command: impl IntoIterator<Item = impl Into<String>>,
        input: Option<BoxStream<'static, Bytes>>,
        within: Duration,
    ) -> Result<BoxStream<'static, Result<Output, EngineError>>, EngineError> {
        self.start_with(BTreeMap::new(), command, input, within).await
    }

    /// Starts a program with more variables.
    async fn start_with(
        &self,
        variables: BTreeMap<String, String>,
        command: impl IntoIterator<Item = impl Into<String>>,
        input: Option<BoxStream<'static, Bytes>>,
        within: Duration,
    ) -> Result<BoxStream<'static, Result<Output, EngineError>>, EngineError> {
        let proxies = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let mut env: BTreeMap<String, String> =
            proxies.map(|name| (name.to_owned(), proxy.clone())).into();
        env.insert("no_proxy".to_owned(), "localhost,127.0.0.1".to_owned());
        env.extend(variables);
        let command = command.into_iter().map(Into::into).collect();
        let exec = Exec { command, env, user: Some(bodies::USER.to_owned()), within };
        exec::exec(self.daemon, self.container.name(), exec, input).await
    }
}
