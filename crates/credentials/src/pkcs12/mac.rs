//! The code at the end of a PKCS#12 file, by which a wrong password is noticed.
//!
//! Source: RFC 7292, section 5.1. Codes with PBKDF2 (RFC 9579) are not read.

use std::num::NonZeroU32;

use app_inspect::der::{Der, INTEGER, OCTET_STRING, OID, SEQUENCE};
use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA224, SHA256, SHA384, SHA512};
use aws_lc_rs::hmac;
use zeroize::Zeroizing;

use super::password::{Password, Purpose};
use super::{Budget, Problem, unsigned};

pub(super) struct Mac<'a> {
    digest: &'static digest::Algorithm,
    code: hmac::Algorithm,
    salt: &'a [u8],
    rounds: NonZeroU32,
    stated: &'a [u8],
}

impl<'a> Mac<'a> {
    /// Reads the fields of a `MacData`.
    pub(super) fn read(mut data: Der<'a>) -> Result<Self, Problem> {
        let mut info = data.enter(SEQUENCE).ok_or(Problem::Damaged)?;
        let mut algorithm = info.enter(SEQUENCE).ok_or(Problem::Damaged)?;
        let (digest, code) = match algorithm.expect(OID).ok_or(Problem::Damaged)?.content {
            b"\x2b\x0e\x03\x02\x1a" => {
                (&SHA1_FOR_LEGACY_USE_ONLY, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY)
            }
            b"\x60\x86\x48\x01\x65\x03\x04\x02\x04" => (&SHA224, hmac::HMAC_SHA224),
            b"\x60\x86\x48\x01\x65\x03\x04\x02\x01" => (&SHA256, hmac::HMAC_SHA256),
            b"\x60\x86\x48\x01\x65\x03\x04\x02\x02" => (&SHA384, hmac::HMAC_SHA384),
            b"\x60\x86\x48\x01\x65\x03\x04\x02\x03" => (&SHA512, hmac::HMAC_SHA512),
            id => return Err(Problem::unsupported(id)),
        };
        let stated = info.expect(OCTET_STRING).ok_or(Problem::Damaged)?.content;
        let salt = data.expect(OCTET_STRING).ok_or(Problem::Damaged)?.content;
        let rounds = match data.expect(INTEGER) {
            None => NonZeroU32::MIN,
            Some(rounds) => unsigned(rounds.content).ok_or(Problem::Damaged)?,
        };
        Ok(Self { digest, code, salt, rounds, stated })
    }

    /// The password if it is the one with which the code of `content` was made.
    pub(super) fn check<'p>(
        &self,
        password: &'p str,
        content: &[u8],
        budget: &mut Budget,
    ) -> Result<Password<'p>, Problem> {
        let mut password = Password::new(password);
        let mut fits = self.fits(&password, content, budget)?;
        if !fits && password.is_empty() {
            password = Password::none();
            fits = self.fits(&password, content, budget)?;
        }
        if fits { Ok(password) } else { Err(Problem::WrongPassword) }
    }

    fn fits(
        &self,
        password: &Password,
        content: &[u8],
        budget: &mut Budget,
    ) -> Result<bool, Problem> {
        let mut key = Zeroizing::new(vec![0; self.digest.output_len()]);
        password.derive(self.digest, Purpose::Mac, self.salt, self.rounds, &mut key, budget)?;
        let key = hmac::Key::new(self.code, &key);
        Ok(hmac::verify(&key, content, self.stated).is_ok())
    }
}
