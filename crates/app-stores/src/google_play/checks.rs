//! What is looked up before something is done, so that Google need not refuse it later.

use super::{
    change,
    client::StepContext,
    edits::Uploaded,
    order::PlayOrder,
    progress::{self, EditFindings, Lifecycle, PlayProgress},
    refusal::Stop,
    track::Shown,
};
use crate::{DesiredState, RemoteError};
use contract::{Sha256, artifacts::ArtifactKind};
use std::time::Duration;

/// The pause until a review is over.
const REVIEW: Duration = Duration::from_secs(60);

/// A change of a version that Google reviews waits for the end of the review, unless it cancels it.
pub(super) fn wait_for_review(wanted: DesiredState, p: &PlayProgress) -> Result<(), RemoteError> {
    let is_in_review = p.lifecycle == Some(Lifecycle::InReview) && !p.was_published;
    match wanted {
        DesiredState::Withdrawn => Ok(()),
        _ if !is_in_review => Ok(()),
        _ => Err(RemoteError::Busy {
            why:
                "Google Play still reviews this version, and nobody has it yet. It is changed when \
                  the review is over. Withdrawing it cancels the review."
                    .into(),
            after: REVIEW,
        }),
    }
}

/// Reads everything that the edit shows, and refuses what Google would refuse after the upload.
pub(super) async fn check(
    call: &StepContext<'_>,
    id: &str,
    p: &mut PlayProgress,
    log: &mut Vec<String>,
) -> Result<(), Stop> {
    let StepContext { asked, edits, .. } = call;
    let tracks = edits.tracks(id).await?;
    let Some(track) = tracks.iter().find(|track| track.track == asked.track) else {
        let names: Vec<_> = tracks.iter().map(|track| track.track.as_str()).collect();
        return Err(Stop::Store(RemoteError::Refused(format!(
            "The app has no track {:?} in Google Play. It has: {}.",
            asked.track,
            names.join(", ")
        ))));
    };
    let shown = Shown::of(&track.releases, asked.code);
    let (has_file, language) = match asked.wish.wanted {
        DesiredState::Released(_) | DesiredState::Restored => {
            (has_file(&edits.files(id).await?, asked)?, edits.language(id).await?)
        }
        DesiredState::Halted | DesiredState::Withdrawn => (shown.is_some(), None),
    };
    let replaces = change::replaced(&track.releases, asked.code);
    let (had_doubt, was_shown) = (p.is_in_doubt, p.shown.is_some());
    p.checked(EditFindings { has_file, language, replaces, shown });
    if let Some(goal) = progress::goal(asked.wish, p) {
        change::changed(&track.releases, &asked.ours(None), goal, p.replaced.as_ref())
            .map_err(RemoteError::Refused)?;
        if has_file && !was_shown && shown.is_none() {
            log.push("Google Play has these bytes already; they are not sent again.".into());
        }
    } else if had_doubt {
        log.push("Google Play has taken the change: the track shows it.".into());
    }
    Ok(())
}

/// Whether Google has these bytes; a refusal if the version code belongs to others.
fn has_file(
    files: &[(ArtifactKind, Uploaded)],
    asked: &PlayOrder<'_>,
) -> Result<bool, RemoteError> {
    let file = &asked.order.file;
    let mut used = files.iter().filter(|(_, it)| it.version_code == asked.code).peekable();
    if used.peek().is_none() {
        return Ok(false);
    }
    let is_ours =
        |(kind, it): &(ArtifactKind, Uploaded)| *kind == file.kind && same_hash(it, &file.sha256);
    match used.any(is_ours) {
        true => Ok(true),
        false => Err(RemoteError::Refused(format!(
            "Version code {} was used already by other bytes. Build the app with a higher one.",
            asked.code
        ))),
    }
}

fn same_hash(uploaded: &Uploaded, sha256: &Sha256) -> bool {
    uploaded.sha256().is_some_and(|it| it.eq_ignore_ascii_case(sha256.as_str()))
}

pub(super) fn same_bytes(uploaded: &Uploaded, asked: &PlayOrder<'_>) -> Result<(), RemoteError> {
    let file = &asked.order.file;
    if !same_hash(uploaded, &file.sha256) {
        return Err(RemoteError::Refused(format!(
            "Google Play received bytes with the SHA-256 {}, and those of the file have {}. Nothing \
             was published. Upload the file to this service again.",
            uploaded.sha256().unwrap_or("(none)"),
            file.sha256
        )));
    }
    if uploaded.version_code != asked.code {
        return Err(RemoteError::Refused(format!(
            "Google Play read version code {} in the file, and this service {}. Nothing was published.",
            uploaded.version_code, asked.code
        )));
    }
    Ok(())
}
