//! Which backups of a schedule are kept.

use super::{Backups, Command, State};
use crate::{
    kinds::{hosting::instances::Instances, world::World},
    runtime::{entries::Under, resource::Retry},
};
use contract::backups::{BackupState, RestoreState};

/// Failed backups of a schedule that are kept, so that members see them.
const SHOWN_FAILURES: u32 = 10;

/// Deletes the backups beyond those that the schedule of this backup keeps.
pub(super) async fn apply_retention(world: &World, state: &State) -> Result<(), Retry> {
    let State { backup: made, keep: Some(keep), .. } = state else { return Ok(()) };
    let mut scheduled = Vec::new();
    for found in world.store.newest::<Backups>(&Under::<Instances>(made.instance_id), None) {
        let (_, seen) = found?;
        let backup = &seen.state.backup;
        let counts = backup.scheduled && backup.kind == made.kind;
        scheduled.extend(counts.then(|| (backup.id, Worth::of(&seen.state))));
    }
    for id in surplus(&scheduled, *keep) {
        // A backup that is being restored refuses this; the effect is then tried again.
        world.to::<Backups>(id).ask_if_there(Command::Delete).await?;
    }
    Ok(())
}

/// Whether a backup counts towards those that a schedule keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// Ready, and its last verification did not fail.
    Good,
    /// Being written or verified.
    Unknown,
    /// The dump or its last verification failed.
    None,
}

impl Worth {
    fn of(State { backup, useless, .. }: &State) -> Worth {
        let verified = backup.verification.as_ref().map(|verification| verification.state);
        match backup.state {
            BackupState::Running => Worth::Unknown,
            BackupState::Ready if verified == Some(RestoreState::Running) => Worth::Unknown,
            BackupState::Ready if !useless => Worth::Good,
            BackupState::Ready | BackupState::Failed => Worth::None,
        }
    }
}

/// The backups of a schedule to delete. Only good backups count towards `keep`, so a bad one never
/// displaces a good one. Of the bad ones, the [`SHOWN_FAILURES`] newest stay while no good one is
/// newer.
fn surplus<I: Copy>(newest_first: &[(I, Worth)], keep: u32) -> Vec<I> {
    let (mut good, mut shown) = (0, 0);
    let goes = |(id, worth): &(I, Worth)| {
        let stays = match worth {
            Worth::Unknown => true,
            Worth::Good => {
                good += 1;
                good <= keep
            }
            Worth::None => {
                shown += 1;
                good == 0 && shown <= SHOWN_FAILURES
            }
        };
        (!stays).then_some(*id)
    };
    newest_first.iter().filter_map(goes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_good_backup_is_never_too_many() {
        use Worth::{Good, None, Unknown};
        let too_many = |worths: &[Worth], keep| {
            let numbered: Vec<_> = worths.iter().copied().enumerate().collect();
            surplus(&numbered, keep)
        };
        assert_eq!(too_many(&[Good, Good, Good], 2), [2]);
        assert_eq!(too_many(&[Unknown, Good, Good], 1), [2], "what is being verified may fail");
        assert_eq!(too_many(&[None, Good, None], 1), [2]);
        assert_eq!(too_many(&[None; 12], 3), [10, 11]);
        assert_eq!(too_many(&[Good, Unknown], 1), [0; 0]);
    }
}
