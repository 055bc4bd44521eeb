//! What all owners share. [`resource`] defines resources, by their steps and the work that their states
//! ask for; [`owner`] owns one and makes decisions with `decide`, and [`messages`] are what it gets and
//! replies; [`guard`] restarts actors after panics; [`directory`] finds, wakes and retires owners;
//! [`handle`] sends commands to them; [`host`] is what they need of the program. [`side_record`] is what
//! else is stored, [`audit`] one such record, and [`pagination`] reads lists. [`permit`] and [`turns`] bound
//! the work under way, [`redecide`] repeats what became stale, [`clock_watch`] doubts the clock, [`event`]
//! is what webhooks hear of, [`reindex`] adds missing index entries, and [`health`] shows actors to
//! operators.
//!
//! `step`, `work` and `kept` are the parts of a resource. [`store`] and [`entries`] read and find records, and
//! [`ref_count`] counts who refers to one. [`clock`] tells the time, and [`backoff`] the pauses. `lone_host` and
//! `manual_clock` are for tests and examples.

pub mod audit;
pub mod backoff;
pub mod clock;
pub mod clock_watch;
mod decide;
pub mod directory;
pub mod entries;
pub mod event;
pub mod guard;
pub mod handle;
pub mod health;
pub mod host;
mod kept;
#[cfg(feature = "nothing")]
pub mod lone_host;
#[cfg(feature = "nothing")]
pub mod manual_clock;
pub mod messages;
pub mod owner;
pub mod pagination;
pub mod permit;
pub mod redecide;
pub mod ref_count;
pub mod reindex;
pub mod resource;
pub mod side_record;
mod step;
pub mod store;
#[cfg(test)]
mod tests;
pub mod told;
pub mod turns;
pub mod uses;
mod work;
