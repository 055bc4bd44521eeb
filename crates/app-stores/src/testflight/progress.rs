//! How far a publication in TestFlight has come, and what follows from that. Pure.

use crate::{Action, Undo, app_store_connect::upload::UploadProgress};
use serde::{Deserialize, Serialize};

/// How far a publication has come. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TestflightProgress {
    pub(super) upload: UploadProgress,
    /// The groups that are to get the build, once they were found.
    pub(super) groups: Option<Vec<TesterGroup>>,
    /// The notes for testers are in place.
    pub(super) noted: bool,
    /// The beta review was asked for, or none is needed.
    pub(super) submitted: bool,
    /// The groups have the build.
    pub(super) offered: bool,
    /// Where the build stands for its testers, in Apple's words.
    pub(super) words: Option<String>,
    /// Why no tester gets the build.
    pub(super) failure: Option<String>,
    /// The build has expired.
    pub(super) is_expired: bool,
    /// The publication was withdrawn before Apple had the file.
    pub(super) is_abandoned: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TesterGroup {
    pub id: String,
    pub name: String,
    pub is_internal: bool,
    /// Its testers get every build without further ado.
    pub has_all_builds: bool,
    /// The page where anybody can join.
    pub link: Option<String>,
}

/// What withdrawing the publication will do.
pub fn withdrawal(progress: &TestflightProgress) -> Undo {
    let undo = |action, text: &str| Undo { action, text: text.to_owned() };
    if progress.is_expired {
        return undo(Action::Nothing, "The build has expired already: no tester can install it.");
    }
    if progress.upload.failure.is_some() {
        return undo(Action::Nothing, "Apple refused the file, so that no tester has got it.");
    }
    if progress.is_abandoned {
        return undo(Action::Nothing, "The publication was withdrawn already.");
    }
    if !progress.upload.is_sent() {
        return undo(
            Action::Abandon,
            "The upload is given up before Apple has the whole file. No tester gets it.",
        );
    }
    undo(
        Action::Expire,
        "The build expires in App Store Connect, as soon as Apple has processed it: testers can no \
         longer install it, and a version for the App Store cannot be submitted with it. Installed \
         copies stop working.",
    )
}

/// What restoring the publication will do, after a later one was withdrawn.
pub fn restoral(progress: &TestflightProgress) -> Undo {
    let build = progress.upload.build.as_ref().filter(|_| progress.offered);
    let Some(build) = build.filter(|_| !progress.is_expired) else {
        let text = match progress.is_expired {
            true => "The build has expired, and Apple offers no expired build again.",
            false => "No tester has had this build.",
        };
        return Undo { action: Action::Nothing, text: text.to_owned() };
    };
    let names: Vec<_> = progress.groups.iter().flatten().map(|group| group.name.as_str()).collect();
    let to = match names.is_empty() {
        true => "the internal groups that have access to all builds".to_owned(),
        false => names.join(", "),
    };
    let until = match build.expires_at {
        Some(at) => format!(" It expires on {}; from then on nothing is done.", at.day()),
        None => String::new(),
    };
    Undo {
        action: Action::Redistribute,
        text: format!(
            "The build is given again to {to}. Testers with a later build keep it until they choose \
             this one.{until}"
        ),
    }
}
