//! Decrypts what a password protects in a PKCS#12 file.
//!
//! Sources: RFC 7292, appendices B and C; RFC 8018, section 6.2 and appendix A.

use std::num::NonZeroU32;

use aes::{Aes128, Aes192, Aes256};
use app_inspect::der::{Der, INTEGER, OCTET_STRING, OID, SEQUENCE};
use aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
use aws_lc_rs::pbkdf2;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipherDecrypt, BlockModeDecrypt, KeyInit, KeyIvInit};
use des::{TdesEde2, TdesEde3};
use rc2::Rc2;
use zeroize::Zeroizing;

use super::password::{Password, Purpose};
use super::{Budget, Problem, unsigned};

const OID_PBES2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d";
const OID_PBKDF2: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c";

/// How something is encrypted, and with which parameters.
pub(super) struct Encryption {
    derivation: Derivation,
    cipher: Cipher,
    salt: Vec<u8>,
    rounds: NonZeroU32,
}

/// How key and initialization vector come from the password.
enum Derivation {
    /// RFC 7292, appendix B, with SHA-1.
    Pkcs12,
    Pbkdf2 {
        function: pbkdf2::Algorithm,
        vector: Vec<u8>,
    },
}

#[derive(Debug, Clone, Copy)]
enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
    TripleDesOfTwoKeys,
    Rc2Of128Bits,
    Rc2Of40Bits,
}

impl Cipher {
    /// Bytes of the key.
    fn key_length(self) -> usize {
        match self {
            Self::Rc2Of40Bits => 5,
            Self::Aes128 | Self::TripleDesOfTwoKeys | Self::Rc2Of128Bits => 16,
            Self::Aes192 | Self::TripleDes => 24,
            Self::Aes256 => 32,
        }
    }

    /// The content, or `None` if the key is not the one with which it was encrypted.
    fn decrypt(self, key: &[u8], vector: &[u8], data: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        fn with<C: BlockCipherDecrypt + KeyInit>(
            key: &[u8],
            vector: &[u8],
            data: &[u8],
        ) -> Option<Vec<u8>> {
            let cipher = cbc::Decryptor::<C>::new_from_slices(key, vector).ok()?;
            cipher.decrypt_padded_vec::<Pkcs7>(data).ok()
        }
        let decrypt = match self {
            Self::Aes128 => with::<Aes128>,
            Self::Aes192 => with::<Aes192>,
            Self::Aes256 => with::<Aes256>,
            Self::TripleDes => with::<TdesEde3>,
            Self::TripleDesOfTwoKeys => with::<TdesEde2>,
            Self::Rc2Of128Bits | Self::Rc2Of40Bits => with::<Rc2>,
        };
        decrypt(key, vector, data).map(Zeroizing::new)
    }
}

impl Encryption {
    /// Reads the fields of an `AlgorithmIdentifier`.
    pub(super) fn read(mut algorithm: Der) -> Result<Self, Problem> {
        let id = algorithm.expect(OID).ok_or(Problem::Damaged)?.content;
        let mut parameters = algorithm.enter(SEQUENCE).ok_or(Problem::Damaged)?;
        if id == OID_PBES2 {
            return Self::read_pbes2(parameters);
        }
        let cipher = match id {
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x03" => Cipher::TripleDes,
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x04" => Cipher::TripleDesOfTwoKeys,
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x05" => Cipher::Rc2Of128Bits,
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x06" => Cipher::Rc2Of40Bits,
            _ => return Err(Problem::unsupported(id)),
        };
        let (salt, rounds) = salt_and_rounds(&mut parameters).ok_or(Problem::Damaged)?;
        Ok(Self { derivation: Derivation::Pkcs12, cipher, salt, rounds })
    }

    fn read_pbes2(mut parameters: Der) -> Result<Self, Problem> {
        let mut derivation = parameters.enter(SEQUENCE).ok_or(Problem::Damaged)?;
        let mut scheme = parameters.enter(SEQUENCE).ok_or(Problem::Damaged)?;

        let id = derivation.expect(OID).ok_or(Problem::Damaged)?.content;
        if id != OID_PBKDF2 {
            return Err(Problem::unsupported(id));
        }
        let mut derivation = derivation.enter(SEQUENCE).ok_or(Problem::Damaged)?;
        let (salt, rounds) = salt_and_rounds(&mut derivation).ok_or(Problem::Damaged)?;
        // The length of the key is optional, and the cipher states it too.
        let function = derivation.find(|element| element.tag == SEQUENCE);
        let function = match function.map(|function| Der::new(function.content).expect(OID)) {
            None => pbkdf2::PBKDF2_HMAC_SHA1,
            Some(id) => match id.ok_or(Problem::Damaged)?.content {
                b"\x2a\x86\x48\x86\xf7\x0d\x02\x07" => pbkdf2::PBKDF2_HMAC_SHA1,
                b"\x2a\x86\x48\x86\xf7\x0d\x02\x09" => pbkdf2::PBKDF2_HMAC_SHA256,
                b"\x2a\x86\x48\x86\xf7\x0d\x02\x0a" => pbkdf2::PBKDF2_HMAC_SHA384,
                b"\x2a\x86\x48\x86\xf7\x0d\x02\x0b" => pbkdf2::PBKDF2_HMAC_SHA512,
                id => return Err(Problem::unsupported(id)),
            },
        };

        let cipher = match scheme.expect(OID).ok_or(Problem::Damaged)?.content {
            b"\x60\x86\x48\x01\x65\x03\x04\x01\x02" => Cipher::Aes128,
            b"\x60\x86\x48\x01\x65\x03\x04\x01\x16" => Cipher::Aes192,
            b"\x60\x86\x48\x01\x65\x03\x04\x01\x2a" => Cipher::Aes256,
            b"\x2a\x86\x48\x86\xf7\x0d\x03\x07" => Cipher::TripleDes,
            id => return Err(Problem::unsupported(id)),
        };
        let vector = scheme.expect(OCTET_STRING).ok_or(Problem::Damaged)?.content.to_vec();
        Ok(Self { derivation: Derivation::Pbkdf2 { function, vector }, cipher, salt, rounds })
    }

    /// The content of `data`.
    ///
    /// # Errors
    ///
    /// [`Problem::WrongPassword`] also if `data` is damaged: nothing tells the two apart.
    pub(super) fn decrypt(
        &self,
        data: &[u8],
        password: &Password,
        budget: &mut Budget,
    ) -> Result<Zeroizing<Vec<u8>>, Problem> {
        let mut key = Zeroizing::new(vec![0; self.cipher.key_length()]);
        let vector = match &self.derivation {
            Derivation::Pbkdf2 { function, vector } => {
                // No function gives fewer than 20 bytes at once, so a key takes at most two runs.
                budget.spend(self.rounds, 2)?;
                pbkdf2::derive(*function, self.rounds, &self.salt, password.utf8(), &mut key);
                vector.clone()
            }
            Derivation::Pkcs12 => {
                let mut vector = vec![0; 8];
                let mut derive = |purpose, output: &mut [u8]| {
                    let digest = &SHA1_FOR_LEGACY_USE_ONLY;
                    password.derive(digest, purpose, &self.salt, self.rounds, output, budget)
                };
                derive(Purpose::Key, &mut key)?;
                derive(Purpose::Vector, &mut vector)?;
                vector
            }
        };
        self.cipher.decrypt(&key, &vector, data).ok_or(Problem::WrongPassword)
    }
}

fn salt_and_rounds(parameters: &mut Der) -> Option<(Vec<u8>, NonZeroU32)> {
    let salt = parameters.expect(OCTET_STRING)?.content.to_vec();
    let rounds = unsigned(parameters.expect(INTEGER)?.content)?;
    Some((salt, rounds))
}
