//! Publications: the state machine alone, and the owners over a store that fails on demand.

mod owners;
mod shop;
mod states;
mod world;
