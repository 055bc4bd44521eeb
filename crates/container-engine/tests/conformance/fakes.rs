//! The model as a bench.

use super::{
    bench::{Bench, Work},
    programs,
};
use async_trait::async_trait;
use container_engine::{Engine, RegistryLogin, fake::Fake};
use contract::Timestamp;
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

struct Model {
    fake: Fake,
    time: Arc<AtomicI64>,
    image: String,
}

pub fn run(test: impl for<'a> FnOnce(&'a dyn Bench) -> Work<'a>) {
    let time = Arc::new(AtomicI64::new(1_800_000_000_000));
    let clock = time.clone();
    // The clock advances when it is read, so that events have an order.
    let fake = Fake::new(move || Timestamp::from_millis(clock.fetch_add(1, Ordering::SeqCst)));
    let image = fake.add_image("toolbox:1").id;
    programs::teach(&fake);
    let model = Model { fake, time, image };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(test(&model));
}

#[async_trait]
impl Bench for Model {
    fn engine(&self) -> &dyn Engine {
        &self.fake
    }

    fn run(&self) -> &str {
        "fake"
    }

    fn image(&self) -> &str {
        &self.image
    }

    fn image_name(&self) -> &str {
        "toolbox:1"
    }

    async fn kill(&self, container: &str) {
        self.fake.kill(container);
    }

    async fn vanish(&self, container: &str) {
        self.fake.vanish(container);
    }

    async fn vanish_network(&self, network: &str) {
        self.fake.vanish_network(network);
    }

    async fn add_foreign_container(&self, name: &str) {
        self.fake.add_foreign_container(name);
    }

    async fn add_foreign_volume(&self, name: &str) {
        self.fake.add_foreign_volume(name);
    }

    async fn write(&self, container: &str, path: &str, bytes: u64) {
        let spec = self.fake.spec(container).unwrap();
        match spec.mounts.iter().find(|mount| path.starts_with(&mount.path)) {
            Some(mount) => self.fake.set_volume_bytes(&mount.volume, bytes),
            None => self.fake.set_written_bytes(container, bytes),
        }
    }

    async fn pass(&self, time: Duration) {
        self.time.fetch_add(time.as_millis().try_into().unwrap(), Ordering::SeqCst);
    }

    async fn has_program(&self, container: &str, word: &str) -> bool {
        self.fake.executions().iter().any(|execution| {
            let words = execution.call.exec.command.join(" ");
            execution.ending.is_none()
                && execution.call.container == container
                && words.contains(word)
        })
    }

    async fn answers(&self, _port: u16) -> Option<bool> {
        None
    }

    async fn registry(&self, login: Option<&RegistryLogin>) -> Option<String> {
        let host = "registry.example:5000";
        if let Some(login) = login {
            self.fake.require_login(host, login.clone());
        }
        Some(host.to_owned())
    }
}
