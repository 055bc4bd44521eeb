//! The handlers of the group Artifacts.

pub mod attesting;
pub mod endpoints;
pub mod origin;

use crate::{
    call::{
        context::Call,
        platform::{DOWNLOAD_LIFETIME, Platform},
    },
    kinds::{
        delivery::artifacts::{
            Artifacts, Command,
            address::{self, Use},
            artifact_refs::ArtifactRefs,
        },
        people::apps::Apps,
    },
    runtime::{entries::InState, pagination},
};
use contract::{
    ArtifactId, Fault, Page, Serves,
    artifacts::{
        Artifact, ArtifactState, DeleteArtifact, DeletedArtifact, DownloadUrl, GetArtifact,
        GetArtifactDownloadUrl, GetArtifacts,
    },
};

/// An address that downloads an artifact, valid for [`DOWNLOAD_LIFETIME`].
pub fn download_url(platform: &Platform, id: ArtifactId, now: contract::Timestamp) -> DownloadUrl {
    let expires_at = now + DOWNLOAD_LIFETIME;
    let url = address::sign(
        &platform.settings.signing_key,
        &platform.settings.api_url,
        Use::Download,
        id,
        expires_at,
    );
    DownloadUrl { url, expires_at }
}

/// The states of the artifacts that a list without a state shows: all but the deleted ones.
const SHOWN: &[ArtifactState] = &[
    ArtifactState::Pending,
    ArtifactState::Verifying,
    ArtifactState::Verified,
    ArtifactState::Rejected,
    ArtifactState::Expired,
];

impl Serves<GetArtifacts> for Platform {
    async fn serve(&self, _: &Call, p: GetArtifacts) -> Result<Page<Artifact>, Fault> {
        let (is_first, is_filtered) =
            (p.cursor.is_none(), p.platform.is_some() || p.version.is_some());
        let (store, list) = (&self.world.store, (p.limit, p.cursor));
        let of = (p.app_id, p.state);
        // Deleted ones have a record, and are in no list without a state.
        let page = pagination::children::<Artifacts, _>(store, of, list, true, |_, seen| {
            let artifact = &seen.state.artifact;
            let wanted = artifact.state != ArtifactState::Deleted
                && p.platform.is_none_or(|platform| artifact.platform == platform)
                && p.version.as_ref().is_none_or(|v| artifact.version.as_ref() == Some(v));
            Ok(wanted.then(|| artifact.clone()))
        })?;
        pagination::with_total(page, is_first, |most| {
            let count = |state: &ArtifactState| {
                let entry = InState::<Apps>::new(p.app_id, state);
                store.newest::<Artifacts>(&entry, None).count_up_to(most)
            };
            let shown = p.state.as_ref().map_or(SHOWN, std::slice::from_ref);
            (!is_filtered).then(|| shown.iter().map(count).sum()).transpose()
        })
    }
}

impl Serves<GetArtifact> for Platform {
    async fn serve(&self, cx: &Call, _: GetArtifact) -> Result<Artifact, Fault> {
        Ok(cx.ancestry.artifact()?.1.state.artifact.clone())
    }
}

impl Serves<GetArtifactDownloadUrl> for Platform {
    async fn serve(&self, cx: &Call, p: GetArtifactDownloadUrl) -> Result<DownloadUrl, Fault> {
        match cx.ancestry.artifact()?.1.artifact.state {
            ArtifactState::Verified => {
                cx.note(&p.artifact_id.to_string());
                Ok(download_url(self, p.artifact_id, cx.now))
            }
            state => Err(Fault::NotNow(
                format!("this artifact is {state:?}; only verified ones can be downloaded")
                    .to_lowercase(),
            )),
        }
    }
}

impl Serves<DeleteArtifact> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteArtifact) -> Result<DeletedArtifact, Fault> {
        let id = p.artifact_id;
        let held = self.world.store.get::<ArtifactRefs>(&id)?;
        if let Some(release) = held.and_then(|hold| hold.releases.first().copied()) {
            return Err(Fault::NotNow(format!(
                "the release {release} holds this artifact; only what no release holds can be deleted, \
                 and a draft or a failed release can be (svc_deleteRelease)"
            )));
        }
        cx.to::<Artifacts>(id)
            .change(Command::Delete, move |_| Ok(DeletedArtifact { deleted: id }))
            .await
    }
}
