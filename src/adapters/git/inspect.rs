//! Reads the files that make a repository managed. Fetches only the newest commit, its folders and
//! these files, if the server can leave the rest out; and nothing, if the commit is known.

use super::{Git, process::Repository, refusals::explained};
use actors::ports::sources::{Inspected, Remote, Revision, SourceError};
use contract::text::{GitRef, GitUrl};
use repository::{CONFIG, FileContent, Files, LARGEST_FILE, PACKAGE, WORKFLOW};

pub(super) async fn inspect(git: &Git, remote: &Remote) -> Result<Inspected, SourceError> {
    let repository = git.open(remote, None).await?;
    match repository.within_its_size(read(git, &repository, remote)).await {
        Ok(inspected) => Ok(inspected),
        Err(e) => Err(explained(git, e, remote).await),
    }
}

async fn read(
    git: &Git,
    repository: &Repository,
    remote: &Remote,
) -> Result<Inspected, SourceError> {
    let url = &remote.url;
    let (git_ref, wanted, newest) = match &remote.revision {
        Revision::Named(name) => (name.as_str().to_owned(), name.as_str().to_owned(), None),
        revision => {
            let Tip { branch, commit } = tip(repository, url, revision).await?;
            let wanted = format!("refs/heads/{branch}");
            (branch, wanted, commit)
        }
    };
    if let Some(commit) = newest
        && let Some(files) = git.known.get(url, &commit)
    {
        return Ok(Inspected { commit, git_ref, files });
    }
    repository.init().await?;
    // Under this name, git remembers what the server left out.
    repository.run(&["config", "remote.origin.url", url.as_str()]).await?;
    let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", "origin"];
    repository.run(&[&fetch[..], &[wanted.as_str()]].concat()).await?;
    let commit = repository.run(&["rev-parse", "FETCH_HEAD^{commit}"]).await?.trim().to_owned();
    let listed = ["ls-tree", "-z", &commit, "--", PACKAGE, CONFIG, WORKFLOW];
    let listed = repository.run(&listed).await?;
    fetch_together(repository, &listed).await;
    let files = Files {
        package: content(repository, &listed, PACKAGE).await?,
        config: content(repository, &listed, CONFIG).await?,
        workflow: content(repository, &listed, WORKFLOW).await?,
    };
    git.known.add(url, &commit, files.clone());
    Ok(Inspected { commit, git_ref, files })
}

/// The end of a branch.
struct Tip {
    branch: String,
    /// The newest commit. `None`: the server does not name the branch.
    commit: Option<String>,
}

/// Asks the server for the end of a branch, without fetching anything.
async fn tip(
    repository: &Repository,
    url: &GitUrl,
    revision: &Revision,
) -> Result<Tip, SourceError> {
    let asked = match revision {
        Revision::Branch(branch) => format!("refs/heads/{}", branch.as_str()),
        Revision::DefaultBranch | Revision::Named(_) => "HEAD".to_owned(),
    };
    let told = repository.run(&["ls-remote", "--symref", "--", url.as_str(), &asked]).await?;
    let mut lines = told.lines().filter_map(|line| line.split_once('\t'));
    let commit = lines.clone().find(|(what, name)| *name == asked && !what.starts_with("ref: "));
    let commit = commit.map(|(commit, _)| commit.to_owned());
    if let Revision::Branch(branch) = revision {
        return Ok(Tip { branch: branch.as_str().to_owned(), commit });
    }
    let named = lines.find_map(|(what, _)| what.strip_prefix("ref: refs/heads/"));
    let named = named.ok_or_else(|| {
        SourceError::Refused(
            "the repository has no default branch: it is empty, or its HEAD names no branch".into(),
        )
    })?;
    let branch = named.parse::<GitRef>().map_err(|_| {
        SourceError::Refused(format!("the name of the default branch, {named:?}, is not supported"))
    })?;
    Ok(Tip { branch: branch.as_str().to_owned(), commit })
}

/// Fetches the listed files with one request, if the server left them out. Without this, git asks
/// for each when it is read, which also happens if the server refuses this request.
async fn fetch_together(repository: &Repository, listed: &str) {
    let files: Vec<_> = entries(listed).filter_map(|(facts, _)| object(facts)).collect();
    if files.len() > 1 && repository.lacks_objects() {
        let fetch = ["fetch", "--quiet", "--no-tags", "--filter=blob:none", "origin"];
        let _ = repository.run(&[&fetch[..], &files].concat()).await;
    }
}

/// The facts and the path of each entry of `git ls-tree -z`.
fn entries(listed: &str) -> impl Iterator<Item = (&str, &str)> {
    listed.split('\0').filter_map(|entry| entry.split_once('\t'))
}

/// The object of a regular file.
fn object(facts: &str) -> Option<&str> {
    let mut facts = facts.split(' ');
    match (facts.next(), facts.next(), facts.next()) {
        (Some(mode), Some("blob"), object) if mode.starts_with("100") => object,
        _ => None,
    }
}

/// The content of a file of `listed`, the output of `git ls-tree -z`.
async fn content(
    repository: &Repository,
    listed: &str,
    path: &str,
) -> Result<FileContent, SourceError> {
    let facts = entries(listed).find(|(_, name)| *name == path).map(|(facts, _)| facts);
    let facts = facts.unwrap_or_default();
    match (object(facts), facts.split(' ').next()) {
        (Some(object), _) => {
            let most = LARGEST_FILE as u64 + 1;
            Ok(repository.output(&["cat-file", "blob", object], most).await?.into())
        }
        (None, Some("120000")) => Ok(FileContent::Unreadable("is a link".into())),
        (None, Some("") | None) => Ok(FileContent::Missing),
        (None, Some(_)) => Ok(FileContent::Unreadable("is not a file".into())),
    }
}
