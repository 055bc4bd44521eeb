//! Deploy tokens: the credentials of CI jobs.

mod handlers;
mod rules;

pub use handlers::view;
pub use rules::{Command, Identity, LastUse, Token, TokenClaim, TokenIndex, Tokens};
