//! Payments through Paystack, in front of a stub whose requests and answers are checked against a
//! description.

mod after;
mod opening;
mod subscriptions;
mod world;
