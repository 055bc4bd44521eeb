//! Facts of a certificate, and whether it is valid now.

use app_inspect::certificate::Certificate;
use contract::Timestamp;
use data_encoding::HEXLOWER;
use x509_parser::time::ASN1Time;

use crate::facts::CertificateFacts;
use crate::key::{KeyError, PublicKey};
use crate::refusal::{File, Refusal, quote};

/// Longest issuer that is kept, in characters. Genuine ones are shorter.
const LONGEST_NAME: usize = 500;
/// The moments that can be printed, in seconds since the Unix epoch: year 1 to 9999-12-30T22:00Z.
/// Certificates without an end say 9999-12-31T23:59:59Z (RFC 5280, section 4.1.2.5).
const PRINTABLE: (i64, i64) = (-62_135_596_800, 253_402_207_200);

/// The facts of a certificate in `file`.
pub(crate) fn facts(certificate: &Certificate, file: File) -> Result<CertificateFacts, Refusal> {
    let x509 = certificate.x509();
    let key = PublicKey::of_certificate(x509.public_key()).map_err(|error| match error {
        KeyError::Unsupported => Refusal::UnsupportedKey { file },
        KeyError::Malformed => Refusal::DamagedCertificate { file },
    })?;
    let signer = certificate.signer();
    let serial = HEXLOWER.encode(x509.raw_serial());
    Ok(CertificateFacts {
        subject: signer.subject,
        issuer: x509.issuer().to_string().chars().take(LONGEST_NAME).collect(),
        serial: serial.trim_start_matches('0').to_owned(),
        sha256: signer.sha256,
        not_before: moment(x509.validity().not_before),
        not_after: moment(x509.validity().not_after),
        key: key.kind,
    })
}

/// Refuses a certificate that has expired or is not valid yet.
pub(crate) fn check_validity(facts: &CertificateFacts, now: Timestamp) -> Result<(), Refusal> {
    let subject = || quote(&facts.subject);
    if now > facts.not_after {
        return Err(Refusal::CertificateExpired { subject: subject(), not_after: facts.not_after });
    }
    if now < facts.not_before {
        return Err(Refusal::CertificateNotYetValid {
            subject: subject(),
            not_before: facts.not_before,
        });
    }
    Ok(())
}

fn moment(time: ASN1Time) -> Timestamp {
    printable(time.timestamp())
}

/// The moment so many seconds after the Unix epoch, or the nearest one that can be printed.
pub(crate) fn printable(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds.clamp(PRINTABLE.0, PRINTABLE.1) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_can_be_printed() {
        assert_eq!(printable(253_402_300_799).to_string(), "9999-12-30T22:00:00.000Z");
        assert_eq!(printable(i64::MAX).day(), "9999-12-30");
        assert_eq!(printable(i64::MIN).day(), "0001-01-01");
        assert_eq!(printable(0).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
