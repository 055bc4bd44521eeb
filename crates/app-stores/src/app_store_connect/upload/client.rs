//! Performs the steps of an upload. What Apple has already is looked up in `lookup.rs`.
//!
//! Source: "Uploading builds" in Apple's description: `buildUploads` and `buildUploadFiles`.

use super::{
    lookup::{delivery, found_file, place},
    progress::{BuildRecord, FilePart, UploadProgress},
    rules::{self, Availability, FoundFile, MOST_PLACES, UploadStep},
    troubles,
};
use crate::{
    AppFile, ReadAt, RemoteError,
    app_store_connect::{
        AppleRequest, KeyedApi,
        access::find_app,
        documents::{self, One},
        step::{StepReport, linked, resource},
    },
};
use serde_json::json;
use std::time::Duration;

/// The pause between two looks at something that takes Apple seconds.
const SOON: Duration = Duration::from_secs(5);
/// The pause between two looks at something that takes Apple minutes.
const LATER: Duration = Duration::from_secs(30);
/// The pause after the file could not be read.
const UNREADABLE: Duration = Duration::from_secs(30);

/// The largest part, in bytes: a part is held in memory. Apple's have some megabytes.
const LARGEST_PART: u64 = 256 << 20;
/// How often Apple may refuse a second upload before its list of uploads shows the first.
const MOST_REFUSALS: u32 = 5;

/// One step of an upload, with what it needs.
pub(crate) struct Uploader<'a> {
    pub api: KeyedApi<'a>,
    /// The bundle identifier of the app.
    pub app: &'a str,
    pub file: &'a AppFile,
    pub content: &'a dyn ReadAt,
    /// The choice of the caller, for a build that does not say it itself.
    pub uses_non_exempt_encryption: Option<bool>,
}

impl Uploader<'_> {
    /// Performs a step, and notes in the progress what it did.
    pub async fn perform(
        &self,
        step: UploadStep,
        upload: &mut UploadProgress,
    ) -> Result<StepReport, RemoteError> {
        match step {
            UploadStep::FindApp => self.find_app(upload).await,
            UploadStep::Look => self.look(upload).await,
            UploadStep::Open => self.open(upload).await,
            UploadStep::AskForPlace => self.ask_for_place(upload).await,
            UploadStep::SendPart => self.send_part(upload).await,
            UploadStep::Commit => self.commit(upload).await,
            UploadStep::FollowFile => self.follow_file(upload).await,
            UploadStep::FollowUpload => self.follow_upload(upload).await,
            UploadStep::FollowBuild => self.follow_build(upload).await,
        }
    }

    async fn find_app(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        rules::check_file(self.file).map_err(RemoteError::Refused)?;
        let app = find_app(self.api, self.app).await?;
        let said = format!("The app is {} in App Store Connect.", app.name);
        upload.app = Some(app);
        Ok(StepReport::saying(said))
    }

    /// Reads what Apple has of this version and build number, and follows it or refuses it.
    async fn seen(&self, upload: &mut UploadProgress) -> Result<Option<StepReport>, RemoteError> {
        let found = self.found(app_id(upload)?, upload).await?;
        match rules::judge(found, upload, self.file) {
            Availability::Free => {
                if self.has_build(app_id(upload)?).await? {
                    return Err(RemoteError::Refused(rules::taken(self.file)));
                }
                Ok(None)
            }
            Availability::Wait => {
                upload.waited += 1;
                Ok(Some(StepReport::after(LATER)))
            }
            Availability::Use(found) => {
                *upload = *found;
                Ok(Some(StepReport::saying(match upload.committed {
                    true => "App Store Connect has this file already; its build is used.",
                    false => "An upload of this file was begun before, and goes on.",
                })))
            }
            Availability::Taken(why) => Err(RemoteError::Refused(why)),
        }
    }

    async fn look(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        if let Some(done) = self.seen(upload).await? {
            return Ok(done);
        }
        upload.opens = true;
        Ok(StepReport::silently())
    }

    async fn open(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        if let Some(done) = self.seen(upload).await? {
            return Ok(done);
        }
        let file = self.file;
        let attributes = json!({
            "cfBundleShortVersionString": file.version,
            "cfBundleVersion": file.build_number,
            "platform": "IOS",
        });
        let body = linked("buildUploads", attributes, &[("app", "apps", app_id(upload)?)]);
        let opened = match self.api.ask(AppleRequest::post("/v1/buildUploads", body)).await? {
            Ok(answer) => answer.read::<One<documents::BuildUpload>>()?,
            // Another publication was faster, or the list of uploads lags behind.
            Err(refusal) if refusal.has("ENTITY_ERROR.ATTRIBUTE.INVALID.DUPLICATE") => {
                upload.opens = false;
                upload.waited += 1;
                return match upload.waited {
                    ..MOST_REFUSALS => Ok(StepReport::after(LATER)),
                    _ => Err(RemoteError::Refused(refusal.text())),
                };
            }
            Err(refusal) => return Err(RemoteError::Refused(refusal.text())),
        };
        upload.id = Some(opened.data.id);
        let (version, build) = (&file.version, &file.build_number);
        Ok(StepReport::saying(format!("The upload of build {build} of version {version} begins.")))
    }

    async fn ask_for_place(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        let id = known(&upload.id)?;
        let Some(files) = self.files(id).await? else { return Ok(start_again(upload)) };
        if let Some(file) = self.mine(&files, upload) {
            match found_file(file) {
                FoundFile::Whole => upload.committed = true,
                FoundFile::This(place) if place.covers(self.file.size) => {
                    upload.place = Some(place);
                }
                // Apple does not tell a second time how it wants the parts.
                _ => upload.spent.push(file.id.clone()),
            }
            return Ok(StepReport::silently());
        }
        if upload.spent.len() >= MOST_PLACES {
            return Err(RemoteError::Refused(
                "Apple's place for the file refuses its parts again and again. Publish later, or \
                 raise the build number and build again."
                    .into(),
            ));
        }
        let attributes = json!({
            "assetType": "ASSET",
            "fileName": rules::name_at_apple(self.file),
            "fileSize": self.file.size,
            "uti": "com.apple.ipa",
        });
        let to = [("buildUpload", "buildUploads", id)];
        let request =
            AppleRequest::post("/v1/buildUploadFiles", linked("buildUploadFiles", attributes, &to));
        let file: One<documents::BuildUploadFile> = match self.api.ask(request).await? {
            Ok(answer) => answer.read()?,
            Err(refusal) => {
                // Another publication of the same file may have asked at the same moment.
                let files = self.files(id).await?.unwrap_or_default();
                return match self.mine(&files, upload) {
                    Some(_) => Ok(StepReport::after(SOON)),
                    None => Err(RemoteError::Refused(refusal.text())),
                };
            }
        };
        let place = place(&file.data);
        if !place.covers(self.file.size) {
            return Err(RemoteError::Refused("Apple does not ask for the whole file.".into()));
        }
        upload.place = Some(place);
        Ok(StepReport::silently())
    }

    async fn send_part(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        let Some(place) = &mut upload.place else { return Ok(StepReport::silently()) };
        let Some(part) = place.parts.get(place.sent) else { return Ok(StepReport::silently()) };
        let end = part.offset.checked_add(part.length);
        if end.is_none_or(|end| end > self.file.size) {
            return Err(RemoteError::Refused("Apple asks for more than the file has.".into()));
        }
        if part.length > LARGEST_PART {
            return Err(RemoteError::Refused(format!(
                "Apple asks for {} bytes of the file at once. At most {LARGEST_PART} are sent.",
                part.length
            )));
        }
        let read = self.content.read(part.offset, part.length).await;
        let bytes = read.map_err(|e| RemoteError::Busy {
            why: format!("The file cannot be read: {e}"),
            after: UNREADABLE,
        })?;
        let FilePart { method, url, headers, .. } = part;
        if !self.api.send_part(method, url, headers, bytes).await? {
            let spent = upload.place.take();
            upload.spent.extend(spent.map(|place| place.id));
            return Ok(StepReport::after(SOON).and_say("Apple's place for the file has expired."));
        }
        place.sent += 1;
        let (sent, all) = (place.sent, place.parts.len());
        Ok(StepReport::saying(format!("Part {sent} of {all} was sent.")))
    }

    async fn commit(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        let id = upload.place.as_ref().map(|place| place.id.clone());
        let path = format!("/v1/buildUploadFiles/{}", known(&id)?);
        let Some(is_awaited) = self.is_awaited(&path).await? else {
            return Ok(start_again(upload));
        };
        if is_awaited {
            let checksum = json!({"hash": self.file.sha256, "algorithm": "SHA_256"});
            let attributes = json!({"uploaded": true, "sourceFileChecksums": {"file": checksum}});
            let body = resource("buildUploadFiles", id.as_deref(), attributes);
            let refused = self.api.ask(AppleRequest::patch(path.clone(), body)).await?.err();
            // Another publication of the same file may have said so at the same moment.
            if let Some(refusal) = refused
                && self.is_awaited(&path).await? != Some(false)
            {
                return Err(RemoteError::Refused(refusal.text()));
            }
        }
        upload.committed = true;
        Ok(StepReport::saying("The file was sent to App Store Connect."))
    }

    async fn follow_file(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        let Some(files) = self.files(known(&upload.id)?).await? else {
            return Ok(start_again(upload));
        };
        let Some(file) = self.mine(&files, upload) else { return Ok(start_again(upload)) };
        upload.words = Some(delivery(file).to_owned());
        match delivery(file) {
            "UPLOAD_COMPLETE" | "COMPLETE" => {
                upload.delivered = true;
                Ok(StepReport::silently())
            }
            "FAILED" => {
                let state = file.attributes.asset_delivery_state.as_ref();
                let problems = state.map(|state| state.errors.as_slice()).unwrap_or_default();
                upload.failure = Some(troubles::text(problems));
                Ok(StepReport::done())
            }
            _ => Ok(StepReport::after(SOON)),
        }
    }

    async fn follow_upload(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        let path = format!("/v1/buildUploads/{}", known(&upload.id)?);
        let request = AppleRequest::get(path).with("include", "build");
        let found: Option<One<documents::BuildUpload>> = self.api.find(request).await?;
        let Some(found) = found else { return Ok(start_again(upload)) };
        let state = &found.data.attributes.state;
        upload.words.clone_from(&state.state);
        if state.state.as_deref() == Some("FAILED") {
            upload.failure = Some(troubles::text(&state.errors));
            return Ok(StepReport::done());
        }
        // Apple says COMPLETE a while before it names the build.
        match found.data.related("build") {
            Some(build) if state.state.as_deref() == Some("COMPLETE") => {
                upload.build = Some(BuildRecord { id: build.to_owned(), expires_at: None });
                Ok(StepReport::saying("Apple has taken the file."))
            }
            _ => Ok(StepReport::after(LATER)),
        }
    }

    async fn follow_build(&self, upload: &mut UploadProgress) -> Result<StepReport, RemoteError> {
        let Some(record) = &mut upload.build else { return Ok(StepReport::silently()) };
        let path = format!("/v1/builds/{}", record.id);
        let found: Option<One<documents::Build>> = self.api.find(AppleRequest::get(&path)).await?;
        // The list of builds lags behind the upload.
        let Some(found) = found else { return Ok(StepReport::after(LATER)) };
        let build = found.data.attributes;
        record.expires_at = build.expiration_date;
        upload.words.clone_from(&build.processing_state);
        match build.processing_state.as_deref() {
            Some("VALID") if build.expired == Some(true) => {
                upload.failure = Some(
                    "The build has expired. Raise the build number and build again.".to_owned(),
                );
                return Ok(StepReport::done());
            }
            Some("VALID") => {}
            Some(state @ ("FAILED" | "INVALID")) => {
                upload.failure = Some(format!(
                    "Apple could not process the build, and sent the reasons by e-mail: correct \
                     them, raise the build number and build again. Apple's state of the build is \
                     {state}."
                ));
                return Ok(StepReport::done());
            }
            _ => return Ok(StepReport::after(LATER)),
        }
        match (build.uses_non_exempt_encryption, self.uses_non_exempt_encryption) {
            (Some(_), _) => {}
            (None, Some(uses)) => {
                let attributes = json!({"usesNonExemptEncryption": uses});
                let body = resource("builds", Some(&record.id), attributes);
                self.api.change(AppleRequest::patch(path, body)).await?;
            }
            (None, None) => {
                return Err(RemoteError::Refused(
                    "Apple must know whether the app uses encryption that is not exempt: set \
                     usesNonExemptEncryption in the choices for the store, or \
                     ITSAppUsesNonExemptEncryption in Info.plist for the next build. Apple's state \
                     of the build is MISSING_EXPORT_COMPLIANCE."
                        .into(),
                ));
            }
        }
        upload.is_usable = true;
        Ok(StepReport::saying("Apple has processed the build."))
    }
}

/// The upload is gone, such as one that somebody deleted: everything begins again.
fn start_again(upload: &mut UploadProgress) -> StepReport {
    *upload = UploadProgress { app: upload.app.take(), ..UploadProgress::default() };
    StepReport::after(SOON)
        .and_say("The upload has disappeared from App Store Connect; it begins again.")
}

fn app_id(upload: &UploadProgress) -> Result<&str, RemoteError> {
    upload.app.as_ref().map(|app| app.id.as_str()).ok_or_else(incomplete)
}

fn known(id: &Option<String>) -> Result<&str, RemoteError> {
    id.as_deref().ok_or_else(incomplete)
}

fn incomplete() -> RemoteError {
    RemoteError::Refused("The progress of the publication is incomplete.".into())
}
