//! An instance of Sigstore that signs attestations: npm `@sigstore/mock`.

use super::rig::Rig;
use serde_json::{Value, json};
use std::path::PathBuf;

pub struct Sigstore {
    rig: Rig,
    folder: tempfile::TempDir,
}

impl Sigstore {
    pub fn start() -> Sigstore {
        let folder = tempfile::tempdir().unwrap();
        let rig = Rig::start("sigstore", "sigstore.mjs", &[folder.path().as_os_str()]);
        assert_eq!(rig.line(), "ready");
        Sigstore { rig, folder }
    }

    /// The file with its trusted root.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("trusted_root.json")
    }

    /// The attestation of a file by a run of `acme/app`, with some of the claims altered.
    pub fn attest(&self, sha256: &str, altered: &Value) -> Value {
        let mut claims = json!({
            "issuer": "https://token.actions.githubusercontent.com",
            "repository": "acme/app",
            "repositoryId": "7",
            "owner": "acme",
            "ownerId": "8",
            "commit": "c0ffee0000000000000000000000000000000000",
            "ref": "refs/heads/main",
            "workflow": "acme/app/.github/workflows/svc-build.yml@refs/heads/main",
            "signerWorkflow": "acme/svc-ci/.github/workflows/svc-build.yml@refs/tags/v1",
            "event": "workflow_dispatch",
            "runId": "42",
            "runAttempt": "1",
            "environment": null,
        });
        claims.as_object_mut().unwrap().extend(altered.as_object().unwrap().clone());
        let wanted = json!({"sha256": sha256, "name": "app.apk", "claims": claims});
        let answer: Value = serde_json::from_str(&self.rig.ask(&wanted)).unwrap();
        answer["bundle"].clone()
    }
}
