//! The documents of GitHub's API, as far as they count here.

use super::http::unreadable;
use actors::ports::ci::{BegunRun, CiError, Phase, RunProgress};
use contract::{
    Timestamp, WebUrl,
    text::{AccessToken, HostId},
};
use data_encoding::BASE64;
use serde::Deserialize;

/// Longer names of jobs and steps are cut, in characters.
const LONGEST_NAME: usize = 100;

#[derive(Deserialize)]
pub(super) struct Installation {
    pub id: u64,
}

#[derive(Deserialize)]
pub(super) struct InstallationToken {
    token: String,
}

/// A file of a repository.
#[derive(Deserialize)]
pub(super) struct ContentResource {
    /// In Base64, on several lines. A folder has none.
    #[serde(default)]
    content: String,
}

/// The reply to a dispatch that asked for the run.
#[derive(Deserialize)]
pub(super) struct Dispatched {
    workflow_run_id: u64,
    html_url: String,
}

#[derive(Deserialize)]
pub(super) struct Runs {
    pub workflow_runs: Vec<WorkflowRunResource>,
}

#[derive(Deserialize)]
pub(super) struct WorkflowRunResource {
    id: u64,
    #[serde(default)]
    display_title: String,
    html_url: String,
    head_sha: String,
    status: Option<String>,
    conclusion: Option<String>,
    head_branch: Option<String>,
    actor: Option<Actor>,
}

/// Who began a run.
#[derive(Deserialize)]
struct Actor {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
pub(super) struct Jobs {
    pub jobs: Vec<Job>,
}

#[derive(Deserialize)]
pub(super) struct Job {
    name: String,
    #[serde(default)]
    steps: Vec<JobStep>,
}

#[derive(Deserialize)]
struct JobStep {
    name: String,
    conclusion: Option<String>,
}

impl ContentResource {
    /// `None` if it is not UTF-8 text.
    pub fn text(&self) -> Option<String> {
        let digits: String = self.content.split_ascii_whitespace().collect();
        String::from_utf8(BASE64.decode(digits.as_bytes()).ok()?).ok()
    }
}

impl Dispatched {
    pub fn into_begun(self) -> BegunRun {
        let url = page(&self.html_url);
        BegunRun { id: self.workflow_run_id, url, title: String::new(), git_ref: None }
    }
}

impl WorkflowRunResource {
    pub fn into_begun(self) -> BegunRun {
        BegunRun {
            id: self.id,
            url: page(&self.html_url),
            title: self.display_title,
            git_ref: self.head_branch,
        }
    }

    /// Whether an App began it, and not a person.
    pub fn is_of_app(&self) -> bool {
        self.actor.as_ref().is_some_and(|actor| actor.kind == "Bot")
    }

    pub fn progress(self, tag: Option<String>, jobs: &[Job]) -> RunProgress {
        let steps = jobs.iter().flat_map(|job| job.steps.iter().map(move |step| (job, step)));
        let finished = steps.filter_map(|(job, step)| {
            let conclusion = step.conclusion.as_deref().filter(|told| *told != "skipped")?;
            let short = |name: &str| name.chars().take(LONGEST_NAME).collect::<String>();
            Some(format!("{} / {}: {conclusion}", short(&job.name), short(&step.name)))
        });
        RunProgress {
            tag,
            commit: self.head_sha.clone(),
            steps: finished.collect(),
            phase: self.phase(),
        }
    }

    fn phase(self) -> Phase {
        match (self.status.as_deref(), self.conclusion.as_deref()) {
            (Some("completed"), Some("success")) => Phase::Succeeded,
            (Some("completed"), Some("cancelled")) => Phase::Cancelled,
            (Some("completed"), conclusion) => {
                Phase::Failed(conclusion.unwrap_or("completed").to_owned())
            }
            (Some("in_progress"), _) => Phase::Running,
            _ => Phase::Waiting,
        }
    }
}

/// The page of a run, if it is an address of the web.
fn page(url: &str) -> Option<WebUrl> {
    url.parse().ok()
}

pub(super) fn token(made: InstallationToken) -> Result<AccessToken, CiError> {
    made.token.parse().map_err(|_| unreadable("its token is not one"))
}

pub(super) fn host_id(id: u64) -> Result<HostId, CiError> {
    id.to_string().parse().map_err(|_| unreadable("the id of the installation is none"))
}

/// A time as GitHub's searches read it, without milliseconds.
pub(super) fn whole_second(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.chars().take("2026-01-31T12:00:00".len()).collect::<String>())
}
