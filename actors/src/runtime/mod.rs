//! What every owner shares. [`resource`] says what a resource is, [`owner`] keeps one and decides
//! with `decide`, [`guard`] keeps actors alive through panics, [`directory`] finds, wakes and retires
//! owners, [`handle`] is what the rest of the platform holds, [`permit`] bounds what is under way,
//! `cascade` deletes children, and [`health`] is what operators see.

pub(crate) mod cascade;
mod decide;
pub mod directory;
pub mod entries;
pub mod guard;
pub mod handle;
pub mod health;
pub mod owner;
pub mod permit;
pub mod progress_log;
pub mod ref_count;
pub mod resource;
pub mod store;
#[cfg(test)]
mod tests;
