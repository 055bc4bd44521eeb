//! The way of a call: rate limit, authentication, look-up, authorization, idempotency, audit.

pub mod audit;
pub mod authn;
pub mod authz;
pub mod context;
pub mod idempotency;
pub mod lookup;
pub mod pagination;
pub mod rate_limit;
pub mod redecide;
pub mod router;
