//! What Apple has of the version and build number of an upload.

use super::{
    client::Uploader,
    progress::{FilePart, FileReservation, UploadProgress},
    rules::{self, FoundFile, FoundUpload},
};
use crate::{
    RemoteError,
    app_store_connect::{
        AppleRequest,
        documents::{self, Many, One, Resource},
    },
};

type BuildUpload = Resource<documents::BuildUpload>;
type BuildUploadFile = Resource<documents::BuildUploadFile>;

impl Uploader<'_> {
    /// The upload of this version and build number, if Apple has one that did not fail.
    pub(super) async fn found(
        &self,
        app: &str,
        now: &UploadProgress,
    ) -> Result<Option<FoundUpload>, RemoteError> {
        let request = AppleRequest::get(format!("/v1/apps/{app}/buildUploads"))
            .with("filter[cfBundleShortVersionString]", &self.file.version)
            .with("filter[cfBundleVersion]", &self.file.build_number)
            .with("filter[platform]", "IOS")
            .with("limit", "20");
        let uploads: Many<documents::BuildUpload> = self.api.read(request).await?;
        let state = |upload: &BuildUpload| upload.attributes.state.state.clone();
        let is_alive = |upload: &&BuildUpload| state(upload).as_deref() != Some("FAILED");
        let Some(upload) = uploads.data.iter().find(is_alive) else { return Ok(None) };
        let files = self.files(&upload.id).await?.unwrap_or_default();
        let file = match self.mine(&files, now) {
            Some(file) => found_file(file),
            None if files.is_empty() => FoundFile::None,
            None => FoundFile::Other,
        };
        Ok(Some(FoundUpload {
            id: upload.id.clone(),
            state: state(upload).unwrap_or_default(),
            file,
        }))
    }

    /// The files of an upload. `None`: the upload does not exist any more.
    pub(super) async fn files(
        &self,
        upload: &str,
    ) -> Result<Option<Vec<BuildUploadFile>>, RemoteError> {
        let path = format!("/v1/buildUploads/{upload}/buildUploadFiles");
        let request = AppleRequest::get(path).with("limit", "50");
        let files: Option<Many<documents::BuildUploadFile>> = self.api.find(request).await?;
        Ok(files.map(|files| files.data))
    }

    /// The file in an upload: one that Apple has whole, or the last place for it that can still be
    /// used.
    pub(super) fn mine<'f>(
        &self,
        files: &'f [BuildUploadFile],
        upload: &UploadProgress,
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

    /// Whether Apple has a build of this version and build number.
    pub(super) async fn has_build(&self, app: &str) -> Result<bool, RemoteError> {
        let request = AppleRequest::get("/v1/builds")
            .with("filter[app]", app)
            .with("filter[version]", &self.file.build_number)
            .with("filter[preReleaseVersion.version]", &self.file.version)
            .with("filter[preReleaseVersion.platform]", "IOS")
            .with("limit", "1");
        let builds: Many<documents::Anything> = self.api.read(request).await?;
        Ok(!builds.data.is_empty())
    }

    /// Whether Apple still waits for the file. `None`: Apple does not know it.
    pub(super) async fn is_awaited(&self, path: &str) -> Result<Option<bool>, RemoteError> {
        let found: Option<One<documents::BuildUploadFile>> =
            self.api.find(AppleRequest::get(path)).await?;
        Ok(found.map(|file| delivery(&file.data) == "AWAITING_UPLOAD"))
    }
}

pub(super) fn found_file(file: &BuildUploadFile) -> FoundFile {
    match delivery(file) {
        "AWAITING_UPLOAD" => FoundFile::This(place(file)),
        // Its upload fails too, and then does not count any more.
        "FAILED" => FoundFile::Other,
        _ => FoundFile::Whole,
    }
}

pub(super) fn delivery(file: &BuildUploadFile) -> &str {
    let state = file.attributes.asset_delivery_state.as_ref();
    state.and_then(|state| state.state.as_deref()).unwrap_or("AWAITING_UPLOAD")
}

pub(super) fn place(file: &BuildUploadFile) -> FileReservation {
    let operations = file.attributes.upload_operations.iter().flatten();
    let parts = operations.map(|operation| FilePart {
        method: operation.method.clone(),
        url: operation.url.clone(),
        headers: (operation.request_headers.iter())
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect(),
        offset: operation.offset,
        length: operation.length,
    });
    FileReservation { id: file.id.clone(), parts: parts.collect(), sent: 0 }
}
