//! Instances: backends and market servers in containers. What is to be done next is decided in
//! `reconcile/plan.rs`, and what becomes of it in `reconcile/apply.rs`; both are pure.

mod commands;
mod container_spec;
mod create;
mod handlers;
pub mod metrics;
pub mod names;
mod reconcile;
mod record;
mod route;
mod rules;
mod sql;
mod view;

pub use container_spec::{container, secret};
pub(crate) use create::missing_secrets;
pub(crate) use handlers::helpers::not_running;
pub use reconcile::plan::{Act, Look, Seen, plan};
pub use record::{
    Candidate, Definition, GivenUp, Incarnation, Instance, Next, Part, Retired, Source,
};
pub use route::{Route, of_app, route};
pub use rules::{
    Command, Creation, Effect, ForApp, InstanceClaim, InstanceIndex, Instances, Outcome,
};
