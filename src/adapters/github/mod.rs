//! GitHub Actions, reached through a GitHub App. Also GitHub Enterprise Server.
//!
//! Source: GitHub's REST API description, version 2022-11-28.

mod credentials;
mod documents;
mod http;

use actors::ports::ci::{
    BegunRun, Central, Ci, CiError, OpenedRepository, RunProgress, RunRequest,
};
use async_trait::async_trait;
use contract::{
    Timestamp,
    text::{AccessToken, GitUrl, RepositoryName},
};
use credentials::{AppCredentials, Permissions};
use documents::{ContentResource, Dispatched, Installation, Job, Jobs, Runs, WorkflowRunResource};
use http::{Api, GithubRequest};
use repository::CONFIG;
use serde_json::json;
use std::{path::Path, time::Duration};

/// The GitHub App of this service.
pub struct GithubApp {
    api: Api,
    credentials: AppCredentials,
    /// The address of repositories, without a slash at the end.
    web_url: String,
    central: Option<Central>,
}

impl GithubApp {
    /// The app with this id and the private key in this file. `web_url` is the address of GitHub's
    /// pages and repositories, `api_url` that of its API. The CI of `central` builds apps whose own
    /// repository does not.
    pub fn new(
        id: &str,
        key: &Path,
        web_url: &str,
        api_url: &str,
        central: Option<Central>,
    ) -> Result<GithubApp, String> {
        Ok(GithubApp {
            central,
            api: Api::new(api_url)?,
            credentials: AppCredentials::read(id, key)?,
            web_url: web_url.trim_end_matches('/').to_owned(),
        })
    }

    /// The installation that has the repository; `None` if there is none.
    async fn installation(&self, of: &RepositoryName) -> Result<Option<u64>, CiError> {
        let request = GithubRequest::get(format!("/repos/{of}/installation"));
        let answer = self.api.send(&request, &self.credentials.of_app()?).await?;
        match answer.status {
            404 => Ok(None),
            _ => Ok(Some(answer.read::<Installation>()?.id)),
        }
    }

    /// Sends a request with a token that can do only this in this repository. A token that GitHub
    /// does not accept any more is replaced once: GitHub did nothing then.
    async fn send(
        &self,
        to: &RepositoryName,
        permissions: Permissions,
        request: &GithubRequest,
    ) -> Result<http::GithubResponse, CiError> {
        let mut refused = None;
        loop {
            let token = self.token(to, permissions, refused.as_ref()).await?;
            let answer = self.api.send(request, token.as_str()).await?;
            if answer.status != 401 || refused.is_some() {
                return Ok(answer);
            }
            refused = Some(token);
        }
    }

    /// A token other than the refused one.
    async fn token(
        &self,
        to: &RepositoryName,
        permissions: Permissions,
        refused: Option<&AccessToken>,
    ) -> Result<AccessToken, CiError> {
        let usable =
            || self.credentials.known(to, permissions).filter(|known| refused != Some(known));
        if let Some(token) = usable() {
            return Ok(token);
        }
        // One caller asks for a token, and the others wait for it.
        let turn = self.credentials.turn(to, permissions);
        let _turn = turn.lock().await;
        if let Some(token) = usable() {
            return Ok(token);
        }
        let installation = self.installation(to).await?;
        let installation = installation.ok_or_else(|| not_installed(to))?;
        self.credentials.of_installation(&self.api, installation, to, permissions).await
    }

    async fn jobs(&self, of: &RepositoryName, run: u64) -> Result<Vec<Job>, CiError> {
        let request =
            GithubRequest::get(format!("/repos/{of}/actions/runs/{run}/jobs?per_page=100"));
        Ok(self.send(of, Permissions::Actions, &request).await?.read::<Jobs>()?.jobs)
    }
}

/// A refusal that may pass.
fn later(e: CiError) -> CiError {
    CiError::Busy { why: e.to_string(), after: Duration::from_secs(60) }
}

fn not_installed(at: &RepositoryName) -> CiError {
    CiError::Refused(format!("the GitHub App of this service is not installed for {at}"))
}

fn no_workflow(at: &RepositoryName, workflow: &str) -> CiError {
    CiError::Refused(format!(
        "{at} has no .github/workflows/{workflow} on its default branch, or the GitHub App may not \
         write its Actions"
    ))
}

#[async_trait]
impl Ci for GithubApp {
    fn repository(&self, url: &GitUrl) -> Option<RepositoryName> {
        let (host, path) = url.as_str().split_at_checked(self.web_url.len())?;
        let path = path.strip_prefix('/')?.trim_end_matches('/');
        let name = path.strip_suffix(".git").unwrap_or(path);
        host.eq_ignore_ascii_case(&self.web_url).then(|| name.parse().ok()).flatten()
    }

    fn central(&self) -> Option<&Central> {
        self.central.as_ref()
    }

    async fn open(&self, repository: &RepositoryName) -> Result<Option<OpenedRepository>, CiError> {
        let Some(installation) = self.installation(repository).await? else { return Ok(None) };
        let contents = Permissions::Contents;
        let file = CONFIG.replace('/', "%2F");
        let request = GithubRequest::get(format!("/repos/{repository}/contents/{file}"));
        let answer = self.send(repository, contents, &request).await?;
        let now = answer.date.ok_or_else(|| http::unreadable("it has no date"))?;
        let config = match answer.status {
            404 => None,
            _ => answer.read::<ContentResource>()?.text(),
        };
        Ok(Some(OpenedRepository {
            installation: documents::host_id(installation)?,
            token: self.token(repository, contents, None).await?,
            config,
            now,
        }))
    }

    async fn dispatch(
        &self,
        repository: &RepositoryName,
        wanted: &RunRequest,
    ) -> Result<Option<BegunRun>, CiError> {
        let RunRequest { workflow, git_ref, inputs } = wanted;
        let path = format!("/repos/{repository}/actions/workflows/{workflow}/dispatches");
        let body = json!({"ref": git_ref, "inputs": inputs, "return_run_details": true});
        let request = GithubRequest::post(path.clone(), Some(body)).once();
        let mut answer = self.send(repository, Permissions::Actions, &request).await?;
        // GitHub Enterprise Server before 3.20 does not know the last field, and did nothing.
        if matches!(answer.status, 400 | 422) && answer.mentions("return_run_details") {
            let request =
                GithubRequest::post(path, Some(json!({"ref": git_ref, "inputs": inputs}))).once();
            answer = self.send(repository, Permissions::Actions, &request).await?;
        }
        match answer.status {
            204 => Ok(None),
            404 => Err(no_workflow(repository, workflow)),
            _ => {
                answer.accepted()?;
                Ok(answer.read::<Dispatched>().ok().map(Dispatched::into_begun))
            }
        }
    }

    async fn runs_since(
        &self,
        repository: &RepositoryName,
        workflow: &str,
        since: Timestamp,
    ) -> Result<Vec<BegunRun>, CiError> {
        let since = documents::whole_second(since);
        let path = format!(
            "/repos/{repository}/actions/workflows/{workflow}/runs\
             ?event=workflow_dispatch&created=%3E%3D{since}&per_page=100"
        );
        let answer = self.send(repository, Permissions::Actions, &GithubRequest::get(path)).await?;
        if answer.status == 404 {
            return Err(no_workflow(repository, workflow));
        }
        let runs = answer.read::<Runs>()?.workflow_runs;
        Ok(runs
            .into_iter()
            .filter(WorkflowRunResource::is_of_app)
            .map(WorkflowRunResource::into_begun)
            .collect())
    }

    async fn look(
        &self,
        repository: &RepositoryName,
        run: u64,
        seen: Option<&str>,
    ) -> Result<Option<RunProgress>, CiError> {
        let path = format!("/repos/{repository}/actions/runs/{run}");
        let request = GithubRequest::get(path).unless(seen);
        let answer = self.send(repository, Permissions::Actions, &request).await?;
        match answer.status {
            304 => return Ok(None),
            200 | 404 => {}
            // Such as a token that was revoked: it says nothing about the run.
            _ => {
                return Err(answer
                    .accepted()
                    .err()
                    .map_or_else(|| http::unreadable("status"), later));
            }
        }
        let tag = answer.tag.clone();
        let found = answer.read::<WorkflowRunResource>()?;
        let jobs = self.jobs(repository, run).await?;
        Ok(Some(found.progress(tag, &jobs)))
    }

    async fn cancel(
        &self,
        repository: &RepositoryName,
        run: u64,
        force: bool,
    ) -> Result<(), CiError> {
        let how = if force { "force-cancel" } else { "cancel" };
        let path = format!("/repos/{repository}/actions/runs/{run}/{how}");
        let request = GithubRequest::post(path, None);
        let answer = self.send(repository, Permissions::Actions, &request).await?;
        match answer.status {
            // 404: the run was deleted. 409: it has ended, or is not in the queue yet.
            404 | 409 => Ok(()),
            _ => answer.accepted(),
        }
    }
}
