//! Signing of apps for iOS: a certificate with its key, and a provisioning profile.

use app_inspect::certificate::Certificate;
use contract::Timestamp;
use x509_parser::der_parser::oid;
use x509_parser::der_parser::oid::Oid;
use x509_parser::prelude::X509Certificate;

use crate::certificate::check_validity;
use crate::facts::{AppleCertificate, IosSigning, ProfileKind};
use crate::identity::{Identity, Request};
use crate::profile::Profile;
use crate::refusal::{File, Refusal, quote};
use crate::warning::Warning;

/// Opens both files, and checks that each is valid and that they fit each other.
pub(crate) fn open(
    p12: &[u8],
    password: &str,
    profile: &[u8],
    now: Timestamp,
) -> Result<(IosSigning, Vec<Warning>), Refusal> {
    let file = File::P12;
    let request = Request { file, bytes: p12, password, alias: None, key_password: None };
    let Identity { der, facts, .. } = request.open()?;
    let certificate = Certificate::parse(&der).ok_or(Refusal::DamagedCertificate { file })?;
    let x509 = certificate.x509();
    let subject = || quote(&facts.subject);

    let certificate_kind = match purpose(x509) {
        Purpose::Ios(kind) => kind,
        Purpose::Other(what) => return Err(Refusal::NotForIosApps { subject: subject(), what }),
    };
    check_validity(&facts, now)?;
    let team_id = x509.subject().iter_organizational_unit().find_map(|unit| unit.as_str().ok());
    let team_id = team_id.ok_or_else(|| Refusal::NoTeam { subject: subject() })?.to_owned();

    let profile = Profile::open(profile)?;
    profile.check(now)?;
    if team_id != profile.facts.team_id {
        return Err(Refusal::TeamMismatch {
            certificate: quote(&team_id),
            profile: quote(&profile.facts.team_id),
        });
    }
    let name = || quote(&profile.facts.name);
    if certificate_for(profile.facts.kind) != certificate_kind {
        return Err(Refusal::KindMismatch {
            name: name(),
            profile: profile.facts.kind,
            certificate: certificate_kind,
        });
    }
    if !profile.certificates.contains(&der) {
        return Err(Refusal::CertificateNotInProfile { name: name(), subject: subject() });
    }

    let issuer = x509.issuer().iter_organization().find_map(|name| name.as_str().ok());
    let mut warnings = Vec::new();
    if !issuer.is_some_and(|issuer| issuer.starts_with("Apple")) {
        warnings.push(Warning::NotIssuedByApple);
    }
    let signing =
        IosSigning { certificate: facts, certificate_kind, team_id, profile: profile.facts };
    Ok((signing, warnings))
}

/// The kind of certificate with which apps of a profile are signed.
fn certificate_for(profile: ProfileKind) -> AppleCertificate {
    match profile {
        ProfileKind::Development => AppleCertificate::Development,
        ProfileKind::AdHoc | ProfileKind::AppStore | ProfileKind::Enterprise => {
            AppleCertificate::Distribution
        }
    }
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Ios(AppleCertificate),
    /// Something else, in words.
    Other(&'static str),
}

const DEVELOPMENT: Purpose = Purpose::Ios(AppleCertificate::Development);
const DISTRIBUTION: Purpose = Purpose::Ios(AppleCertificate::Distribution);
const PUSH: Purpose = Purpose::Other("an Apple Push certificate");
const MAC: Purpose = Purpose::Other("a certificate for apps for the Mac");
const PASSES: Purpose = Purpose::Other("a certificate for Wallet passes");

/// The markers that Apple puts into certificates as extensions. An "Apple Development" or "Apple
/// Distribution" certificate has that for iOS and that for the Mac, so those for iOS come first.
///
/// Sources: Apple, "Worldwide Developer Relations Certification Practice Statement", section 4.11;
/// Security framework, `StaticCode.cpp`.
fn markers() -> [(Oid<'static>, Purpose); 8] {
    [
        (oid!(1.2.840.113635.100.6.1.4), DISTRIBUTION),
        (oid!(1.2.840.113635.100.6.1.2), DEVELOPMENT),
        (oid!(1.2.840.113635.100.6.3.1), PUSH),
        (oid!(1.2.840.113635.100.6.3.2), PUSH),
        (oid!(1.2.840.113635.100.6.1.7), MAC),
        (oid!(1.2.840.113635.100.6.1.12), MAC),
        (oid!(1.2.840.113635.100.6.1.13), MAC),
        (oid!(1.2.840.113635.100.6.1.16), PASSES),
    ]
}

/// How the common names of Apple's certificates begin.
const NAMES: [(&str, Purpose); 12] = [
    ("Apple Distribution:", DISTRIBUTION),
    ("iPhone Distribution:", DISTRIBUTION),
    ("Apple Development:", DEVELOPMENT),
    ("iPhone Developer:", DEVELOPMENT),
    ("Apple Push Services:", PUSH),
    ("Apple Development IOS Push Services:", PUSH),
    ("Apple Production IOS Push Services:", PUSH),
    ("VoIP Services:", PUSH),
    ("Mac Developer:", MAC),
    ("3rd Party Mac Developer", MAC),
    ("Developer ID", MAC),
    ("Pass Type ID:", PASSES),
];

fn purpose(certificate: &X509Certificate) -> Purpose {
    let extensions = certificate.extensions();
    let marked = markers().into_iter().find_map(|(marker, purpose)| {
        extensions.iter().any(|extension| extension.oid == marker).then_some(purpose)
    });
    let name = certificate.subject().iter_common_name().find_map(|name| name.as_str().ok());
    let named = || {
        let name = name?;
        NAMES.iter().find_map(|(start, purpose)| name.starts_with(start).then_some(*purpose))
    };
    marked.or_else(named).unwrap_or(Purpose::Other("not one that Apple issues"))
}
