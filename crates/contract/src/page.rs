//! Pages of lists.

use data_encoding::HEXLOWER;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// The maximum number of items on a page, from 1 to 200. The default is 50.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limit(u16);

impl Limit {
    /// The largest limit.
    pub const MOST: Limit = Limit(200);

    /// At most this many items.
    pub const fn at_most(items: u16) -> Limit {
        match items {
            0 => Limit(1),
            1..=200 => Limit(items),
            _ => Limit::MOST,
        }
    }

    /// The limit as a count.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Limit {
    fn default() -> Self {
        Limit(50)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match f64::deserialize(d)? {
            n @ 1.0..=200.0 if n.fract() == 0.0 => Ok(Limit(n as u16)),
            _ => Err(serde::de::Error::custom("must be a whole number from 1 to 200")),
        }
    }
}

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50})
    }
}

/// A position in a list: the `nextCursor` of the previous page. Clients treat it as opaque text. It
/// contains the key of the last item, in hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(String);

/// The maximum length of a key in the store.
const LONGEST_KEY: usize = 128;

impl Cursor {
    /// The position after this key.
    pub fn after(key: &str) -> Self {
        Cursor(key.to_owned())
    }

    /// The key of the last item on the previous page.
    pub fn key(&self) -> &str {
        &self.0
    }

    /// The cursor as clients see it.
    pub fn encode(&self) -> String {
        HEXLOWER.encode(self.0.as_bytes())
    }

    /// Reverses [`encode`](Cursor::encode).
    fn decode(text: &str) -> Option<String> {
        if text.is_empty() || text.len() > 2 * LONGEST_KEY {
            return None;
        }
        let key = String::from_utf8(HEXLOWER.decode(text.as_bytes()).ok()?).ok()?;
        key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)).then_some(key)
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.encode())
    }
}

impl JsonSchema for Cursor {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(d)?;
        let key = Cursor::decode(&text);
        key.map(Cursor)
            .ok_or_else(|| serde::de::Error::custom("must be the nextCursor of an earlier reply"))
    }
}

/// One page of a list, newest first. It may hold fewer items than the limit, or none, and not be the
/// last page: the service reads a bounded number of records for one page, and a filter drops some.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// At most `limit` items.
    pub items: Vec<T>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<Cursor>,
    /// How many items the whole list has. 1,000 also stands for more than 1,000. Only lists whose
    /// size is cheap to know have it, and a search has it only where one page holds all it finds. An
    /// item whose deletion has begun may still count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

impl<T> Page<T> {
    /// The greatest total.
    pub const MOST_COUNTED: u32 = 1_000;

    /// A page of a list of unknown size.
    pub fn new(items: Vec<T>, next_cursor: Option<Cursor>) -> Page<T> {
        Page { items, next_cursor, total: None }
    }
}
