//! Brings a file to the service in parts, through whatever happens to the connection.
//!
//! The service says how far its bytes are durable, and each part starts there. After an answer
//! that says nothing of that, or none at all, it is asked. What is stored stays stored, so a
//! command that was interrupted goes on where it stopped when it is run again.

use crate::{
    binary::Binary,
    client::{self, Answer, Client},
    failure::Failure,
};
use contract::{
    ArtifactId,
    endpoint::{PART_SIZE, Received, UploadUrlRequest},
};
use data_encoding::BASE64;
use indicatif::ProgressBar;
use reqwest::Method;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, time::Duration};

/// A part that takes longer counts as stalled, and is sent again in half.
const PART_LIMIT: Duration = Duration::from_secs(60);
/// Parts are not cut smaller than this.
const SMALLEST_PART: u64 = 256 << 10;

/// Uploads a file, from where an earlier attempt stopped.
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
        let mut upload = Upload {
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
            // A large file may take longer than its address holds. An address that took nothing is
            // refused for another reason.
            End::Refused(refusal) if renewed_at == Some(upload.farthest) => return Err(refusal),
            End::Refused(_) => renewed_at = Some(upload.farthest),
        }
    }
}

struct Upload<'a> {
    client: &'a Client,
    binary: &'a Binary,
    bar: &'a ProgressBar,
    address: String,
    headers: BTreeMap<String, String>,
    /// Where the stored bytes end, as far as is known.
    offset: u64,
    /// The farthest that the stored bytes ever ended: beyond it lies progress.
    farthest: u64,
    part_size: u64,
    /// Attempts since the last progress.
    failures: u32,
}

enum End {
    Complete,
    /// The address is refused, as it is once it is too old.
    Refused(Failure),
}

/// What came of one request.
type Attempt = Result<Answer, reqwest::Error>;

/// What an answer means for an upload.
#[derive(Debug, PartialEq)]
enum Step {
    /// The stored bytes end here.
    At(u64),
    /// The part was not taken: the stored bytes end here.
    Elsewhere(u64),
    /// It does not tell where they end.
    Ask,
    /// The address does not hold any more.
    Renew,
    /// The bytes will not be taken.
    Refused,
}

fn next(answer: &Answer) -> Step {
    match answer.status {
        200..=299 => stored(answer).map_or(Step::Ask, Step::At),
        401 => Step::Renew,
        409 => answer.failure().and_then(|f| f.expected_offset).map_or(Step::Ask, Step::Elsewhere),
        // 400: the part was damaged on its way.
        400 | 408 | 429 | 500.. => Step::Ask,
        _ => Step::Refused,
    }
}

fn stored(answer: &Answer) -> Option<u64> {
    let told = answer.header("upload-offset").and_then(|offset| offset.parse().ok());
    told.or_else(|| serde_json::from_slice::<Received>(&answer.body).ok().map(|r| r.received))
}

impl Upload<'_> {
    fn run(&mut self) -> Result<End, Failure> {
        let mut certain = true;
        self.bar.set_position(self.offset);
        while !certain || self.offset < self.binary.size {
            let attempt = if certain { self.send_part()? } else { self.ask_offset()? };
            match attempt.as_ref().map_or(Step::Ask, next) {
                Step::At(offset) if !certain || offset > self.farthest => {
                    self.move_to(offset)?;
                    certain = true;
                }
                Step::At(offset) | Step::Elsewhere(offset) => {
                    self.move_to(offset)?;
                    self.rest(attempt)?;
                }
                Step::Ask => {
                    if attempt.is_err() {
                        self.part_size = (self.part_size / 2).max(SMALLEST_PART);
                    }
                    self.rest(attempt)?;
                    certain = false;
                }
                Step::Renew => return Ok(End::Refused(self.failure(attempt))),
                Step::Refused => return Err(self.failure(attempt)),
            }
        }
        Ok(End::Complete)
    }

    /// Waits after an attempt that brought nothing; out of patience, that attempt is the failure.
    fn rest(&mut self, attempt: Attempt) -> Result<(), Failure> {
        self.failures += 1;
        let told = attempt.as_ref().ok().and_then(Answer::retry_after);
        if self.client.patience().rest(self.failures, told) {
            return Ok(());
        }
        Err(self.failure(attempt))
    }

    fn failure(&self, attempt: Attempt) -> Failure {
        match attempt {
            Ok(answer) => self.client.refusal(&answer),
            Err(error) => self.client.unreachable(&error),
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

    /// Sends the next part. It is held in memory: its digest goes ahead of it, and an answer that
    /// comes before all of it is sent can be read, which a streamed body would lose.
    fn send_part(&self) -> Result<Attempt, Failure> {
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
        Ok(client::send(request))
    }

    fn ask_offset(&self) -> Result<Attempt, Failure> {
        Ok(client::send(self.client.signed(Method::HEAD, &self.address)?))
    }
}

fn content_digest(part: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64.encode(&Sha256::digest(part)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        printer::Printer,
        testing::{Fault, IMPATIENT, Service},
    };
    use contract::apps::Platform;
    use std::path::Path;

    /// Bytes that no shift or swap of parts would leave the same.
    fn content(size: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(7);
        std::iter::repeat_with(|| random.u8(..)).take(size).collect()
    }

    fn send(service: &Service, path: &Path) -> Result<ArtifactId, Failure> {
        let binary = Binary::open(path, &Printer::new(false, true))?;
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
        let service = Service::start([
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
        let service = Service::start([Fault::None, Fault::Gone]);
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
        let service = Service::start([Fault::Gone]);
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
        let service = Service::start([Fault::Refuse(413)]);
        let failure = send(&service, &path).unwrap_err();
        assert!(matches!(failure, Failure::Refused(_)), "{failure}");
        assert_eq!(service.attempts(), 1);
    }
}
