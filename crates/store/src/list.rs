//! Lists of records, which are read a page at a time: a reader of a long list holds one page of it.

use crate::{Record, Snapshot, Store, StoreError, keys, rows::Order};
use std::{ops::Range, vec};

/// How many keys the first page has at most. Many readers want the first few only.
const FIRST_PAGE: usize = 32;
/// How many keys every other page has at most.
const PAGE: usize = 512;

/// Records in the order of their keys, with their keys: an iterator that ends only where the list ends.
///
/// The list is read while it is walked, and others write meanwhile. A record that is removed before its
/// turn is left out, and one may have lost the index entry of the list. A record that cannot be read is an
/// error, and the next one follows. When the list itself cannot be read, the error is its last item.
pub struct List<'a, R: Record> {
    store: &'a Store,
    /// The rows that were not read yet.
    rest: Range<Vec<u8>>,
    order: Order,
    page: vec::IntoIter<R::Key>,
    /// How many keys the next page has at most.
    size: usize,
}

impl<'a, R: Record> List<'a, R> {
    pub(crate) fn new(store: &'a Store, rows: Range<Vec<u8>>, order: Order) -> Self {
        List { store, rest: rows, order, page: Vec::new().into_iter(), size: FIRST_PAGE }
    }

    /// The next keys, without their records; none if the list is over.
    pub fn page(&mut self) -> Result<Vec<R::Key>, StoreError> {
        if self.page.len() == 0 {
            self.read_page()?;
        }
        Ok(std::mem::take(&mut self.page).collect())
    }

    /// The keys of the list, without their records.
    pub fn keys(mut self) -> impl Iterator<Item = Result<R::Key, StoreError>> + use<'a, R> {
        std::iter::from_fn(move || self.next_key())
    }

    fn next_key(&mut self) -> Option<Result<R::Key, StoreError>> {
        if self.page.len() == 0
            && let Err(e) = self.read_page()
        {
            self.rest = Range::default();
            return Some(Err(e));
        }
        self.page.next().map(Ok)
    }

    fn read_page(&mut self) -> Result<(), StoreError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let size = std::mem::replace(&mut self.size, PAGE);
        let (mut page, mut last) = (Vec::new(), None);
        self.store.inner.rows()?.range(self.rest.clone(), self.order, &mut |row, _| {
            page.push(keys::read::<R>(&keys::last_part(row)?)?);
            let is_full = page.len() == size;
            last = is_full.then(|| row.to_vec());
            Ok(!is_full)
        })?;
        self.rest = match (last, self.order) {
            (None, _) => Range::default(),
            (Some(last), Order::LastKeyFirst) => self.rest.start.clone()..last,
            (Some(last), Order::FirstKeyFirst) => keys::after(last)..self.rest.end.clone(),
        };
        self.page = page.into_iter();
        Ok(())
    }
}

impl<R: Record> Iterator for List<'_, R> {
    type Item = Result<(R::Key, Snapshot<R>), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let read = |key| Ok(self.store.get::<R>(&key)?.map(|record| (key, record)));
            if let Some(found) = self.next_key()?.and_then(read).transpose() {
                return Some(found);
            }
        }
    }
}
