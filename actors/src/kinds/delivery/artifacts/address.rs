//! Signed addresses. An address permits one use of one object until it expires, without any other
//! credential.

use crate::kinds::people::accounts::keyed_digest;
use contract::{Fault, Timestamp};
use std::fmt::Display;
use subtle::ConstantTimeEq;

/// What a signed address permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Send the bytes of an artifact.
    Upload,
    /// Fetch the bytes of an artifact.
    Download,
    /// Fetch the bytes of a backup.
    Backup,
    /// Send the archive of a folder. The object is `<app>/<SHA-256>`.
    Source,
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Use::Upload | Use::Source => "content",
            Use::Download | Use::Backup => "download",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Use::Upload | Use::Download => "artifacts",
            Use::Backup => "backups",
            Use::Source => "sources",
        }
    }
}

/// Signs an address with HMAC-SHA256. It permits `used` of the object `id` until `until`.
pub fn sign(
    key: &[u8; 32],
    api_url: &str,
    used: Use,
    id: impl Display,
    until: Timestamp,
) -> String {
    let expires = until.as_seconds();
    let signature = signature(key, used, &id, expires);
    format!(
        "{api_url}/api/v1/{}/{id}/{}?expires={expires}&signature={signature}",
        used.folder(),
        used.name()
    )
}

/// Checks that this service signed the address for this use, and that it has not expired.
pub fn check(
    key: &[u8; 32],
    used: Use,
    id: impl Display,
    expires: i64,
    signature: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    let expected = super::address::signature(key, used, id, expires);
    let genuine: bool = expected.as_bytes().ct_eq(signature.as_bytes()).into();
    if !genuine {
        return Err(Fault::Unauthenticated(
            "this address was not made by this service, or was changed".into(),
        ));
    }
    if now.as_seconds() >= expires {
        return Err(Fault::Unauthenticated("this address has expired; ask for a new one".into()));
    }
    Ok(())
}

fn signature(key: &[u8; 32], used: Use, id: impl Display, expires: i64) -> String {
    keyed_digest(key, &format!("{}\n{id}\n{expires}", used.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::ArtifactId;

    #[test]
    fn an_address_holds_for_its_artifact_its_use_and_its_time() {
        let id: ArtifactId = "art_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        let other: ArtifactId = "art_01J9ZQ8F5W7V3T6M2K4N8R0P1T".parse().unwrap();
        let (key, at) = ([7; 32], |s: i64| Timestamp::from_millis(s * 1000));
        let url = sign(&key, "http://svc", Use::Upload, id, at(100));
        let signature = url.rsplit_once('=').unwrap().1;
        assert_eq!(
            url.split('?').next().unwrap(),
            format!("http://svc/api/v1/artifacts/{id}/content")
        );
        let check =
            |key, used, id, expires, now| check(key, used, id, expires, signature, at(now)).is_ok();
        assert!(check(&key, Use::Upload, id, 100, 99));
        assert!(!check(&key, Use::Upload, id, 100, 100), "expired");
        assert!(!check(&key, Use::Upload, id, 101, 99), "another end");
        assert!(!check(&key, Use::Download, id, 100, 99), "another use");
        assert!(!check(&key, Use::Upload, other, 100, 99), "another artifact");
        assert!(!check(&[8; 32], Use::Upload, id, 100, 99), "another key");
    }
}
