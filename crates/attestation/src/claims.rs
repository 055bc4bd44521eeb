//! Reads what a verified certificate says about the run that signed.

use sigstore_verify::VerificationResult;
use sigstore_verify::crypto::{FulcioCiClaims, SubjectAltName};

use crate::Refusal;
use crate::refusal::quote;

/// The run of GitHub Actions that attested a file, as its certificate proves it.
///
/// Every text is as the issuer of the identity token wrote it, and not empty.
///
/// Source: "Fulcio OID information", the extensions 1.3.6.1.4.1.57264.1.8 to .23. The number behind
/// each field is the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attested {
    /// Who issued the identity token of the run, such as
    /// `https://token.actions.githubusercontent.com` (8). The other fields are worth as much as this
    /// one: compare it first.
    pub issuer: String,
    /// The address of the repository, such as `https://github.com/acme/app` (12).
    pub source_repository: String,
    /// Its owner and name, such as `acme/app` (12).
    pub repository: String,
    /// The id that the host gave to the repository, which a new one of the same name has not (15).
    pub source_repository_id: String,
    /// The id that the host gave to the owner of the repository (17).
    pub source_owner_id: String,
    /// The commit that was built (13).
    pub commit: String,
    /// The branch or tag that was built, such as `refs/heads/main` (14).
    pub git_ref: String,
    /// The workflow that began the run, with its repository and the reference, such as
    /// `acme/app/.github/workflows/build.yml@refs/heads/main` (18).
    pub workflow: String,
    /// The workflow that contains the job that signed, in the same form. Another than `workflow` if
    /// the job is in a reusable workflow (9).
    pub signer_workflow: String,
    /// What began the run, such as `push` (20).
    pub event: String,
    /// The id of the run, a number as text (21).
    pub run_id: String,
    /// The attempt of the run, from 1, as text (21).
    pub run_attempt: String,
    /// The page of this attempt (21).
    pub run_url: String,
    /// `github-hosted` or `self-hosted` (11).
    pub runner_environment: String,
    /// The deployment environment of the job, if it has one (23). Older certificates do not say it.
    pub environment: Option<String>,
    /// When it was signed, in milliseconds since the Unix epoch. The earliest of the times that the
    /// transparency log and the timestamps prove. They have a precision of one second.
    pub signed_at: i64,
    /// The type of the predicate, such as `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
}

/// Reads the claims of the certificate that a bundle was verified with.
pub(crate) fn read(
    verified: &VerificationResult,
    predicate_type: String,
) -> Result<Attested, Refusal> {
    let certificate = verified.certificate().ok_or(Refusal::Unreadable)?;
    let signed_at = verified
        .verified_timestamps()
        .iter()
        .min()
        .ok_or(Refusal::Time { problem: "there is no verified time".into() })?;
    let run = CertifiedRun {
        identity: certificate.identity.as_ref(),
        issuer: certificate.issuer.as_deref(),
        claims: &certificate.ci_claims,
    };
    run.attested(signed_at.as_millisecond(), predicate_type)
}

struct CertifiedRun<'a> {
    identity: Option<&'a SubjectAltName>,
    issuer: Option<&'a str>,
    claims: &'a FulcioCiClaims,
}

impl CertifiedRun<'_> {
    fn attested(&self, signed_at: i64, predicate_type: String) -> Result<Attested, Refusal> {
        let claims = self.claims;
        if claims.is_empty() {
            let signer = self.identity.map_or("nobody that it names", SubjectAltName::as_str);
            return Err(Refusal::NotARun { signer: quote(&signer) });
        }
        let source = said(&claims.source_repository_uri, "repository", 12)?;
        let run_url = said(&claims.run_invocation_uri, "page of the run", 21)?;
        let workflow = said(&claims.build_config_uri, "workflow", 18)?;
        let signer_workflow = said(&claims.build_signer_uri, "workflow of the job", 9)?;

        let other = |claim, value: &str| Refusal::OtherCi { claim, value: quote(&value) };
        let (host, repository) =
            host_and_repository(&source).ok_or_else(|| other("repository", &source))?;
        let (run_id, run_attempt) =
            run_and_attempt(&run_url, &source).ok_or_else(|| other("page of the run", &run_url))?;
        let reference = |claim, uri: &str| {
            reference(uri, host).map(str::to_owned).ok_or_else(|| other(claim, uri))
        };
        Ok(Attested {
            issuer: said(&self.issuer.map(str::to_owned), "issuer of the identity token", 8)?,
            source_repository_id: said(
                &claims.source_repository_identifier,
                "id of the repository",
                15,
            )?,
            source_owner_id: said(
                &claims.source_repository_owner_identifier,
                "id of the owner of the repository",
                17,
            )?,
            commit: said(&claims.source_repository_digest, "commit", 13)?,
            git_ref: said(&claims.source_repository_ref, "branch or tag", 14)?,
            workflow: reference("workflow", &workflow)?,
            signer_workflow: reference("workflow of the job", &signer_workflow)?,
            event: said(&claims.build_trigger, "event that began the run", 20)?,
            runner_environment: said(&claims.runner_environment, "kind of the runner", 11)?,
            environment: claims.deployment_environment.clone().filter(|name| !name.is_empty()),
            repository: repository.to_owned(),
            run_id: run_id.to_owned(),
            run_attempt: run_attempt.to_owned(),
            source_repository: source,
            run_url,
            signed_at,
            predicate_type,
        })
    }
}

fn said(value: &Option<String>, claim: &'static str, extension: u8) -> Result<String, Refusal> {
    let value = value.clone().filter(|value| !value.is_empty());
    value.ok_or(Refusal::MissingClaim { claim, extension })
}

/// The host and `acme/app` of `https://github.com/acme/app`.
fn host_and_repository(source: &str) -> Option<(&str, &str)> {
    let (host, repository) = source.strip_prefix("https://")?.split_once('/')?;
    let (owner, name) = repository.split_once('/')?;
    let good = [host, owner, name].iter().all(|part| !part.is_empty()) && !name.contains('/');
    good.then_some((host, repository))
}

/// The numbers of `https://github.com/acme/app/actions/runs/7/attempts/1`, a run of this repository.
fn run_and_attempt<'a>(run_url: &'a str, source: &str) -> Option<(&'a str, &'a str)> {
    let numbers = run_url.strip_prefix(source)?.strip_prefix("/actions/runs/")?;
    let (run, attempt) = numbers.split_once("/attempts/")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(run) && is_number(attempt)).then_some((run, attempt))
}

/// `acme/app/.github/workflows/build.yml@refs/heads/main` of its address on this host. The repository
/// may be another than that of the run.
fn reference<'a>(uri: &'a str, host: &str) -> Option<&'a str> {
    let reference = uri.strip_prefix("https://")?.strip_prefix(host)?.strip_prefix('/')?;
    let (path, git_ref) = reference.split_once('@')?;
    (!path.is_empty() && !git_ref.is_empty()).then_some(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://token.actions.githubusercontent.com";

    fn claims() -> FulcioCiClaims {
        let text = |text: &str| Some(text.to_owned());
        let mut claims = FulcioCiClaims::default();
        claims.build_signer_uri = text("https://github.com/acme/ci/.github/workflows/b.yml@v1");
        claims.runner_environment = text("self-hosted");
        claims.source_repository_uri = text("https://github.com/acme/app");
        claims.source_repository_digest = text("c0ffee");
        claims.source_repository_ref = text("refs/heads/main");
        claims.source_repository_identifier = text("7");
        claims.source_repository_owner_identifier = text("8");
        claims.build_config_uri =
            text("https://github.com/acme/app/.github/workflows/a.yml@refs/heads/main");
        claims.build_trigger = text("push");
        claims.run_invocation_uri = text("https://github.com/acme/app/actions/runs/9/attempts/2");
        claims.deployment_environment = text("production");
        claims
    }

    fn attested(claims: &FulcioCiClaims) -> Result<Attested, Refusal> {
        CertifiedRun { identity: None, issuer: Some(ISSUER), claims }.attested(5, "p".into())
    }

    #[test]
    fn a_job_of_a_reusable_workflow_has_another_signer() {
        let attested = attested(&claims()).unwrap();
        assert_eq!(attested.workflow, "acme/app/.github/workflows/a.yml@refs/heads/main");
        assert_eq!(attested.signer_workflow, "acme/ci/.github/workflows/b.yml@v1");
        assert_eq!(attested.repository, "acme/app");
        assert_eq!((attested.run_id.as_str(), attested.run_attempt.as_str()), ("9", "2"));
        assert_eq!(attested.environment.as_deref(), Some("production"));
    }

    #[test]
    fn every_claim_but_the_environment_is_required() {
        type Field = fn(&mut FulcioCiClaims) -> &mut Option<String>;
        let fields: [(Field, u8); 10] = [
            (|claims| &mut claims.build_signer_uri, 9),
            (|claims| &mut claims.runner_environment, 11),
            (|claims| &mut claims.source_repository_uri, 12),
            (|claims| &mut claims.source_repository_digest, 13),
            (|claims| &mut claims.source_repository_ref, 14),
            (|claims| &mut claims.source_repository_identifier, 15),
            (|claims| &mut claims.source_repository_owner_identifier, 17),
            (|claims| &mut claims.build_config_uri, 18),
            (|claims| &mut claims.build_trigger, 20),
            (|claims| &mut claims.run_invocation_uri, 21),
        ];
        for (field, number) in fields {
            for absent in [None, Some(String::new())] {
                let mut claims = claims();
                *field(&mut claims) = absent;
                let refusal = attested(&claims).unwrap_err();
                assert!(
                    matches!(refusal, Refusal::MissingClaim { extension, .. } if extension == number),
                    "{number}: {refusal}"
                );
            }
        }
        let without_issuer = CertifiedRun { identity: None, issuer: None, claims: &claims() };
        let refusal = without_issuer.attested(5, "p".into()).unwrap_err();
        assert!(matches!(refusal, Refusal::MissingClaim { extension: 8, .. }));
        let mut claims = claims();
        claims.deployment_environment = None;
        assert_eq!(attested(&claims).unwrap().environment, None);
    }

    #[test]
    fn a_person_is_not_a_run() {
        let ada = SubjectAltName::Email("ada@example.com".into());
        let none = FulcioCiClaims::default();
        for (identity, signer) in [(Some(&ada), "ada@example.com"), (None, "nobody that it names")]
        {
            let run = CertifiedRun { identity, issuer: Some(ISSUER), claims: &none };
            let refusal = run.attested(5, "p".into()).unwrap_err();
            assert_eq!(refusal, Refusal::NotARun { signer: signer.into() });
        }
    }

    #[test]
    fn runs_of_other_cis_and_of_other_repositories_are_refused() {
        type Alter = fn(&mut FulcioCiClaims);
        let altered: [(Alter, &str); 9] = [
            // The form of GitLab.
            (
                |claims| {
                    claims.run_invocation_uri =
                        Some("https://github.com/acme/app/-/jobs/8415754949".into());
                },
                "page of the run",
            ),
            // The form of CircleCI.
            (
                |claims| claims.source_repository_uri = Some("github.com/acme/app".into()),
                "repository",
            ),
            (
                |claims| claims.source_repository_uri = Some("https://github.com/a/b/c".into()),
                "repository",
            ),
            (
                |claims| claims.source_repository_uri = Some("https://github.com/a/".into()),
                "repository",
            ),
            (
                |claims| {
                    claims.run_invocation_uri =
                        Some("https://github.com/acme/app2/actions/runs/9/attempts/2".into());
                },
                "page of the run",
            ),
            (
                |claims| {
                    claims.run_invocation_uri =
                        Some("https://github.com/acme/app/actions/runs/9/attempts/2/".into());
                },
                "page of the run",
            ),
            (
                |claims| {
                    claims.build_config_uri =
                        Some("https://github.com.evil.example/acme/app/a.yml@main".into());
                },
                "workflow",
            ),
            (
                |claims| claims.build_config_uri = Some("https://github.com/acme/app/a.yml".into()),
                "workflow",
            ),
            (
                |claims| {
                    claims.build_signer_uri = Some("https://gitlab.com/acme/app/a.yml@main".into())
                },
                "workflow of the job",
            ),
        ];
        for (alter, expected) in altered {
            let mut claims = claims();
            alter(&mut claims);
            let refusal = attested(&claims).unwrap_err();
            assert!(
                matches!(refusal, Refusal::OtherCi { claim, .. } if claim == expected),
                "{expected}: {refusal}"
            );
        }
    }
}
