//! Performs the steps of an upload.
//!
//! Source: "Uploading builds" in Apple's description: `buildUploads` and `buildUploadFiles`.

use super::{
    progress::{BuildRecord, Part, Place, Upload},
    rules::{self, Found, FoundFile, MOST_PLACES, Seen, Step},
    troubles,
};
use crate::{
    AppFile, Content, RemoteError,
    app_store_connect::{
        Request, Session,
        access::find_app,
        documents::{self, Many, One, Resource},
        step::{Done, linked, resource},
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

type BuildUpload = Resource<documents::BuildUpload>;
type BuildUploadFile = Resource<documents::BuildUploadFile>;

/// One step of an upload, with what it needs.
pub(crate) struct Uploader<'a> {
    pub session: Session<'a>,
    /// The bundle identifier of the app.
    pub app: &'a str,
    pub file: &'a AppFile,
    pub content: &'a dyn Content,
    /// The choice of the caller, for a build that does not say it itself.
    pub uses_non_exempt_encryption: Option<bool>,
}

impl Uploader<'_> {
    /// Performs a step, and notes in the progress what it did.
    pub async fn perform(&self, step: Step, upload: &mut Upload) -> Result<Done, RemoteError> {
        match step {
            Step::FindApp => self.find_app(upload).await,
            Step::Look => self.look(upload).await,
            Step::Open => self.open(upload).await,
            Step::AskForPlace => self.ask_for_place(upload).await,
            Step::SendPart => self.send_part(upload).await,
            Step::Commit => self.commit(upload).await,
            Step::FollowFile => self.follow_file(upload).await,
            Step::FollowUpload => self.follow_upload(upload).await,
            Step::FollowBuild => self.follow_build(upload).await,
        }
    }

    async fn find_app(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
        rules::check_file(self.file).map_err(RemoteError::Refused)?;
        let app = find_app(self.session, self.app).await?;
        let said = format!("The app is {} in App Store Connect.", app.name);
        upload.app = Some(app);
        Ok(Done::saying(said))
    }

    /// Reads what Apple has of this version and build number, and follows it or refuses it.
    async fn seen(&self, upload: &mut Upload) -> Result<Option<Done>, RemoteError> {
        let found = self.found(app_id(upload)?, upload).await?;
        match rules::judge(found, upload, self.file) {
            Seen::Free => {
                if self.has_build(app_id(upload)?).await? {
                    return Err(RemoteError::Refused(rules::taken(self.file)));
                }
                Ok(None)
            }
            Seen::Wait => {
                upload.waited += 1;
                Ok(Some(Done::after(LATER)))
            }
            Seen::Use(found) => {
                *upload = *found;
                Ok(Some(Done::saying(match upload.committed {
                    true => "App Store Connect has this file already; its build is used.",
                    false => "An upload of this file was begun before, and goes on.",
                })))
            }
            Seen::Taken(why) => Err(RemoteError::Refused(why)),
        }
    }

    async fn look(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
        if let Some(done) = self.seen(upload).await? {
            return Ok(done);
        }
        upload.opens = true;
        Ok(Done::silently())
    }

    async fn open(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
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
        let opened = match self.session.ask(Request::post("/v1/buildUploads", body)).await? {
            Ok(answer) => answer.read::<One<documents::BuildUpload>>()?,
            // Another publication was faster, or the list of uploads lags behind.
            Err(refusal) if refusal.has("ENTITY_ERROR.ATTRIBUTE.INVALID.DUPLICATE") => {
                upload.opens = false;
                upload.waited += 1;
                return match upload.waited {
                    ..MOST_REFUSALS => Ok(Done::after(LATER)),
                    _ => Err(RemoteError::Refused(refusal.text())),
                };
            }
            Err(refusal) => return Err(RemoteError::Refused(refusal.text())),
        };
        upload.id = Some(opened.data.id);
        let (version, build) = (&file.version, &file.build_number);
        Ok(Done::saying(format!("The upload of build {build} of version {version} begins.")))
    }

    async fn ask_for_place(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
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
            return Ok(Done::silently());
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
            Request::post("/v1/buildUploadFiles", linked("buildUploadFiles", attributes, &to));
        let file: One<documents::BuildUploadFile> = match self.session.ask(request).await? {
            Ok(answer) => answer.read()?,
            Err(refusal) => {
                // Another publication of the same file may have asked at the same moment.
                let files = self.files(id).await?.unwrap_or_default();
                return match self.mine(&files, upload) {
                    Some(_) => Ok(Done::after(SOON)),
                    None => Err(RemoteError::Refused(refusal.text())),
                };
            }
        };
        let place = place(&file.data);
        if !place.covers(self.file.size) {
            return Err(RemoteError::Refused("Apple does not ask for the whole file.".into()));
        }
        upload.place = Some(place);
        Ok(Done::silently())
    }

    async fn send_part(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
        let Some(place) = &mut upload.place else { return Ok(Done::silently()) };
        let Some(part) = place.parts.get(place.sent) else { return Ok(Done::silently()) };
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
        let Part { method, url, headers, .. } = part;
        if !self.session.send_part(method, url, headers, bytes).await? {
            let spent = upload.place.take();
            upload.spent.extend(spent.map(|place| place.id));
            return Ok(Done::after(SOON).and_say("Apple's place for the file has expired."));
        }
        place.sent += 1;
        let (sent, all) = (place.sent, place.parts.len());
        Ok(Done::saying(format!("Part {sent} of {all} was sent.")))
    }

    async fn commit(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
        let id = upload.place.as_ref().map(|place| place.id.clone());
        let path = format!("/v1/buildUploadFiles/{}", known(&id)?);
        let Some(is_awaited) = self.is_awaited(&path).await? else {
            return Ok(start_again(upload));
        };
        if is_awaited {
            let checksum = json!({"hash": self.file.sha256, "algorithm": "SHA_256"});
            let attributes = json!({"uploaded": true, "sourceFileChecksums": {"file": checksum}});
            let body = resource("buildUploadFiles", id.as_deref(), attributes);
            let refused = self.session.ask(Request::patch(path.clone(), body)).await?.err();
            // Another publication of the same file may have said so at the same moment.
            if let Some(refusal) = refused
                && self.is_awaited(&path).await? != Some(false)
            {
                return Err(RemoteError::Refused(refusal.text()));
            }
        }
        upload.committed = true;
        Ok(Done::saying("The file was sent to App Store Connect."))
    }

    /// Whether Apple still waits for the file. `None`: Apple does not know it.
    async fn is_awaited(&self, path: &str) -> Result<Option<bool>, RemoteError> {
        let found: Option<One<documents::BuildUploadFile>> =
            self.session.find(Request::get(path)).await?;
        Ok(found.map(|file| delivery(&file.data) == "AWAITING_UPLOAD"))
    }

    async fn follow_file(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
        let Some(files) = self.files(known(&upload.id)?).await? else {
            return Ok(start_again(upload));
        };
        let Some(file) = self.mine(&files, upload) else { return Ok(start_again(upload)) };
        upload.words = Some(delivery(file).to_owned());
        match delivery(file) {
            "UPLOAD_COMPLETE" | "COMPLETE" => {
                upload.delivered = true;
                Ok(Done::silently())
            }
            "FAILED" => {
                let state = file.attributes.asset_delivery_state.as_ref();
                let problems = state.map(|state| state.errors.as_slice()).unwrap_or_default();
                upload.failure = Some(troubles::text(problems));
                Ok(Done::settled())
            }
            _ => Ok(Done::after(SOON)),
        }
    }

    async fn follow_upload(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
        let path = format!("/v1/buildUploads/{}", known(&upload.id)?);
        let request = Request::get(path).with("include", "build");
        let found: Option<One<documents::BuildUpload>> = self.session.find(request).await?;
        let Some(found) = found else { return Ok(start_again(upload)) };
        let state = &found.data.attributes.state;
        upload.words.clone_from(&state.state);
        if state.state.as_deref() == Some("FAILED") {
            upload.failure = Some(troubles::text(&state.errors));
            return Ok(Done::settled());
        }
        // Apple says COMPLETE a while before it names the build.
        match found.data.related("build") {
            Some(build) if state.state.as_deref() == Some("COMPLETE") => {
                upload.build = Some(BuildRecord { id: build.to_owned(), expires_at: None });
                Ok(Done::saying("Apple has taken the file."))
            }
            _ => Ok(Done::after(LATER)),
        }
    }

    async fn follow_build(&self, upload: &mut Upload) -> Result<Done, RemoteError> {
        let Some(record) = &mut upload.build else { return Ok(Done::silently()) };
        let path = format!("/v1/builds/{}", record.id);
        let found: Option<One<documents::Build>> = self.session.find(Request::get(&path)).await?;
        // The list of builds lags behind the upload.
        let Some(found) = found else { return Ok(Done::after(LATER)) };
        let build = found.data.attributes;
        record.expires_at = build.expiration_date;
        upload.words.clone_from(&build.processing_state);
        match build.processing_state.as_deref() {
            Some("VALID") if build.expired == Some(true) => {
                upload.failure = Some(
                    "The build has expired. Raise the build number and build again.".to_owned(),
                );
                return Ok(Done::settled());
            }
            Some("VALID") => {}
            Some(state @ ("FAILED" | "INVALID")) => {
                upload.failure = Some(format!(
                    "Apple could not process the build, and sent the reasons by e-mail: correct \
                     them, raise the build number and build again. Apple's state of the build is \
                     {state}."
                ));
                return Ok(Done::settled());
            }
            _ => return Ok(Done::after(LATER)),
        }
        match (build.uses_non_exempt_encryption, self.uses_non_exempt_encryption) {
            (Some(_), _) => {}
            (None, Some(uses)) => {
                let attributes = json!({"usesNonExemptEncryption": uses});
                let body = resource("builds", Some(&record.id), attributes);
                self.session.change(Request::patch(path, body)).await?;
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
        Ok(Done::saying("Apple has processed the build."))
    }

    /// The upload of this version and build number, if Apple has one that did not fail.
    async fn found(&self, app: &str, now: &Upload) -> Result<Option<Found>, RemoteError> {
        let request = Request::get(format!("/v1/apps/{app}/buildUploads"))
            .with("filter[cfBundleShortVersionString]", &self.file.version)
            .with("filter[cfBundleVersion]", &self.file.build_number)
            .with("filter[platform]", "IOS")
            .with("limit", "20");
        let uploads: Many<documents::BuildUpload> = self.session.read(request).await?;
        let state = |upload: &BuildUpload| upload.attributes.state.state.clone();
        let is_alive = |upload: &&BuildUpload| state(upload).as_deref() != Some("FAILED");
        let Some(upload) = uploads.data.iter().find(is_alive) else { return Ok(None) };
        let files = self.files(&upload.id).await?.unwrap_or_default();
        let file = match self.mine(&files, now) {
            Some(file) => found_file(file),
            None if files.is_empty() => FoundFile::None,
            None => FoundFile::Other,
        };
        Ok(Some(Found { id: upload.id.clone(), state: state(upload).unwrap_or_default(), file }))
    }

    /// The files of an upload. `None`: the upload does not exist any more.
    async fn files(&self, upload: &str) -> Result<Option<Vec<BuildUploadFile>>, RemoteError> {
        let path = format!("/v1/buildUploads/{upload}/buildUploadFiles");
        let request = Request::get(path).with("limit", "50");
        let files: Option<Many<documents::BuildUploadFile>> = self.session.find(request).await?;
        Ok(files.map(|files| files.data))
    }

    /// The file in an upload: one that Apple has whole, or the last place for it that
    /// can still be used.
    fn mine<'f>(
        &self,
        files: &'f [BuildUploadFile],
        upload: &Upload,
    ) -> Option<&'f BuildUploadFile> {
        let is_whole = |file: &BuildUploadFile| found_file(file) == FoundFile::Whole;
        // A place that refuses parts may do so because another publication sent them all.
        let mine = |file: &&BuildUploadFile| {
            let is_usable = is_whole(file) || !upload.spent.contains(&file.id);
            is_usable && rules::is_same(&file.attributes, self.file)
        };
        let whole = files.iter().filter(mine).find(|file| is_whole(file));
        whole.or_else(|| files.iter().rfind(mine))
    }

    async fn has_build(&self, app: &str) -> Result<bool, RemoteError> {
        let request = Request::get("/v1/builds")
            .with("filter[app]", app)
            .with("filter[version]", &self.file.build_number)
            .with("filter[preReleaseVersion.version]", &self.file.version)
            .with("filter[preReleaseVersion.platform]", "IOS")
            .with("limit", "1");
        let builds: Many<documents::Anything> = self.session.read(request).await?;
        Ok(!builds.data.is_empty())
    }
}

/// The upload is gone, such as one that somebody deleted: everything begins again.
fn start_again(upload: &mut Upload) -> Done {
    *upload = Upload { app: upload.app.take(), ..Upload::default() };
    Done::after(SOON).and_say("The upload has disappeared from App Store Connect; it begins again.")
}

fn found_file(file: &BuildUploadFile) -> FoundFile {
    match delivery(file) {
        "AWAITING_UPLOAD" => FoundFile::This(place(file)),
        // Its upload fails too, and then does not count any more.
        "FAILED" => FoundFile::Other,
        _ => FoundFile::Whole,
    }
}

fn delivery(file: &BuildUploadFile) -> &str {
    let state = file.attributes.asset_delivery_state.as_ref();
    state.and_then(|state| state.state.as_deref()).unwrap_or("AWAITING_UPLOAD")
}

fn place(file: &BuildUploadFile) -> Place {
    let operations = file.attributes.upload_operations.iter().flatten();
    let parts = operations.map(|operation| Part {
        method: operation.method.clone(),
        url: operation.url.clone(),
        headers: (operation.request_headers.iter())
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect(),
        offset: operation.offset,
        length: operation.length,
    });
    Place { id: file.id.clone(), parts: parts.collect(), sent: 0 }
}

fn app_id(upload: &Upload) -> Result<&str, RemoteError> {
    upload.app.as_ref().map(|app| app.id.as_str()).ok_or_else(incomplete)
}

fn known(id: &Option<String>) -> Result<&str, RemoteError> {
    id.as_deref().ok_or_else(incomplete)
}

fn incomplete() -> RemoteError {
    RemoteError::Refused("The progress of the publication is incomplete.".into())
}
