//! Decides whether a trusted publisher trusts a CI run. Pure.
//!
//! Source of the claims: "OpenID Connect reference" of GitHub Actions. `sub` is not read: its format
//! changes, and owners of repositories may change it.

use contract::trusted_publishers::{CiRun, TrustedPublisher};

/// Events whose runs may execute the code of strangers with the rights of the repository.
const REFUSED_EVENTS: [&str; 2] = ["pull_request_target", "workflow_run"];

/// Why a publisher does not trust a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the run was begun by {0}, which may run the code of strangers")]
    Event(String),
    #[error("another issuer is trusted for this repository")]
    Issuer,
    #[error("the workflow {0} is not trusted")]
    Workflow(String),
    #[error("the job must run in the environment {0}")]
    Environment(String),
    #[error(
        "this is another repository with the same name: its id or that of its owner is not the \
         trusted one"
    )]
    Repository,
}

/// Checks that a publisher trusts a run of the repository with its name.
pub fn matches(publisher: &TrustedPublisher, run: &CiRun) -> Result<(), Mismatch> {
    if REFUSED_EVENTS.contains(&run.event.as_str()) {
        return Err(Mismatch::Event(run.event.clone()));
    }
    if publisher.issuer != run.issuer {
        return Err(Mismatch::Issuer);
    }
    let is_another = |ours: Option<&str>, theirs: &str| ours.is_some_and(|ours| ours != theirs);
    if !publisher.repository.as_str().eq_ignore_ascii_case(&run.repository)
        || is_another(publisher.repository_id.as_ref().map(|id| id.as_str()), &run.repository_id)
        || is_another(
            publisher.repository_owner_id.as_ref().map(|id| id.as_str()),
            &run.repository_owner_id,
        )
    {
        return Err(Mismatch::Repository);
    }
    if workflow_file(&run.workflow_ref, &run.repository) != Some(publisher.workflow.as_str()) {
        return Err(Mismatch::Workflow(run.workflow_ref.clone()));
    }
    match &publisher.environment {
        Some(wanted) if run.environment.as_deref() != Some(wanted.as_str()) => {
            Err(Mismatch::Environment(wanted.as_str().to_owned()))
        }
        _ => Ok(()),
    }
}

/// The file of a workflow of this repository, from a reference such as
/// `acme/app/.github/workflows/build.yml@refs/heads/main`.
fn workflow_file<'a>(reference: &'a str, repository: &str) -> Option<&'a str> {
    let (path, _) = reference.split_once('@')?;
    let (owner, file) = path.split_once("/.github/workflows/")?;
    (owner.eq_ignore_ascii_case(repository) && !file.contains('/')).then_some(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use contract::{Id, Timestamp};
    use ulid::Ulid;

    fn publisher() -> TrustedPublisher {
        TrustedPublisher {
            id: Id::of(Ulid(1)),
            app_id: Id::of(Ulid(2)),
            issuer: "https://token.example.com".parse().unwrap(),
            repository: "Acme/App".parse().unwrap(),
            workflow: "build.yml".parse().unwrap(),
            environment: "production".parse().ok(),
            repository_id: "7".parse().ok(),
            repository_owner_id: "8".parse().ok(),
            created_by: Id::of(Ulid(3)),
            created_at: Timestamp::from_millis(0),
        }
    }

    fn run() -> CiRun {
        CiRun {
            issuer: "https://token.example.com".parse().unwrap(),
            repository: "acme/app".into(),
            repository_id: "7".into(),
            repository_owner_id: "8".into(),
            workflow_ref: "acme/app/.github/workflows/build.yml@refs/heads/main".into(),
            job_workflow_ref: Some("acme/svc-ci/.github/workflows/svc-build.yml@v1".into()),
            environment: Some("production".into()),
            event: "workflow_dispatch".into(),
            run_id: "9".into(),
            run_attempt: Some("1".into()),
            commit: "c0ffee".into(),
            git_ref: "refs/heads/main".into(),
            actor: Some("ada".into()),
        }
    }

    #[test]
    fn every_altered_claim_is_refused_for_its_reason() {
        assert_eq!(matches(&publisher(), &run()), Ok(()));
        let refused = |alter: fn(&mut CiRun), why: Mismatch| {
            let mut run = run();
            alter(&mut run);
            assert_eq!(matches(&publisher(), &run), Err(why));
        };
        for event in ["pull_request_target", "workflow_run"] {
            let run = CiRun { event: event.into(), ..run() };
            assert_eq!(matches(&publisher(), &run), Err(Mismatch::Event(event.into())));
        }
        for path in ["acme/other/.github/workflows/build.yml", "acme/app/.github/workflows/x.yml"] {
            let workflow_ref = format!("{path}@refs/heads/main");
            let run = CiRun { workflow_ref: workflow_ref.clone(), ..run() };
            assert_eq!(matches(&publisher(), &run), Err(Mismatch::Workflow(workflow_ref)));
        }
        refused(|run| run.issuer = "https://evil.example.com".parse().unwrap(), Mismatch::Issuer);
        refused(|run| run.repository_id = "70".into(), Mismatch::Repository);
        refused(|run| run.repository_owner_id = "80".into(), Mismatch::Repository);
        refused(|run| run.environment = None, Mismatch::Environment("production".into()));
        // Without a condition, any value is trusted.
        let open = TrustedPublisher {
            environment: None,
            repository_id: None,
            repository_owner_id: None,
            ..publisher()
        };
        assert_eq!(matches(&open, &CiRun { environment: None, ..run() }), Ok(()));
    }
}
