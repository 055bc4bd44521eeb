//! Lists of resources, newest first, a page at a time.

use crate::{
    call::lookup::{Seen, unread},
    runtime::resource::{Kept, Resource},
};
use contract::{Cursor, Fault, Limit, Page};
use std::ops::ControlFlow;
use store::{Store, StoreError};

/// Keys read at a time, where a filter may drop some.
const BATCH: usize = 200;
/// Records of a whole kind that are looked at for one page, where a filter may drop most.
const MOST_LOOKED_AT: usize = 2000;

/// The resources that carry an index entry and that `view` shows, newest first.
pub fn page<R: Resource, T>(
    store: &Store,
    entry: &str,
    (limit, cursor): (Limit, Option<Cursor>),
    view: impl FnMut(R::Id, &Seen<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault> {
    let keys = |after: Option<&str>| store.newest::<Kept<R>>(entry, after, BATCH);
    walk(keys, usize::MAX, (limit, cursor), viewed(store, view))
}

/// The resources of a whole kind that `view` shows, newest first. So much is looked at for one
/// page: it may hold fewer than asked for, and not be the last.
pub fn whole<R: Resource, T>(
    store: &Store,
    (limit, cursor): (Limit, Option<Cursor>),
    view: impl FnMut(R::Id, &Seen<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault> {
    let keys = |after: Option<&str>| store.keys::<Kept<R>>(after, BATCH);
    walk(keys, MOST_LOOKED_AT, (limit, cursor), viewed(store, view))
}

fn viewed<R: Resource, T>(
    store: &Store,
    mut view: impl FnMut(R::Id, &Seen<R>) -> Result<Option<T>, Fault>,
) -> impl FnMut(&str) -> Result<ControlFlow<(), Option<T>>, Fault> {
    move |key| match (key.parse(), store.get::<Kept<R>>(key).map_err(unread)?) {
        (Ok(id), Some(seen)) => Ok(ControlFlow::Continue(view(id, &seen)?)),
        _ => Ok(ControlFlow::Continue(None)),
    }
}

/// What `show` makes of these keys, until it breaks off or so many were looked at.
pub fn search<T>(
    keys: impl Fn(Option<&str>, usize) -> Result<Vec<String>, StoreError>,
    page: (Limit, Option<Cursor>),
    show: impl FnMut(&str) -> Result<ControlFlow<(), Option<T>>, Fault>,
) -> Result<Page<T>, Fault> {
    walk(|after| keys(after, BATCH), MOST_LOOKED_AT, page, show)
}

fn walk<T>(
    keys: impl Fn(Option<&str>) -> Result<Vec<String>, StoreError>,
    most: usize,
    (limit, cursor): (Limit, Option<Cursor>),
    mut show: impl FnMut(&str) -> Result<ControlFlow<(), Option<T>>, Fault>,
) -> Result<Page<T>, Fault> {
    let mut items = Vec::new();
    let mut after = cursor.map(|c| c.key().to_owned());
    let mut looked_at = 0;
    loop {
        let batch = keys(after.as_deref()).map_err(unread)?;
        let more = batch.len() == BATCH;
        for key in batch {
            if items.len() == limit.get() || looked_at == most {
                return Ok(Page { items, next_cursor: after.as_deref().map(Cursor::after) });
            }
            match show(&key)? {
                ControlFlow::Continue(item) => items.extend(item),
                ControlFlow::Break(()) => return Ok(Page { items, next_cursor: None }),
            }
            looked_at += 1;
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
