//! The kinds of resources, in families. A folder for each kind says what a resource is and what it does; a file
//! beside the folders serves several kinds of its family. [`table`] lists all kinds, and [`world`] is what they
//! share. No kind knows who calls.

mod ancestry;
mod cascade;
pub mod commerce;
pub mod creation;
pub mod delivery;
pub mod events;
pub mod hosting;
pub mod people;
pub mod table;
pub mod world;
