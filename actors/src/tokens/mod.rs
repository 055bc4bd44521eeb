//! Deploy tokens: what CI jobs sign in with.

mod machine;
mod serve;

pub use machine::{Command, LastUse, Token, Tokens, hash_claim};
