//! Checkouts and subscriptions: the state machine alone, and the owners over a payment provider and
//! a shop that fail on demand.

mod inputs;
mod market;
mod owners;
mod purchases;
mod random;
mod states;
mod subscriptions;
mod till;
mod unsettled;
mod world;
