//! Lists of records, newest first, one page at a time.
//!
//! The records that are read for one page are bounded, because the thread that reads them answers
//! no other call meanwhile. So a page may hold fewer items than its limit and not be the last.

use super::{
    entries::{InState, Under},
    resource::{HasParent, Resource},
    store::Store,
};
use contract::{Cursor, Fault, Limit, Page, text::Query};
use serde::Serialize;
use std::ops::ControlFlow;
use store::{Entry, Record, Snapshot};

/// Keys read at a time. A filter may drop some of their records.
const BATCH: usize = 200;
/// The most records that are read for one page. A filter may drop most of them.
const MOST_LOOKED_AT: usize = 1000;

/// `Continue` with the item that a list shows for a record, if any; `Break` ends the list before
/// the record.
pub type Shown<T> = Result<ControlFlow<(), Option<T>>, Fault>;

/// The resources with an index entry that `view` shows, newest first.
pub fn page<R: Resource, T>(
    store: &Store,
    entry: &impl Entry<R>,
    page: (Limit, Option<Cursor>),
    view: impl FnMut(R::Key, &Snapshot<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault> {
    search(store, |after, limit| store.newest::<R>(entry, after, limit), page, unbroken(view))
}

/// Like [`page`], with the size of the list, unless `is_filtered` says that `view` drops some of it.
pub fn counted<R: Resource, T>(
    store: &Store,
    entry: &impl Entry<R>,
    list: (Limit, Option<Cursor>),
    is_filtered: bool,
    view: impl FnMut(R::Key, &Snapshot<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault> {
    let is_first = list.1.is_none();
    let found = page(store, entry, list, view)?;
    with_total(found, is_first, |most| {
        let counted = || store.newest::<R>(entry, None, most).map(|keys| keys.len());
        (!is_filtered).then(counted).transpose()
    })
}

/// The children of a resource that `view` shows, newest first; with a state, those in the state.
/// `is_filtered` says whether `view` drops some of them, so that only reading all would tell their
/// number.
pub fn children<R: HasParent, T>(
    store: &Store,
    (parent, state): (<R::Parent as Record>::Key, Option<impl Serialize>),
    list: (Limit, Option<Cursor>),
    is_filtered: bool,
    view: impl FnMut(R::Key, &Snapshot<R>) -> Result<Option<T>, Fault>,
) -> Result<Page<T>, Fault>
where
    Under<R::Parent>: Entry<R>,
{
    match state {
        Some(state) => {
            let entry = InState::<R::Parent>::new(parent, state);
            counted(store, &entry, list, is_filtered, view)
        }
        None => counted(store, &Under::<R::Parent>(parent), list, is_filtered, view),
    }
}

/// The resources of a whole kind that `view` shows, newest first.
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

/// The items that `show` makes from the records with these keys, until `show` breaks or the bound
/// on the records of one page is reached.
pub fn search<R: Record, T>(
    store: &Store,
    keys: impl Fn(Option<&R::Key>, usize) -> Result<Vec<R::Key>, Fault>,
    (limit, cursor): (Limit, Option<Cursor>),
    mut show: impl FnMut(R::Key, &Snapshot<R>) -> Shown<T>,
) -> Result<Page<T>, Fault> {
    let mut items = Vec::new();
    let mut after = cursor.map(|cursor| position::<R>(&cursor)).transpose()?;
    let mut looked_at = 0;
    loop {
        let batch = keys(after.as_ref(), BATCH)?;
        let more = batch.len() == BATCH;
        for key in batch {
            if items.len() == limit.get() || looked_at == MOST_LOOKED_AT {
                let next_cursor = after.map(|key| Cursor::after(&key.to_string()));
                return Ok(Page::new(items, next_cursor));
            }
            if let Some(seen) = store.get::<R>(&key)? {
                match show(key.clone(), &seen)? {
                    ControlFlow::Continue(item) => items.extend(item),
                    ControlFlow::Break(()) => return Ok(Page::new(items, None)),
                }
            }
            looked_at += 1;
            after = Some(key);
        }
        if !more {
            return Ok(Page::new(items, None));
        }
    }
}

/// At most `limit` keys that carry one of the index entries, newest first, after a cursor.
pub fn newest_of<R: Record>(
    store: &Store,
    entries: &[impl Entry<R>],
    after: Option<&R::Key>,
    limit: usize,
) -> Result<Vec<R::Key>, Fault> {
    let mut keys = Vec::new();
    for entry in entries {
        keys.extend(store.newest::<R>(entry, after, limit)?);
    }
    keys.sort_by_cached_key(|key| std::cmp::Reverse(key.to_string()));
    keys.truncate(limit);
    Ok(keys)
}

/// The page with the size of the whole list: that of the page if it is the whole list. Otherwise
/// `count` counts up to its argument, or has no answer because only reading all records would tell.
pub fn with_total<T>(
    page: Page<T>,
    is_first: bool,
    count: impl FnOnce(usize) -> Result<Option<usize>, Fault>,
) -> Result<Page<T>, Fault> {
    let whole = (is_first && page.next_cursor.is_none()).then_some(page.items.len());
    let most = Page::<T>::MOST_COUNTED;
    let total = match whole {
        Some(whole) => Some(whole),
        None => count(most as usize)?,
    };
    let total = total.map(|total| u32::try_from(total).unwrap_or(most).min(most));
    Ok(Page { total, ..page })
}

/// Whether the query matches: it is the id, or a part of one of the texts in any case. Without a
/// query, everything matches.
pub fn is_meant(query: Option<&Query>, id: &str, texts: &[&str]) -> bool {
    let Some(query) = query else { return true };
    let part = query.as_str().to_lowercase();
    id == query.as_str() || texts.iter().any(|text| text.to_lowercase().contains(&part))
}

/// The record key in a cursor.
pub fn position<R: Record>(cursor: &Cursor) -> Result<R::Key, Fault> {
    let unknown = || Fault::invalid("cursor", "must be the nextCursor of an earlier page");
    cursor.key().parse().map_err(|_| unknown())
}

/// A page of items that are already in memory, sorted by key, the greatest first.
pub fn slice<T>(
    mut all: Vec<T>,
    key: impl Fn(&T) -> String,
    (limit, cursor): (Limit, Option<Cursor>),
) -> Page<T> {
    let most = Page::<T>::MOST_COUNTED;
    let total = u32::try_from(all.len()).unwrap_or(most).min(most);
    all.sort_by_key(|item| std::cmp::Reverse(key(item)));
    if let Some(cursor) = cursor {
        all.retain(|item| key(item).as_str() < cursor.key());
    }
    let more = all.len() > limit.get();
    all.truncate(limit.get());
    let next_cursor = if more { all.last().map(|item| Cursor::after(&key(item))) } else { None };
    Page { items: all, next_cursor, total: Some(total) }
}
