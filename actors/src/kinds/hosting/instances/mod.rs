//! Instances: backends and market servers in containers.
//!
//! An instance is reconciled: each step observes its containers, plans one action, executes it and
//! applies the outcome to the record (`reconcile/`), until the plan says `Rest`. A command
//! (`commands.rs`) changes what is desired (`transitions.rs`) and starts the next step. All of it is pure but
//! `reconcile/observe.rs` and `reconcile/execute.rs`.
//!
//! The words: an instance has **services**. A service has **revisions**, each one container: the
//! **live** one serves, a **candidate** replaces it once it is healthy, **retired** ones finish
//! their requests, and the last candidate that failed is kept as **rejected**.
//!
//! # What each state does
//!
//! | state | actions, first that applies | then | commands accepted |
//! |---|---|---|---|
//! | `provisioning` | provision missing containers; then as `starting`, which it becomes | `starting` | Stop |
//! | `starting` | start each service once those before it are healthy; restore the backup that the instance was created from, once its database is healthy; give up after three attempts, at the deadline, or where a volume with data is gone | `running`; `degraded` when a service is left out; `failed` | Stop |
//! | `running`, `degraded` | report a crash; start what was never started; provision, start, switch or reject a candidate; remove what has drained | `running` or `degraded` by health; a crash leads to `starting`, the sixth in ten minutes to `failed` | Stop, Restart, Replace, Update, Observe |
//! | `stopping` | remove candidates and retired containers; stop services in reverse order | `stopped` | Start |
//! | `stopped` | on Observe and Update: as `stopping` | `stopped` | Start, Restart, Update, Observe |
//! | `restarting` | first half: as `stopping`; second half (`coming_up`): as `starting` | as `starting` | Stop |
//! | `failed` | remove candidates and retired containers; what runs stays | `failed`; after crashes `starting` when five minutes have passed | Start, Stop, Restart, Replace, Update, Observe |
//! | `deleting` | as `stopping`; then clear | `deleted`; with `delete_data` the record is removed | Delete with data |
//! | `deleted` | nothing until the deadline, seven days later | `deleting` with `delete_data` | Delete with data, Undelete |
//!
//! Every state but the last two also accepts Delete, AddService, Withdraw, and an Update of the name
//! alone, and Hold and AwaitRoom, which stop the instance. Until Release and FindRoom, Start and Restart are
//! refused, and Undelete brings the instance back stopped (`holds.rs`). Measure and Advise write down what was
//! found out. A command that asks for what already holds keeps the record. Any other command is refused with a
//! reason; Observe in a transient state is ignored, because a step is already pending. A deadline that passes is
//! decided by `on_due`.
//!
//! Move brings the instance to another engine (`moves.rs`). When nothing else is left to do, the plan goes on with the
//! move: prepare the images there, halt (`restarting`), copy the volumes, arrive. Until it has arrived, Start, Restart,
//! Replace, AddService and an Update of resources or variables are refused.
//!
//! An engine that does not answer, or that others use, changes no state: deadlines stand still. Nor does a
//! deadline end an instance whose image is being built from its recipe: the build has its own.

pub(crate) mod commands;
pub(crate) mod container_spec;
pub mod database;
pub(crate) mod history;
mod holds;
mod image;
pub mod metrics;
mod moves;
mod reconcile;
pub(crate) mod record;
mod route;
pub(crate) mod rules;
pub(crate) mod secrets;
pub(crate) mod service;
mod transitions;
pub(crate) mod view;

pub use commands::{Command, Creation, ForApp};
pub use container_spec::{container, secret};
pub use history::{Created, DeploymentHistory, Earlier};
pub(crate) use image::provide as provide_image;
pub(crate) use reconcile::execute::turns as container_turns;
pub use reconcile::{
    observe::{Observation, ObservedContainer},
    plan::{Action, plan},
};
pub use record::{InitialRestore, Instance, LeftBehind, Move};
pub use route::{Route, exists, find, instance_of_app, route};
pub use rules::{Effect, InstanceClaim, InstanceIndex, Instances, Outcome, ResolvedImage};
pub use service::{
    Candidate, Definition, RejectedRevision, RetiredRevision, Revision, Service, ServiceChange,
    ServiceImage,
};
