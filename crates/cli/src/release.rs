//! `svc release`: from artifacts to people.

use crate::{
    Context, args,
    client::Client,
    failure::Failure,
    printer::{Fields, word},
};
use contract::{
    Few,
    page::Limit,
    releases::{
        CreateRelease, GetReleases, PublishRelease, Release, ReleaseState, RollbackRelease, Target,
    },
};

/// The release of a version is there already.
const EXISTS: u16 = 137;

pub fn release(cx: &Context<'_>, command: args::Release) -> Result<(), Failure> {
    let client = cx.client()?;
    let release = match command {
        args::Release::Create { app, artifact, version, channel, notes } => {
            let app_id = cx.settings.app(app)?;
            client.call(&CreateRelease {
                app_id,
                artifact_ids: Failure::list("--artifact", artifact)?,
                version,
                channel,
                notes,
            })?
        }
        args::Release::Publish { release, target } => client.call(&PublishRelease {
            release_id: release,
            targets: Failure::list("--target", target)?,
            notes: None,
        })?,
        args::Release::Rollback { release, to } => {
            client.call(&RollbackRelease { release_id: release, to_release_id: to })?
        }
    };
    cx.printer.reply(&release, fields)?;
    outcome(&release)
}

/// The release that these parameters ask for: made now, or by an earlier run of the same command.
pub fn ensure(client: &Client, wanted: &CreateRelease) -> Result<Release, Failure> {
    let failure = match client.call(wanted) {
        Err(failure) if failure.refused_with(EXISTS).is_some() => failure,
        created => return created,
    };
    let releases = client.list(true, |cursor| GetReleases {
        app_id: wanted.app_id,
        channel: Some(wanted.channel.clone()),
        limit: Limit::default(),
        cursor,
    })?;
    let there = releases.items.into_iter().find(|release| release.version == wanted.version);
    match there {
        Some(there) if wanted.artifact_ids.iter().all(|id| there.artifact_ids.contains(id)) => {
            Ok(there)
        }
        Some(there) => Err(failure.advise(format!(
            "{} is the release of {} in {}, with other artifacts: choose another --version, or \
             make one release of all artifacts with `svc release create`",
            there.id, there.version, there.channel
        ))),
        None => Err(failure),
    }
}

/// Publishes a release to its install page, unless it is published.
pub fn ensure_published(client: &Client, release: Release) -> Result<Release, Failure> {
    if release.state == ReleaseState::Published {
        return Ok(release);
    }
    let params =
        PublishRelease { release_id: release.id, targets: Few::one(Target::Ota), notes: None };
    client.call(&params)
}

/// What a person wants to know of a release.
pub fn fields(release: &Release) -> Fields {
    let fields = Fields::new()
        .with("release", release.id)
        .with("version", &release.version)
        .with("channel", &release.channel)
        .with("state", word(&release.state));
    release.publications.iter().fold(fields, |fields, publication| {
        let state = word(&publication.state);
        let more = publication.error.as_deref().or(publication.url.as_deref()).unwrap_or_default();
        fields.with(&word(&publication.target), format!("{state} {more}").trim_end())
    })
}

/// A publication that no target took was answered, but is not done.
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
    use crate::testing::{Service, failure};
    use serde_json::{Value, json};

    const ARTIFACT: &str = "art_01J9ZQ8F5W7V3T6M2K4N8R0P1S";

    fn there(artifact: &str) -> Value {
        json!({"result": {"nextCursor": null, "items": [{
            "id": "rel_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "appId": "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "version": "1.0.0",
            "channel": "production",
            "artifactIds": [artifact],
            "state": "published",
            "publications": [],
            "createdBy": "usr_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "createdAt": "2026-01-31T12:00:00.000Z",
        }]}})
    }

    fn ensured(there: Value) -> Result<Release, Failure> {
        let service = Service::start([])
            .answering("svc_createRelease", [(409, failure(EXISTS, None))])
            .answering("svc_getReleases", [(200, there)]);
        let wanted = CreateRelease {
            app_id: "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap(),
            artifact_ids: Few::one(ARTIFACT.parse().unwrap()),
            version: "1.0.0".parse().unwrap(),
            channel: "production".parse().unwrap(),
            notes: None,
        };
        let release = ensure(&service.client(), &wanted)?;
        ensure_published(&service.client(), release)
    }

    #[test]
    fn a_release_of_an_earlier_run_is_taken_as_done() {
        assert_eq!(ensured(there(ARTIFACT)).unwrap().state, ReleaseState::Published);
    }

    #[test]
    fn a_release_of_other_artifacts_is_not_taken() {
        let failure = ensured(there("art_01J9ZQ8F5W7V3T6M2K4N8R0P1T")).unwrap_err();
        assert!(failure.hint().contains("svc release create"), "{failure}");
    }
}
