//! This process: the number of open files and of connections that it may have, who may read the files
//! that it creates, which of its threads work first, and its replacement by a new one.

use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, getrlimit, setrlimit, umask},
};
use std::{io, os::unix::process::CommandExt, process::Command, thread};
use tokio::sync::oneshot;

/// Replaces this process by a new one with the same program, arguments, environment and process id.
/// Its open files and listening sockets are closed. Returns only if that fails, with the reason.
pub fn start_again() -> String {
    let mut words = std::env::args_os();
    let name = words.next();
    let failed = match std::env::current_exe() {
        Ok(program) => {
            let mut command = Command::new(program);
            if let Some(name) = name {
                command.arg0(name);
            }
            command.args(words).exec()
        }
        Err(e) => e,
    };
    format!("the service cannot start itself again: {failed}; start it")
}

/// Open files that are reserved for the store, artifacts and the container engine.
const FOR_OTHERS: u64 = 256;

/// The priority of threads and processes that others go before, as `nice` counts.
pub const AFTER_OTHERS: i32 = 10;

/// Lets all other threads go before this one: what it does takes long, and keeps short calls waiting
/// for a processor. The thread cannot have its old priority again.
pub fn work_after_others() {
    // On Linux, this is the priority of the thread. Elsewhere it would be that of the process.
    let done = match cfg!(target_os = "linux") {
        true => rustix::process::setpriority_process(None, AFTER_OTHERS),
        false => Ok(()),
    };
    if let Err(e) = done {
        tracing::warn!(error = %e, "a thread keeps its priority");
    }
}

/// Does work that takes long on a thread of its own, which all others go before: on a shared one, the priority would
/// stay with what is done there later. Once begun, the work is done even if nobody waits for it. Fails if the thread
/// panics or cannot be started.
pub async fn after_others<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = oneshot::channel();
    let work = move || {
        work_after_others();
        let _ = tell.send(work());
    };
    let _detached = thread::Builder::new().name(name.to_owned()).spawn(work)?;
    told.await.map_err(|_| io::Error::other(format!("the thread {name} panicked")))
}

/// Makes every new file of this process accessible to its own user only: the store, artifacts and
/// backups hold the data of all tenants.
pub fn keep_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Raises the soft limit to the hard limit. Returns how many client connections fit: each may need
/// a second connection, to an instance.
pub fn room_for_connections() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let open = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(e) => {
            tracing::warn!(error = %e, "the limit of open files cannot be raised");
            limit.current
        }
    };
    connections_below(open)
}

/// `None` means that the process may open any number of files.
fn connections_below(open: Option<u64>) -> usize {
    let room = open.map(|open| open.saturating_sub(FOR_OTHERS) / 2);
    room.and_then(|room| usize::try_from(room).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_may_need_a_second_one() {
        assert_eq!(connections_below(Some(1024)), 384);
        assert_eq!(connections_below(Some(100)), 0);
        assert_eq!(connections_below(None), usize::MAX);
    }
}
