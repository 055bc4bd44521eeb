//! What runs by itself: the look at all instances, the sweeper, the clean-up of images.

pub mod engine_health;
pub mod image_gc;
pub mod instance_reconciler;
pub mod sweeper;
