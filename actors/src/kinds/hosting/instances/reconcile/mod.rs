//! One step of an instance towards what is desired: observe its containers, plan one action,
//! execute it, apply the outcome to the record.

pub mod apply;
pub mod execute;
pub mod observe;
pub mod plan;
mod revisions;
