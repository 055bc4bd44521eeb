//! Deploy tokens: the credentials of CI jobs.

mod rules;

pub use rules::{Command, Identity, LastUse, Token, TokenClaim, TokenIndex, Tokens};
