//! Webhooks: the state machines alone, and the owners over a receiver that fails on demand and a
//! clock that the test moves.

mod fairness;
mod long_calls;
mod machines;
mod owners;
mod world;
