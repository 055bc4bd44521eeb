//! Reads the whole store and reports contradictions between records, index entries and claims.

use crate::{CLAIMS, INDEX, Record, Store, StoreError, Stored, keys, rows::Order};
use std::collections::HashSet;

/// One thing that is wrong with a store, as a sentence for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding(pub String);

impl Store {
    /// Checks that every record of a kind can be read and has its index entries and claims, and
    /// that every entry and claim of the kind has its record. `also` may add findings for each
    /// record. Returns the number of records, and the findings.
    pub fn check<R: Record>(
        &self,
        mut also: impl FnMut(&str, &R::Content, &mut Vec<Finding>),
    ) -> Result<(u64, Vec<Finding>), StoreError> {
        let (mut count, mut findings) = (0, Vec::new());
        let (mut entries, mut claims) = (HashSet::new(), HashSet::new());
        let rows = self.inner.rows()?;
        rows.range(keys::records(R::TREE), Order::FirstKeyFirst, &mut |key, bytes| {
            let key = keys::last_part(key)?;
            count += 1;
            match Stored::<R>::decode(&key, bytes) {
                Err(e) => findings.push(Finding(e.to_string())),
                Ok(stored) => {
                    let index = R::index(&stored).0;
                    entries.extend(index.iter().map(|e| keys::entry(R::TREE, e, &key)));
                    let held = R::claims(&stored).0;
                    claims.extend(held.iter().map(|c| (keys::claim(R::TREE, c), key.clone())));
                    also(&key, &stored, &mut findings);
                }
            }
            Ok(true)
        })?;
        let to_nothing = |what: &str, key: &[u8]| {
            Finding(format!("the {what} {} points at nothing", String::from_utf8_lossy(key)))
        };
        let index = keys::below(&[INDEX, "/", R::TREE]);
        rows.range(index, Order::FirstKeyFirst, &mut |key, _| {
            if !entries.remove(key) {
                findings.push(to_nothing("index entry", key));
            }
            Ok(true)
        })?;
        let held = keys::below(&[CLAIMS, "/", R::TREE]);
        rows.range(held, Order::FirstKeyFirst, &mut |key, holder| {
            if !claims.remove(&(key.to_vec(), String::from_utf8_lossy(holder).into_owned())) {
                findings.push(to_nothing("claim", key));
            }
            Ok(true)
        })?;
        let missing = |what: &str, key: &[u8]| {
            Finding(format!("the {what} {} is missing", String::from_utf8_lossy(key)))
        };
        findings.extend(entries.iter().map(|key| missing("index entry", key)));
        findings.extend(claims.iter().map(|(key, _)| missing("claim", key)));
        Ok((count, findings))
    }
}
