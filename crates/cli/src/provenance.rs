//! The provenance of a file, from the environment.

use contract::{Name, artifacts::ProvenancePath, endpoint::DeclaredProvenance};

/// The variable `CI` marks a CI job. Without it, the file is from a developer's machine.
pub fn declared(environment: &dyn Fn(&str) -> Option<String>) -> DeclaredProvenance {
    let name = |variable: &str| environment(variable)?.parse::<Name>().ok();
    let in_ci = environment("CI").is_some_and(|value| value != "false");
    let path = if in_ci { ProvenancePath::ExternalCi } else { ProvenancePath::LocalPublish };
    if !in_ci {
        return DeclaredProvenance {
            path,
            repository: None,
            commit: None,
            git_ref: None,
            run_url: None,
        };
    }
    let run_url = || {
        let [server, repository, run] =
            ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"].map(environment);
        format!("{}/{}/actions/runs/{}", server?, repository?, run?).parse().ok()
    };
    DeclaredProvenance {
        path,
        repository: name("GITHUB_REPOSITORY"),
        commit: name("GITHUB_SHA"),
        git_ref: name("GITHUB_REF_NAME"),
        run_url: run_url(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ci_job_tells_where_it_runs() {
        let job = |name: &str| {
            let value = match name {
                "CI" => "true",
                "GITHUB_SERVER_URL" => "https://git.example.com",
                "GITHUB_REPOSITORY" => "ada/app",
                "GITHUB_RUN_ID" => "7",
                "GITHUB_SHA" => "c0ffee",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let declared = declared(&job);
        assert_eq!(declared.path, ProvenancePath::ExternalCi);
        assert_eq!(declared.commit.unwrap().as_str(), "c0ffee");
        let run_url = declared.run_url.unwrap();
        assert_eq!(run_url.as_str(), "https://git.example.com/ada/app/actions/runs/7");
        assert_eq!(declared.git_ref, None);
    }

    #[test]
    fn a_developer_publishes_from_the_machine() {
        assert_eq!(declared(&|_| None).path, ProvenancePath::LocalPublish);
        let off = |name: &str| (name == "CI").then(|| "false".to_owned());
        assert_eq!(declared(&off).path, ProvenancePath::LocalPublish);
    }
}
