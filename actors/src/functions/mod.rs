//! What callers may ask: the handlers of functions, in the families of the kinds, and in [`operators`] those
//! about the whole installation. They read and command kinds; no kind knows them.

pub mod commerce;
pub mod delivery;
pub mod events;
pub mod hosting;
pub mod operators;
pub mod people;
