//! What expires: the credentials of apps, and the certificates of this server.

use super::{Act, Why, entry};
use contract::{
    Timestamp, certificates::ServerCertificate, credentials::Credential, operators::Attention,
};

pub(super) fn of_credential(credential: &Credential, now: Timestamp) -> Option<Attention> {
    let expires_at = credential.expires_at?;
    let days = expires_at.since(now).as_secs() / 86_400;
    let name = &credential.name;
    let detail = match (expires_at <= now, days) {
        (true, _) => format!("The credential {name} has expired."),
        (_, 0) => format!("The credential {name} expires within a day."),
        (_, 1) => format!("The credential {name} expires in 1 day."),
        (_, days) => format!("The credential {name} expires in {days} days."),
    };
    Some(Attention {
        subject: Some(credential.id.to_string()),
        app_id: Some(credential.app_id),
        ..entry(Why::CredentialExpiring, detail, Act::OpenApp)
    })
}

/// A certificate whose last attempt failed. The service tries again by itself.
pub(super) fn of_certificate(certificate: &ServerCertificate, now: Timestamp) -> Attention {
    let name = &certificate.host_name;
    let why = certificate.error.as_deref().unwrap_or("nobody knows why");
    let detail = match certificate.expires_at {
        Some(at) if at > now => format!("The certificate of {name} is not renewed: {why}"),
        Some(_) => format!("The certificate of {name} has expired: {why}"),
        None => format!("There is no certificate for {name}: {why}"),
    };
    Attention {
        subject: Some(certificate.id.to_string()),
        ..entry(Why::CertificateFailing, detail, Act::CheckMachine)
    }
}
