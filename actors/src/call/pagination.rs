//! Lists of resources, newest first, a page at a time.

use crate::runtime::{resource::Resource, store::Store};
use contract::{Cursor, Fault, Limit, Page};
use store::{Entry, Record, Snapshot};

/// Keys read at a time, where a filter may drop some.
const BATCH: usize = 200;

/// The resources that carry an index entry and that `view` shows, newest first.
pub fn page<R: Resource, T>(
    store: &Store,
    entry: &impl Entry<R>,
    (limit, cursor): (Limit, Option<Cursor>),
    mut view: impl FnMut(R::Key, &Snapshot<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault> {
    let mut items = Vec::new();
    let mut after = cursor.map(|cursor| position::<R>(&cursor)).transpose()?;
    loop {
        let keys = store.newest::<R>(entry, after.as_ref(), BATCH)?;
        let more = keys.len() == BATCH;
        for key in keys {
            if items.len() == limit.get() {
                return Ok(Page {
                    items,
                    next_cursor: after.map(|key| Cursor::after(&key.to_string())),
                });
            }
            if let Some(seen) = store.get::<R>(&key)?
                && let Some(item) = view(key, &seen)?
            {
                items.push(item);
            }
            after = Some(key);
        }
        if !more {
            return Ok(Page { items, next_cursor: None });
        }
    }
}

/// The key that a cursor stands at.
pub fn position<R: Record>(cursor: &Cursor) -> Result<R::Key, Fault> {
    let unknown = || Fault::invalid("cursor", "must be the nextCursor of an earlier page");
    cursor.key().parse().map_err(|_| unknown())
}

/// A page of what is in memory already, newest first.
pub fn slice<T>(
    mut all: Vec<T>,
    key: impl Fn(&T) -> String,
    (limit, cursor): (Limit, Option<Cursor>),
) -> Page<T> {
    all.sort_by_key(|item| std::cmp::Reverse(key(item)));
    if let Some(cursor) = cursor {
        all.retain(|item| key(item).as_str() < cursor.key());
    }
    let more = all.len() > limit.get();
    all.truncate(limit.get());
    let next_cursor = if more { all.last().map(|item| Cursor::after(&key(item))) } else { None };
    Page { items: all, next_cursor }
}
