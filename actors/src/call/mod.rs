//! How a call is served: [`router`] takes it through the steps that [`pipeline`] lists, each with a file of its
//! own. Handlers get the [`platform`] and the [`context`] of the call, and change resources with [`change`].

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
mod window;
