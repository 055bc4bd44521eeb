//! A stateful model of the engine for tests: quick, deterministic, and faulty on demand.

mod engine;
mod images;
mod injection;
mod model;
mod script;
mod streams;
mod volumes;

pub use injection::{Hold, InjectedFault, Operation, Times};
pub use script::{
    Behaviour, BuildCall, BuildScript, Ending, ExecCall, Execution, Life, ProgramStep, Script,
    Wellness,
};

use crate::{
    Container, ContainerSpec, Disk, EngineError, Health, Image, Labels, LogLine, RegistryLogin,
    Stream,
};
use contract::Timestamp;
use images::digest;
use injection::Injections;
use model::{Model, connection_refused};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicI64, Ordering},
};

/// A container engine in memory. It needs no runtime, and its time is that of its clock. Copies
/// share one engine.
///
/// Health changes and ends that are due happen at the next call.
#[derive(Clone)]
pub struct Fake {
    model: Arc<Mutex<Model>>,
    injections: Arc<Mutex<Injections>>,
}

impl Default for Fake {
    /// The clock advances by a millisecond whenever it is read.
    fn default() -> Self {
        // 2026-01-01
        let time = AtomicI64::new(1_767_225_600_000);
        Fake::new(move || Timestamp::from_millis(time.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Fake {
    /// An empty engine with this clock.
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Fake {
        let model = Model::new(Arc::new(clock));
        Fake { model: Arc::new(Mutex::new(model)), injections: Arc::default() }
    }

    pub fn now(&self) -> Timestamp {
        self.with(|model| model.now())
    }

    /// Puts an image of this name on the machine.
    pub fn add_image(&self, reference: &str) -> Image {
        let (repository, tag) = images::apart(reference);
        let name = format!("{repository}:{tag}");
        self.with(|model| model.add_image(digest(&["image", &name]), &name, Labels::new()))
    }

    /// Puts an image of this name into its registry. Returns its digest there.
    pub fn publish(&self, reference: &str) -> String {
        let (repository, tag) = images::apart(reference);
        let name = format!("{repository}:{tag}");
        let id = digest(&["image", &name]);
        let digest = digest(&["manifest", &id]);
        self.with(|model| {
            let created_at = model.now();
            let image = Image {
                id,
                tags: Vec::new(),
                digests: Vec::new(),
                labels: Labels::new(),
                size: 64 << 20,
                created_at,
            };
            model.registry.retain(|published| published.reference != name);
            let published = images::Published { reference: name, digest: digest.clone(), image };
            model.registry.push(published);
        });
        digest
    }

    /// Makes the registry at this host accept only this login.
    pub fn require_login(&self, host: &str, login: RegistryLogin) {
        self.with(|model| model.logins.push((host.to_owned(), login)));
    }

    /// Adds somebody else's container, which runs.
    pub fn add_foreign_container(&self, name: &str) {
        self.with(|model| {
            let image = digest(&["foreign", name]);
            model.insert(None, name, image, Labels::new(), Behaviour::default());
            let _ = model.start(name);
        });
    }

    /// Adds somebody else's volume.
    pub fn add_foreign_volume(&self, name: &str) {
        self.with(|model| model.insert_volume(name, Labels::new()));
    }

    /// Sets the bytes of the build cache.
    pub fn set_build_cache(&self, bytes: u64) {
        self.with(|model| model.cache = bytes);
    }

    /// A container as it is. This does not count as a look.
    pub fn peek(&self, name: &str) -> Option<Container> {
        self.with(|model| model.containers.get(name).map(|made| made.container.clone()))
    }

    /// The spec that a container was created from.
    pub fn spec(&self, name: &str) -> Option<ContainerSpec> {
        self.with(|model| model.containers.get(name).and_then(|made| made.spec.clone()))
    }

    /// The names of all containers.
    pub fn containers(&self) -> Vec<String> {
        self.with(|model| model.containers.keys().cloned().collect())
    }

    /// The names of all networks.
    pub fn networks(&self) -> Vec<String> {
        self.with(|model| model.networks.keys().cloned().collect())
    }

    /// The names of all volumes.
    pub fn volumes(&self) -> Vec<String> {
        self.with(|model| model.volumes.keys().cloned().collect())
    }

    /// All programs that ran in containers, in the order of their starts.
    pub fn executions(&self) -> Vec<Execution> {
        self.with(|model| model.executions.clone())
    }

    /// Sets the behaviour of containers of this image that are created later.
    pub fn behave(&self, image: &str, behaviour: Behaviour) {
        self.with(|model| model.behaviours.push((image.to_owned(), behaviour)));
    }

    /// Sets the behaviour of containers that are created later, by their spec. The last closure is
    /// asked first; `None` passes on to the one before.
    pub fn on_start(
        &self,
        behaviour: impl Fn(&ContainerSpec) -> Option<Behaviour> + Send + Sync + 'static,
    ) {
        self.with(|model| model.on_start.push(Box::new(behaviour)));
    }

    /// Sets what programs do in containers. The last closure is asked first; `None` passes on to
    /// the one before. The model itself knows `true`, `false`, `cat`, `echo` and `sleep`.
    pub fn on_exec(&self, script: impl Fn(&ExecCall) -> Option<Script> + Send + Sync + 'static) {
        self.with(|model| model.on_exec.push(Box::new(script)));
    }

    /// Sets the results of builds. The last closure is asked first; `None` passes on to the one
    /// before. By default every build succeeds.
    pub fn on_build(
        &self,
        script: impl Fn(&BuildCall) -> Option<BuildScript> + Send + Sync + 'static,
    ) {
        self.with(|model| model.on_build.push(Box::new(script)));
    }

    /// Kills a container.
    pub fn kill(&self, name: &str) {
        self.exit(name, 137);
    }

    /// Ends a container with this code.
    pub fn exit(&self, name: &str, code: i64) {
        self.with(|model| model.end(name, code, false));
    }

    /// Kills a container that exceeded its memory limit.
    pub fn run_out_of_memory(&self, name: &str) {
        self.with(|model| model.end(name, 137, true));
    }

    /// Removes a container.
    pub fn vanish(&self, name: &str) {
        self.with(|model| model.remove_container(name));
    }

    /// Removes a network, even one in use.
    pub fn vanish_network(&self, name: &str) {
        self.with(|model| model.networks.remove(name));
    }

    /// Removes a volume, even one in use.
    pub fn vanish_volume(&self, name: &str) {
        self.with(|model| model.volumes.remove(name));
    }

    /// Changes the health of a running container.
    pub fn set_health(&self, name: &str, health: Health) {
        self.with(|model| model.set_health(name, health));
    }

    /// Sets the bytes that a volume holds on the disk.
    pub fn set_volume_bytes(&self, name: &str, bytes: u64) {
        self.with(|model| {
            if let Some(volume) = model.volumes.get_mut(name) {
                volume.bytes = bytes;
            }
        });
    }

    /// Sets the number of networks that there are addresses for.
    pub fn set_most_networks(&self, most: usize) {
        self.with(|model| model.most_networks = most);
    }

    /// Sets the disk that has the volumes.
    pub fn set_disk(&self, disk: Disk) {
        self.with(|model| model.disk = disk);
    }

    /// Sets the bytes that a container has written outside of volumes.
    pub fn set_written_bytes(&self, container: &str, bytes: u64) {
        self.with(|model| {
            if let Some(made) = model.containers.get_mut(container) {
                made.written = bytes;
            }
        });
    }

    /// Writes a line to a container's log.
    pub fn log(&self, name: &str, stream: Stream, text: &str) {
        self.with(|model| {
            let line = LogLine { at: model.now(), stream, text: text.to_owned() };
            if let Some(made) = model.containers.get_mut(name) {
                made.log.push(line);
            }
        });
    }

    /// Makes an operation fail.
    pub fn inject(&self, operation: Operation, fault: InjectedFault, times: Times) {
        self.injections().plan(operation, fault, times);
    }

    /// Ends the faults of an operation.
    pub fn calm(&self, operation: Operation) {
        self.injections().calm(operation);
    }

    /// How often an operation failed by an injected fault.
    pub fn injected(&self, operation: Operation) -> u64 {
        self.injections().met(operation)
    }

    /// Makes calls of this operation wait, before they are carried out, until the hold is released.
    pub fn hold(&self, operation: Operation) -> Hold {
        self.injections().hold(operation)
    }

    /// How often an operation was called, with any result.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.injections().calls(operation)
    }

    /// Makes the engine unreachable, until [`back`](Fake::back).
    pub fn disconnect(&self) {
        self.with(Model::leave);
    }

    /// Makes the engine reachable again. All containers have ended, as they do when a daemon stops.
    pub fn back(&self) {
        self.with(|model| {
            model.is_unreachable = false;
            let names: Vec<String> = model.containers.keys().cloned().collect();
            for name in names {
                model.end(&name, 137, false);
            }
        });
    }

    /// Makes the engine reachable again. Its containers have continued to run.
    pub fn back_with_containers(&self) {
        self.with(|model| model.is_unreachable = false);
    }

    fn with<T>(&self, work: impl FnOnce(&mut Model) -> T) -> T {
        work(&mut self.model.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn injections(&self) -> std::sync::MutexGuard<'_, Injections> {
        self.injections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out an operation, or its injected fault.
    async fn perform<T>(
        &self,
        operation: Operation,
        work: impl FnOnce(&mut Model) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let (gate, fault) = self.injections().next(operation);
        if let Some(gate) = gate {
            gate.pass().await;
        }
        match &fault {
            Some(InjectedFault::FailBefore) => return Err(connection_refused()),
            Some(InjectedFault::Refuse(error)) => return Err(error.clone()),
            Some(InjectedFault::HangBefore) => return streams::never().await,
            Some(InjectedFault::Panic) => panicked(operation),
            Some(InjectedFault::FailAfter | InjectedFault::HangAfter) | None => {}
        }
        let done = self.with(|model| {
            if model.is_unreachable {
                return Err(connection_refused());
            }
            model.catch_up();
            work(model)
        });
        match fault {
            Some(InjectedFault::FailAfter) => Err(connection_refused()),
            Some(InjectedFault::HangAfter) => streams::never().await,
            _ => done,
        }
    }
}

#[expect(clippy::panic, reason = "a test asked for it")]
fn panicked(operation: Operation) {
    panic!("a test wants {operation} to panic");
}
