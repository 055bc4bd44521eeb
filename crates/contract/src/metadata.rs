//! What callers attach to an object. The service keeps and shows it, and does not read it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::{borrow::Cow, collections::BTreeMap, ops::Deref};

/// Texts by name: at most [`Metadata::MOST`], the names of 1 to 40 and the texts of at most 500
/// characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// The maximum number of texts.
    pub const MOST: usize = 20;
    const LONGEST_NAME: usize = 40;
    const LONGEST_TEXT: usize = 500;

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for Metadata {
    type Target = BTreeMap<String, String>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let values: BTreeMap<String, String> = BTreeMap::deserialize(d)?;
        let fits = |(name, text): (&String, &String)| {
            (1..=Metadata::LONGEST_NAME).contains(&name.chars().count())
                && text.chars().count() <= Metadata::LONGEST_TEXT
        };
        if values.len() > Metadata::MOST || !values.iter().all(fits) {
            return Err(D::Error::custom(format!(
                "must have at most {} texts of at most {} characters, with names of 1 to {}",
                Metadata::MOST,
                Metadata::LONGEST_TEXT,
                Metadata::LONGEST_NAME
            )));
        }
        Ok(Metadata(values))
    }
}

impl JsonSchema for Metadata {
    fn schema_name() -> Cow<'static, str> {
        "Metadata".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": Metadata::LONGEST_NAME},
            "additionalProperties": {"type": "string", "maxLength": Metadata::LONGEST_TEXT},
            "maxProperties": Metadata::MOST,
        })
    }
}
