//! The kinds of resources, in families. A folder each: what a resource is and what it does. No kind knows
//! who calls.

mod cascade;
pub mod commerce;
pub mod delivery;
pub mod events;
pub mod hosting;
pub mod people;
pub mod table;
pub mod world;
