//! What is usable and may still be a mistake.

use std::fmt;

use contract::Timestamp;

/// Something about an accepted upload that its sender should know, as one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each sentence says what its fields are")]
pub enum Warning {
    /// Something expires within [`SOON_DAYS`] days.
    ExpiresSoon { what: &'static str, at: Timestamp },
    /// Google Play refuses new apps with this certificate.
    TooShortForPlay { not_after: Timestamp },
    /// An RSA key of fewer than 2048 bits.
    WeakKey { bits: u32 },
    /// Java opens no PKCS#12 file with such a password: "Password is not ASCII".
    PasswordBeyondAscii,
    /// The certificate names another issuer than Apple.
    NotIssuedByApple,
    /// Without an issuer id, a key of App Store Connect is taken for that of one person.
    NoIssuerId,
}

/// How many days before the end a warning is given.
pub const SOON_DAYS: u64 = 30;

impl Warning {
    /// A name for the kind of warning that never changes, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::ExpiresSoon { .. } => "expiresSoon",
            Self::TooShortForPlay { .. } => "tooShortForPlay",
            Self::WeakKey { .. } => "weakKey",
            Self::PasswordBeyondAscii => "passwordBeyondAscii",
            Self::NotIssuedByApple => "notIssuedByApple",
            Self::NoIssuerId => "noIssuerId",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExpiresSoon { what, at } => {
                write!(f, "the {what} expires on {}; renew it before", at.day())
            }
            Self::TooShortForPlay { not_after } => write!(
                f,
                "the certificate expires on {}, and Google Play asks for one that is valid until after 22 \
                 October 2033; make a new key for a new app",
                not_after.day()
            ),
            Self::WeakKey { bits } => write!(
                f,
                "the RSA key has {bits} bits, and Google Play asks for 2048; make a new key for a new app"
            ),
            Self::PasswordBeyondAscii => f.write_str(
                "the password has characters beyond ASCII, with which Java's tools do not open the keystore; \
                 export the key again with another password",
            ),
            Self::NotIssuedByApple => f.write_str(
                "the certificate was not issued by Apple, so no phone will run apps that it signs; export \
                 the certificate that Apple issued",
            ),
            Self::NoIssuerId => f.write_str(
                "there is no issuer id, so the key is used as that of one person; give the issuer id if it is a \
                 key of the team",
            ),
        }
    }
}
