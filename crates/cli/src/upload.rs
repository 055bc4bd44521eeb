//! Uploads a file to the service in parts, and survives broken connections.
//!
//! The service states the offset up to which bytes are durable, and the next part starts there.
//! After an answer without an offset, or no answer, the client asks for the offset. Stored bytes
//! stay stored, so a repeated command continues where the interrupted one stopped.

use crate::{binary::Binary, client::Client, failure::Failure};
use contract::{
    ArtifactId,
    endpoint::{PART_SIZE, Received, UploadUrlRequest},
};
use data_encoding::BASE64;
use indicatif::ProgressBar;
use reqwest::Method;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, time::Duration};
use svc_client::Response;

/// A part that takes longer has stalled. The next attempt sends half of it.
const PART_LIMIT: Duration = Duration::from_secs(60);
/// The smallest size to which stalled parts are halved.
const SMALLEST_PART: u64 = 256 << 10;

/// Uploads a file, from the point where an earlier attempt stopped.
pub fn upload(
    client: &Client,
    binary: &Binary,
    request: &UploadUrlRequest,
    bar: &ProgressBar,
) -> Result<ArtifactId, Failure> {
    let mut renewed_at = None;
    loop {
        let opened = client.open_upload(request)?;
        let Some(address) = opened.upload_url else { return Ok(opened.artifact_id) };
        let mut upload = PartialUpload {
            client,
            binary,
            bar,
            address,
            headers: opened.headers,
            offset: opened.offset,
            farthest: opened.offset,
            part_size: PART_SIZE,
            failures: 0,
        };
        match upload.run()? {
            End::Complete => return Ok(opened.artifact_id),
            // The address of a large file may expire during the upload. An address that expires
            // without progress is refused for another reason.
            End::Refused(refusal) if renewed_at == Some(upload.farthest) => return Err(refusal),
            End::Refused(_) => renewed_at = Some(upload.farthest),
        }
    }
}

struct PartialUpload<'a> {
    client: &'a Client,
    binary: &'a Binary,
    bar: &'a ProgressBar,
    address: String,
    headers: BTreeMap<String, String>,
    /// The known end of the stored bytes.
    offset: u64,
    /// The highest end of the stored bytes so far. A higher offset is progress.
    farthest: u64,
    part_size: u64,
    /// Attempts since the last progress.
    failures: u32,
}

enum End {
    Complete,
    /// The address is refused, for example because it has expired.
    Refused(Failure),
}

/// The result of one request.
type PartResult = Result<Response, reqwest::Error>;

/// The next step after an answer.
#[derive(Debug, PartialEq)]
enum NextStep {
    /// The stored bytes end here.
    At(u64),
    /// The part was not stored. The stored bytes end here.
    Elsewhere(u64),
    /// The end of the stored bytes is unknown: ask for it.
    Ask,
    /// The address has expired.
    Renew,
    /// The service will not accept the bytes.
    Refused,
}

fn next(answer: &Response) -> NextStep {
    match answer.status {
        200..=299 => stored(answer).map_or(NextStep::Ask, NextStep::At),
        401 => NextStep::Renew,
        409 => answer
            .failure()
            .and_then(|f| f.expected_offset)
            .map_or(NextStep::Ask, NextStep::Elsewhere),
        // 400: the part was damaged during the transfer.
        400 | 408 | 429 | 500.. => NextStep::Ask,
        _ => NextStep::Refused,
    }
}

fn stored(answer: &Response) -> Option<u64> {
    let told = answer.header("upload-offset").and_then(|offset| offset.parse().ok());
    told.or_else(|| serde_json::from_slice::<Received>(&answer.body).ok().map(|r| r.received))
}

impl PartialUpload<'_> {
    fn run(&mut self) -> Result<End, Failure> {
        let mut certain = true;
        self.bar.set_position(self.offset);
        while !certain || self.offset < self.binary.size {
            let attempt = if certain { self.send_part()? } else { self.ask_offset()? };
            match attempt.as_ref().map_or(NextStep::Ask, next) {
                NextStep::At(offset) if !certain || offset > self.farthest => {
                    self.move_to(offset)?;
                    certain = true;
                }
                NextStep::At(offset) | NextStep::Elsewhere(offset) => {
                    self.move_to(offset)?;
                    self.rest(attempt)?;
                }
                NextStep::Ask => {
                    if attempt.is_err() {
                        self.part_size = (self.part_size / 2).max(SMALLEST_PART);
                    }
                    self.rest(attempt)?;
                    certain = false;
                }
                NextStep::Renew => return Ok(End::Refused(self.failure(attempt))),
                NextStep::Refused => return Err(self.failure(attempt)),
            }
        }
        Ok(End::Complete)
    }

    /// Waits after an attempt without progress. Out of patience, fails with that attempt.
    fn rest(&mut self, attempt: PartResult) -> Result<(), Failure> {
        self.failures += 1;
        let told = attempt.as_ref().ok().and_then(Response::retry_after);
        match self.client.patience().pause(self.failures, told) {
            Some(pause) => std::thread::sleep(pause),
            None => return Err(self.failure(attempt)),
        }
        Ok(())
    }

    fn failure(&self, attempt: PartResult) -> Failure {
        match attempt {
            Ok(answer) => self.client.refusal(&answer),
            Err(error) => self.client.unanswered(&error),
        }
    }

    fn move_to(&mut self, offset: u64) -> Result<(), Failure> {
        if offset > self.binary.size {
            return Err(Failure::local(
                "the service holds more bytes of this upload than the file has",
                "run it again; if it stays, delete the artifact with svc_deleteArtifact",
            ));
        }
        if offset > self.farthest {
            self.farthest = offset;
            self.failures = 0;
            self.part_size = (self.part_size * 2).min(PART_SIZE);
        }
        self.offset = offset;
        self.bar.set_position(offset);
        Ok(())
    }

    /// Sends the next part from memory: its digest precedes it, and an answer before the end of the
    /// body can be read, which a streamed body would lose.
    fn send_part(&self) -> Result<PartResult, Failure> {
        let length = self.part_size.min(self.binary.size - self.offset);
        let part = self.binary.part(self.offset, length)?;
        let (last, total) = (self.offset + length - 1, self.binary.size);
        let mut request = self.client.signed(Method::PUT, &self.address)?;
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request
            .timeout(PART_LIMIT)
            .header("Content-Range", format!("bytes {}-{last}/{total}", self.offset))
            .header("Content-Digest", content_digest(&part))
            .body(part);
        Ok(self.client.send(request))
    }

    fn ask_offset(&self) -> Result<PartResult, Failure> {
        Ok(self.client.send(self.client.signed(Method::HEAD, &self.address)?))
    }
}

fn content_digest(part: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64.encode(&Sha256::digest(part)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        printer::{Form, Printer},
        testing::{Fault, IMPATIENT, TestService},
    };
    use contract::apps::Platform;
    use std::path::Path;

    /// Random bytes, so that a shift or swap of parts is noticed.
    fn content(size: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(7);
        std::iter::repeat_with(|| random.u8(..)).take(size).collect()
    }

    fn send(service: &TestService, path: &Path) -> Result<ArtifactId, Failure> {
        let binary = Binary::open(path, &Printer::new(Form::Text, true))?;
        let request = UploadUrlRequest {
            app_id: "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap(),
            platform: Platform::Android,
            file_name: binary.name.clone(),
            version: "1.0.0".parse().ok(),
            size: Some(binary.size),
            sha256: Some(binary.sha256.clone()),
            build_number: None,
            profile: None,
            provenance: None,
            build: None,
        };
        upload(&service.client(), &binary, &request, &ProgressBar::hidden())
    }

    fn file(content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.apk");
        std::fs::write(&path, content).unwrap();
        (folder, path)
    }

    const SIZE: usize = 3 * PART_SIZE as usize + 4321;

    #[test]
    fn an_upload_comes_through_whatever_happens() {
        let content = content(SIZE);
        let (_folder, path) = file(&content);
        let service = TestService::start([
            Fault::DropAfter(1_000_000),
            Fault::Refuse(500),
            Fault::None,
            Fault::Refuse(429),
            Fault::DropAfter(0),
            Fault::WrongOffset,
            Fault::LoseAnswer,
            Fault::Refuse(400),
            Fault::AddressEnded,
        ]);
        send(&service, &path).unwrap();
        assert!(service.stored() == content, "the bytes differ");
        assert_eq!(service.opened(), 2);
    }

    #[test]
    fn a_second_run_goes_on_where_the_first_stopped() {
        let content = content(SIZE);
        let (_folder, path) = file(&content);
        let service = TestService::start([Fault::None, Fault::Gone]);
        let failure = send(&service, &path).unwrap_err();
        assert!(matches!(failure, Failure::Unreachable { .. }), "{failure}");
        let before = service.stored().len();
        assert_eq!(before, PART_SIZE as usize);
        service.come_back();
        send(&service, &path).unwrap();
        assert!(service.stored() == content, "the bytes differ");
        assert_eq!(service.received(), SIZE);
    }

    #[test]
    fn a_service_that_is_gone_ends_it_after_bounded_attempts() {
        let (_folder, path) = file(&content(1000));
        let service = TestService::start([Fault::Gone]);
        let failure = send(&service, &path).unwrap_err();
        assert_eq!(
            format!("{:?}", failure.exit_code()),
            format!("{:?}", std::process::ExitCode::from(3))
        );
        assert!(failure.hint().contains("svc serve"));
        assert_eq!(service.attempts(), IMPATIENT.attempts as usize);
    }

    #[test]
    fn what_the_service_will_not_take_is_not_sent_again() {
        let (_folder, path) = file(&content(1000));
        let service = TestService::start([Fault::Refuse(413)]);
        let failure = send(&service, &path).unwrap_err();
        assert!(matches!(failure, Failure::Refused(_)), "{failure}");
        assert_eq!(service.attempts(), 1);
    }
}
