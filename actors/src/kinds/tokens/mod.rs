//! Deploy tokens: what CI jobs sign in with.

mod handlers;
mod rules;

pub use rules::{Command, LastUse, Token, TokenClaim, TokenIndex, Tokens};
