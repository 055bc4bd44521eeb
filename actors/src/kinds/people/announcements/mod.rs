//! Announcements: what the operators of the service tell everybody who uses it.

mod rules;

pub use rules::{Announcements, Command, MOST_IN_FORCE, is_in_force};
