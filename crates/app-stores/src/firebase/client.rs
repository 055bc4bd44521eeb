//! Takes the steps of a publication.

use super::{
    order::FirebaseOrder,
    progress::{self, FirebaseProgress, FirebaseStep},
    requests::{Failed, Processed, Requests, upload_within},
};
use crate::{
    Advanced, AppFile, FirebaseApp, NextStep, PublicationOrder, ReadAt, RemoteError, STEP_WITHIN,
    ServiceAccount, StoreClient,
    google::{self, Google, GoogleAddresses, GoogleRefusal},
};
use async_trait::async_trait;
use contract::artifacts::ArtifactKind;
use std::time::Duration;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Firebase App Distribution, reached through its API v1.
pub struct Firebase {
    google: Google,
    /// Without a slash at the end.
    address: String,
}

impl Firebase {
    /// Firebase at these addresses.
    pub fn new(addresses: &GoogleAddresses) -> Result<Firebase, String> {
        Ok(Firebase {
            google: Google::new("Firebase", SCOPE, &addresses.token)?,
            address: addresses.firebase.trim_end_matches('/').to_owned(),
        })
    }

    fn requests<'a>(&'a self, account: &'a ServiceAccount, app: &'a str) -> Requests<'a> {
        Requests { google: &self.google, account, address: &self.address, app }
    }
}

async fn perform(
    step: FirebaseStep,
    asked: &FirebaseOrder<'_>,
    requests: &Requests<'_>,
    content: &dyn ReadAt,
    p: &mut FirebaseProgress,
    log: &mut Vec<String>,
) -> Result<(), Failed> {
    let order = asked.order;
    let release = p.release.as_ref().map(|release| release.name.clone()).unwrap_or_default();
    match step {
        FirebaseStep::Check => {
            check(asked, requests).await?;
            p.is_checked = true;
        }
        FirebaseStep::Upload => {
            p.operation = Some(requests.upload(&order.file, content).await?);
            p.polls = 0;
            log.push(format!("All {} bytes were sent to Firebase.", order.file.size));
        }
        FirebaseStep::Poll => poll(requests, p, log).await?,
        FirebaseStep::Notes => {
            requests.set_notes(&release, asked.notes.unwrap_or_default()).await?;
            p.has_notes = true;
        }
        FirebaseStep::Distribute => {
            requests.distribute(&release, &order.options).await?;
            p.is_distributed = true;
            p.done = Some(order.wanted);
            log.push("The testers have got the release.".into());
        }
        FirebaseStep::Delete => {
            requests.delete(&release).await?;
            p.is_deleted = true;
            p.done = Some(order.wanted);
            log.push("The release was deleted from Firebase.".into());
        }
        FirebaseStep::Finish => {
            if p.release.is_some() && !asked.has_testers() && p.done.is_none() {
                log.push(
                    "The publication names no testers, so Firebase gives it to nobody.".into(),
                );
            }
            p.done = Some(order.wanted);
        }
    }
    Ok(())
}

/// Asks whether Firebase has made a release of the file.
async fn poll(
    requests: &Requests<'_>,
    p: &mut FirebaseProgress,
    log: &mut Vec<String>,
) -> Result<(), Failed> {
    match requests.processed(p.operation.as_deref().unwrap_or_default()).await? {
        Processed::NotYet => p.polls = p.polls.saturating_add(1),
        Processed::Forgotten => p.operation = None,
        Processed::Release(uploaded, is_old) => {
            log.push(match is_old {
                true => "Firebase had a release of the same bytes already.".into(),
                false => "Firebase has made a release of the file.".into(),
            });
            p.release = Some(uploaded);
        }
        Processed::Refused(message) => {
            p.refused = Some(format!(
                "Firebase cannot make a release of the file. Build it again. Firebase says: \
             {message}"
            ));
        }
    }
    Ok(())
}

async fn check(asked: &FirebaseOrder<'_>, requests: &Requests<'_>) -> Result<(), Failed> {
    requests.look().await?;
    if asked.order.file.kind == ArtifactKind::Aab {
        let state = requests.aab_state().await?;
        if let Some(what_to_do) = unlinked(&state) {
            let why = format!(
                "Firebase takes no app bundles of this app. {what_to_do} Firebase says: {state}"
            );
            return Err(RemoteError::Refused(why).into());
        }
    }
    if asked.order.options.groups.iter().count() == 0 {
        return Ok(());
    }
    let known = match requests.groups().await {
        Ok(known) => known,
        // Who may distribute need not be allowed to read the groups.
        Err(Failed::Refusal(failure)) if failure.status == 403 => return Ok(()),
        Err(failed) => return Err(failed),
    };
    let is_unknown = |name: &&str| !known.iter().any(|known| known == name);
    let names = asked.order.options.groups.iter().map(|group| group.as_str());
    let unknown: Vec<_> = names.filter(is_unknown).collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(RemoteError::Refused(format!(
            "Firebase has no group of testers with the alias {}. It has: {}.",
            unknown.join(", "),
            known.join(", ")
        ))
        .into()),
    }
}

/// What to do about a missing link to Google Play; `None` if bundles are taken.
fn unlinked(state: &str) -> Option<&'static str> {
    Some(match state {
        "INTEGRATED" | "AAB_STATE_UNAVAILABLE" => return None,
        "PLAY_ACCOUNT_NOT_LINKED" | "PLAY_ANDROID_DEVELOPER_CONSOLE_ACCOUNT_NOT_FOUND" => {
            "Link the Firebase project to Google Play, or publish an .apk."
        }
        "NO_APP_WITH_GIVEN_BUNDLE_ID_IN_PLAY_ACCOUNT"
        | "PLAY_ANDROID_DEVELOPER_CONSOLE_PACKAGE_NOT_FOUND" => {
            "Create the app in the Google Play account that is linked, or publish an .apk."
        }
        "APP_NOT_PUBLISHED" => "Publish the app in Google Play once, or publish an .apk.",
        "PLAY_IAS_TERMS_NOT_ACCEPTED" => {
            "Accept the terms of internal app sharing in the Play Console, or publish an .apk."
        }
        _ => "Look at the app under App Distribution in the Firebase console, or publish an .apk.",
    })
}

/// A refusal: what to do, and Firebase's own words.
fn refused(failure: &GoogleRefusal, step: Option<FirebaseStep>) -> RemoteError {
    if failure.says(&["RESOURCE_EXHAUSTED", "rateLimitExceeded", "quotaExceeded"]) {
        return RemoteError::Busy { why: failure.to_string(), after: Duration::from_secs(60) };
    }
    let is_disabled =
        failure.says(&["SERVICE_DISABLED", "accessNotConfigured", "has not been used in project"]);
    failure.refused(match (failure.status, step) {
        _ if is_disabled => {
            "Enable the Firebase App Distribution API in the Google Cloud project of the app, and try \
             again after some minutes."
        }
        (400, Some(FirebaseStep::Distribute)) if failure.says(&["FAILED_PRECONDITION", "testers"]) => {
            "Firebase does not take the addresses of the testers. Correct the option `testers`."
        }
        (400, Some(FirebaseStep::Distribute)) => {
            "Firebase does not take the groups of testers. Correct the option `groups`: it has the \
             aliases of groups."
        }
        (404, Some(FirebaseStep::Distribute | FirebaseStep::Notes)) => {
            "Firebase does not have the release any more: releases expire. Publish the file again."
        }
        (401, _) => {
            "Firebase does not accept the key of the service account. Replace it with a new one."
        }
        (403, _) => {
            "The service account may not do this. Give it the role Firebase App Distribution Admin in \
             the project of the app."
        }
        (404, _) => {
            "Firebase does not know the app, or App Distribution was never opened for it. Check the \
             option `iosAppId` or `androidAppId`, and open App Distribution in the Firebase console once."
        }
        _ => "Firebase refuses this.",
    })
}

#[async_trait]
impl StoreClient for Firebase {
    type Key = ServiceAccount;
    type Options = FirebaseApp;
    type Progress = FirebaseProgress;

    async fn advance(
        &self,
        account: &ServiceAccount,
        order: &PublicationOrder<FirebaseApp>,
        content: &dyn ReadAt,
        mut p: FirebaseProgress,
    ) -> Result<Advanced<FirebaseProgress>, RemoteError> {
        let asked = FirebaseOrder::of(order)?;
        let step = progress::next(order.wanted, asked.notes.is_some(), asked.has_testers(), &p);
        let requests = self.requests(account, asked.app);
        let mut log = Vec::new();
        let performed = perform(step, &asked, &requests, content, &mut p, &mut log);
        match google::within(self.step_within(&order.file), performed).await {
            Ok(()) => {}
            Err(Failed::Store(error)) => return Err(error),
            Err(Failed::Refusal(failure)) => return Err(refused(&failure, Some(step))),
        }
        let next = match step {
            _ if p.refused.is_some() || p.done == Some(order.wanted) => NextStep::Done,
            FirebaseStep::Poll if p.release.is_none() && p.operation.is_some() => {
                NextStep::After(p.pause())
            }
            _ => NextStep::Now,
        };
        Ok(Advanced {
            state: p.state(order.wanted),
            words: None,
            remote_id: p.release.as_ref().map(|release| release.name.clone()),
            url: p.release.as_ref().and_then(|release| release.url.clone()),
            log,
            error: p.refused.clone(),
            next,
            progress: p,
        })
    }

    /// `app` is the id of the app in Firebase, such as `1:1234567890:android:0a1b2c3d4e5f67890`.
    async fn check_access(
        &self,
        account: &ServiceAccount,
        app: &str,
    ) -> Result<String, RemoteError> {
        self.google.sign_in(account).await?;
        match self.requests(account, app).look().await {
            Ok(()) => Ok(format!(
                "The service account {} opens {app} in Firebase App Distribution.",
                account.client_email
            )),
            Err(Failed::Store(error)) => Err(error),
            Err(Failed::Refusal(failure)) => Err(refused(&failure, None)),
        }
    }

    /// The upload of a file is one step, however large the file is.
    fn step_within(&self, file: &AppFile) -> Duration {
        STEP_WITHIN.max(upload_within(file.size))
    }
}
