//! The rules of an announcement: it is removed when it ends. Callers see the stored state as it is.

use crate::runtime::resource::{Moment, Never, Resource, Step, Work, without_effects};
use contract::{Fault, Timestamp, announcements::Announcement};
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub struct Announcements;

/// How many announcements may be in force at the same time.
pub const MOST_IN_FORCE: usize = 20;

/// How far ahead the end of an announcement may lie.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(Debug, Clone)]
pub enum Command {
    Delete,
}

impl Resource for Announcements {
    type New = Announcement;
    type State = Announcement;
    type Command = Command;
    without_effects!();

    fn create(at: &Moment<Self>, announcement: Announcement) -> Result<Step<Self>, Fault> {
        match announcement.until {
            Some(until) if until <= at.now => Err(Fault::invalid("until", "must lie ahead")),
            Some(until) if until > at.now + LONGEST => {
                Err(Fault::invalid("until", "must lie at most 365 days ahead"))
            }
            _ => Ok(Step::put(announcement)),
        }
    }

    fn on_command(
        _: Announcement,
        _: &Moment<Self>,
        Command::Delete: Command,
    ) -> Result<Step<Self>, Fault> {
        Ok(Step::remove())
    }

    fn next(announcement: &Announcement) -> Option<Work<Never>> {
        announcement.until.map(Work::wait)
    }

    fn on_due(_: Announcement, _: &Moment<Self>) -> Step<Self> {
        Step::remove()
    }
}

/// Whether people see it. It is removed a moment after its end.
pub fn is_in_force(announcement: &Announcement, now: Timestamp) -> bool {
    announcement.until.is_none_or(|until| until > now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::resource::{Input, Kept, Next, removes_for_good, step};
    use contract::{Id, announcements::AnnouncementTone};
    use ulid::Ulid;

    const NOW: Timestamp = Timestamp::from_millis(1_000);
    const MOMENT: Duration = Duration::from_millis(1);

    fn at(now: Timestamp) -> Moment<Announcements> {
        Moment { id: Id::of(Ulid(1)), now }
    }

    fn until(until: Option<Timestamp>) -> Announcement {
        Announcement {
            id: Id::of(Ulid(1)),
            text: "Maintenance on Friday".parse().unwrap(),
            tone: AnnouncementTone::Info,
            until,
            created_at: NOW,
        }
    }

    #[test]
    fn an_announcement_ends_ahead_and_within_a_year_or_never() {
        let is_created = |end| {
            let created = step(&at(NOW), None, Input::Create(Box::new(until(end))));
            created.map(|step| step.next == Next::Put(until(end)))
        };
        for end in [None, Some(NOW + MOMENT), Some(NOW + LONGEST)] {
            assert_eq!(is_created(end), Ok(true), "{end:?}");
        }
        for end in [NOW - MOMENT, NOW, NOW + LONGEST + MOMENT] {
            let Err(fault) = is_created(Some(end)) else { panic!("{end} is no end") };
            assert_eq!(fault.details().first().map(|it| it.field.as_str()), Some("until"));
        }
    }

    #[test]
    fn it_is_in_force_until_it_is_due_to_be_removed() {
        let end = NOW + LONGEST;
        let told = |kept: &Kept<Announcements>, now| {
            step(&at(now), Some(kept), Input::Due).map(|step| step.next)
        };
        let kept = Kept::at_rest(until(Some(end)));
        assert!(is_in_force(&kept, end - MOMENT) && !is_in_force(&kept, end));
        assert_eq!(told(&kept, end - MOMENT), Ok(Next::Keep));
        assert_eq!(told(&kept, end), Ok(Next::Remove));
        // A clock that is in doubt removes nothing.
        assert!(removes_for_good(&at(end), &kept));
        assert!(!removes_for_good(&at(end - MOMENT), &kept));
        let endless = Kept::at_rest(until(None));
        assert!(is_in_force(&endless, end));
        assert_eq!(told(&endless, end), Ok(Next::Keep));
    }
}
