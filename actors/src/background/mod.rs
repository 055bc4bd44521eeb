//! Actors that run without a call: the instance reconciler, which also removes images, the sweeper,
//! and the fan-out of events.

pub mod fan_out;
pub mod image_gc;
pub mod instance_reconciler;
pub mod sweeper;
