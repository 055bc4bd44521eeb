//! Repositories of apps. The service reads the newest commit of a repository and says whether its
//! app can be built from it.

mod effects;
mod handlers;
mod rules;

pub(crate) use handlers::of_app;
pub use rules::{
    Checked, Command, Effect, Outcome, Repositories, Repository, RepositoryClaim, Source,
};
