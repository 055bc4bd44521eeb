//! A stateful model of the engine, for tests: quick, always the same, and wrong on demand.

mod engine;
mod images;
mod injection;
mod model;
mod script;
mod streams;

pub use injection::{Hold, InjectedFault, Operation, Times};
pub use script::{
    Behaviour, BuildCall, BuildScript, Ending, ExecCall, Execution, Life, Script, Step, Wellness,
};

use crate::{Container, ContainerSpec, EngineError, Health, Image, Labels, LogLine, Login, Stream};
use contract::Timestamp;
use images::digest;
use injection::Injections;
use model::{Model, connection_refused};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicI64, Ordering},
};

/// A container engine that is not there. It needs no runtime, and no time passes in it but its
/// clock's. Copies are the same engine.
///
/// Health and ends that are due happen when the model is next asked for something.
#[derive(Clone)]
pub struct Fake {
    model: Arc<Mutex<Model>>,
    injections: Arc<Mutex<Injections>>,
}

impl Default for Fake {
    /// With a clock of its own that goes on by a millisecond whenever it is read.
    fn default() -> Self {
        // 2026-01-01
        let time = AtomicI64::new(1_767_225_600_000);
        Fake::new(move || Timestamp::from_millis(time.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Fake {
    /// With nothing in it, by this clock.
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Fake {
        let model = Model::new(Arc::new(clock));
        Fake { model: Arc::new(Mutex::new(model)), injections: Arc::default() }
    }

    /// The time by its clock.
    pub fn now(&self) -> Timestamp {
        self.with(|model| model.now())
    }

    // What there is.

    /// Puts an image of this name on the machine.
    pub fn add_image(&self, reference: &str) -> Image {
        let (repository, tag) = images::apart(reference);
        let name = format!("{repository}:{tag}");
        self.with(|model| model.add_image(digest(&["image", &name]), &name, Labels::new()))
    }

    /// Puts an image of this name into its registry; its digest there.
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

    /// The registry at this host lets nobody in but with this login.
    pub fn require_login(&self, host: &str, login: Login) {
        self.with(|model| model.logins.push((host.to_owned(), login)));
    }

    /// Somebody else's container, which runs.
    pub fn add_foreign_container(&self, name: &str) {
        self.with(|model| {
            let image = digest(&["foreign", name]);
            model.insert(None, name, image, Labels::new(), Behaviour::default());
            let _ = model.start(name);
        });
    }

    /// Somebody else's volume.
    pub fn add_foreign_volume(&self, name: &str) {
        self.with(|model| model.volumes.insert(name.to_owned(), Labels::new()));
    }

    /// What builds have left behind.
    pub fn set_build_cache(&self, bytes: u64) {
        self.with(|model| model.cache = bytes);
    }

    /// A container as it is, without looking at it through the port.
    pub fn peek(&self, name: &str) -> Option<Container> {
        self.with(|model| model.containers.get(name).map(|made| made.container.clone()))
    }

    /// What a container was made of.
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

    // How it behaves.

    /// How containers of this image behave that are made from now on.
    pub fn behave(&self, image: &str, behaviour: Behaviour) {
        self.with(|model| model.behaviours.push((image.to_owned(), behaviour)));
    }

    /// How containers behave that are made from now on, by their spec. What was said last is asked
    /// first; `None` leaves it to others.
    pub fn on_start(
        &self,
        behaviour: impl Fn(&ContainerSpec) -> Option<Behaviour> + Send + Sync + 'static,
    ) {
        self.with(|model| model.on_start.push(Box::new(behaviour)));
    }

    /// What programs do in containers. What was said last is asked first; `None` leaves it to
    /// others. By itself the model knows `true`, `false`, `cat`, `echo` and `sleep`.
    pub fn on_exec(&self, script: impl Fn(&ExecCall) -> Option<Script> + Send + Sync + 'static) {
        self.with(|model| model.on_exec.push(Box::new(script)));
    }

    /// What comes of builds. What was said last is asked first; `None` leaves it to others. By
    /// itself every build succeeds.
    pub fn on_build(
        &self,
        script: impl Fn(&BuildCall) -> Option<BuildScript> + Send + Sync + 'static,
    ) {
        self.with(|model| model.on_build.push(Box::new(script)));
    }

    // What happens behind its users' backs.

    /// A container is killed.
    pub fn kill(&self, name: &str) {
        self.exit(name, 137);
    }

    /// A container ends with this code.
    pub fn exit(&self, name: &str, code: i64) {
        self.with(|model| model.end(name, code, false));
    }

    /// A container is killed because it wants too much memory.
    pub fn run_out_of_memory(&self, name: &str) {
        self.with(|model| model.end(name, 137, true));
    }

    /// A container is removed.
    pub fn vanish(&self, name: &str) {
        self.with(|model| model.remove_container(name));
    }

    /// A network is removed, whoever is on it.
    pub fn vanish_network(&self, name: &str) {
        self.with(|model| model.networks.remove(name));
    }

    /// A volume is removed, whoever has it.
    pub fn vanish_volume(&self, name: &str) {
        self.with(|model| model.volumes.remove(name));
    }

    /// The health command of a running container changes its mind.
    pub fn set_health(&self, name: &str, health: Health) {
        self.with(|model| model.set_health(name, health));
    }

    /// A container writes a line.
    pub fn log(&self, name: &str, stream: Stream, text: &str) {
        self.with(|model| {
            let line = LogLine { at: model.now(), stream, text: text.to_owned() };
            if let Some(made) = model.containers.get_mut(name) {
                made.log.push(line);
            }
        });
    }

    // Faults that tests inject.

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

    /// Calls of this operation wait from now on, before they are carried out, until the hold is
    /// released.
    pub fn hold(&self, operation: Operation) -> Hold {
        self.injections().hold(operation)
    }

    /// How often an operation was called, with whatever result.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.injections().calls(operation)
    }

    /// The engine is unreachable, until it comes [`back`](Fake::back).
    pub fn disconnect(&self) {
        self.with(Model::leave);
    }

    /// The engine comes back. All containers have ended, as they do when a daemon stops.
    pub fn back(&self) {
        self.with(|model| {
            model.is_unreachable = false;
            let names: Vec<String> = model.containers.keys().cloned().collect();
            for name in names {
                model.end(&name, 137, false);
            }
        });
    }

    /// The engine comes back, and containers have gone on without it.
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
