//! Lists of records, newest first, one page at a time.
//!
//! The records that are read for one page are bounded, because the thread that reads them answers
//! no other call meanwhile. So a page may hold fewer items than its limit and not be the last.

use super::{
    entries::{InState, Under},
    resource::{HasParent, Resource},
    store::{Keyed, List, Store},
};
use contract::{Cursor, Fault, Limit, Page, text::Query};
use serde::Serialize;
use std::{collections::BinaryHeap, iter::Peekable, ops::ControlFlow};
use store::{Entry, Record, Snapshot};

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
    search(|after| store.newest::<R>(entry, after), page, unbroken(view))
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
        (!is_filtered).then(|| store.newest::<R>(entry, None).count_up_to(most)).transpose()
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
    search(|after| store.whole::<R>(after), page, unbroken(view))
}

fn unbroken<R: Record, T>(
    mut view: impl FnMut(R::Key, &Snapshot<R>) -> Result<Option<T>, Fault>,
) -> impl FnMut(R::Key, &Snapshot<R>) -> Shown<T> {
    move |key, seen| view(key, seen).map(ControlFlow::Continue)
}

/// The items that `show` makes from the records of a list that begins after a key, until `show` breaks or
/// the bound on the records of one page is reached.
pub fn search<R: Record, T, L>(
    list: impl FnOnce(Option<&R::Key>) -> L,
    (limit, cursor): (Limit, Option<Cursor>),
    mut show: impl FnMut(R::Key, &Snapshot<R>) -> Shown<T>,
) -> Result<Page<T>, Fault>
where
    L: Iterator<Item = Result<Keyed<R>, Fault>>,
{
    let (mut items, mut looked_at) = (Vec::new(), 0);
    let mut last = cursor.map(|cursor| position::<R>(&cursor)).transpose()?;
    for found in list(last.as_ref()) {
        if items.len() == limit.get() || looked_at == MOST_LOOKED_AT {
            let next_cursor = last.map(|key| Cursor::after(&key.to_string()));
            return Ok(Page::new(items, next_cursor));
        }
        let (key, seen) = found?;
        match show(key.clone(), &seen)? {
            ControlFlow::Continue(item) => items.extend(item),
            ControlFlow::Break(()) => break,
        }
        looked_at += 1;
        last = Some(key);
    }
    Ok(Page::new(items, None))
}

/// The records that carry one of the index entries, newest first, after a cursor.
pub fn newest_of<'a, R: Record, E: Entry<R>>(
    store: &'a Store,
    entries: &[E],
    after: Option<&R::Key>,
) -> impl Iterator<Item = Result<Keyed<R>, Fault>> + use<'a, R, E> {
    let lists = entries.iter().map(|entry| store.newest::<R>(entry, after).peekable());
    let mut lists: Vec<_> = lists.collect();
    // A fault comes first. A key is a text for the comparison once, however many lists there are.
    let head = |list: &mut Peekable<List<'a, R>>| match list.peek()? {
        Ok((key, _)) => Some((false, key.to_string())),
        Err(_) => Some((true, String::new())),
    };
    let heads = lists.iter_mut().enumerate().filter_map(|(at, list)| Some((head(list)?, at)));
    let mut heads: BinaryHeap<_> = heads.collect();
    std::iter::from_fn(move || {
        let (_, at) = heads.pop()?;
        let list = lists.get_mut(at)?;
        let found = list.next()?;
        heads.extend(head(list).map(|head| (head, at)));
        Some(found)
    })
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
