//! What the compiler checks of all declarations: that each group is listed, that names are valid, and that
//! names, prefixes of ids and trees of the store are unique.

use crate::{endpoint::EndpointGroup, function::Group};

/// Fails the build if a group of functions is missing in `groups`: no server would serve it.
#[allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "runs in the compiler; iterators are not const"
)]
pub const fn assert_functions_are_listed(group: &Group, groups: &[Group]) {
    let mut i = 0;
    while i < groups.len() {
        if same(groups[i].name.as_bytes(), group.name.as_bytes()) {
            return;
        }
        i += 1;
    }
    panic!("this group of functions is missing in `groups!` of contract/src/lib.rs");
}

/// Fails the build if a group of endpoints is missing in `groups`. Two groups may have one heading, so
/// their first endpoints are compared.
#[allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "runs in the compiler; iterators are not const"
)]
pub const fn assert_endpoints_are_listed(group: &EndpointGroup, groups: &[EndpointGroup]) {
    let mut i = 0;
    while i < groups.len() {
        if same(groups[i].endpoints[0].name.as_bytes(), group.endpoints[0].name.as_bytes()) {
            return;
        }
        i += 1;
    }
    panic!("this group of endpoints is missing in `groups!` of contract/src/endpoint/mod.rs");
}

/// Fails the build if two functions have the same name, or if a name does not match
/// `[A-Za-z][A-Za-z0-9_]{0,127}`.
#[allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "runs in the compiler; iterators are not const"
)]
pub const fn assert_names_are_unique(groups: &[Group]) {
    let mut g = 0;
    while g < groups.len() {
        let mut i = 0;
        while i < groups[g].functions.len() {
            let name = groups[g].functions[i].name;
            assert!(is_a_name(name.as_bytes()), "a function's name breaks the grammar");
            let mut h = g;
            while h < groups.len() {
                let mut j = if h == g { i + 1 } else { 0 };
                while j < groups[h].functions.len() {
                    let other = groups[h].functions[j].name;
                    assert!(!same(name.as_bytes(), other.as_bytes()), "two functions share a name");
                    j += 1;
                }
                h += 1;
            }
            i += 1;
        }
        g += 1;
    }
}

/// Fails the build if two of the texts in these lists are the same.
#[allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "runs in the compiler; iterators are not const"
)]
pub const fn assert_all_differ(lists: &[&[&str]], why: &str) {
    let mut l = 0;
    while l < lists.len() {
        let mut i = 0;
        while i < lists[l].len() {
            let mut m = l;
            while m < lists.len() {
                let mut j = if m == l { i + 1 } else { 0 };
                while j < lists[m].len() {
                    if same(lists[l][i].as_bytes(), lists[m][j].as_bytes()) {
                        panic!("{}", why);
                    }
                    j += 1;
                }
                m += 1;
            }
            i += 1;
        }
        l += 1;
    }
}

#[allow(clippy::indexing_slicing, reason = "bounded by the loop; iterators are not const")]
const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Whether a function may have this name.
#[allow(clippy::indexing_slicing, reason = "bounded by the loop; iterators are not const")]
pub const fn is_a_name(name: &[u8]) -> bool {
    if name.is_empty() || name.len() > 128 || !name[0].is_ascii_alphabetic() {
        return false;
    }
    let mut i = 1;
    while i < name.len() {
        if !name[i].is_ascii_alphanumeric() && name[i] != b'_' {
            return false;
        }
        i += 1;
    }
    true
}
