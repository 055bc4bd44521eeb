//! Lists of resources, newest first, a page at a time.

use crate::runtime::{
    progress_log::{Line, LineIndex},
    resource::Resource,
    store::Store,
};
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

/// Lines of one page.
const LINES: usize = 500;

/// Some of the lines of a deployment or build, oldest first.
pub struct LinesPage {
    pub lines: Vec<Line>,
    /// Where to go on; the same cursor again while nothing new was written.
    pub next_cursor: Option<Cursor>,
    /// There may be more already.
    pub more: bool,
}

impl LinesPage {
    /// The lines after the cursor.
    pub fn read(
        store: &Store,
        of: impl std::fmt::Display,
        cursor: Option<Cursor>,
    ) -> Result<LinesPage, Fault> {
        let after = cursor.as_ref().map(position::<Line>).transpose()?;
        let keys = store.oldest::<Line>(&LineIndex::of(of), after.as_ref(), LINES)?;
        let mut lines = Vec::with_capacity(keys.len());
        for key in &keys {
            lines.extend(store.get::<Line>(key)?.map(|line| (**line).clone()));
        }
        let next_cursor = keys.last().map(|key| Cursor::after(&key.to_string())).or(cursor);
        Ok(LinesPage { lines, next_cursor, more: keys.len() == LINES })
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
