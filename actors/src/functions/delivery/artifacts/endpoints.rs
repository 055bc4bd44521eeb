//! The artifact endpoints: open an upload, and finalize it. The HTTP layer moves the bytes.

use super::{
    attesting::check_attestation,
    origin::{Origin, origin_of},
};
use crate::{
    call::{context::Call, platform::Platform},
    functions::delivery::{
        releases::build_up::{bring_to_release, check_release_request},
        trusted_publishers::exchange::pin,
    },
    kinds::{
        delivery::{
            artifacts::{
                ArtifactClaim, ArtifactIndex, Artifacts, Command, Declared, StoredArtifact,
                address::{self, Use},
            },
            builds,
        },
        people::apps::App,
        world::World,
    },
    ports::binaries::Staged,
    runtime::resource::Input,
};
use contract::{
    ArtifactId, BuildId, Fault, Serves, Timestamp,
    artifacts::{Artifact, ArtifactKind, ArtifactState},
    endpoint::{
        CreateUploadUrl, Created, FinalizeArtifact, FinalizeRequest, PART_SIZE, UploadUrl,
        UploadUrlRequest,
    },
};
use std::{collections::BTreeMap, time::Duration};
use store::Snapshot;

/// How long a call waits for a verification.
const VERIFY_WITHIN: Duration = Duration::from_secs(300);

/// How many uploads of one app may wait for bytes at the same time.
const MOST_OPEN: u64 = 100;

impl Serves<CreateUploadUrl> for Platform {
    /// Opens an upload. If the app has an artifact of the same bytes, the reply describes that
    /// artifact instead.
    async fn serve(
        &self,
        cx: &Call,
        CreateUploadUrl { body: request }: CreateUploadUrl,
    ) -> Result<Created<UploadUrl>, Fault> {
        let kind = check_kind(&request, &cx.ancestry.app()?.1.state)?;
        if request.size.is_some_and(|size| size > self.settings.largest_artifact) {
            return Err(Fault::TooLarge { limit: self.settings.largest_artifact });
        }
        if request.size == Some(0) {
            return Err(Fault::invalid("size", "must be at least 1 byte"));
        }
        let origin = origin_of(self, cx, &request)?;
        if let Some(known) = find_upload(self, cx, &request, kind, origin.build()).await? {
            return Ok(Created::Before(known));
        }
        let _turn = self.world.creation(request.app_id).await?;
        let open = self.world.store.count(&ArtifactIndex::Pending { app: request.app_id });
        if open? >= MOST_OPEN {
            return Err(Fault::NotNow(format!(
                "{MOST_OPEN} uploads of this app are open; finalize or delete some, or wait until they expire"
            )));
        }
        self.world.ports.machine.check_room(request.size.unwrap_or(0))?;
        let id: ArtifactId = self.world.ports.random.id(cx.now);
        let expires_at = cx.now + self.settings.upload_lifetime;
        let upload = new_upload(id, kind, request.clone(), origin, cx.now, expires_at);
        let reply = upload_url(self, id, 0, expires_at);
        let reply = cx.to::<Artifacts>(id).create(upload, move |_| Ok(reply.clone())).await?;
        Ok(Created::Now(reply))
    }
}

/// Finds a pending, verifying or verified artifact of the same bytes. A pending artifact gets a
/// new deadline. The upload of a build is only found by the same build: another origin would be
/// wrong.
async fn find_upload(
    platform: &Platform,
    cx: &Call,
    request: &UploadUrlRequest,
    kind: ArtifactKind,
    build: Option<BuildId>,
) -> Result<Option<UploadUrl>, Fault> {
    let declared = declared(request);
    let (Some(size), Some(sha256)) = (declared.size, &declared.sha256) else { return Ok(None) };
    let (store, app) = (&platform.world.store, request.app_id);
    let mut keys = Vec::new();
    if let Some(claim) = ArtifactClaim::of(app, kind, &declared) {
        keys.extend(store.holder(&claim)?);
    }
    let held = ArtifactIndex::Held { app, sha256: sha256.clone() };
    for entry in [held, ArtifactIndex::Open { app, sha256: sha256.clone(), size }] {
        for key in store.newest::<Artifacts>(&entry, None).keys().take(10) {
            keys.push(key?);
        }
    }
    for key in keys {
        let Some(upload) = store.get::<Artifacts>(&key)? else { continue };
        let upload = &upload.state;
        let Artifact { id, version, .. } = &upload.artifact;
        let is_verified = upload.artifact.state == ArtifactState::Verified;
        let same_version = *version == request.version;
        if upload.artifact.kind != kind
            || build.is_some() && upload.artifact.provenance.build_id != build
            || !(same_version || is_verified && request.version.is_none())
        {
            continue;
        }
        match upload.artifact.state {
            state @ (ArtifactState::Verifying | ArtifactState::Verified) => {
                let held = upload_url(platform, *id, upload.artifact.size.unwrap_or(size), cx.now);
                return Ok(Some(UploadUrl { state, upload_url: None, ..held }));
            }
            ArtifactState::Pending => {
                let until = cx.now + platform.settings.upload_lifetime;
                let renewed = platform.world.to::<Artifacts>(*id).ask(Command::Renew(until)).await;
                if let Ok(upload) = renewed {
                    let offset = durable_offset(&platform.world, *id, &upload.staged).await?;
                    return Ok(Some(upload_url(platform, *id, offset, until)));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

/// How many bytes are durable.
pub async fn durable_offset(
    world: &World,
    id: ArtifactId,
    recorded: &Staged,
) -> Result<u64, Fault> {
    world.ports.binaries.staged(id, recorded).await.map_err(|e| {
        tracing::error!(error = %e, %id, "the size of the staged bytes cannot be read");
        Fault::Unavailable("the upload's disk")
    })
}

fn upload_url(
    platform: &Platform,
    id: ArtifactId,
    offset: u64,
    expires_at: Timestamp,
) -> UploadUrl {
    let settings = &platform.settings;
    UploadUrl {
        artifact_id: id,
        state: ArtifactState::Pending,
        offset,
        upload_url: Some(address::sign(
            &settings.signing_key,
            &settings.api_url,
            Use::Upload,
            id,
            expires_at,
        )),
        method: "PUT".into(),
        headers: BTreeMap::from([("Content-Type".into(), "application/octet-stream".into())]),
        max_bytes: settings.largest_artifact,
        expires_at,
        part_size: PART_SIZE,
    }
}

/// Begins the verification of an artifact. Returns whether this call began it.
async fn begin_verification(
    cx: &Call,
    id: ArtifactId,
    request: &FinalizeRequest,
) -> Result<bool, Fault> {
    let world = &cx.world;
    let before = cx.ancestry.artifact()?.1.clone();
    if let Some(release) = &request.create_release {
        check_release_request(cx, &before.state.artifact, release)?;
    }
    if before.state.artifact.state != ArtifactState::Verified {
        check_build(world, &before.state.artifact)?;
        // Check first: once begun, a verification is retried until the artifact store answers.
        world.ports.binaries.reach(id).await.map_err(|e| {
            tracing::error!(error = %e, %id, "the artifact store cannot be reached");
            Fault::Unavailable("the artifact store")
        })?;
    }
    let FinalizeRequest { sha256, size, .. } = request;
    let command = Command::Finalize { sha256: sha256.clone(), size: *size };
    // The reply is stored once the bytes are verified.
    let cx = &Call { idempotency: None, ..cx.clone() };
    let done = cx.to::<Artifacts>(id).decide(Input::Command(command), |_| Ok(())).await?;
    Ok(done.changed && done.state.artifact.state == ArtifactState::Verifying)
}

/// Refuses the artifact of a build that has ended without it.
fn check_build(world: &World, artifact: &Artifact) -> Result<(), Fault> {
    let Some(build) = artifact.provenance.build_id else { return Ok(()) };
    let found = world.store.get::<builds::Builds>(&build)?;
    match found.is_some_and(|found| !found.build.state.is_final()) {
        true => Ok(()),
        false => Err(Fault::NotNow(
            "the build of this artifact has ended without it; upload the file again, without `build`"
                .into(),
        )),
    }
}

/// Verifies the bytes of an artifact, waits for the outcome, and adds the artifact to a release
/// if the request asks for one.
async fn finalize(
    cx: &Call,
    id: ArtifactId,
    request: FinalizeRequest,
) -> Result<Created<Artifact>, Fault> {
    let world = &cx.world;
    let attestation = match &request.attestation {
        Some(bundle) => {
            let app = read_upload(world, id)?.artifact.app_id;
            Some(check_attestation(world, app, &request.sha256, bundle).await?)
        }
        None => None,
    };
    let begun = begin_verification(cx, id, &request).await?;
    let FinalizeRequest { sha256, size, create_release, .. } = request;
    let judged = world
        .to::<Artifacts>(id)
        .wait_idle(VERIFY_WITHIN)
        .await?
        .ok_or(Fault::NotFound("artifact"))?;
    let found = (judged.artifact.sha256.as_ref(), judged.artifact.size);
    if judged.artifact.state == ArtifactState::Verified
        && (found.0 != Some(&sha256) || size.is_some() && found.1 != size)
    {
        return Err(Fault::NotAsDeclared(
            "this artifact was verified with another SHA-256 or size; it stays as it is".into(),
        ));
    }
    if judged.artifact.state == ArtifactState::Rejected {
        let problem = judged.artifact.problem.clone();
        return Err(Fault::NotAsDeclared(
            problem.unwrap_or_else(|| "the bytes are not what was declared".into()),
        ));
    }
    let artifact = match attestation {
        Some((publisher, attestation)) => {
            let (repository, owner) =
                (attestation.repository_id.clone(), attestation.repository_owner_id.clone());
            let attest = Command::Attest(Box::new(attestation));
            let attested = cx.to::<Artifacts>(id).tell(Input::Command(attest)).await?;
            pin(world, publisher, &repository, &owner).await?;
            attested.artifact.clone()
        }
        None => judged.artifact.clone(),
    };
    if let Some(release) = create_release {
        bring_to_release(cx, &artifact, &release).await?;
    }
    Ok(if begun { Created::Now(artifact) } else { Created::Before(artifact) })
}

pub fn read_upload(world: &World, id: ArtifactId) -> Result<Snapshot<Artifacts>, Fault> {
    world.store.get::<Artifacts>(&id)?.ok_or(Fault::NotFound("artifact"))
}

impl Serves<FinalizeArtifact> for Platform {
    async fn serve(
        &self,
        cx: &Call,
        FinalizeArtifact { artifact_id, body }: FinalizeArtifact,
    ) -> Result<Created<Artifact>, Fault> {
        let made = finalize(cx, artifact_id, body).await?;
        cx.keep(&made, matches!(made, Created::Now(_))).await;
        Ok(made)
    }
}

/// The kind of the file. Fails if it does not fit the platform, or the app lacks the platform.
fn check_kind(request: &UploadUrlRequest, app: &App) -> Result<ArtifactKind, Fault> {
    let unknown = || Fault::invalid("fileName", "must end in .ipa, .apk or .aab");
    let kind = ArtifactKind::of_file_name(request.file_name.as_str()).ok_or_else(unknown)?;
    if kind.platform() != request.platform {
        return Err(Fault::invalid(
            "platform",
            format!("a .{} file is not for this platform", kind.extension()),
        ));
    }
    if !app.platforms.contains(&request.platform) {
        return Err(Fault::invalid(
            "platform",
            "this app is not built for this platform; add it with updateApp first",
        ));
    }
    Ok(kind)
}

fn new_upload(
    id: ArtifactId,
    kind: ArtifactKind,
    request: UploadUrlRequest,
    origin: Origin,
    now: Timestamp,
    expires_at: Timestamp,
) -> StoredArtifact {
    let must_be = declared(&request);
    let of_build = origin.build().is_some();
    let artifact = Artifact {
        id,
        app_id: request.app_id,
        platform: request.platform,
        kind,
        file_name: request.file_name,
        size: request.size,
        sha256: request.sha256.clone(),
        version: request.version,
        build_number: request.build_number.as_ref().map(ToString::to_string),
        identifier: None,
        provenance: origin.provenance,
        trust: origin.trust,
        attestation: None,
        signer: None,
        profile: None,
        state: ArtifactState::Pending,
        problem: None,
        created_at: now,
        finalized_at: None,
    };
    StoredArtifact {
        artifact,
        staged: Staged::default(),
        length: must_be.size,
        expected: None,
        discarding: false,
        claims_bytes: must_be.sha256.is_some() && !of_build,
        declared: must_be,
        expires_at,
    }
}

fn declared(request: &UploadUrlRequest) -> Declared {
    Declared {
        size: request.size,
        sha256: request.sha256.clone(),
        build_number: request.build_number.as_ref().map(ToString::to_string),
        version: request.version.clone(),
    }
}
