//! Labels: how objects of the engine say whose they are. They cannot be changed after the object is
//! made, so what changes is kept elsewhere.

use std::collections::BTreeMap;

/// Names and values. As a filter: all of them must be there.
pub type Labels = BTreeMap<String, String>;

/// An object that has a name and labels and nothing else that matters to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub name: String,
    pub labels: Labels,
}
