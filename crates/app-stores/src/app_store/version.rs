//! The steps that prepare a version: nobody sees it until it is submitted.

use super::{
    AppStoreProgress,
    checks::{self, KnownVersion},
    client::{AppStorePublisher, app, build, known},
    progress::Phases,
};
use crate::{
    DesiredState, RemoteError,
    app_store_connect::{
        AppleRequest, StepReport, checked_notes,
        documents::{Localization, Many, One, PhasedRelease, Resource, Version},
        linked, resource,
    },
};
use contract::{
    Timestamp,
    publishing::{AppStoreRelease, Percent},
};
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: i64 = 60 * 60 * 1000;
const VERSIONS: &str = "/v1/appStoreVersions";
const PHASED: &str = "appStoreVersionPhasedReleases";

/// A version as it is now.
pub(super) struct VersionDetails {
    pub version: Version,
    pub build: Option<String>,
    pub phases: Option<Phases>,
}

impl AppStorePublisher<'_> {
    /// Checks what can be read, before anything is sent.
    pub(super) async fn check(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let app = app(progress)?;
        let notes = checked_notes(self.order, &app.language)?;
        let has_notes = notes.contains_key(app.language.as_str());
        let ground = checks::ground(&self.versions(&app.id).await?, &self.order.file.version);
        let ground = ground.map_err(RemoteError::Refused)?;
        if ground.is_first && self.wants_phases() {
            return Err(RemoteError::Refused(
                "Only an update can be released in phases, and this is the first version of the \
                 app. Publish it to everybody."
                    .into(),
            ));
        }
        // A new version takes over what the last one shows, but for its release notes.
        let mut tells_news = false;
        if let Some(draft) = &ground.editable {
            let localizations = self.localizations(&draft.id).await?;
            let all: Vec<_> = localizations.into_iter().map(|one| one.attributes).collect();
            checks::complete(&all).map_err(RemoteError::Refused)?;
            tells_news = checks::tells_news(&all);
        }
        if !ground.is_first && !has_notes && !tells_news {
            return Err(RemoteError::Refused(format!(
                "An update needs release notes. Give some in {}, the language of the app in the \
                 App Store; other languages without own notes show them too.",
                app.language
            )));
        }
        progress.is_first = ground.is_first;
        progress.checked = true;
        Ok(StepReport::silently())
    }

    /// Creates the version, or takes over the one that can be edited.
    pub(super) async fn ensure_version(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let app = app(progress)?;
        let wanted = &self.order.file.version;
        let versions = self.versions(&app.id).await?;
        let ground = checks::ground(&versions, wanted).map_err(RemoteError::Refused)?;
        let mut attributes = self.release_type();
        if let Some(attributes) = attributes.as_object_mut() {
            attributes.insert("versionString".into(), json!(wanted));
        }
        let (id, said) = match ground.editable {
            Some(KnownVersion { id, version, .. }) => {
                let body = resource("appStoreVersions", Some(&id), attributes);
                self.api.change(AppleRequest::patch(format!("{VERSIONS}/{id}"), body)).await?;
                let said = match version == *wanted {
                    true => format!("The draft of version {version} is used."),
                    false => format!("The draft of version {version} becomes version {wanted}."),
                };
                (id, said)
            }
            None => {
                if let Some(attributes) = attributes.as_object_mut() {
                    attributes.insert("platform".into(), json!("IOS"));
                }
                let body = linked("appStoreVersions", attributes, &[("app", "apps", &app.id)]);
                let created: One<Version> =
                    self.api.read(AppleRequest::post(VERSIONS, body)).await?;
                (created.data.id, format!("Version {wanted} was created."))
            }
        };
        progress.version = Some(id);
        Ok(StepReport::saying(said))
    }

    pub(super) async fn attach(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let (id, build) = (known(&progress.version)?, build(progress)?);
        let looked = self.look_at_version(id).await?;
        let done = match looked.build.as_deref() == Some(build) {
            true => StepReport::silently(),
            false => {
                let body = json!({"data": {"type": "builds", "id": build}});
                let path = format!("{VERSIONS}/{id}/relationships/build");
                self.api.change(AppleRequest::patch(path, body)).await?;
                StepReport::saying("The version has the build.")
            }
        };
        progress.attached = true;
        Ok(done)
    }

    /// Writes the release notes in the first language in which they are not in place. Apple demands
    /// some in every language of the version: those without own ones show those of the default
    /// language.
    pub(super) async fn note(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let language_of_app = &app(progress)?.language;
        let notes = checked_notes(self.order, language_of_app)?;
        let mut done = StepReport::silently();
        if progress.is_first && !notes.is_empty() {
            done = done.and_say("The App Store shows no release notes of a first version.");
        }
        if !progress.is_first {
            let there = self.localizations(known(&progress.version)?).await?;
            let usual = notes.get(language_of_app.as_str());
            for localization in &there {
                let Localization { locale, whats_new, .. } = &localization.attributes;
                let is_empty = whats_new.as_deref().is_none_or(|text| text.trim().is_empty());
                let own = notes.get(locale.as_str());
                let Some(text) = own.or(usual.filter(|_| is_empty)) else { continue };
                if whats_new.as_deref() == Some(*text) {
                    continue;
                }
                let (kind, id) = ("appStoreVersionLocalizations", &localization.id);
                let body = resource(kind, Some(id), json!({"whatsNew": text}));
                self.api.change(AppleRequest::patch(format!("/v1/{kind}/{id}"), body)).await?;
                return Ok(StepReport::saying(format!(
                    "The release notes are in place in {locale}."
                )));
            }
            let is_there = |language: &str| {
                there.iter().any(|localization| localization.attributes.locale == language)
            };
            for language in notes.keys().filter(|language| !is_there(language)) {
                done = done.and_say(format!(
                    "The version has no {language}, so that its release notes are left out."
                ));
            }
        }
        progress.noted = true;
        Ok(done)
    }

    pub(super) async fn set_phases(
        &self,
        progress: &mut AppStoreProgress,
    ) -> Result<StepReport, RemoteError> {
        let version = known(&progress.version)?;
        let looked = self.look_at_version(version).await?;
        let done = match (looked.phases, self.wants_phases()) {
            (None, true) => {
                let attributes = json!({"phasedReleaseState": "INACTIVE"});
                let to = [("appStoreVersion", "appStoreVersions", version)];
                let body = linked(PHASED, attributes, &to);
                self.api.change(AppleRequest::post(format!("/v1/{PHASED}"), body)).await?;
                StepReport::saying("The version will be released in phases.")
            }
            // Of an earlier publication of the draft.
            (Some(phases), false) => {
                self.api
                    .change(AppleRequest::delete(format!("/v1/{PHASED}/{}", phases.id)))
                    .await?;
                StepReport::silently()
            }
            _ => StepReport::silently(),
        };
        progress.phases_set = true;
        Ok(done)
    }

    /// Sets when the version is released after its approval.
    pub(super) async fn set_release(
        &self,
        version: &str,
        release: Value,
    ) -> Result<(), RemoteError> {
        let body = resource("appStoreVersions", Some(version), release);
        self.api.change(AppleRequest::patch(format!("{VERSIONS}/{version}"), body)).await
    }

    pub(super) async fn set_phase(
        &self,
        phases: &Phases,
        state: &'static str,
    ) -> Result<(), RemoteError> {
        let body = resource(PHASED, Some(&phases.id), json!({"phasedReleaseState": state}));
        self.api.change(AppleRequest::patch(format!("/v1/{PHASED}/{}", phases.id), body)).await
    }

    pub(super) async fn look_at_version(&self, id: &str) -> Result<VersionDetails, RemoteError> {
        let request = AppleRequest::get(format!("{VERSIONS}/{id}"))
            .with("include", "build,appStoreVersionPhasedRelease");
        let found: Option<One<Version>> = self.api.find(request).await?;
        let found = found.ok_or_else(|| {
            RemoteError::Refused(
                "Somebody deleted the version in App Store Connect. Publish again.".into(),
            )
        })?;
        let phases = found.included::<PhasedRelease>(PHASED).and_then(|(id, phased)| {
            let (id, day) = (id.to_owned(), phased.current_day_number);
            Some(Phases { id, state: phased.phased_release_state?, day })
        });
        let build = found.data.related("build").map(str::to_owned);
        Ok(VersionDetails { version: found.data.attributes, build, phases })
    }

    /// The attributes of the release that the order wants.
    pub(super) fn release_type(&self) -> Value {
        match &self.order.options.release {
            None | Some(AppStoreRelease::AfterApproval) => {
                json!({"releaseType": "AFTER_APPROVAL", "earliestReleaseDate": null})
            }
            Some(AppStoreRelease::Manual) => {
                json!({"releaseType": "MANUAL", "earliestReleaseDate": null})
            }
            Some(AppStoreRelease::NotBefore(time)) => {
                json!({"releaseType": "SCHEDULED", "earliestReleaseDate": whole_hour(*time)})
            }
        }
    }

    fn share(&self) -> Option<Percent> {
        match self.order.wanted {
            DesiredState::Released(share) => share,
            _ => None,
        }
    }

    fn wants_phases(&self) -> bool {
        self.order.options.phased || self.share().is_some_and(|share| share != Percent::ALL)
    }

    async fn versions(&self, app: &str) -> Result<Vec<KnownVersion>, RemoteError> {
        let request = AppleRequest::get(format!("/v1/apps/{app}/appStoreVersions"))
            .with("filter[platform]", "IOS")
            .with("limit", "200");
        let versions: Many<Version> = self.api.read(request).await?;
        let known = |version: Resource<Version>| KnownVersion {
            id: version.id,
            version: version.attributes.version_string,
            state: version.attributes.app_version_state.unwrap_or_default(),
        };
        Ok(versions.data.into_iter().map(known).collect())
    }

    async fn localizations(
        &self,
        version: &str,
    ) -> Result<Vec<Resource<Localization>>, RemoteError> {
        let path = format!("{VERSIONS}/{version}/appStoreVersionLocalizations");
        let found: Many<Localization> =
            self.api.read(AppleRequest::get(path).with("limit", "100")).await?;
        Ok(found.data)
    }
}

/// A time as Apple takes it: the first whole hour that is not before it.
fn whole_hour(time: Timestamp) -> String {
    let missing = time.as_millis().rem_euclid(HOUR);
    let missing = u64::try_from((HOUR - missing) % HOUR).unwrap_or_default();
    let hour = (time + Duration::from_millis(missing)).to_string();
    hour.replace(".000Z", "Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_not_released_before_its_time() {
        let hour = |text: &str| whole_hour(text.parse().unwrap());
        assert_eq!(hour("2026-01-31T12:00:00.000Z"), "2026-01-31T12:00:00Z");
        assert_eq!(hour("2026-01-31T23:00:00.001Z"), "2026-02-01T00:00:00Z");
    }
}
