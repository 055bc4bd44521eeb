//! Real attestations are verified, and those that prove nothing about a build are refused.

use crate::support::*;
use attestation::{Attested, Digest, Refusal, verify};

/// The fields in the order of the struct. The struct may get more, so it cannot be built here.
fn fields(attested: &Attested) -> [&str; 15] {
    [
        &attested.issuer,
        &attested.source_repository,
        &attested.repository,
        &attested.source_repository_id,
        &attested.source_owner_id,
        &attested.commit,
        &attested.git_ref,
        &attested.workflow,
        &attested.signer_workflow,
        &attested.event,
        &attested.run_id,
        &attested.run_attempt,
        &attested.run_url,
        &attested.runner_environment,
        &attested.predicate_type,
    ]
}

#[test]
fn provenance_of_an_npm_package_says_which_run_built_it() {
    let npm = npm();
    let attested = verify(&npm.bytes(), &npm.digest, &npm.roots).unwrap();
    let workflow = "sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main";
    let expected = [
        "https://token.actions.githubusercontent.com",
        "https://github.com/sigstore/sigstore-js",
        "sigstore/sigstore-js",
        "495574555",
        "71096353",
        "f0b49a04e5a62250e0f60fb128004a73110fe311",
        "refs/heads/main",
        workflow,
        workflow,
        "push",
        "5904696764",
        "1",
        "https://github.com/sigstore/sigstore-js/actions/runs/5904696764/attempts/1",
        "github-hosted",
        "https://slsa.dev/provenance/v1",
    ];
    assert_eq!(fields(&attested), expected);
    assert_eq!(attested.environment, None);
    // 2023-08-18 16:05:35 UTC, the `integratedTime` of the log entry.
    assert_eq!(attested.signed_at, 1_692_374_735_000);
}

#[test]
fn provenance_by_the_action_of_github_is_verified() {
    let actions = actions();
    let attested = verify(&actions.bytes(), &actions.digest, &actions.roots).unwrap();
    let workflow = "trailofbits/pypi-attestations/.github/workflows/release.yml@refs/tags/v0.0.19";
    let expected = [
        "https://token.actions.githubusercontent.com",
        "https://github.com/trailofbits/pypi-attestations",
        "trailofbits/pypi-attestations",
        "772247423",
        "2314423",
        "08802efe1f8e5fec4ad842d6b8ce97656092ee72",
        "refs/tags/v0.0.19",
        workflow,
        workflow,
        "release",
    ];
    assert_eq!(fields(&attested)[..10], expected);
}

#[test]
fn rekor_2_and_the_roots_of_an_operator_are_supported() {
    let staging = staging();
    let attested = verify(&staging.bytes(), &staging.digest, &staging.roots).unwrap();
    assert_eq!(attested.repository, "sigstore-conformance/extremely-dangerous-public-oidc-beacon");
    assert_eq!(attested.event, "workflow_dispatch");
    // The time of the RFC 3161 timestamp, in the ten minutes of the certificate.
    assert!((1_778_700_212_000..=1_778_700_812_000).contains(&attested.signed_at));
}

#[test]
fn another_file_is_refused_with_both_digests() {
    for fixture in [npm(), actions(), staging()] {
        let (other, algorithm) = match fixture.digest {
            Digest::Sha256(_) => (Digest::Sha256([7; 32]), "SHA-256"),
            Digest::Sha512(_) => (Digest::Sha512([7; 64]), "SHA-512"),
        };
        let refusal = verify(&fixture.bytes(), &other, &fixture.roots).unwrap_err();
        let (subject, other) = (fixture.digest, other);
        let start = format!(
            "the attestation is for another file: its subjects have the {algorithm} {subject}, and \
             this file has {other}; "
        );
        assert!(refusal.to_string().starts_with(&start), "{refusal}");
    }
    // A digest of another algorithm is another file, too.
    let actions = actions();
    let refusal = verify(&actions.bytes(), &Digest::Sha512([7; 64]), &actions.roots).unwrap_err();
    assert!(refusal.to_string().contains("have no SHA-512, and"), "{refusal}");
}

#[test]
fn signatures_without_a_statement_are_refused() {
    let refusal = verify(&fixture("message-signature.json"), &Digest::Sha256([0; 32]), &built_in());
    assert_eq!(refusal, Err(Refusal::NoStatement));
}

#[test]
fn attestations_that_are_not_provenance_are_refused() {
    for (file, digest, predicate_type) in [
        (
            "conda.json",
            "54303491a8418fbed24344b513546182c29b43bf282ceb433af65e2299f9271f",
            "https://schemas.conda.org/attestations-publish-1.schema.json",
        ),
        (
            "github-release.json",
            "76f1fe8593bf227cca2c089e3c16dc95014a8d3e89c5dd220530469ca043c428",
            "https://in-toto.io/attestation/release/v0.2",
        ),
    ] {
        let refusal = verify(&fixture(file), &sha256(digest), &built_in());
        let predicate_type = predicate_type.to_owned();
        assert_eq!(refusal, Err(Refusal::NotProvenance { predicate_type }));
    }
}

#[test]
fn provenance_that_a_person_signed_is_refused() {
    let digest = "bbfd372fc9beeb777fe35d05bb10c0c70a9733d366a75fed7dd18866c7391de3\
                  ee7e88ba74dd47abf3e15c845e547fcf0e5c3da80854c751554224d3a6d4e55f";
    let refusal = verify(&fixture("person.json"), &sha512(digest), &built_in());
    let Err(Refusal::NotARun { signer }) = refusal else { panic!("{refusal:?}") };
    assert!(signer.contains('@'), "{signer}");
}
