//! Instances: backends and market servers in containers. What is to be done next is decided in
//! `plan.rs`, and what becomes of it in `fold.rs`; both are pure.

mod asked;
mod backend;
mod cloud_functions;
mod create;
mod effects;
mod engine_health;
mod fold;
mod helpers;
mod machine;
mod market;
pub mod metrics;
pub mod names;
mod plan;
mod record;
mod route;
mod spec;
mod sql;
mod view;
pub mod watch;

pub(crate) use create::missing_secrets;
pub use engine_health::{EngineHealth, Found};
pub(crate) use helpers::not_running;
pub use machine::{Command, Creation, Effect, ForApp, Instances, Outcome};
pub use plan::{Act, Look, Seen, plan};
pub use record::{
    Candidate, Definition, GivenUp, Incarnation, Instance, Next, Part, Retired, Source,
};
pub use route::{Route, of_app, route};
pub use spec::{container, secret};
