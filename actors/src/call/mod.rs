//! How a call is served: [`pipeline`] lists the steps, and each step has a file.

pub mod authn;
pub mod authz;
pub mod change;
pub mod context;
pub mod idempotency;
pub mod lockout;
pub mod lookup;
pub mod mail_limit;
pub mod pipeline;
pub mod platform;
pub mod rate_limit;
mod replies;
pub mod router;
