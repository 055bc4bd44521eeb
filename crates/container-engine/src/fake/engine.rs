//! The model as an [`Engine`].

use super::{
    Fake,
    images::digest,
    injection::Operation,
    model::{Model, carries},
    script::{BuildCall, BuildScript, ExecCall, Execution, ProgramStep, Script},
    streams::{self, Play},
};
use crate::{
    About, Archive, BuildEvent, BuildSpec, Built, Container, ContainerSpec, DiskUse, Engine,
    EngineError, Event, Exec, Image, Inventory, LabelledObject, Labels, LogLine, LogQuery, Output,
    Peers, RegistryLogin, Usage,
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::Timestamp;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{collections::BTreeMap, io, time::Duration};
use tokio::sync::mpsc::unbounded_channel;

#[async_trait]
impl Engine for Fake {
    async fn about(&self) -> Result<About, EngineError> {
        self.perform(Operation::About, |_| {
            let [id, version, api] = ["fake", "fake", "1.41"].map(str::to_owned);
            Ok(About { id, version, api, memory: 1 << 50, cpus: 1 << 20 })
        })
        .await
    }

    async fn inventory(&self, labels: &Labels) -> Result<Inventory, EngineError> {
        self.perform(Operation::Inventory, |model| Ok(inventory(model, labels))).await
    }

    async fn events(
        &self,
        labels: &Labels,
        since: Timestamp,
    ) -> Result<BoxStream<'static, Result<Event, EngineError>>, EngineError> {
        self.perform(Operation::Events, |model| {
            let (sender, receiver) = unbounded_channel();
            let is_asked = |event: &&Event| event.at >= since && carries(&event.labels, labels);
            let before = model.happened.iter().filter(is_asked).cloned().collect();
            model.listeners.push((labels.clone(), sender));
            Ok(streams::events(before, receiver))
        })
        .await
    }

    async fn ensure_network(&self, name: &str, labels: &Labels) -> Result<(), EngineError> {
        self.perform(Operation::EnsureNetwork, |model| model.ensure_network(name, labels)).await
    }

    async fn raise_walls(&self, _: &Peers) -> Result<(), EngineError> {
        self.perform(Operation::RaiseWalls, |_| Ok(())).await
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        self.perform(Operation::RemoveNetwork, |model| model.remove_network(name)).await
    }

    async fn ensure_volume(&self, name: &str, labels: &Labels) -> Result<(), EngineError> {
        self.perform(Operation::EnsureVolume, |model| model.ensure_volume(name, labels)).await
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        self.perform(Operation::RemoveVolume, |model| model.remove_volume(name)).await
    }

    async fn read_volume(&self, name: &str) -> Result<Archive, EngineError> {
        let archive = self.perform(Operation::ReadVolume, |model| model.read_volume(name)).await?;
        Ok(stream::iter([Ok(archive)]).boxed())
    }

    async fn write_volume(&self, name: &str, archive: Archive) -> Result<(), EngineError> {
        let archive: Vec<Bytes> = archive.try_collect().await?;
        let archive = archive.concat();
        self.perform(Operation::WriteVolume, |model| model.write_volume(name, &archive)).await
    }

    async fn ensure_container(&self, spec: &ContainerSpec) -> Result<Container, EngineError> {
        self.perform(Operation::EnsureContainer, |model| model.ensure_container(spec)).await
    }

    async fn container(&self, name: &str) -> Result<Option<Container>, EngineError> {
        self.perform(Operation::Container, |model| Ok(model.look(name))).await
    }

    async fn start(&self, name: &str) -> Result<(), EngineError> {
        self.perform(Operation::Start, |model| model.start(name)).await
    }

    async fn stop(&self, name: &str, _grace: Duration) -> Result<(), EngineError> {
        self.perform(Operation::Stop, |model| {
            model.stop(name);
            Ok(())
        })
        .await
    }

    async fn remove_container(&self, name: &str) -> Result<(), EngineError> {
        self.perform(Operation::RemoveContainer, |model| {
            model.remove_container(name);
            Ok(())
        })
        .await
    }

    async fn logs(&self, name: &str, query: LogQuery) -> Result<Vec<LogLine>, EngineError> {
        self.perform(Operation::Logs, |model| {
            let made = model.containers.get(name);
            let made = made.ok_or_else(|| EngineError::Missing(format!("container {name}")))?;
            Ok(last_lines(&made.log, query))
        })
        .await
    }

    async fn usage(&self, name: &str) -> Result<Option<Usage>, EngineError> {
        self.perform(Operation::Usage, |model| Ok(usage(model, name))).await
    }

    async fn disk_use(&self, labels: &Labels) -> Result<DiskUse, EngineError> {
        self.perform(Operation::DiskUse, |model| Ok(disk_use(model, labels))).await
    }

    async fn exec(
        &self,
        name: &str,
        exec: Exec,
        input: Option<BoxStream<'static, Bytes>>,
    ) -> Result<BoxStream<'static, Result<Output, EngineError>>, EngineError> {
        let (at, script, endings) = self
            .perform(Operation::Exec, |model| {
                let made = model.containers.get(name);
                let made = made.ok_or_else(|| EngineError::Missing(format!("container {name}")))?;
                if !made.container.is_running() {
                    let why = format!("the container {name} is not running");
                    return Err(EngineError::Refused(why));
                }
                let image = made.spec.as_ref().map(|spec| spec.image.clone()).unwrap_or_default();
                let call = ExecCall { container: name.to_owned(), image, exec };
                let endings = made.endings.subscribe();
                let mut said = model.on_exec.iter().rev().filter_map(|on_exec| on_exec(&call));
                let script = said.next().unwrap_or_else(|| known_program(&call.exec.command));
                model.executions.push(Execution { call, input: Vec::new(), ending: None });
                Ok((model.executions.len() - 1, script, endings))
            })
            .await?;
        Ok(Play::new(self.clone(), at, script, input, endings).output())
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        self.perform(Operation::Image, |model| Ok(model.image(reference).cloned())).await
    }

    async fn resolve(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<String, EngineError> {
        self.perform(Operation::Resolve, |model| model.resolve(reference, login)).await
    }

    async fn ensure_image(
        &self,
        reference: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<Image, EngineError> {
        self.perform(Operation::EnsureImage, |model| model.ensure_image(reference, login)).await
    }

    async fn build(
        &self,
        spec: BuildSpec,
        mut context: BoxStream<'static, Result<Bytes, io::Error>>,
    ) -> Result<BoxStream<'static, Result<BuildEvent, EngineError>>, EngineError> {
        let mut archive = Vec::new();
        while let Some(bytes) = context.next().await {
            let unreadable =
                |e: io::Error| EngineError::Unreachable(format!("the context ended: {e}"));
            archive.extend_from_slice(&bytes.map_err(unreadable)?);
        }
        self.perform(Operation::Build, |model| {
            Ok(streams::at_once(build(model, BuildCall { spec, context: archive })))
        })
        .await
    }

    async fn save_image(&self, reference: &str) -> Result<Archive, EngineError> {
        let archive =
            self.perform(Operation::SaveImage, |model| model.save_image(reference)).await?;
        Ok(stream::iter([Ok(archive)]).boxed())
    }

    async fn load_image(&self, archive: Archive) -> Result<(), EngineError> {
        let archive: Vec<Bytes> = archive.try_collect().await?;
        self.perform(Operation::LoadImage, |model| model.load_image(&archive.concat())).await
    }

    async fn tag(&self, reference: &str, repository: &str, tag: &str) -> Result<(), EngineError> {
        self.perform(Operation::Tag, |model| model.tag(reference, repository, tag)).await
    }

    async fn push(
        &self,
        repository: &str,
        tag: &str,
        login: Option<&RegistryLogin>,
    ) -> Result<String, EngineError> {
        self.perform(Operation::Push, |model| model.push(repository, tag, login)).await
    }

    async fn images(&self, labels: &Labels) -> Result<Vec<Image>, EngineError> {
        let asked = |model: &mut Model| {
            model.images.iter().filter(|image| carries(&image.labels, labels)).cloned().collect()
        };
        self.perform(Operation::Images, |model| Ok(asked(model))).await
    }

    async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        self.perform(Operation::RemoveImage, |model| model.remove_image(reference)).await
    }

    async fn prune_build_caches(
        &self,
        _labels: &Labels,
        _age: Duration,
    ) -> Result<u64, EngineError> {
        self.perform(Operation::PruneBuildCaches, |model| Ok(std::mem::take(&mut model.cache)))
            .await
    }
}

fn inventory(model: &mut Model, labels: &Labels) -> Inventory {
    let at = model.now();
    let ours = model.containers.iter().filter(|(_, made)| carries(&made.container.labels, labels));
    let names: Vec<String> = ours.map(|(name, _)| name.clone()).collect();
    let owned = |(name, labels): (&String, &Labels)| LabelledObject {
        name: name.clone(),
        labels: labels.clone(),
    };
    let networks = model.networks.iter().map(|(name, net)| (name, &net.labels));
    let networks = networks.filter(|(_, found)| carries(found, labels)).map(owned).collect();
    let volumes = model.volumes.iter().map(|(name, volume)| (name, &volume.labels));
    let volumes = volumes.filter(|(_, found)| carries(found, labels)).map(owned).collect();
    let containers = names.iter().filter_map(|name| model.look(name));
    // Lists do not contain it, as with the real engine.
    let containers = containers.map(|container| Container { started_at: None, ..container });
    Inventory { at, containers: containers.collect(), networks, volumes }
}

fn last_lines(log: &[LogLine], query: LogQuery) -> Vec<LogLine> {
    let is_asked = |line: &&LogLine| {
        query.since.is_none_or(|since| line.at >= since)
            && query.stream.is_none_or(|stream| line.stream == stream)
    };
    let lines: Vec<LogLine> = log.iter().filter(is_asked).cloned().collect();
    let tail = usize::try_from(query.tail).unwrap_or(usize::MAX);
    let left_out = lines.len().saturating_sub(tail);
    lines.into_iter().skip(left_out).collect()
}

fn usage(model: &Model, name: &str) -> Option<Usage> {
    let made = model.containers.get(name).filter(|made| made.container.is_running())?;
    let (at, started_at) = (model.now(), made.container.started_at?);
    let limits = made.spec.as_ref().map(|spec| spec.limits);
    let millis = made.behaviour.cpu_millis;
    let millis = limits.map_or(millis, |limits| millis.min(limits.cpu_millis));
    let ran = u64::try_from(at.since(started_at).as_millis()).unwrap_or(u64::MAX);
    Some(Usage {
        at,
        started_at,
        // Thousandths of milliseconds are microseconds.
        cpu_nanos: ran.saturating_mul(u64::from(millis)).saturating_mul(1000),
        memory: limits.map_or(made.behaviour.memory, |l| l.memory.min(made.behaviour.memory)),
        memory_limit: limits.map_or(0, |limits| limits.memory),
        received: ran,
        sent: ran,
        pids: 2,
    })
}

fn disk_use(model: &Model, labels: &Labels) -> DiskUse {
    let volumes = model.volumes.iter().filter(|(_, volume)| carries(&volume.labels, labels));
    let made = model.containers.iter().filter(|(_, made)| carries(&made.container.labels, labels));
    let volumes: BTreeMap<_, _> =
        volumes.map(|(name, volume)| (name.clone(), Some(volume.bytes))).collect();
    DiskUse {
        disk: (!volumes.is_empty()).then_some(model.disk),
        volumes,
        containers: made.map(|(name, made)| (name.clone(), Some(made.written))).collect(),
    }
}

fn known_program(command: &[String]) -> Script {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["true"] => vec![],
        ["false"] => vec![ProgramStep::Exit(1)],
        ["cat"] => vec![ProgramStep::Echo],
        ["sleep", ..] => vec![ProgramStep::Wait],
        ["echo", said @ ..] => vec![ProgramStep::Out(Bytes::from(format!("{}\n", said.join(" "))))],
        [program, ..] => {
            vec![
                ProgramStep::Err(Bytes::from(format!("{program}: not found\n"))),
                ProgramStep::Exit(127),
            ]
        }
        [] => vec![ProgramStep::Exit(127)],
    }
}

fn build(model: &mut Model, call: BuildCall) -> Vec<Result<BuildEvent, EngineError>> {
    let said = model.on_build.iter().rev().find_map(|on_build| on_build(&call));
    let lines = vec!["Step 1/1 : FROM scratch".to_owned(), "Successfully built".to_owned()];
    let script = said.unwrap_or(BuildScript { lines, failure: None });
    let mut events: Vec<_> = script.lines.into_iter().map(|l| Ok(BuildEvent::Line(l))).collect();
    events.push(match script.failure {
        Some(why) => Err(EngineError::Refused(why)),
        None => {
            let spec = call.spec;
            // The same context gives the same image, as with a cache.
            let context = String::from_utf8_lossy(&call.context);
            let how = format!("{:?}{:?}{:?}", spec.dockerfile, spec.args, spec.labels);
            let image = model.add_image(digest(&[&context, &how]), &spec.tag, spec.labels).id;
            Ok(BuildEvent::Built(Built { image }))
        }
    });
    events
}
