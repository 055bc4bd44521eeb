//! The rules of an upload: what is checked before it, which step is next, and whose upload one is.
//! Pure.
//!
//! Source: "CFBundleShortVersionString" and "CFBundleVersion" of Apple, and "TN2420: Version Numbers
//! and Build Numbers".

use super::progress::{FileReservation, UploadProgress};
use crate::{AppFile, app_store_connect::documents::BuildUploadFile};
use contract::artifacts::ArtifactKind;

/// The longest version or build number, in characters.
const LONGEST_NUMBER: usize = 18;
/// How often an upload that another publication opened is looked at before this publication sends
/// the file itself. Both send the same bytes, so that does no harm.
const MOST_LOOKS: u32 = 10;
/// How many places for the file may expire.
pub(super) const MOST_PLACES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UploadStep {
    /// Find the app by its bundle identifier.
    FindApp,
    /// Look for an upload or a build of this version and build number.
    Look,
    /// Open an upload, unless there is one.
    Open,
    /// Ask for a place for the file.
    AskForPlace,
    /// Send a part of the file.
    SendPart,
    /// Tell Apple that the file is complete.
    Commit,
    /// See whether Apple has the file whole.
    FollowFile,
    /// See whether Apple made a build of the file.
    FollowUpload,
    /// See whether the build can be used.
    FollowBuild,
}

/// The next step. `None`: the build can be used.
pub(crate) fn next(upload: &UploadProgress) -> Option<UploadStep> {
    Some(match upload {
        UploadProgress { app: None, .. } => UploadStep::FindApp,
        UploadProgress { is_usable: true, .. } => return None,
        UploadProgress { build: Some(_), .. } => UploadStep::FollowBuild,
        UploadProgress { id: None, opens: false, .. } => UploadStep::Look,
        UploadProgress { id: None, opens: true, .. } => UploadStep::Open,
        UploadProgress { delivered: true, .. } => UploadStep::FollowUpload,
        UploadProgress { committed: true, .. } => UploadStep::FollowFile,
        UploadProgress { place: None, .. } => UploadStep::AskForPlace,
        upload if upload.has_sent_parts() => UploadStep::Commit,
        _ => UploadStep::SendPart,
    })
}

/// The numbers of a version or a build number, with three of them. `None`: Apple does not take it.
pub(crate) fn numbers(text: &str) -> Option<[u64; 3]> {
    let mut numbers = [0; 3];
    let mut parts = text.split('.');
    for number in &mut numbers {
        let Some(part) = parts.next() else { break };
        let is_number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_number)?;
    }
    (parts.next().is_none() && text.len() <= LONGEST_NUMBER).then_some(numbers)
}

/// Checks what Apple would refuse after the upload. The error says what to do.
pub(crate) fn check_file(file: &AppFile) -> Result<(), String> {
    if file.kind != ArtifactKind::Ipa {
        return Err(format!("Apple takes .ipa files only, and {} is none.", file.name));
    }
    if file.size == 0 {
        return Err("The file is empty.".into());
    }
    let rule = "Apple wants one to three whole numbers with periods between them, such as 1.4.2";
    if numbers(&file.version).is_none() {
        return Err(format!(
            "The version {} cannot be published: {rule}. Change CFBundleShortVersionString and build \
             again.",
            file.version
        ));
    }
    if numbers(&file.build_number).is_none() {
        return Err(format!(
            "The build number {} cannot be published: {rule}. Change CFBundleVersion and build \
             again.",
            file.build_number
        ));
    }
    Ok(())
}

/// The name of a file at Apple.
pub(super) fn name_at_apple(file: &AppFile) -> String {
    format!("{}.ipa", file.sha256)
}

/// Whether a file at Apple is this one. Name and size are set when its place is asked for, so they
/// are always there; a checksum follows with the whole file.
pub(super) fn is_same(at_apple: &BuildUploadFile, file: &AppFile) -> bool {
    let checksum = at_apple.source_file_checksums.as_ref().and_then(|sums| sums.file.as_ref());
    let hash = checksum
        .filter(|sum| sum.algorithm.as_deref() == Some("SHA_256"))
        .and_then(|sum| sum.hash.as_deref());
    at_apple.file_name.as_deref() == Some(&name_at_apple(file))
        && at_apple.file_size == Some(file.size)
        && hash.is_none_or(|hash| hash.eq_ignore_ascii_case(file.sha256.as_str()))
}

/// An upload of this version and build number that Apple has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundUpload {
    pub id: String,
    /// `AWAITING_UPLOAD`, `PROCESSING` or `COMPLETE`; one that failed does not count.
    pub state: String,
    pub file: FoundFile,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum FoundFile {
    None,
    /// Of other bytes, or nobody can tell of which.
    Other,
    /// This file, with what is to be sent of it.
    This(FileReservation),
    /// This file, and Apple was told that it is complete.
    Whole,
}

/// What a look showed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Availability {
    /// Nobody has used the version and build number.
    Free,
    /// Another publication of the same file works on the upload.
    Wait,
    /// The upload that is to be followed. This publication sends the file if it is not there.
    Use(Box<UploadProgress>),
    /// The version and build number belong to another file.
    Taken(String),
}

/// What a look at the uploads showed. `opens`: this publication opened one, or was about to.
pub(super) fn judge(
    found: Option<FoundUpload>,
    now: &UploadProgress,
    file: &AppFile,
) -> Availability {
    let Some(found) = found else { return Availability::Free };
    let is_waiting = found.state == "AWAITING_UPLOAD";
    let is_ours = now.opens || now.waited >= MOST_LOOKS;
    let id = Some(found.id);
    let follow = |upload: UploadProgress| Availability::Use(Box::new(upload));
    match found.file {
        FoundFile::Whole => {
            follow(UploadProgress { id, committed: true, delivered: !is_waiting, ..now.clone() })
        }
        FoundFile::This(_) | FoundFile::None if is_waiting && !is_ours => Availability::Wait,
        FoundFile::This(place) if is_waiting => {
            follow(UploadProgress { id, place: Some(place), ..now.clone() })
        }
        FoundFile::This(_) => {
            follow(UploadProgress { id, committed: true, delivered: true, ..now.clone() })
        }
        FoundFile::None if is_waiting => follow(UploadProgress { id, ..now.clone() }),
        FoundFile::Other if is_waiting => Availability::Taken(format!(
            "App Store Connect has an unfinished upload of another file as build {} of version {}. \
             Delete it there, under TestFlight, Build Uploads, or raise the build number and build \
             again.",
            file.build_number, file.version
        )),
        FoundFile::None | FoundFile::Other => Availability::Taken(taken(file)),
    }
}

/// The refusal of a build number that a build of another file has.
pub(super) fn taken(file: &AppFile) -> String {
    format!(
        "App Store Connect already has build {} of version {}, and it was not made from this file. \
         Raise the build number and build again.",
        file.build_number, file.version
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> AppFile {
        AppFile {
            kind: ArtifactKind::Ipa,
            name: "app.ipa".into(),
            size: 1000,
            sha256: "ab".repeat(32).parse().unwrap(),
            version: "1.4.2".into(),
            build_number: "42".into(),
        }
    }

    #[test]
    fn version_numbers_are_those_of_apple() {
        for (text, expected) in [
            ("1", Some([1, 0, 0])),
            ("1.4", Some([1, 4, 0])),
            ("01.4.2", Some([1, 4, 2])),
            ("1.4.2.1", None),
            ("1.4.2-rc.1", None),
            ("1..2", None),
            ("", None),
            ("+1", None),
            ("1234567890.1234567890", None),
        ] {
            assert_eq!(numbers(text), expected, "{text}");
        }
        assert!(numbers("1.10") > numbers("1.9.9"));
    }

    #[test]
    fn a_file_that_apple_would_refuse_is_refused_before() {
        assert_eq!(check_file(&file()), Ok(()));
        let wrong = [
            AppFile { kind: ArtifactKind::Apk, name: "a.apk".into(), ..file() },
            AppFile { size: 0, ..file() },
            AppFile { version: "1.4.2-rc.1".into(), ..file() },
            AppFile { build_number: "42a".into(), ..file() },
        ];
        for (wrong, word) in wrong.iter().zip([".ipa", "empty", "1.4.2-rc.1", "42a"]) {
            assert!(check_file(wrong).unwrap_err().contains(word), "{wrong:?}");
        }
    }

    #[test]
    fn an_upload_goes_from_step_to_step() {
        let mut upload = UploadProgress::default();
        let mut steps = Vec::new();
        while let Some(step) = next(&upload) {
            steps.push(step);
            match step {
                UploadStep::FindApp => {
                    let (id, name, language) = ("1".into(), "A".into(), "en-US".into());
                    upload.app = Some(super::super::AppRecord { id, name, language });
                }
                UploadStep::Look => upload.opens = true,
                UploadStep::Open => upload.id = Some("2".into()),
                UploadStep::AskForPlace => {
                    upload.place = Some(FileReservation { id: "3".into(), parts: vec![], sent: 0 });
                }
                UploadStep::Commit => upload.committed = true,
                UploadStep::FollowFile => upload.delivered = true,
                UploadStep::FollowUpload => {
                    let (id, expires_at) = ("4".into(), None);
                    upload.build = Some(super::super::progress::BuildRecord { id, expires_at });
                }
                UploadStep::FollowBuild => upload.is_usable = true,
                UploadStep::SendPart => unreachable!("there are no parts"),
            }
        }
        use UploadStep::*;
        let all = [FindApp, Look, Open, AskForPlace, Commit, FollowFile, FollowUpload, FollowBuild];
        assert_eq!(steps, all);
    }

    #[test]
    fn an_upload_of_the_same_file_is_used_and_no_other() {
        let place = || FileReservation { id: "f".into(), parts: vec![], sent: 0 };
        let (waiting, done) = ("AWAITING_UPLOAD", "COMPLETE");
        let seen = |state: &str, found: FoundFile, now: &UploadProgress| {
            let found = FoundUpload { id: "u".into(), state: state.into(), file: found };
            match judge(Some(found), now, &file()) {
                Availability::Use(upload) if upload.delivered => "follows the build",
                Availability::Use(upload) if upload.committed => "follows the file",
                Availability::Use(upload) if upload.place.is_some() => "sends",
                Availability::Use(_) => "asks for a place",
                Availability::Wait => "waits",
                Availability::Taken(_) => "refuses",
                Availability::Free => "is free",
            }
        };
        let new = UploadProgress::default();
        let opens = UploadProgress { opens: true, ..UploadProgress::default() };
        let patient = UploadProgress { waited: MOST_LOOKS, ..UploadProgress::default() };
        assert_eq!(judge(None, &new, &file()), Availability::Free);
        for (state, found, by_new, by_opener) in [
            (waiting, FoundFile::None, "waits", "asks for a place"),
            (waiting, FoundFile::This(place()), "waits", "sends"),
            (waiting, FoundFile::Whole, "follows the file", "follows the file"),
            (waiting, FoundFile::Other, "refuses", "refuses"),
            (done, FoundFile::Whole, "follows the build", "follows the build"),
            (done, FoundFile::This(place()), "follows the build", "follows the build"),
            (done, FoundFile::Other, "refuses", "refuses"),
            (done, FoundFile::None, "refuses", "refuses"),
        ] {
            assert_eq!(seen(state, found.clone(), &new), by_new, "{state} {found:?}");
            assert_eq!(seen(state, found.clone(), &opens), by_opener, "{state} {found:?}");
            assert_eq!(seen(state, found.clone(), &patient), by_opener, "{state} {found:?}");
        }
    }
}
