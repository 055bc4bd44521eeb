//! Repositories of apps. The service reads the newest commit of a repository and says whether its
//! app can be built from it.

mod access;
mod build_source;
mod deploy_key;
mod effects;
pub(crate) mod lookup;
mod rules;

pub(crate) use access::READ_WITHIN;
pub use access::{CiAccess, try_token};
pub(crate) use build_source::{credential_for, needs_no_key, remote, remote_of_app, with_address};
pub use deploy_key::{DeployKey, HostTrust};
pub(crate) use lookup::connected;
pub use rules::{
    Checked, Checking, Command, Effect, Outcome, Repositories, Repository, RepositoryClaim, Source,
};
