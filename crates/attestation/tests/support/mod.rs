//! The fixtures, whose sources are in `fixtures/README.md`, and ways to alter them.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests, each of which uses a part"
)]

use attestation::{Attested, Digest, Refusal, Roots, verify};
use data_encoding::HEXLOWER;
use serde_json::Value;

pub struct Fixture {
    pub file: &'static str,
    pub digest: Digest,
    pub roots: Roots,
}

impl Fixture {
    pub fn bytes(&self) -> Vec<u8> {
        fixture(self.file)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap()
    }

    pub fn verify(&self, bundle: &Value) -> Result<Attested, Refusal> {
        verify(&serde_json::to_vec(bundle).unwrap(), &self.digest, &self.roots)
    }

    /// Verifies the unaltered bundle with other roots.
    pub fn verify_with(&self, roots: &Roots) -> Result<Attested, Refusal> {
        verify(&self.bytes(), &self.digest, roots)
    }
}

/// Provenance of an npm package. The digest is that of its tarball: `npm pack sigstore@2.0.0` and
/// `sha512sum sigstore-2.0.0.tgz`.
pub fn npm() -> Fixture {
    let digest = "46d4e2f74c4877316640000a6fdf8a8b59f1e0847667973e9859f774dd31b8f1\
                  e0937813b777fb66a2ac67d50540fe34640966eee9fc2ccca387082b4c85cd3c";
    Fixture { file: "npm-sigstore-2.0.0.json", digest: sha512(digest), roots: built_in() }
}

/// Provenance of a file by `actions/attest-build-provenance`. The digest is that of the file: `pip
/// download --no-deps --no-binary :all: pypi-attestations==0.0.19` and
/// `sha256sum pypi_attestations-0.0.19.tar.gz`.
pub fn actions() -> Fixture {
    let digest = "9bb1add04b1b4e182be6b0b80931593f7a291eb49d69b4fd728a5d4cbcdc4bd3";
    Fixture { file: "actions-sha256.json", digest: sha256(digest), roots: built_in() }
}

/// Provenance with a log entry of Rekor 2, of an instance that is not built in. The digest is the
/// one in its statement.
pub fn staging() -> Fixture {
    let digest = "a0cfc71271d6e278e57cd332ff957c3f7043fdda354c4cbb190a30d56efa01bf";
    Fixture { file: "staging-rekor-2.json", digest: sha256(digest), roots: staging_root() }
}

pub fn built_in() -> Roots {
    Roots::built_in().unwrap()
}

pub fn staging_root() -> Roots {
    Roots::read([("staging-root.json", fixture("staging-root.json"))]).unwrap()
}

pub fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

pub fn sha256(hex: &str) -> Digest {
    Digest::Sha256(HEXLOWER.decode(hex.as_bytes()).unwrap().try_into().unwrap())
}

pub fn sha512(hex: &str) -> Digest {
    Digest::Sha512(HEXLOWER.decode(hex.as_bytes()).unwrap().try_into().unwrap())
}

/// Every node below the root of a document, as JSON pointers.
pub fn nodes(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, child)| (key.clone(), child)).collect(),
        Value::Array(list) => {
            list.iter().enumerate().map(|(at, child)| (at.to_string(), child)).collect()
        }
        _ => Vec::new(),
    };
    let below = |(key, child): (String, &Value)| {
        let deeper = nodes(child);
        let deeper = deeper.into_iter().map(|pointer| format!("/{key}{pointer}"));
        std::iter::once(format!("/{key}")).chain(deeper).collect::<Vec<_>>()
    };
    children.into_iter().flat_map(below).collect()
}

/// Removes the node from its object or list.
pub fn remove(document: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(map) => drop(map.remove(key).unwrap()),
        Value::Array(list) => drop(list.remove(key.parse().unwrap())),
        other => panic!("{other} has no children"),
    }
}

/// The generator "xorshift64", which gives the same bytes on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
