//! Decides whether a trusted publisher trusts a CI run. Pure.
//!
//! Source of the claims: "OpenID Connect reference" of GitHub Actions. `sub` is not read: its format
//! changes, and owners of repositories may change it.

use contract::{
    text::RefPattern,
    trusted_publishers::{CiRun, TrustedPublisher},
};

/// Why a publisher does not trust a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the run was begun by {event}, and only runs begun by {trusted} are trusted")]
    Event { event: String, trusted: String },
    #[error("another issuer is trusted for this repository")]
    Issuer,
    #[error("the workflow {0} is not trusted")]
    Workflow(String),
    #[error("the job must run in the environment {0}")]
    Environment(String),
    #[error("the run is one of {git_ref}, and only runs of {trusted} are trusted")]
    Ref { git_ref: String, trusted: String },
    #[error(
        "this is another repository with the same name: its id or that of its owner is not the \
         trusted one"
    )]
    Repository,
}

/// Checks that a publisher trusts a run of the repository with its name.
pub fn matches(publisher: &TrustedPublisher, run: &CiRun) -> Result<(), Mismatch> {
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
    if !publisher.events.iter().any(|event| event.as_str() == run.event) {
        let trusted: Vec<_> = publisher.events.iter().map(|event| event.as_str()).collect();
        return Err(Mismatch::Event { event: run.event.clone(), trusted: trusted.join(", ") });
    }
    if let Some(trusted) = &publisher.git_ref
        && !covers(trusted, &run.git_ref)
    {
        let (git_ref, trusted) = (run.git_ref.clone(), trusted.as_str().to_owned());
        return Err(Mismatch::Ref { git_ref, trusted });
    }
    match &publisher.environment {
        Some(wanted) if run.environment.as_deref() != Some(wanted.as_str()) => {
            Err(Mismatch::Environment(wanted.as_str().to_owned()))
        }
        _ => Ok(()),
    }
}

/// Whether a branch or tag is the one that is named, or begins as the pattern does.
fn covers(trusted: &RefPattern, git_ref: &str) -> bool {
    match trusted.as_str().strip_suffix('*') {
        Some(beginning) => git_ref.starts_with(beginning),
        None => git_ref == trusted.as_str(),
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
mod tests {
    use super::*;
    use contract::{Id, Timestamp, trusted_publishers::usual_events};
    use ulid::Ulid;

    fn publisher() -> TrustedPublisher {
        TrustedPublisher {
            id: Id::of(Ulid(1)),
            app_id: Id::of(Ulid(2)),
            issuer: "https://token.example.com".parse().unwrap(),
            repository: "Acme/App".parse().unwrap(),
            workflow: "build.yml".parse().unwrap(),
            environment: "production".parse().ok(),
            git_ref: "refs/heads/main".parse().ok(),
            events: usual_events(),
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
        let trusted = || "push, release, workflow_dispatch, schedule".to_owned();
        for event in ["pull_request_target", "workflow_run", "pull_request", "issue_comment", ""] {
            let run = CiRun { event: event.into(), ..run() };
            let why = Mismatch::Event { event: event.into(), trusted: trusted() };
            assert_eq!(matches(&publisher(), &run), Err(why));
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
        // A pattern covers what begins alike.
        let of_ref = |trusted: &str, git_ref: &str| {
            let git_ref = git_ref.to_owned();
            let publisher = TrustedPublisher { git_ref: trusted.parse().ok(), ..publisher() };
            matches(&publisher, &CiRun { git_ref, ..run() })
        };
        assert_eq!(of_ref("refs/tags/v*", "refs/tags/v1.2"), Ok(()));
        for (trusted, git_ref) in [
            ("refs/tags/v*", "refs/heads/v1"),
            ("refs/heads/main", "refs/heads/main2"),
            ("refs/heads/main", "refs/tags/main"),
        ] {
            let why = Mismatch::Ref { git_ref: git_ref.into(), trusted: trusted.into() };
            assert_eq!(of_ref(trusted, git_ref), Err(why));
        }
        // Other events are trusted where they are named.
        let named =
            TrustedPublisher { events: vec!["pull_request".parse().unwrap()], ..publisher() };
        assert_eq!(matches(&named, &CiRun { event: "pull_request".into(), ..run() }), Ok(()));
        assert!(matches(&named, &run()).is_err());
        // Without a condition, any value is trusted.
        let open = TrustedPublisher {
            git_ref: None,
            environment: None,
            repository_id: None,
            repository_owner_id: None,
            ..publisher()
        };
        let elsewhere = CiRun { environment: None, git_ref: "refs/heads/develop".into(), ..run() };
        assert_eq!(matches(&open, &elsewhere), Ok(()));
    }
}
