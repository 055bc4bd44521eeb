//! Executes one build: fetches the commit, runs the command, and uploads the file.

use super::{
    Runner, checkout,
    folder::WorkFolder,
    process::{Ended, Process},
    reporter::Reporter,
    user::User,
};
use crate::{Context, args, binary::Binary, failure::Failure, upload::upload};
use contract::{
    ArtifactId, BuildId,
    endpoint::{BuildOfRunner, FinalizeRequest, UploadUrlRequest},
    runners::{BuildOrder, FinishBuild},
};
use rustix::fs::{Mode, OFlags};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use svc_client::varied;

/// The variables of the runner that a build gets, if they are set.
const PASSED: [&str; 9] = [
    "PATH",
    "LANG",
    "TZ",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ANDROID_NDK_HOME",
    "JAVA_HOME",
    "DEVELOPER_DIR",
    "SSL_CERT_FILE",
];
/// How long the runner tries to report the end of a build. After a minute of silence, the service
/// looks for the artifact itself, or gives the build to another runner.
const TOLD_WITHIN: Duration = Duration::from_secs(600);
const TELL_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The longest reason that the service takes, in characters.
const LONGEST_REASON: usize = 500;

impl Runner {
    /// Executes a build and reports its end. Fails if this machine cannot even begin: the service
    /// then gives the build to another runner.
    pub fn execute(
        &self,
        cx: &Context<'_>,
        args: &args::RunnerArgs,
        order: &BuildOrder,
    ) -> Result<(), Failure> {
        let folder = WorkFolder::create(&self.base, self.user.as_ref())
            .map_err(|error| Failure::file(&self.base, &error))?;
        let id = order.build_id;
        cx.printer.note(format_args!("{id}: {} at {}", order.url.as_str(), order.commit));
        let reporter = Reporter::start(self.client.clone(), id, self.key.clone(), secrets(order));
        let made = self.make(cx, args, order, &folder, &reporter);
        if let Err(why) = &made {
            reporter.say(format!("The build failed: {why}"));
        }
        if let Some(why) = reporter.finish() {
            cx.printer.note(format_args!("{id}: stopped: {why}"));
            return Ok(());
        }
        self.finish(cx, id, made)
    }

    /// Makes the artifact. The error is for the log and for the record of the build.
    fn make(
        &self,
        cx: &Context<'_>,
        args: &args::RunnerArgs,
        order: &BuildOrder,
        folder: &WorkFolder,
        reporter: &Reporter,
    ) -> Result<ArtifactId, String> {
        let by = Instant::now() + Duration::from_secs(order.limit_seconds.into());
        let user = self.user.as_ref();
        checkout::checkout(order, folder, user, reporter, by)?;
        reporter.say(format!("$ {}", order.command));
        let program = ["sh", "-c", &order.command].map(OsStr::new);
        let environment = environment(order, folder, &args.pass_env);
        let started = Process::start(&program, &folder.source(), &environment, user);
        let (process, output) = started.map_err(|error| format!("the command: {error}"))?;
        let lines = reporter.follow(output);
        let ended =
            process.wait(by, || reporter.is_stopped()).map_err(|error| error.to_string())?;
        lines.wait();
        match ended {
            Ended::Exited(status) if status.success() => {}
            Ended::Exited(status) => return Err(format!("the command ended with {status}")),
            Ended::Stopped => return Err("it was stopped".into()),
            Ended::Late => return Err("the command did not end in time".into()),
        }
        let file = made_file(&folder.source(), &order.artifact, user)?;
        if reporter.is_stopped() {
            return Err("it was stopped".into());
        }
        self.deliver(cx, order, file, reporter).map_err(|failure| failure.to_string())
    }

    fn deliver(
        &self,
        cx: &Context<'_>,
        order: &BuildOrder,
        (file, path): (File, PathBuf),
        reporter: &Reporter,
    ) -> Result<ArtifactId, Failure> {
        let binary = Binary::of(file, &path, cx.printer)?;
        reporter.say(format!("Uploading {} ({} bytes)", order.artifact, binary.size));
        let request = UploadUrlRequest {
            app_id: order.app_id,
            platform: order.platform,
            file_name: binary.name.clone(),
            version: None,
            size: Some(binary.size),
            sha256: Some(binary.sha256.clone()),
            build_number: None,
            profile: Some(order.profile.clone()),
            provenance: None,
            build: Some(BuildOfRunner { build_id: order.build_id, runner: self.key.clone() }),
        };
        let bar = cx.printer.progress("uploading", binary.size);
        let artifact = upload(&self.client, &binary, &request, &bar);
        bar.finish_and_clear();
        let finalize = FinalizeRequest::of(binary.sha256.clone(), Some(binary.size));
        let artifact = self.client.finalize(artifact?, &finalize)?;
        reporter.say(format!("Verified {} {}", artifact.id, artifact.file_name.as_str()));
        Ok(artifact.id)
    }

    fn finish(
        &self,
        cx: &Context<'_>,
        build_id: BuildId,
        made: Result<ArtifactId, String>,
    ) -> Result<(), Failure> {
        let (artifact_id, error) = match made {
            Ok(artifact) => (Some(artifact), None),
            Err(why) => {
                let why: String = why.chars().take(LONGEST_REASON).collect();
                (None, Some(why.parse().map_err(|problem: String| Failure::local(problem, ""))?))
            }
        };
        let finish = FinishBuild { build_id, runner: self.key.clone(), artifact_id, error };
        let until = Instant::now() + TOLD_WITHIN;
        loop {
            match self.client.call(&finish) {
                Ok(build) => {
                    let state = crate::printer::word(&build.state);
                    cx.printer.note(format_args!("{build_id}: {state}"));
                    return Ok(());
                }
                Err(failure) if failure.is_passing() && Instant::now() < until => {
                    thread::sleep(varied(TELL_AGAIN_AFTER));
                }
                // The service gave the build up, or to another runner.
                Err(failure) => {
                    cx.printer.note(format_args!("{build_id}: {failure}"));
                    return Ok(());
                }
            }
        }
    }
}

/// What the log must not show: the token, and each line of the deploy key. Shorter lines than 16
/// letters tell nothing.
fn secrets(order: &BuildOrder) -> Vec<String> {
    let token = order.token.iter().map(|token| token.as_str());
    let key = order.ssh.iter().flat_map(|access| access.private_key.as_str().lines());
    token.chain(key.filter(|line| line.len() >= 16)).map(str::to_owned).collect()
}

/// The environment of the command: nothing of the runner but [`PASSED`] and `pass_env`.
fn environment(
    order: &BuildOrder,
    folder: &WorkFolder,
    pass_env: &[String],
) -> Vec<(OsString, OsString)> {
    let passed = PASSED.into_iter().chain(pass_env.iter().map(String::as_str));
    let passed = passed.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let own = [
        ("HOME", folder.home().into_os_string()),
        ("TMPDIR", folder.temporary().into_os_string()),
        ("CI", "true".into()),
        // Gradle's daemon would leave the process group, and outlive the build.
        ("GRADLE_OPTS", "-Dorg.gradle.daemon=false".into()),
        ("TERM", "dumb".into()),
        ("SVC_BUILD_ID", order.build_id.to_string().into()),
        ("SVC_APP_ID", order.app_id.to_string().into()),
        ("SVC_PLATFORM", order.platform.name().into()),
        ("SVC_PROFILE", order.profile.as_str().into()),
        ("SVC_COMMIT", order.commit.clone().into()),
        ("SVC_REF", order.git_ref.clone().into()),
    ];
    passed.chain(own.map(|(name, value)| (name.into(), value))).collect()
}

/// Opens the file that the command made, and tells its path. A link out of the working copy is
/// refused. What a program of the build that still runs puts there instead must be of its own user.
fn made_file(
    source: &Path,
    artifact: &str,
    user: Option<&User>,
) -> Result<(File, PathBuf), String> {
    let path = source.join(artifact).canonicalize();
    let path = path.map_err(|_| format!("the command made no {artifact}"))?;
    let source = source.canonicalize().map_err(|error| error.to_string())?;
    if !path.starts_with(&source) {
        return Err(format!("{artifact} is a link out of the repository"));
    }
    // Opening a pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let unreadable = |error: io::Error| format!("{artifact} cannot be read: {error}");
    let file = rustix::fs::open(&path, flags, Mode::empty()).map(File::from);
    let file = file.map_err(|error| unreadable(error.into()))?;
    let metadata = file.metadata().map_err(unreadable)?;
    match user {
        _ if !metadata.is_file() => Err(format!("{artifact} is not a file")),
        Some(user) if metadata.uid() != user.uid => {
            Err(format!("{artifact} is a file of another user than {}", user.name))
        }
        _ => Ok((file, path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_line_of_a_key_is_shown() {
        let line = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ";
        let (begin, end) =
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----");
        let order: BuildOrder = serde_json::from_value(json!({
            "buildId": "bld_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "appId": "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "platform": "android",
            "profile": "production",
            "url": "ssh://git@git.example.com/app.git",
            "token": null,
            "ssh": {
                "privateKey": format!("{begin}\n{line}\nAQI=\n{end}\n"),
                "hostKey": "ssh-ed25519 AAAA",
            },
            "commit": "0",
            "ref": "main",
            "command": "true",
            "artifact": "app.apk",
            "limitSeconds": 1,
        }))
        .unwrap();
        assert_eq!(secrets(&order), [begin, line, end]);
        assert!(!format!("{order:?}").contains(line));
    }
}
