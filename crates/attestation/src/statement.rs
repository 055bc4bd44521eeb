//! Reads the statement in a bundle. Says nothing about its signature.

use sigstore_verify::types::{Bundle, SignatureContent, Statement};

use crate::refusal::quote;
use crate::{Digest, Refusal};

/// The payload type of envelopes with an in-toto statement.
const PAYLOAD: &str = "application/vnd.in-toto+json";
/// The types of statements.
const STATEMENTS: [&str; 2] =
    ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];
/// The types of predicates that say how a file was built.
const PROVENANCE: [&str; 2] =
    ["https://slsa.dev/provenance/v1", "https://slsa.dev/provenance/v0.2"];

/// How many digests of another file a message lists.
const LISTED: usize = 3;

/// Reads the statement, which must be SLSA provenance.
pub(crate) fn read(bundle: &Bundle) -> Result<Statement, Refusal> {
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        return Err(Refusal::NoStatement);
    };
    if envelope.payload_type != PAYLOAD {
        return Err(Refusal::Statement { problem: quote(&envelope.payload_type) });
    }
    // The type with which the library reads the same bytes, so that there is one reading of them.
    let statement: Statement = serde_json::from_slice(envelope.payload.as_bytes())
        .map_err(|error| Refusal::Statement { problem: quote(&error) })?;
    if !STATEMENTS.contains(&statement.type_.as_str()) {
        return Err(Refusal::Statement { problem: quote(&statement.type_) });
    }
    if !PROVENANCE.contains(&statement.predicate_type.as_str()) {
        return Err(Refusal::NotProvenance { predicate_type: quote(&statement.predicate_type) });
    }
    Ok(statement)
}

/// Checks that the statement is about the file with this digest.
pub(crate) fn check_subjects(statement: &Statement, digest: &Digest) -> Result<(), Refusal> {
    let subjects = statement.subject.iter().filter_map(|subject| match digest {
        Digest::Sha256(_) => Some(Digest::Sha256(*subject.digest.sha256?.as_bytes())),
        Digest::Sha512(_) => Some(Digest::Sha512(*subject.digest.sha512?.as_bytes())),
    });
    let subjects: Vec<Digest> = subjects.collect();
    if subjects.contains(digest) {
        return Ok(());
    }
    let mut listed: Vec<String> = subjects.iter().take(LISTED).map(Digest::to_string).collect();
    if let Some(more @ 1..) = subjects.len().checked_sub(LISTED) {
        listed.push(format!("and {more} more"));
    }
    let algorithm = digest.algorithm();
    let subjects = match listed.is_empty() {
        true => format!("no {algorithm}"),
        false => format!("the {algorithm} {}", listed.join(", ")),
    };
    Err(Refusal::OtherFile { subjects, digest: digest.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn statement(digests: &[&str]) -> Statement {
        let subjects: Vec<_> =
            digests.iter().map(|hex| json!({"name": "a", "digest": {"sha256": hex}})).collect();
        serde_json::from_value(json!({
            "_type": STATEMENTS[0], "subject": subjects, "predicateType": PROVENANCE[0],
        }))
        .unwrap()
    }

    #[test]
    fn the_message_lists_a_few_digests_of_the_other_files() {
        let digests: Vec<String> = (0..5).map(|i| format!("{i}").repeat(64)).collect();
        let digests: Vec<&str> = digests.iter().map(String::as_str).collect();
        let message = |count: usize, digest| {
            check_subjects(&statement(&digests[..count]), &digest).unwrap_err().to_string()
        };
        let other = Digest::Sha256([0xff; 32]);
        assert!(message(1, other).contains(&format!("SHA-256 {}, and this", "0".repeat(64))));
        assert!(message(5, other).contains(&format!("{}, and 2 more, and this", "2".repeat(64))));
        assert!(message(5, Digest::Sha512([0; 64])).contains("its subjects have no SHA-512, and"));
        assert_eq!(check_subjects(&statement(&digests), &Digest::Sha256([0x44; 32])), Ok(()));
    }
}
