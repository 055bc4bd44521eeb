//! Reads the top level of a property list, binary or XML.

use std::collections::BTreeMap;
use std::io::Cursor;

use plist::stream::{Event, Reader};

/// Most bytes of a list. The reader needs up to 24 bytes of memory for each.
const MAX_LEN: usize = 1 << 20;
/// Most levels of a list. An `Info.plist` has about four.
const MAX_DEPTH: usize = 16;
/// Most items in one collection. The reader keeps one collection open on each level.
const MAX_ITEMS: u64 = 10_000;
/// Most bytes of all events together. A binary list may name one object many times, so a small file
/// can describe an endless tree.
const MAX_WORK: usize = 16 << 20;
const WORK_PER_EVENT: usize = 64;

/// The strings, and the lists of strings, at the top level of a property list.
#[derive(Debug, Default)]
pub(super) struct InfoPlist(BTreeMap<String, Vec<String>>);

impl InfoPlist {
    /// `None` if this is not a well-formed property list with a dictionary at its top.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= MAX_LEN).then_some(())?;
        let mut events = Reader::new(Cursor::new(bytes));
        matches!(events.next()?, Ok(Event::StartDictionary(_))).then_some(())?;

        let mut list = Self::default();
        let mut depth: usize = 1;
        let mut key: Option<String> = None;
        let mut value_is_array = false;
        let mut work: usize = 0;
        for event in events {
            let event = event.ok()?;
            work = work.saturating_add(cost(&event)?);
            (depth > 0 && work <= MAX_WORK).then_some(())?;
            match (depth, event) {
                (_, Event::EndCollection) => {
                    depth = depth.checked_sub(1)?;
                    if depth == 1 {
                        key = None;
                    }
                }
                (_, event @ (Event::StartArray(_) | Event::StartDictionary(_))) => {
                    if depth == 1 {
                        key.as_ref()?;
                        value_is_array = matches!(event, Event::StartArray(_));
                    }
                    depth = depth.checked_add(1).filter(|depth| *depth <= MAX_DEPTH)?;
                }
                (1, Event::String(text)) => match key.take() {
                    None => key = Some(text.into_owned()),
                    Some(key) => list.keep(key, text.into_owned()),
                },
                (1, _) => {
                    key.take()?;
                }
                (2, Event::String(text)) if value_is_array => {
                    list.keep(key.clone()?, text.into_owned());
                }
                _ => {}
            }
        }
        (depth == 0).then_some(list)
    }

    fn keep(&mut self, key: String, text: String) {
        self.0.entry(key).or_default().push(text);
    }

    /// The string with this key. `None` also if the key is repeated, because some readers take the
    /// first string and others the last.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        match self.all(key) {
            [text] => Some(text.clone()),
            _ => None,
        }
    }

    /// The strings in the list with this key, or the one string.
    pub(super) fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }
}

/// The bytes that an event counts for; `None` if it alone is too large.
fn cost(event: &Event) -> Option<usize> {
    let payload = match event {
        Event::String(text) => text.len(),
        Event::Data(data) => data.len(),
        Event::StartArray(Some(len)) | Event::StartDictionary(Some(len)) => {
            usize::try_from(*len).ok().filter(|_| *len <= MAX_ITEMS)?.checked_mul(8)?
        }
        _ => 0,
    };
    payload.checked_add(WORK_PER_EVENT)
}
