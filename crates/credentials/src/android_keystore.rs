//! Signing of apps for Android: a keystore.

use contract::Timestamp;

use crate::certificate::check_validity;
use crate::facts::{AndroidKeystore, KeyKind};
use crate::identity::Request;
use crate::refusal::{Refusal, quote};
use crate::warning::Warning;

/// The end of 22 October 2033, until which Google Play asks a certificate to be valid. Source: Android
/// developers, "Sign your app".
const PLAY_NEEDS: Timestamp = Timestamp::from_millis(2_013_638_400_000);
/// Bits of the shortest RSA key that Play accepts for a new app.
const SHORTEST_RSA: u32 = 2048;

/// Opens the keystore, and checks that its certificate can sign releases.
pub(crate) fn open(
    request: &Request,
    now: Timestamp,
) -> Result<(AndroidKeystore, Vec<Warning>), Refusal> {
    let identity = request.open()?;
    let certificate = identity.facts;
    // The tools of Android make debug certificates of this name and none else.
    if certificate.subject.split(", ").any(|part| part == "CN=Android Debug") {
        return Err(Refusal::DebugCertificate { subject: quote(&certificate.subject) });
    }
    check_validity(&certificate, now)?;

    let mut warnings = Vec::new();
    if certificate.not_after < PLAY_NEEDS {
        warnings.push(Warning::TooShortForPlay { not_after: certificate.not_after });
    }
    if let KeyKind::Rsa { bits } = certificate.key
        && bits < SHORTEST_RSA
    {
        warnings.push(Warning::WeakKey { bits });
    }
    if !request.password.is_ascii() {
        warnings.push(Warning::PasswordBeyondAscii);
    }
    let keystore =
        AndroidKeystore { aliases: identity.aliases, alias: identity.alias, certificate };
    Ok((keystore, warnings))
}
