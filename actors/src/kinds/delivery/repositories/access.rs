//! How the service may read the repository of an app: with its token or that of its host, with its
//! deploy key, or as an application that its owner installed at the host.
//!
//! Anybody may name a repository of somebody else, so an installation serves an app only if the
//! repository itself says that it belongs to that app, or if strangers cannot register here.

use super::{DeployKey, HostTrust, Source, lookup::connected};
use crate::{
    kinds::{
        delivery::credentials::{self, Found, Use},
        people::tenant::tenant,
        world::World,
    },
    ports::{
        NotDone,
        ci::{Ci, CiError},
        credentials::Secret,
        sealed::SealError,
        sources::{GitCredential, Remote, Revision, SourceError},
    },
};
use contract::{
    AppId, Fault, Name, Timestamp,
    credentials::CredentialKind,
    runners::SshAccess,
    service::Registration,
    text::{AccessToken, GitUrl, HostId, RepositoryName},
};
use std::time::Duration;

/// How long the host of a repository may take in total to send the files that a check reads.
pub(crate) const READ_WITHIN: Duration = Duration::from_secs(20);

/// What the service may do with a repository.
pub(crate) struct RepositoryAccess {
    pub credential: Option<GitCredential>,
    /// `None`: the service cannot begin builds in the CI of the repository.
    pub ci: Option<CiAccess>,
    /// Why the host refused an installation that is not needed if the repository is public.
    refusal: Option<String>,
    /// The GitHub App is installed for the repository, which does not say, for this reason, that it
    /// belongs to the app.
    pub withheld_consent: Option<String>,
}

impl RepositoryAccess {
    /// The reason why a repository cannot be read, with what may be the cause.
    pub fn explained(&self, why: String) -> String {
        match &self.refusal {
            Some(refusal) => format!("{refusal}; without the GitHub App, {why}"),
            None => why,
        }
    }
}

/// A repository in whose CI the service may begin builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiAccess {
    pub repository: RepositoryName,
    pub installation: HostId,
    /// The clock of the host.
    pub now: Timestamp,
}

impl From<CiError> for NotDone {
    fn from(e: CiError) -> Self {
        match e {
            CiError::Refused(why) => NotDone::Refused(why),
            CiError::Busy { why, .. } | CiError::Unclear(why) => NotDone::Unreachable(why),
        }
    }
}

impl From<SealError> for NotDone {
    fn from(e: SealError) -> Self {
        NotDone::Refused(e.to_string())
    }
}

/// Finds out how the service may read a repository now.
pub(super) async fn access(
    world: &World,
    app: AppId,
    source: &Source,
) -> Result<RepositoryAccess, NotDone> {
    if let Some(key) = &source.deploy_key {
        let credential = Some(open_key(world, app, key)?);
        return Ok(RepositoryAccess {
            credential,
            ci: None,
            refusal: None,
            withheld_consent: None,
        });
    }
    let own = open(world, app, source).await?;
    let host = world.ports.ci.as_deref();
    let at = host.and_then(|ci| Some((ci, ci.repository(&source.url)?)));
    let (mut refusal, mut withheld_consent) = (None, None);
    let is_closed = world.ports.site.registration == Registration::Closed;
    let installed = match at {
        Some((ci, repository)) => match installed(ci, repository, app, is_closed, source).await {
            // The token is enough, and a public repository needs no permission.
            Err(NotDone::Refused(why)) if source.installation.is_none() => {
                refusal = Some(why);
                None
            }
            Err(_) if own.is_some() && source.installation.is_none() => None,
            found => match found? {
                Installed::No => None,
                Installed::Withheld(why) => {
                    withheld_consent = Some(why);
                    None
                }
                Installed::Yes(ci, token) => Some((ci, token)),
            },
        },
        None => None,
    };
    match (installed, &source.installation) {
        (Some((ci, token)), _) => {
            let credential = Some(own.unwrap_or(token));
            Ok(RepositoryAccess { credential, ci: Some(ci), refusal: None, withheld_consent: None })
        }
        (None, None) => Ok(RepositoryAccess { credential: own, ci: None, refusal, withheld_consent }),
        (None, Some(_)) if host.is_none() => Err(NotDone::Refused(
            "this service has no GitHub App (SVC_GITHUB_APP_ID); connect the repository with a token"
                .into(),
        )),
        // The same answer in all cases: whether a private repository exists is not everybody's
        // business.
        (None, Some(installation)) => Err(NotDone::Refused(format!(
            "installation {installation} of the GitHub App does not have this repository, or the \
             .svc/config.json of its default branch does not name it in `repository` and {app} in \
             `app`: `svc init` writes both"
        ))),
    }
}

/// Whether an installation serves an app.
enum Installed {
    /// There is none, or not the one that is meant.
    No,
    /// The repository does not say, for this reason, that it belongs to the app.
    Withheld(String),
    /// With a token that reads the repository.
    Yes(CiAccess, GitCredential),
}

/// Finds the installation that serves the app. Where registration is closed, the operator knows who
/// connects repositories, and the installation itself is consent.
async fn installed(
    ci: &dyn Ci,
    repository: RepositoryName,
    app: AppId,
    is_closed: bool,
    source: &Source,
) -> Result<Installed, NotDone> {
    let Some(opened) = ci.open(&repository).await? else { return Ok(Installed::No) };
    if source.installation.as_ref().is_some_and(|id| *id != opened.installation) {
        return Ok(Installed::No);
    }
    let config = opened.config.unwrap_or_default();
    let withheld = repository::withheld_consent(&config, Some(app), &repository);
    if let Some(why) = withheld.filter(|_| !is_closed) {
        return Ok(Installed::Withheld(why));
    }
    let ci = CiAccess { repository, installation: opened.installation, now: opened.now };
    Ok(Installed::Yes(ci, GitCredential::Token(opened.token)))
}

/// The stored token of a repository, or else the one that the app has for its host.
async fn open(
    world: &World,
    app: AppId,
    source: &Source,
) -> Result<Option<GitCredential>, NotDone> {
    if let Some(token) = &source.token {
        let token = world.ports.sealer.open(&app.to_string(), token)?;
        return Ok(token.parse().ok().map(GitCredential::Token));
    }
    let (kind, host) = (CredentialKind::RepositoryHost, source.url.authority());
    let unreachable = |fault: Fault| NotDone::Unreachable(fault.to_string());
    let found = credentials::newest(world, app, kind, Some(&host)).map_err(unreachable)?;
    let Some(Found { credential, secret: Secret::Token(token) }) = found else { return Ok(None) };
    Use::of(world, &credential, &app.to_string()).record(world).await.map_err(unreachable)?;
    Ok(Some(GitCredential::Token(token)))
}

/// Tries a token for a host on the connected repository of the app. The inner error is the host's.
pub async fn try_token(
    world: &World,
    app: AppId,
    host: &Name,
    token: AccessToken,
) -> Result<Result<String, String>, Fault> {
    let connected = connected(&world.store, app)?;
    let url = connected.map(|(_, repository)| repository.state.source.url.clone());
    let at_host = |url: &GitUrl| url.authority() == host.as_str();
    let url = url.filter(|url| url.ssh().is_none() && at_host(url)).ok_or_else(|| {
        Fault::NotNow(format!(
            "the app has no repository at {host} on which the token could be tried: connect one \
             with svc_connectRepository"
        ))
    })?;
    let credential = Some(GitCredential::Token(token));
    let tenant = tenant(&world.store, app)?;
    let remote = Remote { tenant, url, revision: Revision::DefaultBranch, credential };
    match world.ports.sources.inspect(&remote, READ_WITHIN).await {
        Ok(found) => Ok(Ok(format!("It reads {} at the commit {}.", found.git_ref, found.commit))),
        Err(SourceError::Refused(why)) => Ok(Err(why)),
        Err(SourceError::Unreachable(_)) => Err(Fault::NoAnswer("the host of the repository")),
    }
}

/// The deploy key of a repository, for the host that a check has met.
fn open_key(world: &World, app: AppId, key: &DeployKey) -> Result<GitCredential, NotDone> {
    let HostTrust::Pinned(host_key) = key.host.clone() else {
        return Err(NotDone::Refused(
            "the key of the repository's host is not known yet: svc_checkRepository \
             (svc repo check) meets the host"
                .into(),
        ));
    };
    let private_key = world.ports.sealer.open(&app.to_string(), &key.private)?;
    let private_key = private_key.parse().map_err(NotDone::Refused)?;
    let access = SshAccess { private_key, host_key };
    Ok(GitCredential::DeployKey { access, public: key.public.clone() })
}
