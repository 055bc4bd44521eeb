//! Takes the steps of a publication.

use super::{
    change,
    checks::{check, same_bytes, wait_for_review},
    edits::Edits,
    lease::{Holder, Leases},
    order::PlayOrder,
    progress::{self, Edit, Lifecycle, PlayProgress, PlayStep, ResumableUpload, Wish},
    refusal::Stop,
    track::{Goal, Shown, Status},
    undo,
    upload::{self, Sent},
};
use crate::{
    Advanced, DesiredState, NextStep, PublicationOrder, ReadAt, RemoteError, ServiceAccount,
    StoreClient,
    google::{self, Google, GoogleAddresses},
};
use async_trait::async_trait;
use contract::{publishing::GooglePlayOptions, releases::PublicationState};
use std::time::Duration;

const SCOPE: &str = "https://www.googleapis.com/auth/androidpublisher";
/// So often an edit is opened anew at once; then the pauses grow.
const RESTARTS_AT_ONCE: u32 = 3;
const LONGEST_RESTART: Duration = Duration::from_secs(300);

/// Google Play, reached through the Google Play Developer API v3.
pub struct GooglePlay {
    google: Google,
    /// Without a slash at the end.
    address: String,
    leases: Leases,
}

/// One step of one publication.
pub(super) struct StepContext<'a> {
    pub asked: PlayOrder<'a>,
    pub edits: Edits<'a>,
    content: &'a dyn ReadAt,
}

impl GooglePlay {
    /// Google Play at these addresses. Every publication of an app in this process must go through
    /// one value of this type: Google takes one edit of an app at a time.
    pub fn new(addresses: &GoogleAddresses) -> Result<GooglePlay, String> {
        Ok(GooglePlay {
            google: Google::new("Google Play", SCOPE, &addresses.token)?,
            address: addresses.play.trim_end_matches('/').to_owned(),
            leases: Leases::default(),
        })
    }

    fn edits<'a>(&'a self, account: &'a ServiceAccount, package: &'a str) -> Edits<'a> {
        Edits { google: &self.google, account, address: &self.address, package }
    }

    async fn perform(
        &self,
        step: PlayStep,
        call: &StepContext<'_>,
        p: &mut PlayProgress,
        log: &mut Vec<String>,
    ) -> Result<(), Stop> {
        let StepContext { asked, edits, .. } = call;
        let (order, wish) = (asked.order, asked.wish);
        let holder = Holder::Publication(order.id);
        let edit = p.edit.clone();
        let id = edit.as_ref().map(|edit| edit.id.as_str()).unwrap_or_default();
        match step {
            PlayStep::Finish => finish(call, p, log),
            PlayStep::Follow => self.follow(call, p).await?,
            PlayStep::Open => self.open(call, p).await?,
            _ => self.leases.take(&order.app, holder, is_urgent(wish.wanted))?,
        }
        match step {
            PlayStep::Finish | PlayStep::Follow | PlayStep::Open => {}
            PlayStep::Check => check(call, id, p, log).await?,
            PlayStep::Begin => {
                let session = upload::begin(edits, id, &order.file).await?;
                if let Some(edit) = &mut p.edit {
                    edit.upload = Some(ResumableUpload { session, sent: 0 });
                }
                log.push(format!("The upload of {} to Google Play begins.", order.file.name));
            }
            PlayStep::Send => send(call, id, p, log).await?,
            PlayStep::Change(goal) => {
                change(call, id, goal, p, log).await?;
                if let Some(edit) = &mut p.edit {
                    edit.changed = Some(goal);
                }
            }
            PlayStep::Commit(goal) => {
                // A halt that waits in the console would halt nothing.
                let stays = order.options.changes_not_sent_for_review && goal != Goal::Halted;
                edits.commit(id, progress::is_urgent(goal), stays).await?;
                self.leases.give_back(&order.app, holder);
                p.committed(goal, wish);
                log.push(committed(asked, goal));
            }
            PlayStep::Close => {
                let may_be_committed = edit.as_ref().is_some_and(|edit| edit.changed.is_some());
                match edits.delete(id).await {
                    // It held nothing, so it is all the same who ended it.
                    Err(Stop::EditGone(_)) if !may_be_committed => {}
                    other => other?,
                }
                self.leases.give_back(&order.app, holder);
                finish(call, p, log);
            }
        }
        Ok(())
    }

    async fn open(&self, call: &StepContext<'_>, p: &mut PlayProgress) -> Result<(), Stop> {
        let StepContext { asked, edits, .. } = call;
        let wanted = asked.wish.wanted;
        if p.shown.is_some() {
            match edits.lifecycle(asked.track, asked.code).await {
                Ok(lifecycle) => p.listed(lifecycle),
                // What is urgent goes on with what was known.
                Err(_) if is_urgent(wanted) => {}
                Err(stop) => return Err(stop),
            }
            wait_for_review(wanted, p)?;
        }
        let holder = Holder::Publication(asked.order.id);
        self.leases.take(&asked.order.app, holder, is_urgent(wanted))?;
        let id = edits.insert().await?;
        p.edit = Some(Edit { id, found: None, upload: None, changed: None });
        Ok(())
    }

    /// Asks how the review goes. What the console changed is looked up in an edit, and only when
    /// nobody here has one: it would end theirs.
    async fn follow(&self, call: &StepContext<'_>, p: &mut PlayProgress) -> Result<(), Stop> {
        let StepContext { asked, edits, .. } = call;
        let Some(shown) = p.shown else { return Ok(()) };
        let (was_listed, was_published) = (p.lifecycle.is_some(), p.was_published);
        let lifecycle = edits.lifecycle(asked.track, asked.code).await?;
        p.listed(lifecycle);
        let may_have_changed = match lifecycle {
            None => was_listed || was_published,
            Some(Lifecycle::Published) => match shown.status {
                Status::InProgress => was_listed && was_published,
                Status::Draft | Status::Halted | Status::Unspecified => true,
                Status::Completed => false,
            },
            Some(_) => false,
        };
        let holder = Holder::Publication(asked.order.id);
        if !may_have_changed || self.leases.take(&asked.order.app, holder, false).is_err() {
            return Ok(());
        }
        let looked = async {
            let id = edits.insert().await?;
            let releases = edits.track(&id, asked.track).await?;
            edits.delete(&id).await?;
            Ok(releases)
        };
        let looked = looked.await;
        self.leases.give_back(&asked.order.app, holder);
        match looked {
            Ok(releases) => p.show(Shown::of(&releases, asked.code)),
            // Somebody else edits the app just now.
            Err(Stop::EditGone(_)) => {}
            Err(stop) => return Err(stop),
        }
        Ok(())
    }
}

/// Whether users may be getting what they should not get.
fn is_urgent(wanted: DesiredState) -> bool {
    matches!(wanted, DesiredState::Halted | DesiredState::Withdrawn)
}

/// Nothing is left to be done. If nothing was done, the history says why, as the plan did.
fn finish(call: &StepContext<'_>, p: &mut PlayProgress, log: &mut Vec<String>) {
    match call.asked.wish.wanted {
        DesiredState::Withdrawn => log.push(undo::withdrawal(p).text),
        DesiredState::Restored => log.push(undo::restoral(p).text),
        DesiredState::Released(_) | DesiredState::Halted => {}
    }
    p.finished(call.asked.wish);
}

/// Sends the next chunk.
async fn send(
    call: &StepContext<'_>,
    id: &str,
    p: &mut PlayProgress,
    log: &mut Vec<String>,
) -> Result<(), Stop> {
    let StepContext { asked, edits, content } = call;
    let file = &asked.order.file;
    let upload = p.edit.as_mut().and_then(|edit| edit.upload.as_mut()).ok_or(Stop::UploadGone)?;
    match upload::send(edits, &upload.session, file, *content).await? {
        Sent::Part(sent) => upload.sent = sent,
        Sent::Whole(uploaded) => {
            if let Err(error) = same_bytes(&uploaded, asked) {
                // What the edit holds is not to be committed by anybody.
                let _ = edits.delete(id).await;
                return Err(error.into());
            }
            p.has_file();
            let size = file.size;
            log.push(format!("Google Play has all {size} bytes and computed the same SHA-256."));
        }
    }
    Ok(())
}

async fn change(
    call: &StepContext<'_>,
    id: &str,
    goal: Goal,
    p: &PlayProgress,
    log: &mut Vec<String>,
) -> Result<(), Stop> {
    let StepContext { asked, edits, .. } = call;
    let found = p.edit.as_ref().and_then(|edit| edit.found.as_ref());
    let ours = asked.ours(found.and_then(|found| found.language.as_deref()));
    let before = edits.track(id, asked.track).await?;
    let replaced = p.replaced.as_ref();
    let after = change::changed(&before, &ours, goal, replaced).map_err(RemoteError::Refused)?;
    edits.put_track(id, asked.track, &after).await?;
    edits.validate(id).await?;
    let kept = |code: &String| after.iter().any(|release| release.version_codes.contains(code));
    let codes = before.iter().flat_map(|release| &release.version_codes);
    let gone: Vec<_> = codes.filter(|code| !kept(code)).map(String::as_str).collect();
    if !gone.is_empty() && goal != Goal::Removed {
        log.push(format!("It takes the place of version code {}.", gone.join(", ")));
    }
    Ok(())
}

fn committed(asked: &PlayOrder<'_>, goal: Goal) -> String {
    let (code, track) = (asked.code, asked.track);
    match goal {
        Goal::Draft => format!(
            "Version code {code} is a draft in {track}. Somebody rolls it out in the Play Console."
        ),
        Goal::Staged(share) => {
            format!("Version code {code} goes to {share} of the users of {track}.")
        }
        Goal::Completed => format!("Version code {code} goes to all users of {track}."),
        Goal::Halted => {
            format!(
                "Version code {code} goes to no more users of {track}. Devices that have it keep it."
            )
        }
        Goal::Removed => format!("Version code {code} was removed from {track}."),
    }
}

/// When the next step is due.
fn due(p: &PlayProgress, wish: Wish, step: PlayStep) -> NextStep {
    let is_done = p.edit.is_none() && !p.is_in_doubt && p.done == Some(wish);
    match p.shown.map(|shown| shown.status) {
        _ if !is_done && p.restarts <= RESTARTS_AT_ONCE => NextStep::Now,
        _ if !is_done => {
            NextStep::After(Duration::from_secs(1 << p.restarts.min(16)).min(LONGEST_RESTART))
        }
        _ if step == PlayStep::Follow => p.pause().map_or(NextStep::Done, NextStep::After),
        None | Some(Status::Halted) => NextStep::Done,
        Some(_) => NextStep::Now,
    }
}

#[async_trait]
impl StoreClient for GooglePlay {
    type Key = ServiceAccount;
    type Options = GooglePlayOptions;
    type Progress = PlayProgress;

    async fn advance(
        &self,
        account: &ServiceAccount,
        order: &PublicationOrder<GooglePlayOptions>,
        content: &dyn ReadAt,
        mut p: PlayProgress,
    ) -> Result<Advanced<PlayProgress>, RemoteError> {
        let asked = PlayOrder::of(order)?;
        let (before, wish) = (p.words(), asked.wish);
        let step = progress::next(wish, &p);
        let call = StepContext { edits: self.edits(account, &order.app), asked, content };
        let mut log = Vec::new();
        let holder = Holder::Publication(order.id);
        let performed = self.perform(step, &call, &mut p, &mut log);
        match google::within(self.step_within(&order.file), performed).await {
            Ok(()) => {}
            Err(Stop::EditGone(words)) => {
                p.edit_is_gone();
                log.push(format!("Google Play ended the edit; it begins anew. It says: {words}"));
            }
            Err(Stop::UploadGone) => {
                p.upload_is_gone();
                log.push("Google Play has forgotten the upload.".into());
            }
            Err(Stop::Store(error)) => {
                // Others need not wait until somebody has done something about it.
                let is_waiting = matches!(step, PlayStep::Commit(_) | PlayStep::Change(_))
                    && matches!(error, RemoteError::Busy { .. });
                if is_waiting || matches!(error, RemoteError::Refused(_)) {
                    self.leases.give_back(&order.app, holder);
                }
                return Err(error);
            }
        }
        let words = p.words();
        if step == PlayStep::Follow && words != before {
            log.extend(words.iter().map(|words| format!("Google Play says: {words}.")));
        }
        let state = p.state(order.wanted);
        let error = (state == PublicationState::Failed).then(|| {
            "Google Play did not approve the version. The Play Console says why under Publishing \
             overview and in the inbox. Publish a version with a higher version code. Google Play \
             says: NOT_APPROVED"
                .to_owned()
        });
        let is_there = p.shown.is_some();
        Ok(Advanced {
            state,
            words,
            remote_id: is_there.then(|| call.asked.code.to_string()),
            url: if is_there { call.asked.url() } else { None },
            log,
            error,
            next: due(&p, wish, step),
            progress: p,
        })
    }

    async fn check_access(
        &self,
        account: &ServiceAccount,
        app: &str,
    ) -> Result<String, RemoteError> {
        self.google.sign_in(account).await?;
        self.leases.take(app, Holder::Check, false)?;
        let edits = self.edits(account, app);
        let looked = async {
            let id = edits.insert().await?;
            let tracks = edits.tracks(&id).await?;
            edits.delete(&id).await?;
            Ok(tracks)
        };
        let looked = looked.await;
        self.leases.give_back(app, Holder::Check);
        match looked {
            Ok(tracks) => {
                let names: Vec<_> = tracks.iter().map(|track| track.track.as_str()).collect();
                Ok(format!(
                    "The service account {} opens {app} in Google Play, with the tracks {}.",
                    account.client_email,
                    names.join(", ")
                ))
            }
            Err(Stop::Store(error)) => Err(error),
            Err(Stop::EditGone(words)) => Err(RemoteError::Busy {
                why: format!("Somebody else edits the app just now. Google says: {words}"),
                after: Duration::from_secs(10),
            }),
            Err(Stop::UploadGone) => Err(RemoteError::Unclear("Google Play has no upload.".into())),
        }
    }
}
