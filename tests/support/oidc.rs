//! An issuer of identity tokens, as the CI of a repository has one: npm `oauth2-mock-server`.

use super::rig::Rig;
use serde_json::{Value, json};

pub struct Issuer {
    rig: Rig,
    pub url: String,
    /// Where a job asks for its token.
    pub endpoint: String,
}

impl Issuer {
    pub fn start() -> Issuer {
        let rig = Rig::start("oidc", "issuer.mjs", &[]);
        let (url, endpoint) = (rig.line(), rig.line());
        Issuer { rig, url, endpoint }
    }

    /// A token of this kind, as `issuer.mjs` names them.
    pub fn token(&self, kind: &str, claims: &Value) -> String {
        self.rig.ask(&json!({"kind": kind, "claims": claims}))
    }
}
