//! Hostile bundles and roots are answered, without panic and without much work.

use crate::support::*;
use attestation::{Digest, LARGEST_BUNDLE, Refusal, Roots, verify};
use data_encoding::BASE64;
use serde_json::{Value, json};
use sigstore_verify::trust_root::{SIGSTORE_GITHUB_TRUSTED_ROOT, SIGSTORE_PRODUCTION_TRUSTED_ROOT};

/// Damaged variants of each fixture.
const ROUNDS: usize = 1_000;

fn refusal(bundle: &[u8], roots: &Roots) -> Refusal {
    verify(bundle, &Digest::Sha256([0; 32]), roots).unwrap_err()
}

#[test]
fn truncated_bundles_are_no_bundles() {
    for fixture in [npm(), actions(), staging()] {
        let bytes = fixture.bytes();
        for len in (0..bytes.trim_ascii_end().len()).step_by(97) {
            let refusal = refusal(&bytes[..len], &fixture.roots);
            assert!(matches!(refusal, Refusal::NotABundle { .. }), "{len}: {refusal}");
        }
    }
}

#[test]
fn damaged_bundles_are_answered_without_panic() {
    let mut random = Random(0x5eed);
    for fixture in [npm(), actions(), staging()] {
        let original = fixture.bytes();
        for _ in 0..ROUNDS {
            let mut bytes = original.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(128) as u8;
            }
            let answer = verify(&bytes, &fixture.digest, &fixture.roots);
            assert_ne!(answer, Err(Refusal::Unreadable), "a parser panicked");
        }
    }
}

/// Damage in base64 is mostly found by its decoder. This damages the bytes behind it.
#[test]
fn damaged_parts_are_answered_without_panic() {
    let mut random = Random(0xda3a6e);
    for fixture in [npm(), actions(), staging()] {
        let original = fixture.json();
        let encoded: Vec<(String, Vec<u8>)> = nodes(&original)
            .into_iter()
            .filter_map(|pointer| {
                let text = original.pointer(&pointer)?.as_str()?;
                Some((pointer.clone(), BASE64.decode(text.as_bytes()).ok()?))
            })
            .filter(|(_, bytes)| bytes.len() >= 16)
            .collect();
        for _ in 0..ROUNDS {
            let (pointer, bytes) = &encoded[random.below(encoded.len())];
            let mut bytes = bytes.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            bytes.truncate(bytes.len() - random.below(bytes.len()) * random.below(2));
            let mut bundle = original.clone();
            *bundle.pointer_mut(pointer).unwrap() = json!(BASE64.encode(&bytes));
            assert_ne!(fixture.verify(&bundle), Err(Refusal::Unreadable), "a parser panicked");
        }
    }
}

#[test]
fn large_and_deep_bundles_are_refused() {
    let roots = built_in();
    let size = LARGEST_BUNDLE + 1;
    let too_large = refusal(&vec![b' '; size], &roots);
    assert_eq!(too_large, Refusal::TooLarge { size, limit: LARGEST_BUNDLE });
    for deep in ["[", "{\"a\":", "{\"mediaType\":["] {
        let deep = deep.repeat(LARGEST_BUNDLE / deep.len());
        let refusal = refusal(deep.as_bytes(), &roots);
        assert!(matches!(refusal, Refusal::NotABundle { .. }), "{refusal}");
    }
    let actions = actions();
    let mut bundle = actions.json();
    let deep = format!("{{\"_type\":{}", "[".repeat(LARGEST_BUNDLE / 2));
    bundle["dsseEnvelope"]["payload"] = json!(BASE64.encode(deep.as_bytes()));
    let refusal = actions.verify(&bundle).unwrap_err();
    assert!(matches!(refusal, Refusal::Statement { .. }), "{refusal}");
}

#[test]
fn bundles_with_much_evidence_are_refused() {
    let repeated = |fixture: &Fixture, pointer: &str, count: usize| {
        let mut bundle = fixture.json();
        let list = bundle.pointer_mut(pointer).unwrap().as_array_mut().unwrap();
        let first = list[0].clone();
        list.resize(count, first);
        fixture.verify(&bundle)
    };
    let material = "/verificationMaterial";
    let cases = [
        (actions(), format!("{material}/tlogEntries")),
        (staging(), format!("{material}/timestampVerificationData/rfc3161Timestamps")),
        (npm(), format!("{material}/x509CertificateChain/certificates")),
    ];
    for (fixture, pointer) in cases {
        assert!(repeated(&fixture, &pointer, 2).is_ok(), "{pointer}");
        let refusal = repeated(&fixture, &pointer, 9).unwrap_err();
        assert_eq!(refusal, Refusal::TooMuchEvidence { limit: 8 }, "{pointer}");
    }
}

#[test]
fn a_bundle_needs_a_known_media_type() {
    let actions = actions();
    let mut bundle = actions.json();
    for other in ["", "application/json", "application/vnd.dev.sigstore.bundle.v0.4+json"] {
        bundle["mediaType"] = json!(other);
        let refusal = actions.verify(&bundle).unwrap_err();
        assert!(matches!(refusal, Refusal::NotABundle { .. }), "{refusal}");
    }
}

#[test]
fn roots_without_the_instance_refuse() {
    let github = Roots::read([("github.json", SIGSTORE_GITHUB_TRUSTED_ROOT)]).unwrap();
    let none = Roots::read([("", ""); 0]).unwrap();
    for roots in [github, none] {
        let npm = Fixture { roots, ..npm() };
        let Err(Refusal::UnknownInstance { issuer }) = npm.verify(&npm.json()) else {
            panic!("accepted")
        };
        assert_eq!(issuer, "O=sigstore.dev, CN=sigstore-intermediate");
    }
    // The staging instance has the names of the public one, and other keys.
    let staging = Fixture { roots: built_in(), ..staging() };
    staging.verify(&staging.json()).unwrap_err();
    let npm = Fixture { roots: staging_root(), ..npm() };
    npm.verify(&npm.json()).unwrap_err();
}

#[test]
fn one_file_may_contain_several_roots() {
    let both = format!("{SIGSTORE_GITHUB_TRUSTED_ROOT}\n{SIGSTORE_PRODUCTION_TRUSTED_ROOT}\n");
    let roots = Roots::read([("both.jsonl", both)]).unwrap();
    let npm = Fixture { roots, ..npm() };
    npm.verify(&npm.json()).unwrap();
}

#[test]
fn every_part_of_a_root_is_used() {
    let with = |part: &str, kept: usize| {
        let mut root: Value = serde_json::from_str(SIGSTORE_PRODUCTION_TRUSTED_ROOT).unwrap();
        let all = root[part].as_array().unwrap().clone();
        root[part] = json!([all[kept]]);
        let roots = Roots::read([("root.json", root.to_string())]).unwrap();
        npm().verify_with(&roots)
    };
    for part in ["tlogs", "certificateAuthorities", "ctlogs"] {
        let results = [with(part, 0), with(part, 1)];
        let accepted = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(accepted, 1, "{part}: {results:?}");
    }
}

#[test]
fn files_that_are_no_roots_are_refused_by_their_name() {
    let altered = |alter: fn(&mut Value)| {
        let mut root: Value = serde_json::from_str(SIGSTORE_PRODUCTION_TRUSTED_ROOT).unwrap();
        alter(&mut root);
        root.to_string()
    };
    let cases = [
        (String::new(), "it is empty"),
        ("{}".into(), "missing field"),
        ("[]".into(), "invalid"),
        (String::from_utf8(actions().bytes()).unwrap(), "its media type is"),
        (SIGSTORE_PRODUCTION_TRUSTED_ROOT[..3_000].into(), "EOF"),
        (altered(|root| root["mediaType"] = json!("text/plain")), "its media type is text/plain"),
        (altered(|root| root["certificateAuthorities"] = json!([])), "no certificate authority"),
        (
            altered(|root| {
                root["tlogs"] = json!([]);
                root["timestampAuthorities"] = json!([]);
            }),
            "neither a transparency log nor a timestamp authority",
        ),
        (altered(|root| root["tlogs"][0]["publicKey"]["rawBytes"] = json!("AAAA")), ""),
        (
            altered(|root| {
                root["certificateAuthorities"][0]["certChain"]["certificates"][0]["rawBytes"] =
                    json!("AAAA");
            }),
            "",
        ),
        (" ".repeat((1 << 20) + 1), "it is larger than 1024 KiB"),
    ];
    for (content, problem) in cases {
        let refusal = Roots::read([
            ("good.json".to_owned(), SIGSTORE_GITHUB_TRUSTED_ROOT.to_owned()),
            ("bad.json".to_owned(), content),
        ])
        .unwrap_err();
        assert_eq!(refusal.file, "bad.json");
        assert!(refusal.problem.contains(problem), "{refusal}");
    }
}

#[test]
fn damaged_roots_are_answered_without_panic() {
    let mut random = Random(0x7007);
    let original = SIGSTORE_PRODUCTION_TRUSTED_ROOT.as_bytes();
    for _ in 0..ROUNDS {
        let mut bytes = original.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(128) as u8;
        }
        let _ = Roots::read([("damaged.json", bytes)]);
    }
}
