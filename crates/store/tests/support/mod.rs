//! What the tests of stores on a disk share.

use serde::{Deserialize, Serialize};
use std::path::Path;
use store::{Memory, Record, Store, StoreError};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Text(pub String);

impl Record for Text {
    const TREE: &'static str = "text";
    const SCHEMA: u16 = 1;
    type Key = String;
    type Content = Self;
}

/// Opens a store of texts.
pub fn open(folder: &Path) -> Result<Store, StoreError> {
    Store::open(folder, &["text"], Memory::default())
}
