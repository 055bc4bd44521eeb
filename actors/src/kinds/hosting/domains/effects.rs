//! The effect of a domain: a look for the record that proves it.

use super::rules::{Command, DomainClaim, Domains, Outcome};
use crate::{
    kinds::{people::tenant::tenant, world::World},
    ports::random::NoRandomness,
    runtime::resource::Retry,
};
use contract::DomainId;
use std::sync::Arc;
use store::Snapshot;

/// The length of what a record says, in letters and digits.
const TOKEN: usize = 32;

/// What a record must say that proves a domain.
pub fn new_token(world: &World) -> Result<String, NoRandomness> {
    world.ports.random.secret("", TOKEN)
}

pub(super) async fn look(
    id: DomainId,
    kept: Snapshot<Domains>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let (name, wanted) = (kept.record_name(), kept.record_text());
    let tenant = tenant(&world.store, kept.app_id)?;
    let texts = match world.ports.domain_records.texts(tenant, &name).await {
        Ok(texts) => texts,
        Err(why) => return Ok(Outcome::NotProven(why)),
    };
    if !texts.iter().any(|text| text.trim() == wanted) {
        let found = match texts.len() {
            0 => format!("there is no TXT record {name}"),
            1 => format!("the TXT record {name} has another text"),
            count => format!("none of the {count} TXT records {name} has the text"),
        };
        return Ok(Outcome::NotProven(found));
    }
    // The record is in the DNS now, so whoever wrote it has the name. An earlier proof is worth less.
    let claim = DomainClaim::Verified { name: kept.host_name.as_str().to_owned() };
    if let Some(other) = world.store.holder::<Domains>(&claim)?.filter(|other| *other != id) {
        let give_up = Command::GiveUp { token: new_token(&world)? };
        world.to::<Domains>(other).ask_if_there(give_up).await?;
    }
    Ok(Outcome::Proven)
}
