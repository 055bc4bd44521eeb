//! The account of this server at the authority that issues its certificates.

use crate::{
    kinds::world::World,
    ports::{
        certificate_authority::NotIssued,
        sealed::{SealError, Sealed},
    },
    runtime::{
        resource::Retry,
        side_record::{End, SideRecord},
    },
};
use contract::{Fault, Timestamp};
use serde::{Deserialize, Serialize};
use store::Change;

/// The account of this server at an authority. All certificates share it, because authorities allow few
/// new accounts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuthorityAccount {
    /// The authority that has it.
    pub authority: String,
    pub credentials: Sealed,
    pub created_at: Timestamp,
}

impl SideRecord for AuthorityAccount {
    fn end(&self) -> End {
        End::Never
    }
}

/// The key of the only record.
const ONLY: &str = "account";

/// The credentials of the account. Opens one if there is none, or if it is at another authority.
pub(super) async fn credentials(world: &World) -> Result<Result<String, NotIssued>, Retry> {
    let (key, authority) = (ONLY.to_owned(), &world.ports.certificates);
    let known = world.store.get::<AuthorityAccount>(&key)?;
    if let Some(account) = known.as_ref().filter(|known| known.authority == authority.address()) {
        match world.ports.sealer.open(ONLY, &account.credentials) {
            Ok(credentials) => return Ok(Ok(credentials)),
            Err(e @ SealError::NoRandomness) => return Err(e.into()),
            // A new account serves as well.
            Err(SealError::Foreign) => {}
        }
    }
    let credentials = match authority.register().await {
        Ok(credentials) => credentials,
        Err(e) => return Ok(Err(e)),
    };
    let account = AuthorityAccount {
        authority: authority.address().to_owned(),
        credentials: world.ports.sealer.seal(ONLY, &credentials)?,
        created_at: world.ports.clock.now(),
    };
    let change = Change::new().replace::<AuthorityAccount>(&key, known.as_deref(), account);
    match world.store.commit(change).await {
        // Another certificate opened one at the same time. Each is as good.
        Ok(()) | Err(Fault::Stale) => Ok(Ok(credentials)),
        Err(e) => Err(e.into()),
    }
}

/// Forgets the account with these credentials, which the authority does not accept any more. The next
/// certificate opens another one.
pub(super) async fn forget(world: &World, credentials: &str) -> Result<(), Retry> {
    let key = ONLY.to_owned();
    let Some(known) = world.store.get::<AuthorityAccount>(&key)? else { return Ok(()) };
    let is_same =
        world.ports.sealer.open(ONLY, &known.credentials).is_ok_and(|it| it == credentials);
    if is_same {
        match world.store.commit(Change::new().remove::<AuthorityAccount>(&key, &known)).await {
            Ok(()) | Err(Fault::Stale) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
