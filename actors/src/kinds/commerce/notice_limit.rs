//! Limits the notices of payment providers to each app within a minute. Like the rate limit, it counts in
//! memory only. The secret that signs notices is the app's own, so its members can sign as many as they like.

use contract::{AppId, Fault};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::keyed::DashMapStateStore,
};
use std::num::NonZeroU32;

/// How many notices of an app are taken within a minute. A provider repeats those that are refused.
const A_MINUTE: u32 = 600;
/// Beyond so many apps, those are forgotten that may send all their notices again.
const MANY: usize = 10_000;

/// The notices that each app has left.
pub struct NoticeLimit<C: Clock = DefaultClock>(
    RateLimiter<AppId, DashMapStateStore<AppId>, C, NoOpMiddleware<C::Instant>>,
);

impl Default for NoticeLimit {
    fn default() -> Self {
        NoticeLimit::new(DefaultClock::default())
    }
}

impl<C: Clock> NoticeLimit<C> {
    fn new(clock: C) -> Self {
        let quota = Quota::per_minute(NonZeroU32::new(A_MINUTE).unwrap_or(NonZeroU32::MIN));
        NoticeLimit(RateLimiter::new(quota, DashMapStateStore::default(), clock))
    }

    /// Counts a notice, or refuses it.
    pub fn count(&self, app: AppId) -> Result<(), Fault> {
        if self.0.len() > MANY {
            self.0.retain_recent();
        }
        self.0.check_key(&app).map_err(|not_yet| {
            let wait = not_yet.wait_time_from(self.0.clock().now());
            Fault::RateLimited { retry_after: wait.as_secs() + 1 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Id;
    use governor::clock::FakeRelativeClock;
    use std::time::Duration;
    use ulid::Ulid;

    #[test]
    fn an_app_gets_600_notices_a_minute_and_takes_none_of_another() {
        let clock = FakeRelativeClock::default();
        let limit = NoticeLimit::new(clock.clone());
        let (one, other) = (AppId::of(Ulid(1)), AppId::of(Ulid(2)));
        let passed = |app, sent: usize| (0..sent).filter(|_| limit.count(app).is_ok()).count();
        assert_eq!(passed(one, 1_000), 600);
        assert_eq!(limit.count(one), Err(Fault::RateLimited { retry_after: 1 }));
        assert_eq!(passed(other, 1), 1);
        clock.advance(Duration::from_secs(6));
        assert_eq!(passed(one, 1_000), 60);
    }
}
