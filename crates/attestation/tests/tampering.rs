//! A bundle in which anything is altered is refused.

use std::collections::BTreeSet;

use crate::support::*;
use attestation::{Digest, Refusal};
use data_encoding::BASE64;
use serde_json::{Value, json};

const ENTRY: &str = "/verificationMaterial/tlogEntries/0";
const CHECKPOINT: &str = "/verificationMaterial/tlogEntries/0/inclusionProof/checkpoint/envelope";
const PAYLOAD: &str = "/dsseEnvelope/payload";

/// Nodes that may be altered or removed, and why that is no harm. Everything else in a bundle is
/// bound by a signature or by the Merkle tree of the log.
const IGNORED_NPM: [(&str, &str); 4] = [
    (CHECKPOINT, "see the test of the checkpoint"),
    ("/dsseEnvelope/signatures/0/keyid", "a hint to find the key, which the certificate has"),
    ("/verificationMaterial/timestampVerificationData", "it is empty"),
    (
        "/verificationMaterial/tlogEntries/0/inclusionProof",
        "may only be removed: in a bundle 0.1, the signed promise of the log is enough",
    ),
];
const IGNORED_ACTIONS: [(&str, &str); 1] = [(CHECKPOINT, "see the test of the checkpoint")];
const IGNORED_STAGING: [(&str, &str); 5] = [
    (CHECKPOINT, "see the test of the checkpoint"),
    (
        "/verificationMaterial/tlogEntries/0/logId/keyId",
        "the signature of the checkpoint names the key; Rekor 2 has no promise, for which this is",
    ),
    // With Rekor 2, these three are read from the signed checkpoint and from the index of the entry.
    ("/verificationMaterial/tlogEntries/0/inclusionProof/logIndex", "read elsewhere"),
    ("/verificationMaterial/tlogEntries/0/inclusionProof/rootHash", "read elsewhere"),
    ("/verificationMaterial/tlogEntries/0/inclusionProof/treeSize", "read elsewhere"),
];

/// The altered forms of a leaf.
fn altered(leaf: &Value) -> Vec<Value> {
    match leaf {
        Value::String(text) => altered_text(text).into_iter().map(Value::String).collect(),
        Value::Number(number) => vec![json!(number.as_i64().unwrap() + 1)],
        Value::Bool(truth) => vec![json!(!truth)],
        Value::Null => vec![json!(0)],
        Value::Object(_) | Value::Array(_) => Vec::new(),
    }
}

/// One bit is flipped at the begin, in the middle, and at the end: of the decoded bytes, if it is
/// base64, else of a character. Numbers in text are also one larger.
fn altered_text(text: &str) -> Vec<String> {
    let places = |len: usize| BTreeSet::from([0, len / 2, len.saturating_sub(1)]);
    if let Ok(number) = text.parse::<u64>() {
        return vec![(number + 1).to_string(), format!("-{number}"), format!("{number}0")];
    }
    if let Ok(bytes) = BASE64.decode(text.as_bytes())
        && bytes.len() >= 16
    {
        let flip = |at: usize| {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            BASE64.encode(&bytes)
        };
        return places(bytes.len()).into_iter().map(flip).collect();
    }
    let characters: Vec<char> = text.chars().collect();
    let flip = |at: usize| {
        let mut characters = characters.clone();
        let c = characters[at];
        characters[at] = if c.is_ascii() { (c as u8 ^ 1) as char } else { 'x' };
        characters.into_iter().collect()
    };
    match characters.len() {
        0 => vec!["x".into()],
        len => places(len).into_iter().map(flip).collect(),
    }
}

/// Alters and removes every node, and compares what was accepted with what may be.
fn walk(fixture: &Fixture, ignored: &[(&str, &str)]) {
    let original = fixture.json();
    fixture.verify(&original).unwrap();
    let mut accepted = BTreeSet::new();
    for pointer in nodes(&original) {
        let mut variants = vec![original.clone()];
        remove(&mut variants[0], &pointer);
        for leaf in altered(original.pointer(&pointer).unwrap()) {
            let mut variant = original.clone();
            *variant.pointer_mut(&pointer).unwrap() = leaf;
            variants.push(variant);
        }
        for variant in variants {
            match fixture.verify(&variant) {
                Ok(_) => drop(accepted.insert(pointer.clone())),
                Err(Refusal::Unreadable) => panic!("a parser panicked at {pointer}"),
                Err(_) => {}
            }
        }
    }
    let ignored: BTreeSet<String> = ignored.iter().map(|(pointer, _)| (*pointer).into()).collect();
    assert_eq!(accepted, ignored, "accepted, and what may be accepted");
}

#[test]
fn every_altered_or_removed_node_of_npm_provenance_is_refused() {
    walk(&npm(), &IGNORED_NPM);
}

#[test]
fn every_altered_or_removed_node_of_an_action_is_refused() {
    walk(&actions(), &IGNORED_ACTIONS);
}

#[test]
fn every_altered_or_removed_node_with_rekor_2_is_refused() {
    walk(&staging(), &IGNORED_STAGING);
}

/// The pointer to the bytes of the signer's certificate.
fn certificate(bundle: &Value) -> &'static str {
    let single = "/verificationMaterial/certificate/rawBytes";
    match bundle.pointer(single) {
        Some(_) => single,
        None => "/verificationMaterial/x509CertificateChain/certificates/0/rawBytes",
    }
}

fn decoded(bundle: &Value, pointer: &str) -> Vec<u8> {
    BASE64.decode(bundle.pointer(pointer).unwrap().as_str().unwrap().as_bytes()).unwrap()
}

#[test]
fn every_byte_of_the_certificate_counts() {
    for fixture in [npm(), actions(), staging()] {
        let mut bundle = fixture.json();
        let pointer = certificate(&bundle);
        let original = decoded(&bundle, pointer);
        for at in 0..original.len() {
            let mut bytes = original.clone();
            bytes[at] ^= 1 << (at % 8);
            *bundle.pointer_mut(pointer).unwrap() = json!(BASE64.encode(&bytes));
            let refusal = fixture.verify(&bundle).unwrap_err();
            assert_ne!(refusal, Refusal::Unreadable, "a parser panicked at byte {at}");
        }
    }
}

#[test]
fn the_certificate_of_another_run_is_refused() {
    let all = [npm(), actions(), staging()];
    for fixture in &all {
        for other in all.iter().filter(|other| other.file != fixture.file) {
            let mut bundle = fixture.json();
            let other = other.json();
            let certificate_of_other = other.pointer(certificate(&other)).unwrap().clone();
            let pointer = certificate(&bundle);
            *bundle.pointer_mut(pointer).unwrap() = certificate_of_other;
            fixture.verify(&bundle).unwrap_err();
        }
    }
}

#[test]
fn the_payload_of_another_file_is_refused_for_its_signature() {
    for fixture in [npm(), actions(), staging()] {
        let mut bundle = fixture.json();
        let payload = String::from_utf8(decoded(&bundle, PAYLOAD)).unwrap();
        let (other, hex) = match fixture.digest {
            Digest::Sha256(_) => (Digest::Sha256([7; 32]), "07".repeat(32)),
            Digest::Sha512(_) => (Digest::Sha512([7; 64]), "07".repeat(64)),
        };
        let payload = payload.replace(&fixture.digest.to_string(), &hex);
        bundle["dsseEnvelope"]["payload"] = json!(BASE64.encode(payload.as_bytes()));
        let forged = Fixture { digest: other, ..fixture };
        let refusal = forged.verify(&bundle).unwrap_err();
        assert!(matches!(refusal, Refusal::Signature { .. }), "{refusal}");
    }
}

#[test]
fn an_altered_predicate_is_refused_for_its_signature() {
    for fixture in [npm(), actions(), staging()] {
        let mut bundle = fixture.json();
        let mut statement: Value = serde_json::from_slice(&decoded(&bundle, PAYLOAD)).unwrap();
        statement["predicate"]["buildDefinition"]["externalParameters"] = json!({});
        let payload = serde_json::to_vec(&statement).unwrap();
        bundle["dsseEnvelope"]["payload"] = json!(BASE64.encode(&payload));
        let refusal = fixture.verify(&bundle).unwrap_err();
        assert!(matches!(refusal, Refusal::Signature { .. }), "{refusal}");
    }
}

#[test]
fn the_log_entry_of_another_attestation_is_refused() {
    let (mut bundle, other) = (actions().json(), npm().json());
    bundle["verificationMaterial"]["tlogEntries"] =
        other["verificationMaterial"]["tlogEntries"].clone();
    actions().verify(&bundle).unwrap_err();
    // Beside the right one, too.
    let mut bundle = actions().json();
    let entries = bundle["verificationMaterial"]["tlogEntries"].as_array_mut().unwrap();
    entries.push(other.pointer(ENTRY).unwrap().clone());
    actions().verify(&bundle).unwrap_err();
}

#[test]
fn altered_log_entries_are_refused_for_the_log() {
    for fixture in [npm(), actions()] {
        for field in [
            "/logIndex",
            "/logId/keyId",
            "/integratedTime",
            "/inclusionPromise/signedEntryTimestamp",
            "/canonicalizedBody",
            "/inclusionProof/logIndex",
            "/inclusionProof/rootHash",
            "/inclusionProof/treeSize",
            "/inclusionProof/hashes/0",
            "/inclusionProof/checkpoint/envelope",
        ] {
            let mut bundle = fixture.json();
            let pointer = format!("{ENTRY}{field}");
            let leaf = bundle.pointer_mut(&pointer).unwrap();
            *leaf = altered(leaf).swap_remove(0);
            let refusal = fixture.verify(&bundle).unwrap_err();
            let for_the_log = matches!(
                refusal,
                Refusal::TransparencyLog { .. }
                    | Refusal::Bundle { .. }
                    | Refusal::NotABundle { .. }
            );
            assert!(for_the_log, "{field}: {refusal}");
        }
    }
}

/// A checkpoint is a text, an empty line, and a line for each signature: `— name base64`. The log
/// signs the text. The name is a label. Signatures of others than the log are not read.
#[test]
fn every_character_of_the_checkpoint_but_labels_counts() {
    for fixture in [npm(), actions(), staging()] {
        let mut bundle = fixture.json();
        let original = bundle.pointer(CHECKPOINT).unwrap().as_str().unwrap().to_owned();
        let text = original.find("\n\n").unwrap() + 2;
        let line = original[text..].lines().next().unwrap();
        let mut words = line.split(' ');
        let (dash, label) = (words.next().unwrap(), words.next().unwrap());
        let label = text + dash.len() + 1..text + dash.len() + 1 + label.len();
        let read = (0..text + line.len()).filter(|at| !label.contains(at));
        for at in read.filter(|at| original.is_char_boundary(*at)) {
            let character = original[at..].chars().next().unwrap();
            let other = if character == 'x' { "y" } else { "x" };
            let mut altered = original.clone();
            altered.replace_range(at..at + character.len_utf8(), other);
            *bundle.pointer_mut(CHECKPOINT).unwrap() = json!(altered);
            assert!(fixture.verify(&bundle).is_err(), "{}: {at}", fixture.file);
        }
        *bundle.pointer_mut(CHECKPOINT).unwrap() = json!(original[..text + line.len()]);
        fixture.verify(&bundle).unwrap();
    }
}
