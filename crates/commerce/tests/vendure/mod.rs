//! Orders in a real Vendure.

mod access;
mod crashes;
mod orders;
mod payments;
mod place;
mod refusals;
