//! The generated secrets of an instance.

use super::Instance;
use crate::{
    kinds::{
        hosting::templates::placeholder::{Piece, Placeholder, pieces},
        world::World,
    },
    ports::sealed::Sealed,
};
use contract::{Fault, InstanceId, templates::TemplateService};
use std::collections::{BTreeMap, BTreeSet};

/// Letters and digits of a generated secret.
const SECRET_LENGTH: usize = 40;

/// Seals a text for an instance.
pub(crate) fn seal(world: &World, id: InstanceId, secret: &str) -> Result<Sealed, Fault> {
    world.ports.sealer.seal(&id.to_string(), secret).map_err(|e| {
        tracing::error!(error = %e, "a secret was not sealed");
        Fault::Internal
    })
}

/// Generates the secrets that a service needs and the instance does not have: they are new in the
/// service's template version.
pub(crate) fn missing_secrets(
    world: &World,
    id: InstanceId,
    instance: &Instance,
    template: &TemplateService,
) -> Result<BTreeMap<String, Sealed>, Fault> {
    let mut names = secret_names(std::slice::from_ref(template));
    names.retain(|name| !instance.secrets.contains_key(name));
    new_secrets(world, id, names)
}

pub(crate) fn new_secrets(
    world: &World,
    id: InstanceId,
    names: BTreeSet<String>,
) -> Result<BTreeMap<String, Sealed>, Fault> {
    let secret = |name| {
        let secret = world.ports.random.secret("", SECRET_LENGTH).map_err(|e| {
            tracing::error!(error = %e, "no secret was made");
            Fault::Internal
        })?;
        Ok((name, seal(world, id, &secret)?))
    };
    names.into_iter().map(secret).collect()
}

/// The secrets that services refer to.
pub(crate) fn secret_names(services: &[TemplateService]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for service in services {
        let database = service.database.as_ref();
        names.extend(database.and_then(|d| d.password_secret.as_ref()).map(ToString::to_string));
        for value in service.env.values().chain(service.default_env.values()) {
            for piece in pieces(value.as_str()).unwrap_or_default() {
                if let Piece::Fill(Placeholder::Secret(name)) = piece {
                    names.insert(name.to_owned());
                }
            }
        }
    }
    names
}
