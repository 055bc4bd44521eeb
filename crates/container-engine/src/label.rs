//! Labels name the owner of an object in the engine. They cannot change after the object is
//! created, so data that changes is kept elsewhere.

use std::collections::BTreeMap;

/// Names and values. As a filter, all of them must match.
pub type Labels = BTreeMap<String, String>;

/// An object of which only the name and the labels matter: a network or a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledObject {
    pub name: String,
    pub labels: Labels,
}
