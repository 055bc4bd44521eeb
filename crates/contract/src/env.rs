//! Environment variables of containers.

use crate::text::{EnvName, EnvValue};
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
