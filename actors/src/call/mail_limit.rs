//! Limits the mails of invitations within an hour.

use super::window::Window;
use crate::{
    kinds::people::accounts::session::digest,
    ports::random::Random,
    runtime::{
        side_record::{End, SideRecord},
        store::Store,
    },
};
use contract::{EventId, Fault, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::{Change, Merge};

const WITHIN: Window = Window(Duration::from_secs(3600));

/// Where there is no limit, so many are remembered.
const MOST_WITHOUT_LIMIT: usize = 1_000;

/// A sender or recipient, and how many mails it may send or get within an hour.
pub type Share = (String, usize);

/// Counts the mails of each sender and recipient in the store.
pub struct MailLimit {
    pub store: Store,
    pub random: Random,
}

/// The mails of a sender or recipient within an hour. The key is a digest of the name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Mails(Vec<Mail>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Mail {
    id: EventId,
    at: Timestamp,
}

impl Mails {
    fn recent(&self, now: Timestamp) -> impl Iterator<Item = &Mail> {
        self.0.iter().filter(move |mail| WITHIN.has(mail.at, now))
    }

    /// Seconds until fewer than `most` are counted; `None` if that is so already.
    fn until_room(&self, most: usize, now: Timestamp) -> Option<u64> {
        WITHIN.until_fewer(most, self.recent(now).map(|mail| mail.at), now)
    }

    /// With another mail, and without those that are old. `most` is the limit, which leaves room for it.
    fn and(&self, id: EventId, most: usize, now: Timestamp) -> Mails {
        let remembered = if most == usize::MAX { MOST_WITHOUT_LIMIT } else { most };
        let surplus = (self.recent(now).count() + 1).saturating_sub(remembered);
        let recent = self.recent(now).skip(surplus).cloned();
        Mails(recent.chain([Mail { id, at: now }]).collect())
    }
}

impl SideRecord for Mails {
    fn end(&self) -> End {
        WITHIN.end_of(self.0.iter().map(|mail| mail.at))
    }
}

impl Merge for Mails {
    /// The mail that is not counted any more.
    type Delta = EventId;

    fn merge(before: Option<Self>, id: &EventId) -> Option<Self> {
        let mut mails = before?;
        mails.0.retain(|mail| mail.id != *id);
        (!mails.0.is_empty()).then_some(mails)
    }
}

/// A mail that is counted. Dropping it takes the count back, unless [`Counted::was_sent`] was
/// called.
pub struct Counted<'a> {
    limit: &'a MailLimit,
    keys: Vec<String>,
    id: EventId,
}

/// Why a mail is not counted.
#[derive(Debug, PartialEq)]
pub enum NotCounted {
    /// One of the shares is used up.
    UsedUp {
        /// The index of the share.
        share: usize,
        /// Seconds until the share has room.
        retry_after: u64,
    },
    Fault(Fault),
}

impl From<Fault> for NotCounted {
    fn from(fault: Fault) -> Self {
        NotCounted::Fault(fault)
    }
}

impl MailLimit {
    /// Counts a mail for all shares, or for none.
    pub async fn count(&self, shares: &[Share], now: Timestamp) -> Result<Counted<'_>, NotCounted> {
        let (id, keys) = (self.random.id(now), shares.iter().map(|(name, _)| digest(name)));
        let keys: Vec<_> = keys.collect();
        loop {
            let mut counted = Change::new();
            for (share, (key, (_, most))) in keys.iter().zip(shares).enumerate() {
                let seen = self.store.get::<Mails>(key)?;
                let before = seen.as_deref().map(|seen| (**seen).clone()).unwrap_or_default();
                if let Some(retry_after) = before.until_room(*most, now) {
                    return Err(NotCounted::UsedUp { share, retry_after });
                }
                counted =
                    counted.replace::<Mails>(key, seen.as_deref(), before.and(id, *most, now));
            }
            match self.store.commit(counted).await {
                Ok(()) => return Ok(Counted { limit: self, keys, id }),
                // Another mail was counted first.
                Err(Fault::Stale) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    /// How many mails of a sender or recipient are counted now.
    pub fn sent_by(&self, name: &str, now: Timestamp) -> Result<usize, Fault> {
        let found = self.store.get::<Mails>(&digest(name))?;
        Ok(found.map_or(0, |mails| mails.recent(now).count()))
    }
}

impl Counted<'_> {
    /// Keeps the count: the mail is on its way.
    pub fn was_sent(mut self) {
        self.keys.clear();
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let taken_back =
            self.keys.iter().fold(Change::new(), |change, key| change.merge::<Mails>(key, self.id));
        if !taken_back.is_empty() {
            self.limit.store.note(taken_back);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use store::Record;

    fn limit() -> MailLimit {
        let store = Store::from(store::Store::in_memory(&[Mails::TREE]).unwrap());
        MailLimit { store, random: Random::default() }
    }

    #[test]
    fn a_mail_counts_for_all_or_for_none_and_for_an_hour() {
        actix_rt::System::new().block_on(async {
            let limit = limit();
            let shares = |to: &str| [("by/ada".to_owned(), 2), (format!("to/{to}"), 1)];
            let send = async |to: &str, second: i64| {
                let now = Timestamp::from_millis(second * 1000);
                limit.count(&shares(to), now).await.map(Counted::was_sent)
            };
            let full = |share, retry_after| Err(NotCounted::UsedUp { share, retry_after });
            assert_eq!(send("bob", 0).await, Ok(()));
            assert_eq!(send("bob", 10).await, full(1, 3590));
            drop(limit.count(&shares("eve"), Timestamp::from_millis(20_000)).await.unwrap());
            limit.store.barrier().await.unwrap();
            assert_eq!(send("eve", 20).await, Ok(()));
            assert_eq!(send("eva", 30).await, full(0, 3570));
            assert_eq!(send("bob", 3600).await, Ok(()));
            assert_eq!(send("eva", 3610).await, full(0, 10));
        });
    }

    #[test]
    fn sixteen_at_once_send_as_many_as_one_by_one() {
        actix_rt::System::new().block_on(async {
            let limit = limit();
            let (shares, now) = ([("by/ada".to_owned(), 5)], Timestamp::from_millis(1_000));
            let sent = (0..16).map(|_| limit.count(&shares, now));
            let sent = join_all(sent).await.into_iter().filter_map(Result::ok);
            assert_eq!(sent.map(Counted::was_sent).count(), 5);
            assert_eq!(limit.sent_by("by/ada", now), Ok(5));
            // A limit may be higher than what is remembered without one.
            for (most, sent) in [(usize::MAX, 1_100), (1_050, 1_050)] {
                let shares = [(format!("by/{most}"), most)];
                let mut counted = 0;
                while counted < 1_100
                    && limit.count(&shares, now).await.map(Counted::was_sent).is_ok()
                {
                    counted += 1;
                }
                assert_eq!(counted, sent);
            }
        });
    }
}
