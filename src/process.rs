//! What the system allows this process: how many files and connections it may have open, and who may
//! read the files that it makes.

use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, getrlimit, setrlimit, umask},
};

/// Files that are kept for the store, artifacts, the engine and others, besides connections.
const FOR_OTHERS: u64 = 256;

/// Makes every new file of this process readable to its own user only: the store, artifacts and
/// backups hold the data of all tenants.
pub fn keep_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Raises the soft limit to the hard one, and says how many connections fit below it: each may
/// need a second one, to an instance.
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

/// Without a limit of open files, none of connections.
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
