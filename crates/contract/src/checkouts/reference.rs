//! The reference by which buyers, shops and providers of payments name a checkout.

use crate::CheckoutId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{borrow::Cow, fmt, str::FromStr};

/// The reference of a payment: `chk-` and the unique part of the id of its checkout. Payment
/// providers allow letters, digits, `-`, `.` and `=` in a reference, so it has no underscore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference(pub CheckoutId);

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string().replacen('_', "-", 1))
    }
}

impl FromStr for Reference {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.strip_prefix("chk-").map(|unique| format!("chk_{unique}"));
        let id = id.and_then(|id| id.parse().ok());
        id.map(Reference).ok_or_else(|| "must be the reference of a checkout, chk-…".into())
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Reference {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Reference".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^chk-[0-9A-HJKMNP-TV-Z]{26}$"})
    }
}
