//! The container of a build, and what happens in it.

use super::{
    archive::Checked,
    bases::{self, Base},
    bodies, caches,
    output::Ended,
    programs::{COPIED_WITHIN, Programs, Variables},
};
use crate::{
    BASE_IMAGE, BuildSpec, EngineError, Isolation,
    docker::{
        errors::DaemonFailure,
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
use futures_util::StreamExt;
use std::{io, time::Duration};

/// The name of the image in the container. Nobody outside of it sees it.
const MADE: &str = "localhost/svc-made:1";

pub(super) struct Place<'a> {
    helpers: &'a Helpers,
    /// The image of helpers.
    helper: &'a str,
    spec: &'a BuildSpec,
    isolation: &'a Isolation,
    base: Option<Base>,
    programs: Programs<'a>,
}

impl<'a> Place<'a> {
    /// Starts the container, with the disk of an earlier build of this owner upon this base image, unless another
    /// build has it.
    pub async fn open(
        helpers: &'a Helpers,
        disks: &InUse,
        helper: &'a str,
        spec: &'a BuildSpec,
        isolation: &'a Isolation,
    ) -> Result<Place<'a>, EngineError> {
        let base = match &isolation.base {
            Some(image) => Some(Base::of(helpers, image, isolation).await?),
            None => None,
        };
        let disk = disks.take(&caches::volume(&isolation.owner, base.as_ref()));
        if let Some(disk) = &disk {
            objects::ensure_volume(&helpers.daemon, disk.name(), &isolation.labels).await?;
        }
        let body = bodies::disk(helper, isolation, disk.as_ref().map(Taken::name));
        let mut maker = Tethered::start(helpers, helper, body, None).await?;
        let device = maker.line().await.map_err(|e| match e {
            EngineError::Refused(why) => {
                EngineError::Refused(format!("builds cannot be isolated: {why}"))
            }
            other => other,
        })?;
        let volume = base.as_ref().map(Base::volume);
        let body = bodies::container(helper, spec.memory, isolation, &device, volume.as_deref());
        let container = Tethered::start(helpers, helper, body, disk).await?;
        // The device belongs to the container now.
        maker.end().await;
        let programs = Programs { daemon: &helpers.daemon, container };
        Ok(Place { helpers, helper, spec, isolation, base, programs })
    }

    pub async fn close(self) {
        self.programs.container.end().await;
    }

    /// Builds the image. A build that ended by itself leaves its disk to the next one.
    pub async fn build(
        &self,
        context: BoxStream<'static, io::Result<Bytes>>,
        sends: &Sends,
    ) -> Result<String, EngineError> {
        self.prepare(context).await?;
        let made = self.make(sends).await;
        let kept = self.programs.run(["/usr/libexec/svc/keep"]).await;
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
        let ended = self.programs.feed(Variables::new(), command, context).await?;
        self.succeeded(ended, COPIED_WITHIN)
    }

    async fn make(&self, sends: &Sends) -> Result<String, EngineError> {
        let mut args = self.spec.args.clone();
        let pull = if self.base.is_some() { "missing" } else { "always" };
        if let Some(base) = &self.base {
            if !base.is_there(&self.programs).await? {
                base.bring(self.helpers, self.helper, self.spec.memory, self.isolation).await?;
            }
            args.insert(BASE_IMAGE.to_owned(), bases::NAME.to_owned());
        }
        let mut command = self.buildah("build");
        let fixed = ["--layers", "--format=docker", "--identity-label=false", "--retry=1"];
        command.extend(fixed.map(str::to_owned));
        command.push(format!("--pull={pull}"));
        command.push(format!("--tag={MADE}"));
        command.push(format!("--file=/build/context/{}", self.spec.dockerfile));
        command.extend(args.iter().map(|(name, value)| format!("--build-arg={name}={value}")));
        // The names of variables here are no names that buildah or a program of its own knows.
        let mut secrets = Variables::new();
        for (name, value) in &self.isolation.secrets.0 {
            let variable = format!("SVC_SECRET_{name}");
            command.push(format!("--secret=id={name},env={variable}"));
            secrets.insert(variable, value.clone());
        }
        command.push("/build/context".to_owned());
        let within = self.isolation.within;
        let output = self.programs.start(secrets, command, None, within).await?;
        let ended = Ended::after(output, Some(sends)).await?;
        self.succeeded(ended, within)?;
        self.load().await
    }

    /// The beginning of a command of `buildah`, which finds the base image.
    fn buildah(&self, what: &str) -> Vec<String> {
        let option = self.base.as_ref().map(Base::option);
        ["buildah".to_owned()].into_iter().chain(option).chain([what.to_owned()]).collect()
    }

    /// Takes the image out of the container and gives it to the daemon. Returns its id.
    async fn load(&self) -> Result<String, EngineError> {
        let mut push = self.buildah("push");
        push.extend(["--quiet", MADE, "docker-archive:/dev/stdout"].map(str::to_owned));
        let output = self.programs.start(Variables::new(), push, None, COPIED_WITHIN).await?;
        let daemon = &self.helpers.daemon;
        let now = objects::now(daemon).await?;
        let (checked, parts) = Checked::new(output, self.spec, self.isolation.disk, now);
        let client = daemon.client().await.map_err(|failure| failure.about("builder"))?;
        let options = ImportImageOptions { quiet: true, platform: None };
        let mut said = client.import_image_stream(options, parts, None).boxed();
        let mut failed = None;
        // The daemon says nothing before it has read all.
        while let Some(part) = daemon.next(COPIED_WITHIN, &mut said).await {
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
        let image = images::find(daemon, &self.spec.tag).await?;
        image.map(|image| image.id).ok_or_else(|| {
            let tag = &self.spec.tag;
            EngineError::Unreachable(format!("the image {tag} was not loaded to its end"))
        })
    }

    /// Why a program failed, in words for people.
    fn succeeded(&self, ended: Ended, within: Duration) -> Result<(), EngineError> {
        if ended.code == 0 {
            return Ok(());
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
}
