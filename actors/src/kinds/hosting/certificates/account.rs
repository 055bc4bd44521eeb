//! The account of this server at the authority that issues its certificates.

use crate::{
    kinds::world::World,
    ports::{
        certificate_authority::{CertificateAuthority, NotIssued},
        sealed::{SealError, Sealed},
    },
    runtime::{
        resource::Retry,
        side_record::{End, SideRecord},
    },
};
use contract::{CertificateId, Fault, Id, Timestamp};
use serde::{Deserialize, Serialize};
use store::Change;
use ulid::Ulid;

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

/// Who opens an account takes the turn of this id, which nothing has.
const TURN: Ulid = Ulid(1);

/// The credentials of the account. Opens one if there is none, or if it is at another authority. Certificates
/// that need one at the same time wait for each other: authorities allow few new accounts.
pub(super) async fn credentials(
    world: &World,
    authority: &dyn CertificateAuthority,
) -> Result<Result<String, NotIssued>, Retry> {
    if let Some(known) = known(world, authority)? {
        return Ok(Ok(known));
    }
    let _turn = world.creation(CertificateId::of(TURN)).await?;
    if let Some(known) = known(world, authority)? {
        return Ok(Ok(known));
    }
    let credentials = match authority.register().await {
        Ok(credentials) => credentials,
        Err(e) => return Ok(Err(e)),
    };
    let key = ONLY.to_owned();
    let before = world.store.get::<AuthorityAccount>(&key)?;
    let account = AuthorityAccount {
        authority: authority.address().to_owned(),
        credentials: world.ports.sealer.seal(ONLY, &credentials)?,
        created_at: world.ports.clock.now(),
    };
    let change = Change::new().replace::<AuthorityAccount>(&key, before.as_deref(), account);
    world.store.commit(change).await?;
    Ok(Ok(credentials))
}

/// The credentials of the account at this authority, if there is one whose credentials can be opened. A new
/// account serves as well.
fn known(world: &World, authority: &dyn CertificateAuthority) -> Result<Option<String>, Retry> {
    let known = world.store.get::<AuthorityAccount>(&ONLY.to_owned())?;
    let Some(account) = known.filter(|known| known.authority == authority.address()) else {
        return Ok(None);
    };
    match world.ports.sealer.open(ONLY, &account.credentials) {
        Ok(credentials) => Ok(Some(credentials)),
        Err(SealError::Foreign) => Ok(None),
        Err(e @ SealError::NoRandomness) => Err(e.into()),
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
