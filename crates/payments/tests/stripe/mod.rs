//! Payments through Stripe, in front of two independent programs whose requests and answers are
//! checked against Stripe's own description.

mod after;
mod opening;
mod subscriptions;
mod world;
