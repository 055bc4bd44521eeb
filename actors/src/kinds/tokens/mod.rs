//! Deploy tokens: the credentials of CI jobs.

mod handlers;
mod rules;

pub use rules::{Command, LastUse, Token, TokenClaim, TokenIndex, Tokens};
