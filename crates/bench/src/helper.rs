//! A subcommand of this program in its own process, which listens on a port of this machine.

use crate::{
    machine,
    outcome::{Explain, Outcome},
    server::{free_port, listening, local},
};
use std::{
    ffi::OsString,
    net::SocketAddr,
    process::{Child, Command},
};

/// A running helper process. Dropping the value kills it.
pub struct Helper {
    pub address: SocketAddr,
    child: Child,
}

impl Helper {
    /// Starts this program with a subcommand, the port, and `more` arguments.
    pub fn start(what: &str, more: impl IntoIterator<Item = OsString>) -> Outcome<Helper> {
        let port = free_port()?;
        let mut command = Command::new(machine::this_program()?);
        let child = command.arg(what).arg(port.to_string()).args(more).spawn().or_say(what)?;
        let helper = Helper { address: local(port), child };
        listening(helper.address, what).map(|()| helper)
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
