//! The store of a service, which must not run meanwhile.

use super::Service;
use std::path::PathBuf;
use store::{Memory, Nodes, Postgres, Store};
use test_support::postgres;

/// A store that a service does not use for a while.
pub enum Aside {
    Address(String),
    Folder(PathBuf),
}

impl Service {
    /// Opens the store of this service, which must not run.
    pub fn open_store(&self) -> Store {
        let kinds = actors::records::trees();
        match self.settings.iter().find(|(name, _)| name == "SVC_STORE") {
            Some((_, address)) => {
                let address = Postgres::parse(address).unwrap();
                let copy = self.data().join("copy");
                Store::connect(&address, Nodes::One, &copy, &kinds, Memory::default()).unwrap()
            }
            None => Store::open(&self.data().join("store"), &kinds, Memory::default()).unwrap(),
        }
    }

    /// Gives the service an empty store. [`put_back`](Service::put_back) takes what this returns.
    pub fn set_store_aside(&mut self) -> Aside {
        let store = self.settings.iter().find(|(name, _)| name == "SVC_STORE").cloned();
        match store {
            Some((name, address)) => {
                self.set(&name, &postgres::new_store("another store").unwrap());
                Aside::Address(address)
            }
            None => {
                let folder = self.home.join("aside");
                std::fs::rename(self.data().join("store"), &folder).unwrap();
                Aside::Folder(folder)
            }
        }
    }

    /// Gives the service back the store that was set aside.
    pub fn put_back(&mut self, aside: Aside) {
        match aside {
            Aside::Address(address) => self.set("SVC_STORE", &address),
            Aside::Folder(folder) => {
                let store = self.data().join("store");
                let _ = std::fs::remove_dir_all(&store);
                std::fs::rename(folder, store).unwrap();
            }
        }
    }

    /// Checks the whole store with `svc admin check`. The service must not run.
    pub fn check(&self) -> String {
        let output = self.admin(&["check"]);
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{text}");
        text
    }
}
