//! Encrypted secrets. Without the key of the installation, nobody can read them from the store.

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use data_encoding::BASE64;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{cell::Cell, fmt, sync::Arc};

/// An encrypted secret, bound to its owner. The text names the key that sealed it; texts of the
/// first versions name none.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Sealed(String);

thread_local! {
    /// How many sealed texts this thread has serialized.
    static SERIALIZED: Cell<usize> = const { Cell::new(0) };
}

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SERIALIZED.set(SERIALIZED.get().wrapping_add(1));
        self.0.serialize(serializer)
    }
}

/// How many sealed texts there are in a record, wherever its types have them.
pub fn count(record: &impl Serialize) -> Result<usize, serde_json::Error> {
    let before = SERIALIZED.get();
    serde_json::to_writer(std::io::sink(), record)?;
    Ok(SERIALIZED.get().wrapping_sub(before))
}

impl Sealed {
    /// How many bytes the secret has. Nothing else is known of it without a key.
    pub fn secret_bytes(&self) -> usize {
        let text = self.0.split_once(AFTER_ID).map_or(self.0.as_str(), |(_, text)| text);
        let bytes = BASE64.decode(text.as_bytes()).map_or(text.len(), |bytes| bytes.len());
        bytes.saturating_sub(NONCE + TAG)
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(contract::text::MASK)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The secret was sealed with another key, for another owner, or is damaged.
    #[error(
        "a secret cannot be opened: the encryption key of this installation is not the one that it was sealed with"
    )]
    Foreign,
    #[error("the operating system gives no random bytes")]
    NoRandomness,
}

/// Seals with the key of the installation, and also opens what its older keys sealed
/// (XChaCha20-Poly1305).
#[derive(Clone)]
pub struct Sealer {
    current: Arc<SealKey>,
    older: Arc<[SealKey]>,
}

struct SealKey {
    /// Tells keys apart, and says nothing about the key.
    id: String,
    cipher: XChaCha20Poly1305,
}

const NONCE: usize = 24;
/// What a seal adds to the end of a secret, in bytes.
const TAG: usize = 16;
/// Between the id of the key and the rest. Base64 does not have it.
const AFTER_ID: char = '.';

impl SealKey {
    fn new(key: [u8; 32]) -> Self {
        let digest = Sha256::new().chain_update(b"svc key id").chain_update(key).finalize();
        let id = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        SealKey { id, cipher: XChaCha20Poly1305::new(&key.into()) }
    }
}

impl Sealer {
    pub fn new(key: [u8; 32]) -> Self {
        Sealer::with_older(key, &[])
    }

    /// With keys that sealed before this one.
    pub fn with_older(key: [u8; 32], older: &[[u8; 32]]) -> Self {
        let older = older.iter().map(|key| SealKey::new(*key)).collect();
        Sealer { current: Arc::new(SealKey::new(key)), older }
    }

    /// Seals a secret of `owner`, such as an instance's id.
    pub fn seal(&self, owner: &str, secret: &str) -> Result<Sealed, SealError> {
        let SealKey { id, cipher } = &*self.current;
        let mut nonce = [0_u8; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
        let payload = Payload { msg: secret.as_bytes(), aad: owner.as_bytes() };
        let bytes =
            cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| SealError::Foreign)?;
        Ok(Sealed(format!("{id}{AFTER_ID}{}", BASE64.encode(&[&nonce[..], &bytes].concat()))))
    }

    /// Opens a secret. Fails if `owner` is not the one that it was sealed for.
    pub fn open(&self, owner: &str, sealed: &Sealed) -> Result<String, SealError> {
        let (id, text) = match sealed.0.split_once(AFTER_ID) {
            Some((id, text)) => (Some(id), text),
            None => (None, sealed.0.as_str()),
        };
        let bytes = BASE64.decode(text.as_bytes()).map_err(|_| SealError::Foreign)?;
        let (nonce, bytes) = bytes.split_first_chunk::<NONCE>().ok_or(SealError::Foreign)?;
        let keys = std::iter::once(&*self.current).chain(self.older.iter());
        for key in keys.filter(|key| id.is_none_or(|id| id == key.id)) {
            let payload = Payload { msg: bytes, aad: owner.as_bytes() };
            if let Ok(secret) = key.cipher.decrypt(&XNonce::from(*nonce), payload) {
                return String::from_utf8(secret).map_err(|_| SealError::Foreign);
            }
        }
        Err(SealError::Foreign)
    }

    /// Whether the current key sealed this.
    fn is_current(&self, sealed: &Sealed) -> bool {
        sealed.0.split_once(AFTER_ID).is_some_and(|(id, _)| id == self.current.id)
    }

    fn is_older(&self, sealed: &Sealed) -> bool {
        let id = sealed.0.split_once(AFTER_ID).map(|(id, _)| id);
        id.is_some_and(|id| self.older.iter().any(|key| key.id == id))
    }

    /// Seals with the current key every sealed text in a record that an older key sealed, and
    /// returns how many those were. A record seals for its own key or for an object that it names;
    /// what opens for one of these is a sealed text, because nobody can make one without a key.
    /// Fails if an older key sealed a text for somebody else: without that key it would be lost.
    pub fn reseal(&self, key: &str, record: &mut Value) -> Result<usize, SealError> {
        let mut owners = vec![key.to_owned()];
        names(record, &mut owners);
        self.reseal_for(&owners, record)
    }

    fn reseal_for(&self, owners: &[String], value: &mut Value) -> Result<usize, SealError> {
        match value {
            Value::String(text) => {
                let sealed = Sealed(std::mem::take(text));
                let opened = match self.is_current(&sealed) {
                    true => None,
                    false => owners.iter().find_map(|o| Some((o, self.open(o, &sealed).ok()?))),
                };
                let count = usize::from(opened.is_some());
                let sealed = match opened {
                    Some((owner, secret)) => self.seal(owner, &secret)?,
                    None if self.is_older(&sealed) => return Err(SealError::Foreign),
                    None => sealed,
                };
                *text = sealed.0;
                Ok(count)
            }
            Value::Array(items) => {
                items.iter_mut().try_fold(0, |n, item| Ok(n + self.reseal_for(owners, item)?))
            }
            Value::Object(fields) => {
                fields.values_mut().try_fold(0, |n, item| Ok(n + self.reseal_for(owners, item)?))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(0),
        }
    }
}

/// The ids in a record.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() == ID_LENGTH && !found.contains(text) => {
            found.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| names(item, found)),
        _ => {}
    }
}

/// The length of every id: a prefix of three letters, an underscore, and a ULID.
const ID_LENGTH: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_opened_by_its_owner_and_key_only() {
        let sealer = Sealer::new([7; 32]);
        let sealed = sealer.seal("ins_1", "hunter2").unwrap();
        assert_eq!(sealer.open("ins_1", &sealed).unwrap(), "hunter2");
        assert_eq!(sealer.open("ins_2", &sealed), Err(SealError::Foreign));
        assert_eq!(Sealer::new([8; 32]).open("ins_1", &sealed), Err(SealError::Foreign));
        assert_ne!(sealed, sealer.seal("ins_1", "hunter2").unwrap(), "each time another nonce");
        assert!(!format!("{sealed:?}").contains(&sealed.0));
        assert_eq!(sealed.secret_bytes(), "hunter2".len());
    }

    #[test]
    fn sealed_texts_are_counted_wherever_they_are() {
        #[derive(Serialize)]
        #[serde(tag = "kind")]
        enum Named {
            One { secret: Sealed },
        }
        #[derive(Serialize)]
        struct Record {
            list: Vec<Option<Sealed>>,
            #[serde(flatten)]
            named: Named,
            plain: String,
        }
        let sealed = Sealer::new([7; 32]).seal("ins_1", "hunter2").unwrap();
        let named = Named::One { secret: sealed.clone() };
        let list = vec![None, Some(sealed.clone())];
        let record = Record { list, named, plain: sealed.0 };
        assert_eq!(count(&record).unwrap(), 2);
    }

    #[test]
    fn a_record_is_sealed_anew_wherever_it_is_sealed() {
        let (old, other) = (Sealer::new([7; 32]), Sealer::new([9; 32]));
        let app = "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S";
        let own = old.seal("crd_1", "of the key").unwrap();
        let named = old.seal(app, "of the app").unwrap();
        let unnamed = Sealed(own.0.split_once('.').unwrap().1.to_owned());
        let foreign = other.seal("crd_1", "of nobody").unwrap();
        let mut record = serde_json::json!({
            "app": app, "list": [own.0, {"deep": named.0}], "before": unnamed.0, "foreign": foreign.0,
            "plain": "QUJD", "number": 1,
        });
        let rotated = Sealer::with_older([8; 32], &[[7; 32]]);
        assert_eq!(rotated.open("crd_1", &own).unwrap(), "of the key");
        assert_eq!(rotated.reseal("crd_1", &mut record).unwrap(), 3);
        assert_eq!(rotated.reseal("crd_1", &mut record).unwrap(), 0, "once is enough");
        let new = Sealer::new([8; 32]);
        let text = |value: &Value| Sealed(value.as_str().unwrap().to_owned());
        assert_eq!(new.open("crd_1", &text(&record["list"][0])).unwrap(), "of the key");
        assert_eq!(new.open(app, &text(&record["list"][1]["deep"])).unwrap(), "of the app");
        assert_eq!(new.open("crd_1", &text(&record["before"])).unwrap(), "of the key");
        assert_eq!(record["foreign"], foreign.0, "what nobody can open stays");
        assert_eq!(record["plain"], "QUJD");
        let mut elsewhere = serde_json::json!({"of": own.0});
        assert_eq!(rotated.reseal("crd_2", &mut elsewhere), Err(SealError::Foreign), "not lost");
    }
}
