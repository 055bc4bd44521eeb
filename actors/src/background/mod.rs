//! Actors that run without a call: the instance reconciler, which also removes images, the sweeper,
//! the retention, the fan-out of events, and what hears of other nodes.

pub mod fan_out;
pub mod image_gc;
pub mod instance_reconciler;
pub mod other_nodes;
pub mod retention;
pub mod sweeper;
