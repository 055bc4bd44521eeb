//! The times at which a schedule makes its backups.

use contract::{Timestamp, text::CronExpression};
use croner::{Cron, parser::CronParser};
use std::time::Duration;

/// The shortest time between two backups of a schedule.
const CLOSEST: Duration = Duration::from_secs(600);

/// Occurrences that are checked against [`CLOSEST`]. A day has fewer that are far enough apart, so
/// the densest part of a day is seen whenever the schedule is made.
const LOOKED_AT: usize = 200;

/// The first time after `now`. Refuses an expression whose times are too close together.
pub fn first(cron: &CronExpression, now: Timestamp) -> Result<Timestamp, String> {
    let parsed = parse(cron)?;
    let first = after(&parsed, now)?;
    let mut time = first;
    for _ in 0..LOOKED_AT {
        // An expression may name only a few times.
        let Ok(next) = after(&parsed, time) else { break };
        if next.since(time) < CLOSEST {
            return Err("must leave ten minutes between any two backups".into());
        }
        time = next;
    }
    Ok(first)
}

/// The next time after `now`.
pub fn next(cron: &CronExpression, now: Timestamp) -> Result<Timestamp, String> {
    after(&parse(cron)?, now)
}

fn parse(cron: &CronExpression) -> Result<Cron, String> {
    CronParser::new().parse(cron.as_str()).map_err(|e| e.to_string())
}

fn after(cron: &Cron, now: Timestamp) -> Result<Timestamp, String> {
    let now = jiff::Timestamp::from_millisecond(now.as_millis()).map_err(|e| e.to_string())?;
    let now = now.to_zoned(jiff::tz::TimeZone::UTC);
    let next = cron.find_next_occurrence(&now, false).map_err(|e| e.to_string())?;
    Ok(Timestamp::from_millis(next.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_next_time_is_in_utc_and_after_now() {
        let daily: CronExpression = "30 3 * * *".parse().unwrap();
        let next_of = |cron, now: &str| next(cron, at(now)).unwrap();
        assert_eq!(next_of(&daily, "2026-01-31T03:29:59.000Z"), at("2026-01-31T03:30:00.000Z"));
        assert_eq!(next_of(&daily, "2026-01-31T03:30:00.000Z"), at("2026-02-01T03:30:00.000Z"));
        assert!(next(&"99 * * * *".parse().unwrap(), at("2026-01-31T03:30:00.000Z")).is_err());
    }

    #[test]
    fn dense_expressions_are_refused_at_any_time_of_day() {
        let first_of = |cron: &str, now: Timestamp| first(&cron.parse().unwrap(), now);
        for minute in (0..24 * 60).step_by(43) {
            let now = at("2026-01-31T00:00:30.000Z") + Duration::from_secs(60 * minute);
            for dense in ["* * * * *", "0,5 3 * * *", "* 3 * * *", "0,55 0,23 * * *", "0,9 3 1 * *"]
            {
                assert!(first_of(dense, now).is_err(), "{dense} at {now}");
            }
            for sparse in ["*/10 * * * *", "0,10 3 * * *", "30 3 * * 1", "30 3 29 2 *"] {
                assert!(first_of(sparse, now).is_ok(), "{sparse} at {now}");
            }
        }
        assert!(first_of("30 3 30 2 *", at("2026-01-31T00:00:00.000Z")).is_err(), "never");
    }
}
