//! Certificates of this server, one for each host name that a client opened.

mod account;
mod effects;
mod names;
mod rules;

pub use account::AuthorityAccount;
pub use effects::turns;
pub use names::{certificate_name, id_of, is_known, is_own, own_names, target_of};
pub use rules::{Certificates, Command, Effect, Issued, New, Outcome, State};
