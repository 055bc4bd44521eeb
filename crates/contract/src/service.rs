//! What the service tells everybody about itself.

use crate::WebUrl;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Service";

    /// Read what anybody may know of this service before they sign in.
    "svc_getServiceInfo": GetServiceInfo {} -> ServiceInfo { who: Public, effect: Read }
}

records! {
    /// What anybody may know of the service.
    pub struct ServiceInfo {
        /// The version of the program.
        version: String,
        /// Who may register an account with `registerUser`.
        registration: Registration,
        /// Whether the service has no administrator yet. Its log has the link that makes the first one.
        awaits_administrator: bool,
        /// The address of the GitHub whose repositories the service reaches through its GitHub App.
        /// Null if it has none.
        github_url: Option<WebUrl>,
    }
}

/// Who may register an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Registration {
    /// Anybody.
    #[default]
    Open,
    /// Whoever has a pending invitation to an organization, with the e-mail of the invitation.
    Invitation,
    /// Nobody. Superadmins make accounts with `svc_admin_createUser`.
    Closed,
}
