//! Actors that run without a call: the instance reconciler, which also removes images, and the
//! sweeper.

pub mod engine_health;
pub mod image_gc;
pub mod instance_reconciler;
pub mod sweeper;
