//! Repositories of apps. The service reads the newest commit of a repository and says whether its
//! app can be built from it.

mod access;
mod build_source;
mod deploy_key;
mod effects;
mod handlers;
mod lookup;
mod push;
mod rules;

pub(crate) use access::READ_WITHIN;
pub use access::{CiAccess, try_token};
pub(crate) use build_source::{credential_for, needs_no_key, remote, remote_of_app, with_address};
pub use deploy_key::{DeployKey, HostTrust};
pub(crate) use handlers::{may_use_central, of_app, runs_in};
pub(crate) use lookup::connected;
pub use push::Proof;
pub use rules::{
    Checked, Checking, Command, Effect, Outcome, Repositories, Repository, RepositoryClaim, Source,
};
