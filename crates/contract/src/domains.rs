//! Host names of users for their apps.

use crate::{
    AppId, DomainId, Page, Timestamp,
    certificates::{CertificateState, HostName},
    instances::Role,
    page::*,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Domains";

    /// Give an app a host name of your own, such as `shop.example.com`.
    ///
    /// The reply names a TXT record: write it at the name server of the domain, and it proves that the
    /// name is yours. The service looks for it with growing pauses, for a week; `svc_verifyDomain` looks at
    /// once. From then on, requests to the name go to the backend of the app, or else to its market
    /// server. Lead the name to this server too, by a `CNAME` to the host name in the address of the instance, or
    /// by its IP address.
    "svc_addDomain": AddDomain {
        app_id: AppId,
        /// The name, without a scheme and a port.
        host_name: HostName,
        /// Which service of the instance answers: `server`, `dashboard` or `storefront`. The default is
        /// `server`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<Role>,
    } -> Domain
    { who: OwnerOrAdmin of (app_id), effect: Change,
      errors: [Exists "the app has this domain already"] }

    /// Look for the record that proves a domain, at once. If its certificate could not be obtained, the next
    /// attempt begins soon: a quarter of an hour after the last one.
    "svc_verifyDomain": VerifyDomain {
        /// The id of the domain, from `svc_getDomains`.
        domain_id: DomainId,
    } -> Domain
    { who: OwnerOrAdmin of (domain_id), effect: Change, cost: 10 }

    /// List the domains of an app.
    "svc_getDomains": GetDomains {
        app_id: AppId,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Domain> { who: Member of (app_id), effect: Read }

    /// Remove a domain of an app. Requests to it go to the app no more, at once.
    "svc_removeDomain": RemoveDomain {
        /// The id of the domain, from `svc_getDomains`.
        domain_id: DomainId,
    } -> RemovedDomain
    { who: OwnerOrAdmin of (domain_id), effect: Change }
}

records! {
    /// A host name of an app.
    pub struct Domain {
        id: DomainId,
        app_id: AppId,
        /// The name, in small letters.
        host_name: HostName,
        /// The service of the instance that answers.
        service: Role,
        /// How far the proof is.
        state: DomainState,
        /// The name of the TXT record that proves the domain.
        record_name: String,
        /// The text of that record.
        record_text: String,
        /// Since when the domain is proven. Null until it is.
        verified_at: Option<Timestamp>,
        /// Why the last look found no proof. Null if none was made, or if it found one.
        error: Option<String>,
        /// How far the certificate of the name is. Null before a client has opened it over TLS, and if the server
        /// leaves TLS to a proxy.
        certificate_state: Option<CertificateState>,
        /// Why the last attempt to obtain the certificate failed, for example because the name does not lead to
        /// this server yet. Null after one that succeeded.
        certificate_error: Option<String>,
        /// When the service next looks for the record. Null if it looks no more.
        next_look_at: Option<Timestamp>,
        created_at: Timestamp,
    }

    /// The domain that the call removed.
    pub struct RemovedDomain { deleted: DomainId }
}

/// How far the proof of a domain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DomainState {
    /// The service looks for the record.
    Pending,
    /// The record was found: requests to the name go to the app.
    Verified,
    /// The record was not there for a week. `svc_verifyDomain` looks again.
    Failed,
    /// Another app has proven the name since. The record has another text now: write that one, and
    /// `svc_verifyDomain` looks for it.
    Taken,
}
