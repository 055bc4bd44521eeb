//! The private key and the certificate that a PKCS#12 file is about.

use app_inspect::certificate::Certificate;

use crate::facts::CertificateFacts;
use crate::key::{KeyError, PublicKey};
use crate::looks::Looks;
use crate::pkcs12::{Archive, KeyBag, MOST_ROUNDS, Problem};
use crate::refusal::{File, Refusal, quote};
use crate::{MAX_FILE, certificate};

/// What is looked for in a PKCS#12 file.
pub(crate) struct Request<'a> {
    pub(crate) file: File,
    pub(crate) bytes: &'a [u8],
    pub(crate) password: &'a str,
    /// `None` takes the only key.
    pub(crate) alias: Option<&'a str>,
    /// `None` takes `password`.
    pub(crate) key_password: Option<&'a str>,
}

/// A certificate whose private key is in the same file.
pub(crate) struct Identity {
    /// All entries with a private key.
    pub(crate) aliases: Vec<String>,
    pub(crate) alias: String,
    /// The certificate in DER.
    pub(crate) der: Vec<u8>,
    pub(crate) facts: CertificateFacts,
}

impl Request<'_> {
    /// Opens the file, and proves that the key belongs to the certificate.
    pub(crate) fn open(&self) -> Result<Identity, Refusal> {
        let file = self.file;
        check_size(file, self.bytes)?;
        let mut archive =
            Archive::open(self.bytes, self.password).map_err(|problem| self.refusal(problem))?;
        let aliases = aliases(&archive.keys);
        let index = self.choose(&aliases)?;
        let alias = aliases.get(index).cloned().unwrap_or_default();

        if file == File::Keystore && !archive.keys.get(index).is_some_and(KeyBag::is_encrypted) {
            return Err(Refusal::KeyNotEncrypted);
        }

        let password = self.key_password.unwrap_or(self.password);
        let key = archive.key(index, password).map_err(|problem| match problem {
            Problem::WrongPassword => self.wrong_key_password(&archive, &alias),
            problem => self.refusal(problem),
        })?;
        let key = PublicKey::of_private(&key).map_err(|error| match error {
            KeyError::Malformed => Refusal::DamagedKey { file },
            KeyError::Unsupported => Refusal::UnsupportedKey { file },
        })?;
        let (der, facts) = self.certificate_of(&archive, index, &key)?;
        Ok(Identity { aliases, alias, der, facts })
    }

    /// The index of the key that is asked for.
    fn choose(&self, aliases: &[String]) -> Result<usize, Refusal> {
        let file = self.file;
        let chosen = match self.alias {
            None => positions(aliases, |_| true),
            Some(alias) => {
                let exact = positions(aliases, |name| name == alias);
                // Java does not tell upper case from lower case.
                let alias = alias.to_lowercase();
                if exact.is_empty() {
                    positions(aliases, |name| name.to_lowercase() == alias)
                } else {
                    exact
                }
            }
        };
        match (chosen.as_slice(), self.alias) {
            ([one], _) => Ok(*one),
            ([], Some(alias)) if !aliases.is_empty() => {
                Err(Refusal::UnknownAlias { alias: quote(alias), aliases: aliases.to_vec() })
            }
            ([], _) => Err(Refusal::NoPrivateKey { file }),
            _ => Err(Refusal::SeveralKeys { file, aliases: aliases.to_vec() }),
        }
    }

    /// The certificate with the id of the key, or any one that fits if no certificate has this id.
    fn certificate_of(
        &self,
        archive: &Archive,
        index: usize,
        key: &PublicKey,
    ) -> Result<(Vec<u8>, CertificateFacts), Refusal> {
        let file = self.file;
        let id = archive.keys.get(index).and_then(|bag| bag.id.as_ref());
        let mut bags: Vec<_> = archive
            .certificates
            .iter()
            .filter(|bag| id.is_some() && bag.id.as_ref() == id)
            .collect();
        if bags.is_empty() {
            bags = archive.certificates.iter().collect();
        }
        let mut refusal = Refusal::NoCertificate { file };
        for bag in bags {
            let Some(certificate) = Certificate::parse(&bag.der) else {
                refusal = Refusal::DamagedCertificate { file };
                continue;
            };
            if PublicKey::of_certificate(certificate.x509().public_key()).as_ref() == Ok(key) {
                return Ok((bag.der.clone(), certificate::facts(&certificate, file)?));
            }
            refusal = Refusal::KeyMismatch { file };
        }
        Err(refusal)
    }

    fn wrong_key_password(&self, archive: &Archive, alias: &str) -> Refusal {
        let alias = quote(alias);
        if self.key_password.is_some() {
            Refusal::WrongKeyPassword { alias }
        } else if archive.has_mac && self.file == File::Keystore {
            Refusal::KeyPasswordNeeded { alias }
        } else {
            Refusal::WrongPassword { file: self.file }
        }
    }

    fn refusal(&self, problem: Problem) -> Refusal {
        let file = self.file;
        match problem {
            Problem::NotPkcs12 => match Looks::of(self.bytes) {
                Looks::Jks => Refusal::JavaKeystore { file, store_type: "jks" },
                Looks::Jceks => Refusal::JavaKeystore { file, store_type: "jceks" },
                Looks::CutOff => Refusal::Damaged { file },
                looks => Refusal::NotPkcs12 { file, looks },
            },
            Problem::Damaged => Refusal::Damaged { file },
            Problem::Unsupported(oid) => Refusal::UnsupportedEncryption { file, oid },
            Problem::TooMuchWork => Refusal::TooMuchWork { file, limit: MOST_ROUNDS },
            Problem::WrongPassword => Refusal::WrongPassword { file },
        }
    }
}

/// The aliases of keys. Java numbers those without a name from 1.
fn aliases(keys: &[KeyBag]) -> Vec<String> {
    let mut nameless = 0;
    keys.iter()
        .map(|key| {
            key.name.clone().unwrap_or_else(|| {
                nameless += 1;
                nameless.to_string()
            })
        })
        .collect()
}

fn positions(aliases: &[String], fits: impl Fn(&str) -> bool) -> Vec<usize> {
    aliases.iter().enumerate().filter(|(_, alias)| fits(alias)).map(|(index, _)| index).collect()
}

/// Refuses a file that is larger than any real one.
pub(crate) fn check_size(file: File, bytes: &[u8]) -> Result<(), Refusal> {
    let size = bytes.len();
    if size > MAX_FILE {
        return Err(Refusal::TooLarge { file, size, limit: MAX_FILE });
    }
    Ok(())
}
