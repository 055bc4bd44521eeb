//! Certificates that the service obtains for its host names.

use crate::{CertificateId, Timestamp, page::*};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Certificates";

    /// List the certificates of this server, in the order of their ids.
    ///
    /// The service obtains a certificate when a client first opens a host name of the service, of the
    /// dashboard or of an instance, and renews it after two thirds of its lifetime. Without
    /// `SVC_HTTPS_LISTEN` it obtains none.
    "svc_admin_getCertificates": GetCertificates {
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<ServerCertificate> { who: SuperAdmin, effect: Read }

    /// Obtain a certificate anew at once, such as after its key became known to somebody, or after the
    /// cause of a failure was mended. The present one serves until the new one is there.
    "svc_admin_renewCertificate": RenewCertificate {
        /// The id of the certificate, from `svc_admin_getCertificates`.
        certificate_id: CertificateId,
    } -> ServerCertificate
    { who: SuperAdmin, effect: Change }
}

records! {
    /// A certificate of this server, for one host name.
    pub struct ServerCertificate {
        id: CertificateId,
        /// The name that it is for. `*.` at the beginning stands for one label, so that it is for all names
        /// below a domain.
        host_name: HostName,
        /// How far it is.
        state: CertificateState,
        /// From when the certificate that serves now is valid. Null before the first one.
        valid_from: Option<Timestamp>,
        /// When the certificate that serves now expires. Null before the first one.
        expires_at: Option<Timestamp>,
        /// When the service next asks for a certificate. Null while it does.
        next_attempt_at: Option<Timestamp>,
        /// How many attempts have failed since the last one that succeeded.
        failures: u32,
        /// Why the last attempt failed. Null after one that succeeded.
        error: Option<String>,
        created_at: Timestamp,
    }
}

/// How far a certificate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CertificateState {
    /// The service obtains the first one.
    Ordering,
    /// It serves.
    Valid,
    /// It serves, and the last attempt to renew it failed.
    RenewalFailing,
    /// There is none that is valid, and the last attempt failed. Clients that open the name get no page.
    Failing,
}

texts! {
    /// A host name, such as shop.example.com, in small letters and without a dot at the end. It may begin
    /// with `*.` in certificates.
    HostName,
    schema: {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^(\\*\\.)?[a-z0-9-]+(\\.[a-z0-9-]+)+$"},
    rule: |text| host_name(text);
}

fn host_name(text: &str) -> Result<String, String> {
    let wrong = || "must be a host name such as shop.example.com".to_owned();
    let text = text.trim().trim_end_matches('.').to_ascii_lowercase();
    let name = text.strip_prefix("*.").unwrap_or(&text);
    let labels: Vec<&str> = name.split('.').collect();
    let is_label = |label: &&str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // What ends with digits only is the address of a machine.
    let is_address = labels.last().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if text.len() > 200 || labels.len() < 2 || !labels.iter().all(is_label) || is_address {
        return Err(wrong());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_not_an_address() {
        let read = |text: &str| text.parse::<HostName>().map(|name| name.as_str().to_owned());
        for name in ["shop.example.com", "*.apps.example.net", "xn--bcher-kva.example", "a.b"] {
            assert_eq!(read(name).as_deref(), Ok(name));
        }
        assert_eq!(read(" Shop.Example.COM. ").as_deref(), Ok("shop.example.com"));
        let long = format!("{}.example", "a".repeat(64));
        for wrong in [
            "",
            "localhost",
            "127.0.0.1",
            "[::1]",
            "a..b",
            "-a.b",
            "a-.b",
            "a_b.c",
            "a.b:443",
            "https://a.b",
            "a.b/c",
            "*.*.a.b",
            "*",
            "bücher.example",
            &long,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
