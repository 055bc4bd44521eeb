//! Fetches the commit of a build.

use super::{
    folder::WorkFolder,
    process::{Ended, Process},
    reporter::Reporter,
    user::User,
};
use contract::runners::BuildOrder;
use remote::ssh::SshFolder;
use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    time::Instant,
};

/// The variables of the runner that git gets, if they are set.
const PASSED: [&str; 10] = [
    "PATH",
    "SSL_CERT_FILE",
    "GIT_SSL_CAINFO",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// Makes the working copy of a build, without the history. Leaves no key behind.
pub fn checkout(
    order: &BuildOrder,
    folder: &WorkFolder,
    user: Option<&User>,
    reporter: &Reporter,
    by: Instant,
) -> Result<(), String> {
    let ssh = ssh(order, folder, user)?;
    let fetched = fetch(&Git { order, folder, user, reporter, by, ssh: ssh.as_ref() });
    let removed = ssh.map_or(Ok(()), SshFolder::remove);
    removed.map_err(|error| format!("the deploy key cannot be removed: {error}"))?;
    fetched
}

/// The folder with the deploy key, if the repository has one.
fn ssh(
    order: &BuildOrder,
    folder: &WorkFolder,
    user: Option<&User>,
) -> Result<Option<SshFolder>, String> {
    match (&order.ssh, order.url.ssh()) {
        (Some(access), Some(_)) => SshFolder::create(folder.ssh(), access, None)
            .and_then(|ssh| user.map_or(Ok(()), |user| give_all(user, ssh.path())).map(|()| ssh))
            .map(Some)
            .map_err(|error| format!("the deploy key cannot be written: {error}")),
        (None, Some(_)) => Err("the service has no deploy key for this address any more".into()),
        (_, None) => Ok(None),
    }
}

/// Gives a folder and the files in it to a user.
fn give_all(user: &User, folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        user.give(&entry?.path())?;
    }
    user.give(folder)
}

fn fetch(git: &Git<'_>) -> Result<(), String> {
    let (order, source) = (git.order, git.folder.source());
    let url = order.url.as_str();
    git.run(&["init", "--quiet", "."], &source)?;
    let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--", url];
    let by_commit = git.run(&[&fetch[..], &[&order.commit]].concat(), &source);
    // Some servers hand out only the newest commits of branches and tags.
    if by_commit.is_err() {
        git.run(&[&fetch[..], &[&order.git_ref]].concat(), &source)?;
    }
    git.run(&["checkout", "--quiet", "--detach", &order.commit], &source).map_err(|_| {
        format!(
            "the repository has no commit {} on {} any more: trigger the build again",
            order.commit, order.git_ref
        )
    })
}

struct Git<'a> {
    order: &'a BuildOrder,
    folder: &'a WorkFolder,
    user: Option<&'a User>,
    reporter: &'a Reporter,
    by: Instant,
    ssh: Option<&'a SshFolder>,
}

impl Git<'_> {
    fn run(&self, arguments: &[&str], source: &Path) -> Result<(), String> {
        // The token must not follow a redirect to another host.
        let program = ["git", "-c", "http.followRedirects=false"];
        let program: Vec<_> = program.iter().chain(arguments).map(OsStr::new).collect();
        let plain = |name: &str, value: &OsStr| (OsString::from(name), value.to_owned());
        let mut environment = vec![
            plain("HOME", self.folder.home().as_os_str()),
            plain("GIT_TERMINAL_PROMPT", OsStr::new("0")),
            plain("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
            plain("LC_ALL", OsStr::new("C")),
        ];
        let passed =
            PASSED.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
        environment.extend(passed);
        if let Some(token) = &self.order.token {
            let named = repository::git_environment(token);
            environment.extend(named.map(|(name, value)| (name.into(), value.into())));
        }
        let ssh = self.ssh.map(SshFolder::environment).into_iter().flatten();
        environment.extend(ssh.map(|(name, value)| (name.into(), value)));
        let started = Process::start(&program, source, &environment, self.user);
        let (process, output) = started.map_err(|error| format!("git cannot be run: {error}"))?;
        let lines = self.reporter.follow(output);
        let ended = process.wait(self.by, || self.reporter.is_stopped());
        lines.wait();
        match ended {
            Ok(Ended::Exited(status)) if status.success() => Ok(()),
            Ok(Ended::Exited(_)) => Err("the repository cannot be fetched".into()),
            Ok(Ended::Stopped) => Err("the build was stopped".into()),
            Ok(Ended::Late) => Err("the repository was not fetched in time".into()),
            Err(error) => Err(format!("git: {error}")),
        }
    }
}
