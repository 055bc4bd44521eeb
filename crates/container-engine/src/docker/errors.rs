//! Maps the daemon's failures to [`EngineError`].

use crate::EngineError;
use bollard::errors::Error;
use std::{borrow::Cow, fmt, time::Duration};

#[derive(Debug, Clone)]
pub(super) enum DaemonFailure {
    /// No answer, half of one, or one that cannot be read.
    Unreachable(String),
    /// The daemon understood the request, and refused it or did not succeed.
    Answer {
        /// The HTTP status. `None`: the failure came in a stream that had begun well.
        status: Option<u16>,
        message: String,
    },
}

/// Another container or another program has the port.
const TAKEN_PORT: [&str; 2] = ["port is already allocated", "address already in use"];

/// Faults of the request that the daemon answers with 500, as if they were its own.
const REFUSED_AS_500: &[&str] = &[
    TAKEN_PORT[0],
    TAKEN_PORT[1],
    "no space left on device",
    "oci runtime create failed",
    "cannot locate specified dockerfile",
    "unexpected eof",
    "archive/tar",
];

/// These also come as failures of the runtime, but are temporary.
const PASSING: &[&str] =
    &["resource temporarily unavailable", "cannot allocate memory", "deadline"];

/// What a build says that met an image or a layer which was removed while it looked for cached steps.
/// The next attempt does not find it any more.
const REMOVED_MEANWHILE: &[&str] = &[
    "failed to get digest",
    "unable to find image",
    "unknown parent image id",
    "layer does not exist",
];

/// Messages of daemons and registries about an image that cannot be obtained.
const NO_IMAGE: &[&str] = &[
    "manifest unknown",
    "not found",
    "unauthorized",
    "authentication required",
    "no basic auth credentials",
    "denied",
    "does not exist",
    "no matching manifest",
];

/// The usual folders of daemons, by which a path of the daemon's machine is told from one of a container.
const OF_THE_MACHINE: &[&str] = &[
    "/var/lib/docker/",
    "/var/lib/containerd/",
    "/run/docker/",
    "/run/docker.sock",
    "/run/containerd/",
    "/overlay2/",
    "/io.containerd",
];

impl DaemonFailure {
    pub fn late(limit: Duration) -> DaemonFailure {
        DaemonFailure::Unreachable(format!("it did not answer within {} s", limit.as_secs()))
    }

    /// Whether the daemon answered with this status.
    pub fn is(&self, code: u16) -> bool {
        matches!(self, DaemonFailure::Answer { status: Some(status), .. } if *status == code)
    }

    /// Whether the message contains these words, which must be in lower case.
    pub fn says(&self, words: &str) -> bool {
        matches!(self, DaemonFailure::Answer { message, .. } if contains(message, &[words]))
    }

    /// Whether the port to publish is taken.
    pub fn is_taken_port(&self) -> bool {
        matches!(self, DaemonFailure::Answer { message, .. } if contains(message, &TAKEN_PORT))
    }

    /// The error of a request about this object, such as `container x`.
    pub fn about(self, what: impl fmt::Display) -> EngineError {
        let (status, message) = match self {
            DaemonFailure::Unreachable(why) => return EngineError::Unreachable(why),
            DaemonFailure::Answer { status, message } => (status, message),
        };
        match status {
            Some(404) => EngineError::Missing(what.to_string()),
            Some(500..) if !is_refusal(&message) => EngineError::Unreachable(message),
            Some(_) | None => refused(&message),
        }
    }

    /// The error of a build.
    pub fn about_build(self) -> EngineError {
        match self {
            DaemonFailure::Answer { message, .. } if contains(&message, REMOVED_MEANWHILE) => {
                EngineError::Unreachable(message)
            }
            failure => failure.about("builder"),
        }
    }

    /// The error of a request for this image.
    pub fn about_image(self, image: &str) -> EngineError {
        let (status, message) = match self {
            DaemonFailure::Unreachable(why) => return EngineError::Unreachable(why),
            DaemonFailure::Answer { status, message } => (status, message),
        };
        match status {
            _ if contains(&message, &["no space left on device"]) => refused(&message),
            Some(401 | 403 | 404) => no_image(image, &message),
            _ if contains(&message, NO_IMAGE) => no_image(image, &message),
            Some(400..500) => refused(&message),
            // The registry is down, or limits our rate.
            _ => EngineError::Unreachable(message),
        }
    }
}

fn no_image(image: &str, why: &str) -> EngineError {
    EngineError::NoImage { image: image.to_owned(), why: for_tenants(why) }
}

fn refused(why: &str) -> EngineError {
    EngineError::Refused(for_tenants(why))
}

/// What a daemon refuses, for tenants, without its usual folders: how its machine is set up is for operators.
fn for_tenants(message: &str) -> String {
    tracing::debug!(message, "the container engine refused");
    let ends_path = |c: char| c.is_whitespace() || "\"'`,:;()[]".contains(c);
    let parts = message.split_inclusive(ends_path).map(|part| {
        let path = part.trim_end_matches(ends_path);
        let is_secret = OF_THE_MACHINE.iter().any(|folder| path.contains(folder));
        if is_secret { part.replacen(path, "…", 1).into() } else { Cow::Borrowed(part) }
    });
    parts.collect()
}

fn is_refusal(message: &str) -> bool {
    contains(message, REFUSED_AS_500) && !contains(message, PASSING)
}

fn contains(message: &str, words: &[&str]) -> bool {
    let message = message.to_lowercase();
    words.iter().any(|words| message.contains(words))
}

impl From<Error> for DaemonFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::DockerResponseServerError { status_code, message } => {
                DaemonFailure::Answer { status: Some(status_code), message }
            }
            Error::DockerStreamError { error } => {
                DaemonFailure::Answer { status: None, message: error }
            }
            other => DaemonFailure::Unreachable(with_causes(&other)),
        }
    }
}

/// An error and its causes: errors of HTTP clients say little by themselves.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text.push_str(": ");
            text.push_str(&inner);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, message: &str) -> DaemonFailure {
        DaemonFailure::Answer { status: Some(status), message: message.to_owned() }
    }

    #[test]
    fn a_taken_port_is_a_refusal_that_names_it() {
        let said = "driver failed programming external connectivity on endpoint x: Bind for \
                    127.0.0.1:4000 failed: port is already allocated";
        assert_eq!(answer(500, said).about("x"), EngineError::Refused(said.to_owned()));
    }

    #[test]
    fn a_refusal_names_paths_of_containers_and_none_of_the_machine() {
        let full = "write /var/lib/docker/tmp/GetImageBlob1: no space left on device";
        let told = EngineError::Refused("write …: no space left on device".to_owned());
        assert_eq!(answer(500, full).about("x"), told);
        assert_eq!(answer(500, full).about_image("x"), told);
        let runtime = "OCI runtime create failed: exec: \"/app/start\": stat /app/start: no such file, \
                       root \"/mnt/engine/overlay2/ab/merged\" (/run/containerd/x/y)";
        let told = "OCI runtime create failed: exec: \"/app/start\": stat /app/start: no such file, \
                    root \"…\" (…)";
        assert_eq!(answer(400, runtime).about("x"), EngineError::Refused(told.to_owned()));
    }

    #[test]
    fn a_fault_of_the_daemon_is_away_and_one_of_the_runtime_is_not() {
        assert!(matches!(
            answer(500, "layer does not add up").about("x"),
            EngineError::Unreachable(_)
        ));
        let runtime = "OCI runtime create failed: not a directory: unknown";
        assert!(matches!(answer(500, runtime).about("x"), EngineError::Refused(_)));
        let busy = "OCI runtime create failed: fork/exec: resource temporarily unavailable";
        assert!(matches!(answer(500, busy).about("x"), EngineError::Unreachable(_)));
    }

    #[test]
    fn a_build_whose_cached_step_is_removed_is_tried_again_and_one_that_fails_is_not() {
        let ended = |said: &str| {
            DaemonFailure::Answer { status: None, message: said.to_owned() }.about_build()
        };
        let removed = "failed to get digest sha256:d51b: open /var/lib/docker/image/overlay2/\
                       imagedb/content/sha256/d51b: no such file or directory";
        assert!(matches!(ended(removed), EngineError::Unreachable(_)));
        let failed = "The command '/bin/sh -c npm ci' returned a non-zero code: 1";
        assert_eq!(ended(failed), EngineError::Refused(failed.to_owned()));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let missing = answer(404, "No such container: x").about("container x");
        assert_eq!(missing.to_string(), "there is no container x");
    }

    #[test]
    fn an_image_that_is_not_there_is_told_from_a_registry_that_is_not() {
        for (status, said) in [
            (404, "manifest for r/x:1 not found: manifest unknown: manifest unknown"),
            (404, "pull access denied for x, repository does not exist"),
            (500, "Head \"https://r/v2/x/manifests/1\": unauthorized: authentication required"),
            (500, "Head \"http://r/v2/x/manifests/1\": no basic auth credentials"),
        ] {
            let meant = answer(status, said).about_image("x");
            assert!(matches!(meant, EngineError::NoImage { .. }), "{said}");
        }
        for said in [
            "Get \"http://r/v2/\": dial tcp 127.0.0.1:1: connect: connection refused",
            "Get \"https://r/v2/\": dial tcp: lookup r: no such host",
            "toomanyrequests: You have reached your pull rate limit",
        ] {
            assert!(
                matches!(answer(500, said).about_image("x"), EngineError::Unreachable(_)),
                "{said}"
            );
        }
    }
}
