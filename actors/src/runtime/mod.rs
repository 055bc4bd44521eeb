//! What every owner shares. [`resource`] says what a resource is, [`owner`] keeps one, [`guard`]
//! keeps actors alive through panics, [`directory`] finds, wakes and retires owners, [`handle`] is
//! what the rest of the platform holds, `cascade` deletes children, and [`health`] is what
//! operators see.

pub(crate) mod cascade;
pub mod deadline;
pub mod directory;
pub mod guard;
pub mod handle;
pub mod health;
pub mod owner;
pub mod progress_log;
pub mod ref_count;
pub mod resource;
