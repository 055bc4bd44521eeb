//! Live updates of a page, by server-sent events (HTML standard, section 9.2).
//!
//! An element with `data-live` names the address of a stream. The stream calls functions for the
//! person who looks, at intervals, and sends what is new as a piece of HTML. Each event has an id, from
//! which a stream goes on after an interruption. A page without scripts shows the same when it is
//! loaded again.

use crate::{
    response::{PageResult, Refused},
    visitor::Visitor,
};
use actix_web::{HttpResponse, http::header};
use askama::Template;
use bytes::Bytes;
use contract::{Fault, UserId};
use data_encoding::HEXLOWER;
use futures_util::stream;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The streams that may be open at a time, and those of one account.
const MOST: usize = 512;
const MOST_OF_ONE: usize = 32;
/// How long a stream lasts. The browser then opens the next one.
const LASTS: Duration = Duration::from_secs(600);
/// The longest silence. A comment then shows whether somebody still reads.
const QUIET: Duration = Duration::from_secs(15);

/// The open streams of each account.
static OPEN: Mutex<BTreeMap<UserId, usize>> = Mutex::new(BTreeMap::new());

/// What is new on a page.
pub enum Update {
    /// Nothing.
    None,
    /// A piece of HTML after what the element has, and the id of this state.
    Append(String, String),
    /// A piece of HTML in place of what the element has, and the id of this state.
    Replace(String, String),
}

/// Whether more will come.
pub enum Next {
    Later,
    /// Nothing changes any more.
    Never,
}

/// Streams what `read` finds, once each `interval`. It gets the id of the last event.
pub async fn stream<L>(visitor: Visitor, interval: Duration, read: L) -> PageResult
where
    L: AsyncFn(&Visitor, Option<&str>) -> Result<(Update, Next), Refused> + 'static,
{
    let slot = StreamSlot::take(visitor.user().await?.id).ok_or(Refused(Fault::Busy))?;
    let last = visitor.request().headers().get("last-event-id");
    let last = last.and_then(|id| id.to_str().ok()).map(str::to_owned);
    let begun = Instant::now();
    let state = Some((visitor, read, last, slot, Instant::now(), true));
    let events = stream::unfold(state, move |state| async move {
        let (visitor, read, mut last, slot, mut spoke, mut first) = state?;
        loop {
            if !std::mem::take(&mut first) {
                visitor.sleep(interval).await;
            }
            if begun.elapsed() > LASTS || visitor.is_stopping() {
                return None;
            }
            visitor.count_next_call();
            let Ok((update, next)) = read(&visitor, last.as_deref()).await else {
                // The page shows why when it is loaded again.
                return Some((event("end", "", ""), None));
            };
            let mut text = match update {
                Update::None => String::new(),
                Update::Append(html, id) => keep(&mut last, id, |id| written("append", id, &html)),
                Update::Replace(html, id) => {
                    keep(&mut last, id, |id| written("replace", id, &html))
                }
            };
            if matches!(next, Next::Never) {
                text.push_str(&written("end", "", ""));
                return Some((Ok(text.into()), None));
            }
            if text.is_empty() && spoke.elapsed() > QUIET {
                text.push_str(":\n\n");
            }
            if !text.is_empty() {
                spoke = Instant::now();
                return Some((Ok(text.into()), Some((visitor, read, last, slot, spoke, false))));
            }
        }
    });
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/event-stream"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(events))
}

/// The update to what a template shows now, unless the last event was the same.
pub fn replaced(
    shown: &impl Template,
    last: Option<&str>,
    next: Next,
) -> Result<(Update, Next), Refused> {
    let html = shown.render().map_err(|_| Refused(Fault::Internal))?;
    let id = HEXLOWER.encode(&Sha256::digest(&html));
    match last == Some(id.as_str()) {
        true => Ok((Update::None, next)),
        false => Ok((Update::Replace(html, id), next)),
    }
}

fn keep(last: &mut Option<String>, id: String, text: impl FnOnce(&str) -> String) -> String {
    let text = text(&id);
    *last = Some(id);
    text
}

fn event(kind: &str, id: &str, html: &str) -> Result<Bytes, Infallible> {
    Ok(written(kind, id, html).into())
}

/// An event. Each line of the HTML is a line of data.
fn written(kind: &str, id: &str, html: &str) -> String {
    let mut text = format!("event: {kind}\n");
    if !id.is_empty() {
        // A string takes all that is written.
        let _ = writeln!(text, "id: {}", id.replace(['\n', '\r', '\0'], ""));
    }
    for line in html.split(['\n', '\r']) {
        let _ = writeln!(text, "data: {line}");
    }
    text.push('\n');
    text
}

/// One of the open streams of an account.
struct StreamSlot(UserId);

impl StreamSlot {
    fn take(user: UserId) -> Option<StreamSlot> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&user).copied().unwrap_or(0);
        if all >= MOST || own >= MOST_OF_ONE {
            return None;
        }
        open.insert(user, own + 1);
        Some(StreamSlot(user))
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.0) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                open.remove(&self.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_OF_ONE, StreamSlot, written};

    #[test]
    fn one_account_leaves_streams_for_others() {
        let user = |text: &str| text.parse().unwrap();
        let ada = user("usr_01J9ZQ8F5W7V3T6M2K4N8R0P1S");
        let grace = user("usr_01J9ZQ8F5W7V3T6M2K4N8R0P1T");
        let taken: Vec<_> = (0..).map_while(|_| StreamSlot::take(ada)).collect();
        assert_eq!(taken.len(), MOST_OF_ONE);
        assert!(StreamSlot::take(grace).is_some());
        drop(taken);
        assert!(StreamSlot::take(ada).is_some());
    }

    #[test]
    fn an_event_cannot_contain_another() {
        assert_eq!(
            written("append", "7\nid: 8", "a\r\n\nevent: end"),
            "event: append\nid: 7id: 8\ndata: a\ndata: \ndata: \ndata: event: end\n\n"
        );
    }
}
