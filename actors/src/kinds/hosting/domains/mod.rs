//! Domains: host names of users, which lead to an app once they are proven.

mod effects;
mod rules;

pub use effects::new_token;
pub use rules::{Command, DomainClaim, Domains, New, Outcome, State};

use crate::runtime::store::Store;
use contract::Fault;

/// What a proven host name leads to, as paths name it, such as `app_…~storefront`.
pub fn target_of(store: &Store, host: &str) -> Result<Option<String>, Fault> {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let Some(id) = store.holder::<Domains>(&DomainClaim::Verified { name })? else {
        return Ok(None);
    };
    let found = store.get::<Domains>(&id)?.filter(|found| !found.is_deleted());
    Ok(found.map(|found| found.target()))
}
