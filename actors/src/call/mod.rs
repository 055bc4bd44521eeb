//! How a call is served: [`pipeline`] lists the steps, and each step has a file.

pub mod audit;
pub mod authn;
pub mod authz;
pub mod change;
pub mod context;
pub mod idempotency;
pub mod lookup;
pub mod pagination;
pub mod pipeline;
pub mod rate_limit;
pub mod redecide;
mod replies;
pub mod router;
