//! The rules of TestFlight: which step is next, and what Apple's states mean. Pure.

use super::progress::{TesterGroup, TestflightProgress};
use crate::{DesiredState, app_store_connect::upload};
use contract::publishing::{GroupName, Percent};
use contract::releases::PublicationState;

/// A step of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestflightStep {
    /// Bring the file to Apple.
    Upload(upload::UploadStep),
    /// Find the groups, before anything is sent.
    FindGroups,
    /// Write the notes for testers in one language.
    Note,
    /// Ask for the beta review, if a group needs it.
    Submit,
    /// Give the build to one group.
    Offer,
    /// See where the build stands.
    Follow,
    /// Make the build expire.
    Expire,
    /// Give the build to its groups again.
    OfferAgain,
    /// Leave everything as it is.
    Rest,
    /// Give up what has begun.
    Abandon,
}

/// The next step. The error says why what is wanted is impossible.
pub(super) fn next(
    progress: &TestflightProgress,
    wanted: DesiredState,
) -> Result<TestflightStep, String> {
    match wanted {
        DesiredState::Halted => Err(
            "TestFlight has no roll-out that could be halted. Withdraw the publication: its build \
             expires then."
                .into(),
        ),
        DesiredState::Released(Some(share)) if share != Percent::ALL => Err(
            "TestFlight has no staged roll-out: a build is for all testers of its groups. Publish \
             without a share, or to a smaller group."
                .into(),
        ),
        DesiredState::Released(_) => Ok(release(progress)),
        DesiredState::Withdrawn => Ok(withdraw(progress)),
        DesiredState::Restored => Ok(match progress.upload.build {
            Some(_) if progress.offered && !progress.is_expired => TestflightStep::OfferAgain,
            _ => TestflightStep::Rest,
        }),
    }
}

fn release(progress: &TestflightProgress) -> TestflightStep {
    match upload::next(&progress.upload) {
        _ if progress.is_over() => TestflightStep::Rest,
        Some(step @ upload::UploadStep::FindApp) => TestflightStep::Upload(step),
        _ if progress.groups.is_none() => TestflightStep::FindGroups,
        Some(step) => TestflightStep::Upload(step),
        None if !progress.noted => TestflightStep::Note,
        None if !progress.submitted => TestflightStep::Submit,
        None if !progress.offered => TestflightStep::Offer,
        None => TestflightStep::Follow,
    }
}

/// What Apple may have whole becomes a build, which internal testers may get at once: it must
/// expire. Anything less is given up.
fn withdraw(progress: &TestflightProgress) -> TestflightStep {
    match upload::next(&progress.upload) {
        _ if progress.is_over() => TestflightStep::Rest,
        _ if !progress.upload.is_sent() => TestflightStep::Abandon,
        Some(step @ (upload::UploadStep::FollowFile | upload::UploadStep::FollowUpload)) => {
            TestflightStep::Upload(step)
        }
        _ => TestflightStep::Expire,
    }
}

impl TestflightProgress {
    /// Whether no tester will get the build any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_expired || self.is_abandoned || self.upload.failure.is_some()
    }

    /// Whether a group needs the beta review.
    pub(super) fn is_external(&self) -> bool {
        self.groups.iter().flatten().any(|group| !group.is_internal)
    }

    /// The state of the publication.
    pub(super) fn state(&self) -> PublicationState {
        if self.is_expired || self.is_abandoned {
            return PublicationState::Halted;
        }
        if self.upload.failure.is_some() || self.failure.is_some() {
            return PublicationState::Failed;
        }
        if !self.upload.is_sent() {
            return PublicationState::Uploading;
        }
        match (self.offered, self.words.as_deref()) {
            (false, _) | (_, None) => PublicationState::Processing,
            (_, Some(words)) => meaning(words).0,
        }
    }
}

/// What a state of a build for its testers means, and why it is final if it is.
///
/// Source: `ExternalBetaState` and `InternalBetaState` of Apple's description.
pub(super) fn meaning(words: &str) -> (PublicationState, Option<&'static str>) {
    match words {
        "WAITING_FOR_BETA_REVIEW"
        | "IN_BETA_REVIEW"
        | "IN_EXPORT_COMPLIANCE_REVIEW"
        | "READY_FOR_BETA_SUBMISSION" => (PublicationState::InReview, None),
        "READY_FOR_BETA_TESTING" | "IN_BETA_TESTING" | "BETA_APPROVED" => {
            (PublicationState::Live, None)
        }
        "EXPIRED" => (PublicationState::Halted, None),
        "BETA_REJECTED" => (
            PublicationState::Failed,
            Some(
                "Apple rejected the build in the beta review. The reasons are in App Store Connect, \
                 under TestFlight: correct them, raise the build number and build again. Apple's \
                 state of the build is BETA_REJECTED.",
            ),
        ),
        "PROCESSING_EXCEPTION" => (
            PublicationState::Failed,
            Some(
                "Apple could not process the build, and sent the reasons by e-mail: correct them, \
                 raise the build number and build again. Apple's state of the build is \
                 PROCESSING_EXCEPTION.",
            ),
        ),
        _ => (PublicationState::Processing, None),
    }
}

/// The groups with these names. The error names those that are missing, and those that there are.
pub(super) fn chosen(all: &[TesterGroup], names: &[GroupName]) -> Result<Vec<TesterGroup>, String> {
    let named = |name: &GroupName| all.iter().find(|group| group.name == name.as_str());
    let missing: Vec<_> =
        names.iter().filter(|name| named(name).is_none()).map(GroupName::as_str).collect();
    if missing.is_empty() {
        return Ok(names.iter().filter_map(named).cloned().collect());
    }
    let known: Vec<_> = all.iter().map(|group| group.name.as_str()).collect();
    let known = match known.is_empty() {
        true => "the app has none".to_owned(),
        false => format!("the app has {}", known.join(", ")),
    };
    Err(format!("TestFlight has no group {}: {known}.", missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_the_end() -> TestflightProgress {
        serde_json::from_value(serde_json::json!({
            "upload": {
                "app": {"id": "1", "name": "A", "language": "en-US"}, "id": "2",
                "committed": true, "delivered": true, "isUsable": true,
                "build": {"id": "3", "expiresAt": "2026-04-01T00:00:00.000Z"},
            },
            "groups": [], "noted": true, "submitted": true, "offered": true,
        }))
        .unwrap()
    }

    #[test]
    fn what_comes_next_follows_from_the_progress() {
        let released =
            |progress: &TestflightProgress| next(progress, DesiredState::Released(None)).unwrap();
        let withdrawn =
            |progress: &TestflightProgress| next(progress, DesiredState::Withdrawn).unwrap();
        let end = at_the_end();
        let begun = TestflightProgress { upload: Default::default(), ..end.clone() };
        assert_eq!(released(&begun), TestflightStep::Upload(upload::UploadStep::FindApp));
        assert_eq!(withdrawn(&begun), TestflightStep::Abandon);
        assert_eq!(
            released(&TestflightProgress { groups: None, ..end.clone() }),
            TestflightStep::FindGroups
        );
        assert_eq!(
            released(&TestflightProgress { noted: false, ..end.clone() }),
            TestflightStep::Note
        );
        assert_eq!(
            released(&TestflightProgress { submitted: false, ..end.clone() }),
            TestflightStep::Submit
        );
        assert_eq!(
            released(&TestflightProgress { offered: false, ..end.clone() }),
            TestflightStep::Offer
        );
        assert_eq!(released(&end), TestflightStep::Follow);
        assert_eq!(withdrawn(&end), TestflightStep::Expire);
        assert_eq!(next(&end, DesiredState::Restored), Ok(TestflightStep::OfferAgain));
        let sent =
            TestflightProgress { upload: upload_that_is_sent(), ..TestflightProgress::default() };
        assert_eq!(withdrawn(&sent), TestflightStep::Upload(upload::UploadStep::FollowFile));
        let expired = TestflightProgress { is_expired: true, ..end.clone() };
        for wanted in
            [DesiredState::Released(None), DesiredState::Withdrawn, DesiredState::Restored]
        {
            assert_eq!(next(&expired, wanted), Ok(TestflightStep::Rest));
        }
        assert!(next(&end, DesiredState::Halted).is_err());
        let share = Percent::of_hundredths(1000);
        assert!(next(&end, DesiredState::Released(share)).is_err());
        assert_eq!(
            next(&end, DesiredState::Released(Some(Percent::ALL))),
            Ok(TestflightStep::Follow)
        );
    }

    fn upload_that_is_sent() -> upload::UploadProgress {
        let mut upload = at_the_end().upload;
        (upload.build, upload.is_usable, upload.delivered) = (None, false, false);
        upload
    }
}
