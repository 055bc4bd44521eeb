//! `svc release`: creates, publishes and rolls back releases.

use crate::{
    Context, args,
    client::Client,
    failure::Failure,
    printer::{Fields, word},
};
use contract::{
    BoundedSet, Patch, VersionName,
    artifacts::GetArtifact,
    page::Limit,
    releases::{
        CreateRelease, GetReleases, Publication, PublishRelease, Release, ReleaseState,
        RollbackRelease, Target, UpdateRelease,
    },
};

/// The code of a refusal because the version already has a release.
const EXISTS: u16 = 137;

pub fn release(cx: &Context<'_>, command: args::Release) -> Result<(), Failure> {
    let client = cx.client()?;
    let release = match command {
        args::Release::Create { app, artifact, version, channel, notes } => {
            let app_id = cx.settings.app(app)?;
            let artifact_ids = Failure::list("--artifact", artifact)?;
            ensure(&client, &CreateRelease { app_id, artifact_ids, version, channel, notes })?
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
        notes: None,
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
        let state = word(&publication.state);
        let more = publication.error.as_deref().or(publication.url.as_deref()).unwrap_or_default();
        (word(&publication.target), format!("{state} {more}").trim_end().to_owned())
    };
    let mut lines: Vec<_> = release.publications.iter().map(line).collect();
    // The artifacts of a release often share a URL, and then their line.
    lines.dedup();
    lines.into_iter().fold(fields, |fields, (target, line)| fields.with(&target, line))
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
    use crate::testing::{Service, failure};
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
        let service = Service::start([])
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
