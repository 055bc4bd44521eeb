//! Actors that run without a call: the instance reconciler, which also removes images, the sweeper,
//! the retention and the fan-out of events.

pub mod fan_out;
pub mod image_gc;
pub mod instance_reconciler;
pub mod retention;
pub mod sweeper;
