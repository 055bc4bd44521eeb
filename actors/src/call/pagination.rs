//! Lists of resources, newest first, a page at a time.

use crate::runtime::{resource::Resource, store::Store};
use contract::{Cursor, Fault, Limit, Page};
use std::ops::ControlFlow;
use store::{Entry, Record, Snapshot};

/// Keys read at a time, where a filter may drop some.
const BATCH: usize = 200;
/// Records of a whole kind that are looked at for one page, where a filter may drop most.
const MOST_LOOKED_AT: usize = 2000;

/// What a list shows of a record, if anything; or that the list ends before it.
pub type Shown<T> = Result<ControlFlow<(), Option<T>>, Fault>;

/// The resources that carry an index entry and that `view` shows, newest first.
pub fn page<R: Resource, T>(
    store: &Store,
    entry: &impl Entry<R>,
    (limit, cursor): (Limit, Option<Cursor>),
    view: impl FnMut(R::Key, &Snapshot<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault> {
    let keys = |after: Option<&R::Key>| store.newest::<R>(entry, after, BATCH);
    walk(store, keys, usize::MAX, (limit, cursor), unbroken(view))
}

/// The resources of a whole kind that `view` shows, newest first. So much is looked at for one
/// page: it may hold fewer than asked for, and not be the last.
pub fn whole<R: Resource, T>(
    store: &Store,
    page: (Limit, Option<Cursor>),
    view: impl FnMut(R::Key, &Snapshot<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault> {
    search(store, |after, limit| store.keys::<R>(after, limit), page, unbroken(view))
}

fn unbroken<R: Record, T>(
    mut view: impl FnMut(R::Key, &Snapshot<R>) -> Result<Option<T>, Fault>,
) -> impl FnMut(R::Key, &Snapshot<R>) -> Shown<T> {
    move |key, seen| view(key, seen).map(ControlFlow::Continue)
}

/// What `show` makes of the records under these keys, until it breaks off or so many were looked
/// at.
pub fn search<R: Record, T>(
    store: &Store,
    keys: impl Fn(Option<&R::Key>, usize) -> Result<Vec<R::Key>, Fault>,
    page: (Limit, Option<Cursor>),
    show: impl FnMut(R::Key, &Snapshot<R>) -> Shown<T>,
) -> Result<Page<T>, Fault> {
    walk(store, |after| keys(after, BATCH), MOST_LOOKED_AT, page, show)
}

fn walk<R: Record, T>(
    store: &Store,
    keys: impl Fn(Option<&R::Key>) -> Result<Vec<R::Key>, Fault>,
    most: usize,
    (limit, cursor): (Limit, Option<Cursor>),
    mut show: impl FnMut(R::Key, &Snapshot<R>) -> Shown<T>,
) -> Result<Page<T>, Fault> {
    let mut items = Vec::new();
    let mut after = cursor.map(|cursor| position::<R>(&cursor)).transpose()?;
    let mut looked_at = 0;
    loop {
        let batch = keys(after.as_ref())?;
        let more = batch.len() == BATCH;
        for key in batch {
            if items.len() == limit.get() || looked_at == most {
                let next_cursor = after.map(|key| Cursor::after(&key.to_string()));
                return Ok(Page { items, next_cursor });
            }
            if let Some(seen) = store.get::<R>(&key)? {
                match show(key.clone(), &seen)? {
                    ControlFlow::Continue(item) => items.extend(item),
                    ControlFlow::Break(()) => return Ok(Page { items, next_cursor: None }),
                }
            }
            looked_at += 1;
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
