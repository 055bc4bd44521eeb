//! Reads the files that make a repository managed. Fetches only the newest commit, its folders and
//! these files, if the server can leave the rest out; and nothing, if the commit is known.

use super::{Git, process::Repository, refusals::explained};
use actors::ports::sources::{Inspected, Remote, Revision, SourceError};
use contract::text::GitRef;
use repository::{CONFIG, FileContent, Files, LARGEST_FILE, PACKAGE, WORKFLOW};

const FETCH: [&str; 4] = ["fetch", "--quiet", "--no-tags", "--filter=blob:none"];

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
    let Tip { git_ref, wanted, commit } = tip(repository, &remote.revision).await?;
    if let Some(commit) = &commit
        && let Some(files) = git.known.get(&remote.url, commit)
    {
        return Ok(Inspected { commit: commit.clone(), git_ref, files });
    }
    repository.init()?;
    // A server that named the commit is not asked for its names again.
    let wanted = commit.as_ref().unwrap_or(&wanted);
    repository.run(&[&FETCH[..], &["--depth=1", "--", "origin", wanted]].concat()).await?;
    let commit = match commit {
        Some(commit) => commit,
        None => repository.run(&["rev-parse", "FETCH_HEAD^{commit}"]).await?.trim().to_owned(),
    };
    let listed = ["ls-tree", "-z", &commit, "--", PACKAGE, CONFIG, WORKFLOW];
    let listed = repository.run(&listed).await?;
    fetch_together(repository, &listed).await;
    let files = Files {
        package: content(repository, &listed, PACKAGE).await?,
        config: content(repository, &listed, CONFIG).await?,
        workflow: content(repository, &listed, WORKFLOW).await?,
    };
    git.known.add(&remote.url, &commit, files.clone());
    Ok(Inspected { commit, git_ref, files })
}

/// What is to be read.
struct Tip {
    /// The branch, tag or commit, as people call it.
    git_ref: String,
    /// The same for git.
    wanted: String,
    /// The newest commit of a branch. `None`: the server does not name the branch, or it was not asked.
    commit: Option<String>,
}

/// Asks the server for the end of a branch, without fetching anything.
async fn tip(repository: &Repository, revision: &Revision) -> Result<Tip, SourceError> {
    let asked = match revision {
        Revision::Branch(branch) => format!("refs/heads/{}", branch.as_str()),
        Revision::DefaultBranch => "HEAD".to_owned(),
        Revision::Named(name) => {
            let name = name.as_str().to_owned();
            return Ok(Tip { git_ref: name.clone(), wanted: name, commit: None });
        }
    };
    let told = repository.run(&["ls-remote", "--symref", "--", "origin", &asked]).await?;
    let mut lines = told.lines().filter_map(|line| line.split_once('\t'));
    let commit = lines.clone().find(|(what, name)| *name == asked && !what.starts_with("ref: "));
    let commit = commit.map(|(commit, _)| commit.to_owned());
    if let Revision::Branch(branch) = revision {
        return Ok(Tip { git_ref: branch.as_str().to_owned(), wanted: asked, commit });
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
    let git_ref = branch.as_str().to_owned();
    Ok(Tip { wanted: format!("refs/heads/{git_ref}"), git_ref, commit })
}

/// Fetches the listed files with one request, if the server left them out. Without this, git asks
/// for each when it is read, which also happens if the server refuses this request.
async fn fetch_together(repository: &Repository, listed: &str) {
    let files: Vec<_> = entries(listed).filter_map(|(facts, _)| object(facts)).collect();
    if files.len() > 1 && repository.lacks_objects() {
        let _ = repository.run(&[&FETCH[..], &["--", "origin"], &files].concat()).await;
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
