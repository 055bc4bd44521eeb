//! `svc release`: creates, publishes, rolls out, rolls back and deletes releases.

use crate::{
    Context,
    args::{self, Rollout},
    client::Client,
    failure::Failure,
    printer::{Fields, word},
};
use contract::{
    BoundedSet, Patch, VersionName,
    artifacts::GetArtifact,
    page::Limit,
    params,
    publishing::StoreOptions,
    releases::{
        CheckRelease, CreateRelease, DeleteRelease, GetRelease, GetReleases, HaltRollout,
        Publication, PublishRelease, Release, ReleaseState, ResumeRollout, Rollback,
        RollbackRelease, RollbackStep, SetRollout, Target, UpdateRelease,
    },
};
use std::path::Path;

/// The code of a refusal because the version already has a release.
const EXISTS: u16 = 137;

pub fn release(cx: &Context<'_>, command: args::ReleaseCommand) -> Result<(), Failure> {
    let client = cx.client()?;
    let release = match command {
        args::ReleaseCommand::Create { app, artifact, version, channel, notes } => {
            let app_id = cx.settings.app(app)?;
            let artifact_ids = Failure::list("--artifact", artifact)?;
            ensure(&client, &CreateRelease { app_id, artifact_ids, version, channel, notes })?
        }
        args::ReleaseCommand::Show { release, log } => {
            let release = client.call(&GetRelease { release_id: release })?;
            return cx.printer.reply(&release, |release| match log {
                true => history(release),
                false => fields(release),
            });
        }
        args::ReleaseCommand::Check { release } => {
            let release = client.call(&CheckRelease { release_id: release })?;
            return cx.printer.reply(&release, fields);
        }
        args::ReleaseCommand::Publish(wanted) => client.call(&publication(*wanted)?)?,
        args::ReleaseCommand::Rollout { release, to, target } => {
            let targets = match target.is_empty() {
                true => None,
                false => Some(Failure::list("--target", target)?),
            };
            match to {
                Rollout::To(rollout) => {
                    client.call(&SetRollout { release_id: release, targets, rollout })?
                }
                Rollout::Halt => client.call(&HaltRollout { release_id: release, targets })?,
                Rollout::Resume => client.call(&ResumeRollout { release_id: release, targets })?,
            }
        }
        args::ReleaseCommand::Rollback { release, to, withdraw, dry_run } => {
            let params =
                RollbackRelease { release_id: release, to_release_id: to, withdraw, dry_run };
            let rollback = client.call(&params)?;
            cx.printer.reply(&rollback, plan)?;
            if dry_run {
                cx.printer.note("nothing was done; run it again without --dry-run");
            }
            return Ok(());
        }
        args::ReleaseCommand::Delete { release } => {
            let deleted = client.call(&DeleteRelease { release_id: release })?;
            return cx.printer.reply(&deleted, |deleted| format!("{} is deleted", deleted.deleted));
        }
    };
    cx.printer.reply(&release, fields)?;
    outcome(&release)
}

/// The request to publish a release.
fn publication(wanted: args::Publication) -> Result<PublishRelease, Failure> {
    let mut options = match &wanted.options {
        Some(file) => read(file)?,
        None => StoreOptions::default(),
    };
    if wanted.track.is_some() || wanted.draft {
        let play = options.google_play.get_or_insert_default();
        play.track = wanted.track.or(play.track.take());
        play.draft |= wanted.draft;
    }
    let takes = |target| wanted.target.contains(&target);
    if !wanted.group.is_empty() && takes(Target::Testflight) {
        let testflight = options.testflight.get_or_insert_default();
        testflight.groups = Failure::list("--group", wanted.group.clone())?;
    }
    if takes(Target::FirebaseAppDistribution) {
        let firebase = options.firebase.get_or_insert_default();
        if !wanted.group.is_empty() {
            firebase.groups = Failure::list("--group", wanted.group)?;
        }
        if !wanted.tester.is_empty() {
            firebase.testers = Failure::list("--tester", wanted.tester)?;
        }
        for app in wanted.firebase_app {
            match app.as_str().contains(":ios:") {
                true => firebase.ios_app_id = Some(app),
                false => firebase.android_app_id = Some(app),
            }
        }
    }
    Ok(PublishRelease {
        release_id: wanted.release,
        targets: Failure::list("--target", wanted.target)?,
        rollout: wanted.rollout,
        notes: wanted.notes,
        options: (options != StoreOptions::default()).then_some(options),
    })
}

/// Reads the choices for the stores.
fn read(file: &Path) -> Result<StoreOptions, Failure> {
    let unusable = |why: &dyn std::fmt::Display| {
        let hint = "see `options` of svc_publishRelease in docs/REFERENCE.md";
        Failure::usage(format!("{}: {why}", file.display()), hint)
    };
    let text = std::fs::read(file).map_err(|error| unusable(&error))?;
    params::read(&text).map_err(|fault| unusable(&fault))
}

/// Creates a release. If an earlier run or another job created the release of the version, adds the
/// artifacts to that release.
pub fn ensure(client: &Client, wanted: &CreateRelease) -> Result<Release, Failure> {
    let failure = match client.call(wanted) {
        Err(failure) if failure.refused_with(EXISTS).is_some() => failure,
        created => return created,
    };
    let Some(version) = version(client, wanted)? else { return Err(failure) };
    let releases = client.list(true, |cursor| GetReleases {
        app_id: wanted.app_id,
        channel: Some(wanted.channel.clone()),
        state: None,
        limit: Limit::default(),
        cursor,
    })?;
    let Some(there) = releases.items.into_iter().find(|release| release.version == version) else {
        return Err(failure);
    };
    client.call(&UpdateRelease {
        release_id: there.id,
        add_artifact_ids: Failure::list("--artifact", wanted.artifact_ids.to_vec())?,
        notes: Patch::Keep,
    })
}

/// The given version, or else the version of the first artifact.
fn version(client: &Client, wanted: &CreateRelease) -> Result<Option<VersionName>, Failure> {
    match (&wanted.version, wanted.artifact_ids.first()) {
        (None, Some(artifact)) => {
            client.call(&GetArtifact { artifact_id: *artifact }).map(|artifact| artifact.version)
        }
        (given, _) => Ok(given.clone()),
    }
}

/// Publishes a release to its install page, unless it is published.
pub fn ensure_published(client: &Client, release: Release) -> Result<Release, Failure> {
    if release.state == ReleaseState::Published {
        return Ok(release);
    }
    let params = PublishRelease {
        release_id: release.id,
        targets: BoundedSet::one(Target::Ota),
        rollout: None,
        notes: None,
        options: None,
    };
    client.call(&params)
}

/// The fields of a release for people.
pub fn fields(release: &Release) -> Fields {
    let fields = Fields::new()
        .with("release", release.id)
        .with("version", &release.version)
        .with("channel", &release.channel)
        .with("state", word(&release.state));
    let line = |publication: &Publication| {
        let Publication { state, rollout, store_state, error, url, .. } = publication;
        let share = rollout.map(|share| format!("{share} of the users"));
        let words = store_state.as_ref().map(|words| format!("({words})"));
        let more = error.clone().or_else(|| url.clone());
        let parts = [Some(word(state)), share, words, more];
        (word(&publication.target), parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    };
    let mut lines: Vec<_> = release.publications.iter().map(line).collect();
    // The artifacts of a release often share a URL, and then their line.
    lines.dedup();
    lines.into_iter().fold(fields, |fields, (target, line)| fields.with(&target, line))
}

/// The fields of a release, and the history of its publications.
fn history(release: &Release) -> Fields {
    let lines = release.publications.iter().flat_map(|p| p.log.iter().map(|line| (p.target, line)));
    lines.fold(fields(release), |fields, (target, line)| fields.with(&word(&target), line))
}

/// What a rollback does, and the release that is current after it.
fn plan(rollback: &Rollback) -> Fields {
    let step = |step: &RollbackStep| format!("{}: {}", word(&step.action), step.text);
    let steps = rollback.plan.iter();
    steps.fold(fields(&rollback.release), |fields, of| fields.with(&word(&of.target), step(of)))
}

/// Fails for a release that no target accepted, which the service answers with success.
pub fn outcome(release: &Release) -> Result<(), Failure> {
    match release.state {
        ReleaseState::Failed => Err(Failure::told(
            format!("no target took release {}", release.id),
            "mend what the targets say, and run `svc release publish` again",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestService, failure};
    use serde_json::json;

    const ARTIFACT: &str = "art_01J9ZQ8F5W7V3T6M2K4N8R0P1S";

    #[test]
    fn a_release_that_is_there_is_joined() {
        let release = json!({
            "id": "rel_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "appId": "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "version": "1.0.0",
            "channel": "production",
            "artifactIds": [ARTIFACT],
            "state": "published",
            "publications": [],
            "createdBy": null,
            "createdAt": "2026-01-31T12:00:00.000Z",
        });
        let page = json!({"result": {"nextCursor": null, "items": [release]}});
        let artifact = json!({
            "id": ARTIFACT, "appId": release["appId"], "platform": "android", "kind": "apk",
            "fileName": "app.apk", "version": "1.0.0", "trust": "token", "state": "verified",
            "provenance": {"path": "local-publish"}, "createdAt": release["createdAt"],
        });
        let service = TestService::start([])
            .answering("svc_createRelease", [(409, failure(EXISTS, None))])
            .answering("svc_getArtifact", [(200, json!({"result": artifact}))])
            .answering("svc_getReleases", [(200, page)])
            .answering("svc_updateRelease", [(200, json!({"result": release}))]);
        let wanted = CreateRelease {
            app_id: release["appId"].as_str().unwrap().parse().unwrap(),
            artifact_ids: BoundedSet::one(ARTIFACT.parse().unwrap()),
            version: None,
            channel: "production".parse().unwrap(),
            notes: None,
        };
        let joined = ensure(&service.client(), &wanted).unwrap();
        assert_eq!(joined.state, ReleaseState::Published);
        assert_eq!(ensure_published(&service.client(), joined.clone()).unwrap(), joined);
        assert_eq!(service.calls().len(), 4);
    }
}
