//! What the refusals of Google Play mean, and what to do.

use crate::{RemoteError, google::GoogleRefusal};
use std::time::Duration;

/// Why a step did not come to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The edit was ended by others, expired, or was committed before.
    EditGone(String),
    /// The resumable upload is gone.
    UploadGone,
    Store(RemoteError),
}

impl From<RemoteError> for Stop {
    fn from(error: RemoteError) -> Stop {
        Stop::Store(error)
    }
}

const RATE: Duration = Duration::from_secs(60);
/// Reviews take hours.
const REVIEW: Duration = Duration::from_secs(600);

const EDIT_GONE: &[&str] = &[
    "editExpired",
    "editDeleted",
    "editAlreadyCommitted",
    "editNotFound",
    "edit has been deleted",
    "edit has expired",
    "edit has already been",
    "edit not found",
];

/// Sources: reasons and sentences that users of the API report, as collected by Tramline and
/// gradle-play-publisher. The first row that fits counts.
const TABLE: &[(&[&str], &str)] = &[
    (
        &["accessNotConfigured", "SERVICE_DISABLED", "has not been used in project"],
        "Enable the Google Play Android Developer API in the Google Cloud project of the service \
         account, and try again after some minutes.",
    ),
    (
        &["applicationNotFound", "Package not found", "No application was found"],
        "Google Play does not show this app to the service account. Create the app and upload its \
         first version by hand in the Play Console, and invite the service account under Users and \
         permissions.",
    ),
    (
        &["rolloutNotPermittedOnDraftApp", "status draft may be created on draft app"],
        "The app was never published, so Google Play takes drafts only. Publish with the option \
         `draft`, and roll the draft out in the Play Console.",
    ),
    (
        &["changesNotSentForReview must not be set"],
        "Google Play sends the changes of this app for review by itself. Leave the option \
         `changesNotSentForReview` out.",
    ),
    (
        &["changesNotSentForReview"],
        "Google Play wants somebody to send the changes of this app for review in the Play Console. \
         Publish with the option `changesNotSentForReview`, then send them there. Halt a version in \
         the console itself.",
    ),
    (
        &["apkUpgradeVersionConflict", "UpgradeVersionConflict", "has already been used"],
        "The version code was used already. Build the app with a higher one.",
    ),
    (
        &[
            "not signed",
            "is not signed",
            "signed with the wrong",
            "different certificate",
            "debuggable",
        ],
        "The file is not signed as Google Play knows the app. Sign it for release with the upload \
         key of the app.",
    ),
    (
        &["package name", "wrong package"],
        "The file is one of another app. Publish a file with the package name of this app.",
    ),
    (
        &[
            "EXACT_ALARM",
            "exact alarm",
            "foreground service",
            "FOREGROUND_SERVICE",
            "permission.AD_ID",
            "advertising id",
        ],
        "The version needs a declaration. Fill it in under App content in the Play Console.",
    ),
    (
        &["cannot be staged", "can not be staged"],
        "Google Play has no staged rollout for this release. Publish it without `rollout`.",
    ),
];

/// What a refusal means for a step.
pub(super) fn stop(failure: &GoogleRefusal) -> Stop {
    if failure.says(EDIT_GONE) {
        return Stop::EditGone(failure.message.clone());
    }
    if failure.says(&["rateLimitExceeded", "quotaExceeded", "RESOURCE_EXHAUSTED"]) {
        return Stop::Store(RemoteError::Busy { why: failure.to_string(), after: RATE });
    }
    let known = TABLE.iter().find(|(parts, _)| failure.says(parts));
    if let Some((_, what_to_do)) = known {
        return Stop::Store(failure.refused(what_to_do));
    }
    if failure.says(&["in review", "inReview"]) {
        let why = format!(
            "Google Play reviews other changes of the app, and takes this one after that. {failure}"
        );
        return Stop::Store(RemoteError::Busy { why, after: REVIEW });
    }
    match failure.status {
        409 => Stop::EditGone(failure.message.clone()),
        401 => Stop::Store(failure.refused(
            "Google Play does not accept the key of the service account. Replace it with a new one.",
        )),
        403 => Stop::Store(failure.refused(
            "The service account may not do this. Give it the permissions to see the app and to \
             release to this track, under Users and permissions in the Play Console.",
        )),
        _ => Stop::Store(failure.refused("Google Play refuses this.")),
    }
}
