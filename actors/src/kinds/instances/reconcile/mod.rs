//! One step of an instance towards what is desired: observe, plan, execute, apply.

pub mod apply;
pub mod execute;
pub mod plan;
