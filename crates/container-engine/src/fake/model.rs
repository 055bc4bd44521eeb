//! The model's containers, networks and volumes, and their events.

use super::{
    images::Published,
    script::{Behaviour, BuildCall, BuildScript, ExecCall, Execution, Life, Script, Wellness},
};
use crate::{
    Container, ContainerSpec, Disk, EngineError, Event, Happening, Health, Image, Labels, LogLine,
    Phase, RegistryLogin,
};
use contract::Timestamp;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::{mpsc::UnboundedSender, watch};

/// The first published port.
const FIRST_PORT: u16 = 40_000;

pub(super) type OnStart = Box<dyn Fn(&ContainerSpec) -> Option<Behaviour> + Send + Sync>;
pub(super) type OnExec = Box<dyn Fn(&ExecCall) -> Option<Script> + Send + Sync>;
pub(super) type OnBuild = Box<dyn Fn(&BuildCall) -> Option<BuildScript> + Send + Sync>;
pub(super) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
type Listener = (Labels, UnboundedSender<Result<Event, EngineError>>);

/// Time does not pass in the model by itself: what is due happens at the next call.
pub(super) struct Model {
    pub clock: Clock,
    pub is_unreachable: bool,
    pub containers: BTreeMap<String, Made>,
    pub networks: BTreeMap<String, Net>,
    pub volumes: BTreeMap<String, Vol>,
    pub images: Vec<Image>,
    pub registry: Vec<Published>,
    pub logins: Vec<(String, RegistryLogin)>,
    pub cache: u64,
    pub behaviours: Vec<(String, Behaviour)>,
    pub on_start: Vec<OnStart>,
    pub on_exec: Vec<OnExec>,
    pub on_build: Vec<OnBuild>,
    pub executions: Vec<Execution>,
    pub happened: Vec<Event>,
    pub listeners: Vec<Listener>,
    /// The number of networks that there are addresses for.
    pub most_networks: usize,
    /// The disk that has the volumes.
    pub disk: Disk,
    made: u64,
    ports: u16,
}

pub(super) struct Net {
    pub labels: Labels,
    /// A container keeps the network that it first joined, even if another one takes the name
    /// later.
    pub serial: u64,
}

pub(super) struct Vol {
    pub labels: Labels,
    /// What it holds on the disk, in bytes.
    pub bytes: u64,
}

pub(super) struct Made {
    /// `None`: somebody else's container.
    pub spec: Option<ContainerSpec>,
    pub container: Container,
    pub behaviour: Behaviour,
    pub log: Vec<LogLine>,
    /// Bytes that were written outside of volumes.
    pub written: u64,
    /// Since the last start.
    looks: u32,
    joined: Option<u64>,
    /// Counts the ends of the container, which end its programs too.
    pub endings: watch::Sender<u64>,
}

impl Model {
    pub fn new(clock: Clock) -> Model {
        Model {
            clock,
            is_unreachable: false,
            containers: BTreeMap::new(),
            networks: BTreeMap::new(),
            volumes: BTreeMap::new(),
            images: Vec::new(),
            registry: Vec::new(),
            logins: Vec::new(),
            cache: 0,
            behaviours: Vec::new(),
            on_start: Vec::new(),
            on_exec: Vec::new(),
            on_build: Vec::new(),
            executions: Vec::new(),
            happened: Vec::new(),
            listeners: Vec::new(),
            most_networks: usize::MAX,
            disk: Disk { bytes: 1 << 40, free: 1 << 39 },
            made: 0,
            ports: 0,
        }
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn serial(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Makes everything happen that is due.
    pub fn catch_up(&mut self) {
        let names: Vec<String> = self.containers.keys().cloned().collect();
        for name in names {
            self.catch_up_one(&name);
        }
    }

    fn catch_up_one(&mut self, name: &str) {
        let now = self.now();
        let Some(made) = self.containers.get(name) else { return };
        if !made.container.is_running() {
            return;
        }
        let ran = now.since(made.container.started_at.unwrap_or(now));
        let ended = match made.behaviour.life {
            Life::ExitsAfterLooks(looks, code) if made.looks >= looks => Some(code),
            Life::ExitsAfter(time, code) if ran >= time => Some(code),
            _ => None,
        };
        if let Some(code) = ended {
            self.end(name, code, false);
            return;
        }
        let is_well = match made.behaviour.health {
            Wellness::HealthyAfterLooks(looks) => made.looks >= looks,
            Wellness::HealthyAfter(time) => ran >= time,
            Wellness::Healthy | Wellness::Starting | Wellness::Unhealthy => false,
        };
        if is_well && made.container.health == Some(Health::Starting) {
            self.set_health(name, Health::Healthy);
        }
    }

    /// Counts a look, and shows the container.
    pub fn look(&mut self, name: &str) -> Option<Container> {
        self.containers.get_mut(name)?.looks += 1;
        self.catch_up_one(name);
        self.containers.get(name).map(|made| made.container.clone())
    }

    pub fn ensure_network(&mut self, name: &str, labels: &Labels) -> Result<(), EngineError> {
        match self.networks.get(name) {
            Some(net) if !carries(&net.labels, labels) => {
                Err(EngineError::Conflict(format!("the network {name} is not ours")))
            }
            Some(_) => Ok(()),
            None if self.networks.len() >= self.most_networks => {
                Err(EngineError::Refused(format!("there is no room for the network {name}")))
            }
            None => {
                let net = Net { labels: labels.clone(), serial: self.serial() };
                self.networks.insert(name.to_owned(), net);
                Ok(())
            }
        }
    }

    pub fn remove_network(&mut self, name: &str) -> Result<(), EngineError> {
        let mut running = self.containers.values().filter(|made| made.container.is_running());
        if running.any(|made| made.spec.as_ref().is_some_and(|spec| spec.network == name)) {
            return Err(EngineError::Refused(format!("the network {name} has active endpoints")));
        }
        self.networks.remove(name);
        Ok(())
    }

    pub fn ensure_volume(&mut self, name: &str, labels: &Labels) -> Result<(), EngineError> {
        match self.volumes.get(name) {
            Some(known) if !carries(&known.labels, labels) => {
                Err(EngineError::Conflict(format!("the volume {name} is not ours")))
            }
            Some(_) => Ok(()),
            None => {
                self.insert_volume(name, labels.clone());
                Ok(())
            }
        }
    }

    pub fn ensure_container(&mut self, spec: &ContainerSpec) -> Result<Container, EngineError> {
        let name = &spec.name;
        let conflict = |what: &str| EngineError::Conflict(format!("the container {name} {what}"));
        if let Some(made) = self.containers.get(name) {
            let is_same = made.container.spec_hash() == Some(spec.hash().as_str());
            if made.container.is_running() && !is_same {
                return Err(conflict("runs, and is not of this spec"));
            }
            if made.container.spec_hash().is_none() {
                return Err(conflict("is not ours"));
            }
            let net = self.networks.get(&spec.network).map(|net| net.serial);
            let is_joined = made.joined.is_none() || made.joined == net;
            if is_same && (made.container.is_running() || is_joined) {
                return Ok(made.container.clone());
            }
            self.remove_container(name);
        }
        if !self.networks.contains_key(&spec.network) {
            return Err(EngineError::Missing(format!("network {}", spec.network)));
        }
        for mount in &spec.mounts {
            if !self.volumes.contains_key(&mount.volume) {
                return Err(EngineError::Missing(format!("volume {}", mount.volume)));
            }
        }
        let Some(image) = self.image(&spec.image).map(|image| image.id.clone()) else {
            let why = "no such image".to_owned();
            return Err(EngineError::NoImage { image: spec.image.clone(), why });
        };
        let mut labels = spec.labels.clone();
        labels.insert(ContainerSpec::HASH_LABEL.to_owned(), spec.hash());
        let behaviour = self.behaviour(spec);
        Ok(self.insert(Some(spec.clone()), name, image, labels, behaviour))
    }

    /// The behaviour that was set last wins; one for specs wins over one for images.
    fn behaviour(&self, spec: &ContainerSpec) -> Behaviour {
        let mut of_spec = self.on_start.iter().rev().filter_map(|on_start| on_start(spec));
        let id = self.image(&spec.image).map(|image| &image.id);
        let mut of_image = self.behaviours.iter().rev().filter(|(image, _)| {
            *image == spec.image || self.image(image).map(|image| &image.id) == id
        });
        of_spec
            .next()
            .or_else(|| of_image.next().map(|(_, behaviour)| behaviour.clone()))
            .unwrap_or_default()
    }

    /// Adds a container that is not started.
    pub fn insert(
        &mut self,
        spec: Option<ContainerSpec>,
        name: &str,
        image: String,
        labels: Labels,
        behaviour: Behaviour,
    ) -> Container {
        let container = Container {
            name: name.to_owned(),
            id: format!("{:064x}", self.serial()),
            labels,
            image,
            phase: Phase::Created,
            health: None,
            port: None,
            created_at: self.now(),
            started_at: None,
        };
        let made = Made {
            spec,
            container: container.clone(),
            behaviour,
            log: Vec::new(),
            written: 0,
            looks: 0,
            joined: None,
            endings: watch::Sender::new(0),
        };
        self.containers.insert(name.to_owned(), made);
        container
    }

    pub fn start(&mut self, name: &str) -> Result<(), EngineError> {
        let now = self.now();
        let port = FIRST_PORT + self.ports % (u16::MAX - FIRST_PORT);
        let Some(made) = self.containers.get_mut(name) else {
            return Err(EngineError::Missing(format!("container {name}")));
        };
        if made.container.is_running() {
            return Ok(());
        }
        if let Some(spec) = &made.spec {
            let net = self.networks.get(&spec.network).map(|net| net.serial);
            if net.is_none() || made.joined.is_some() && made.joined != net {
                let missing = format!("network for the container {name}");
                return Err(EngineError::Missing(missing));
            }
            made.joined = net;
        }
        if let Life::CannotStart(why) = &made.behaviour.life {
            return Err(EngineError::Refused(why.clone()));
        }
        let has_port = made.spec.as_ref().is_some_and(|spec| spec.port.is_some());
        let has_health = made.spec.as_ref().is_some_and(|spec| spec.health.is_some());
        made.looks = 0;
        made.container.phase = Phase::Running;
        made.container.started_at = Some(now);
        made.container.port = has_port.then_some(port);
        made.container.health = has_health.then_some(Health::Starting);
        let output = made.behaviour.output.iter().cloned();
        made.log.extend(output.map(|(stream, text)| LogLine { at: now, stream, text }));
        let (life, health) = (made.behaviour.life.clone(), made.behaviour.health.clone());
        self.ports += u16::from(has_port);
        self.tell(name, Happening::Started);
        match health {
            Wellness::Healthy if has_health => self.set_health(name, Health::Healthy),
            Wellness::Unhealthy if has_health => self.set_health(name, Health::Unhealthy),
            _ => {}
        }
        if let Life::Exits(code) = life {
            self.end(name, code, false);
        }
        Ok(())
    }

    /// Ends a running container, and the programs in it.
    pub fn end(&mut self, name: &str, code: i64, out_of_memory: bool) {
        let Some(made) = self.containers.get_mut(name) else { return };
        if !made.container.is_running() {
            return;
        }
        made.container.phase = Phase::Exited { code: Some(code), out_of_memory };
        made.container.port = None;
        made.container.health = None;
        made.endings.send_modify(|endings| *endings += 1);
        self.tell(name, Happening::Died);
    }

    pub fn stop(&mut self, name: &str) {
        let ignores = self.containers.get(name).is_some_and(|made| made.behaviour.ignores_stop);
        self.end(name, if ignores { 137 } else { 0 }, false);
    }

    pub fn remove_container(&mut self, name: &str) {
        self.end(name, 137, false);
        self.tell(name, Happening::Removed);
        self.containers.remove(name);
    }

    pub fn set_health(&mut self, name: &str, health: Health) {
        let Some(made) = self.containers.get_mut(name) else { return };
        if made.container.is_running() && made.container.health != Some(health) {
            made.container.health = Some(health);
            self.tell(name, Happening::Health(health));
        }
    }

    /// Records an event and sends it to the listeners.
    fn tell(&mut self, name: &str, what: Happening) {
        let Some(made) = self.containers.get(name) else { return };
        let labels = made.container.labels.clone();
        let event = Event { at: self.now(), container: name.to_owned(), labels, what };
        self.listeners.retain(|(labels, listener)| {
            // A listener that is gone is dropped here.
            !carries(&event.labels, labels) || listener.send(Ok(event.clone())).is_ok()
        });
        self.happened.push(event);
    }

    /// Makes the engine unreachable: its streams end, and those of its programs.
    pub fn leave(&mut self) {
        self.is_unreachable = true;
        for (_, listener) in self.listeners.drain(..) {
            let _ = listener.send(Err(connection_refused()));
        }
        for made in self.containers.values() {
            made.endings.send_modify(|endings| *endings += 1);
        }
    }
}

/// The error of every call while the engine is unreachable.
pub(super) fn connection_refused() -> EngineError {
    EngineError::Unreachable("connection refused".to_owned())
}

/// Whether `found` contains all of these labels.
pub(super) fn carries(found: &Labels, labels: &Labels) -> bool {
    labels.iter().all(|(name, value)| found.get(name) == Some(value))
}
