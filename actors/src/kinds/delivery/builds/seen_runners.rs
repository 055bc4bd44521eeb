//! The runners that asked for builds since the service started. It tells who triggers a build that no
//! runner would take it; nothing else depends on it, so it is not stored.

use super::waiting::Served;
use contract::{AppId, OrganizationId, UserId, apps::Platform, builds::Labels, text::Slug};
use std::{collections::VecDeque, sync::Mutex};

/// How many runners are remembered, and how many of one person.
const MOST: usize = 2_000;
const MOST_OF_ONE: usize = 20;

/// A runner that asked for a build.
#[derive(Debug, Clone, PartialEq)]
struct SeenRunner {
    /// The person for whom it works.
    user: UserId,
    served: Served,
    labels: Vec<Slug>,
}

/// The runners that asked, the latest last.
#[derive(Debug, Default)]
pub struct SeenRunners(Mutex<VecDeque<SeenRunner>>);

impl SeenRunners {
    /// A runner asks for a build of the organizations and apps that it may serve.
    pub(crate) fn saw(&self, user: UserId, served: &Served, labels: &[Slug]) {
        let mut labels = labels.to_vec();
        labels.sort();
        let seen = SeenRunner { user, served: served.clone(), labels };
        let Ok(mut runners) = self.0.lock() else { return };
        runners.retain(|other| *other != seen);
        let mut of_user = runners.iter().enumerate().filter(|(_, other)| other.user == user);
        let oldest =
            of_user.next().map(|(at, _)| at).filter(|_| of_user.count() + 1 >= MOST_OF_ONE);
        let oldest = oldest.or_else(|| (runners.len() >= MOST).then_some(0));
        if let Some(oldest) = oldest {
            runners.remove(oldest);
        }
        runners.push_back(seen);
    }

    /// A warning if no runner has asked that would take such a build.
    pub(crate) fn warning(
        &self,
        organization: OrganizationId,
        app: AppId,
        platform: Platform,
        labels: &Labels,
    ) -> Option<String> {
        let wanted: Vec<_> = [platform.name()]
            .into_iter()
            .chain(labels.iter().map(|label| label.as_str()))
            .collect();
        if self.has(organization, app, &wanted) {
            return None;
        }
        Some(format!(
            "no runner with the labels {} has asked for builds of this app since the service started: \
             the build waits for one, for at most a day (`svc runner --labels {}`)",
            wanted.join(", "),
            wanted.join(",")
        ))
    }

    fn has(&self, organization: OrganizationId, app: AppId, wanted: &[&str]) -> bool {
        let is_fit = |seen: &SeenRunner| {
            let has = |label: &&str| seen.labels.iter().any(|of| of.as_str() == *label);
            seen.served.has(app, organization) && wanted.iter().all(has)
        };
        self.0.lock().is_ok_and(|runners| runners.iter().any(is_fit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Id;
    use ulid::Ulid;

    fn labels(names: &[&str]) -> Vec<Slug> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_runner_takes_what_it_serves_and_has_the_labels_of() {
        let [ada, bob] = [1, 2].map(|n| UserId::of(Ulid(n)));
        let [acme, other] = [3, 4].map(|n| OrganizationId::of(Ulid(n)));
        let [app, another] = [5, 6].map(|n| AppId::of(Ulid(n)));
        let of_acme = Served { organizations: [acme].into(), ..Served::default() };
        let of_app = Served { apps: [app].into(), ..Served::default() };
        let seen = SeenRunners::default();
        seen.saw(ada, &of_acme, &labels(&["android", "ndk"]));
        seen.saw(bob, &of_app, &labels(&["ios"]));
        assert!(seen.has(acme, another, &["android"]));
        assert!(seen.has(acme, another, &["android", "ndk"]));
        assert!(!seen.has(other, another, &["android"]));
        assert!(seen.has(other, app, &["ios"]));
        assert!(!seen.has(other, another, &["ios"]));
        assert!(!seen.has(acme, another, &["ios"]));
        assert_eq!(seen.warning(acme, another, Platform::Android, &Labels::default()), None);
        assert!(seen.warning(acme, another, Platform::Ios, &Labels::default()).is_some());
    }

    #[test]
    fn one_person_takes_no_place_of_another() {
        let [ada, bob] = [1, 2].map(|n| UserId::of(Ulid(n)));
        let acme = OrganizationId::of(Ulid(3));
        let of_acme = Served { organizations: [acme].into(), ..Served::default() };
        let seen = SeenRunners::default();
        seen.saw(bob, &of_acme, &labels(&["ios"]));
        for n in 0..100 {
            seen.saw(ada, &of_acme, &labels(&["android", &format!("l{n}")]));
        }
        let app = AppId::of(Ulid(5));
        assert!(seen.has(acme, app, &["ios"]) && seen.has(acme, app, &["l99"]));
        assert!(!seen.has(acme, app, &["l79"]) && seen.has(acme, app, &["l80"]));
    }
}
