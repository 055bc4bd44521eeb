//! Lists of resources, newest first, a page at a time.

use crate::{
    call::lookup::{Seen, unread},
    runtime::resource::{Kept, Resource},
};
use contract::{Cursor, Fault, Limit, Page};
use store::Store;

/// Keys read at a time, where a filter may drop some.
const BATCH: usize = 200;

/// The resources that carry an index entry and that `view` shows, newest first.
pub fn page<R: Resource, T>(
    store: &Store,
    entry: &str,
    (limit, cursor): (Limit, Option<Cursor>),
    mut view: impl FnMut(R::Id, &Seen<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault> {
    let mut items = Vec::new();
    let mut after = cursor.map(|c| c.key().to_owned());
    loop {
        let keys = store.newest::<Kept<R>>(entry, after.as_deref(), BATCH).map_err(unread)?;
        let more = keys.len() == BATCH;
        for key in keys {
            if items.len() == limit.get() {
                return Ok(Page { items, next_cursor: after.as_deref().map(Cursor::after) });
            }
            if let (Ok(id), Some(seen)) = (key.parse(), store.get::<Kept<R>>(&key).map_err(unread)?)
                && let Some(item) = view(id, &seen)?
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
