//! Environment variables of containers.

use crate::{
    Fault,
    text::{EnvName, EnvValue},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::{borrow::Cow, collections::BTreeMap, ops::Deref};

/// Environment variables, at most [`Env::MOST`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Env(BTreeMap<EnvName, EnvValue>);

impl Env {
    /// The maximum number of variables.
    pub const MOST: usize = 100;
    /// How many bytes the names and values of one service may have together. Deployments keep copies.
    /// Records of earlier versions may have more, so reading them does not check it.
    pub const MOST_BYTES: usize = 128 * 1024;

    /// The bytes of all names and values.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.as_str().len() + value.as_str().len()).sum()
    }

    /// Refuses variables in this field of a call that have more than [`Env::MOST_BYTES`] together.
    pub fn check_bytes(field: &'static str, bytes: usize) -> Result<(), Fault> {
        let most = Env::MOST_BYTES;
        match bytes > most {
            true => Err(Fault::invalid(
                field,
                format!(
                    "must have at most {most} bytes in all names and values together, and has {bytes}"
                ),
            )),
            false => Ok(()),
        }
    }

    /// Whether there are no variables.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The variables as plain texts.
    pub fn to_texts(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, value)| (name.to_string(), value.as_str().to_owned())).collect()
    }

    /// The variables by name.
    pub fn into_map(self) -> BTreeMap<EnvName, EnvValue> {
        self.0
    }
}

impl Deref for Env {
    type Target = BTreeMap<EnvName, EnvValue>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Env {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(d)?.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<BTreeMap<EnvName, EnvValue>> for Env {
    type Error = String;
    fn try_from(values: BTreeMap<EnvName, EnvValue>) -> Result<Self, String> {
        if values.len() > Env::MOST {
            return Err(format!("must have at most {} variables", Env::MOST));
        }
        Ok(Env(values))
    }
}

impl JsonSchema for Env {
    fn schema_name() -> Cow<'static, str> {
        "Env".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let values = generator.subschema_for::<EnvValue>();
        json_schema!({
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$"},
            "additionalProperties": values,
            "maxProperties": Env::MOST,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_a_service_have_at_most_128_kib_together() {
        let of = |last: usize| {
            let value = |n| "x".repeat(if n == 7 { last } else { 16_384 });
            let variable = |n: usize| (format!("V{n}").parse().unwrap(), value(n).parse().unwrap());
            Env::try_from((0..8).map(variable).collect::<BTreeMap<_, _>>()).unwrap()
        };
        let fits = of(16_384 - 8 * "V0".len());
        assert_eq!(fits.bytes(), Env::MOST_BYTES);
        assert_eq!(Env::check_bytes("env", fits.bytes()), Ok(()));
        let refused = Env::check_bytes("env", of(16_384).bytes());
        assert!(matches!(refused, Err(Fault::Invalid(_))), "{refused:?}");
    }
}
