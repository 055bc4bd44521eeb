//! The records of the tests: one with an index and a claim, and a sum to which many writers add.

use serde::{Deserialize, Serialize};
use store::{Claims, Entries, Merge, Record, StoreError};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub group: String,
    pub name: Option<String>,
}

store::entries! { pub enum ItemIndex of Item { Group { group: String } = "group" } }
store::claims! { pub enum ItemClaim of Item { Name { name: String } = "name" } }

pub fn group(group: &str) -> ItemIndex {
    ItemIndex::Group { group: group.into() }
}

pub fn name(name: &str) -> ItemClaim {
    ItemClaim::Name { name: name.into() }
}

impl Record for Item {
    const TREE: &'static str = "item";
    const SCHEMA: u16 = 2;
    type Key = String;
    type Content = Self;
    fn index(item: &Self) -> Entries<Self> {
        Entries::default().and(group(&item.group))
    }
    fn claims(item: &Self) -> Claims<Self> {
        Claims::default().and_all(item.name.as_deref().map(name))
    }
    fn upgrade(from: u16, old: serde_json::Value) -> Result<Self, StoreError> {
        assert_eq!(from, 1);
        Ok(Item { group: old["team"].as_str().unwrap().into(), name: None })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sum(pub i64);

impl Record for Sum {
    const TREE: &'static str = "sum";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;
}

impl Merge for Sum {
    type Delta = i64;
    fn merge(old: Option<Self>, delta: &i64) -> Option<Self> {
        Some(Sum(old.map_or(0, |s| s.0) + delta)).filter(|s| s.0 != 0)
    }
}

pub fn k(key: &str) -> String {
    key.into()
}

pub fn item(group: &str, name: Option<&str>) -> Item {
    Item { group: group.into(), name: name.map(Into::into) }
}
