//! Records: typed content under a key, with the version of its schema and the count of its writes.

use crate::StoreError;
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, marker::PhantomData, ops::Deref, str::FromStr, sync::Arc};

/// A kind of record.
pub trait Record: Sized + 'static {
    /// The name of the kind.
    const TREE: &'static str;
    /// The version of the shape. [`Record::upgrade`] reads older ones; newer ones are refused.
    const SCHEMA: u16;
    /// Whether readers share decoded records in memory. `false` for records that are large or read
    /// once, such as lines of a log: they would drive out what is read often.
    const CACHED: bool = true;
    /// Identifies a record within its kind.
    type Key: Key;
    /// The content of the record, stored as JSON.
    type Content: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The index entries that lead to this record.
    fn index(_content: &Self::Content) -> Entries<Self> {
        Entries::default()
    }

    /// The values that no other record of this kind may have.
    fn claims(_content: &Self::Content) -> Claims<Self> {
        Claims::default()
    }

    /// Converts the content that an older version of the program wrote, with a schema before
    /// [`Record::SCHEMA`].
    fn upgrade(from: u16, _old: serde_json::Value) -> Result<Self::Content, StoreError> {
        Err(StoreError::Unreadable(format!("{} of schema {from} cannot be upgraded", Self::TREE)))
    }
}

/// A key: its text has no slash and parses back to the same key.
pub trait Key: fmt::Display + FromStr + Clone + Send + 'static {}
impl<K: fmt::Display + FromStr + Clone + Send + 'static> Key for K {}

/// An index entry that points at records of `R`, with a text such as `app/app_…`.
/// [`entries!`](crate::entries) declares them.
pub trait Entry<R: Record>: fmt::Display {}

/// A unique value of a record of `R`, with a text such as `email/ada@example.com`.
/// [`claims!`](crate::claims) declares them.
pub trait Claim<R: Record>: fmt::Display {}

/// The index entries of one record.
pub struct Entries<R>(pub(crate) Vec<String>, PhantomData<fn() -> R>);

/// The unique values of one record.
pub struct Claims<R>(pub(crate) Vec<String>, PhantomData<fn() -> R>);

impl<R> Default for Entries<R> {
    fn default() -> Self {
        Entries(Vec::new(), PhantomData)
    }
}

impl<R> Default for Claims<R> {
    fn default() -> Self {
        Claims(Vec::new(), PhantomData)
    }
}

impl<R: Record> Entries<R> {
    /// Adds an entry.
    pub fn and(mut self, entry: impl Entry<R>) -> Self {
        self.0.push(entry.to_string());
        self
    }

    /// Adds several entries.
    pub fn and_all(mut self, entries: impl IntoIterator<Item = impl Entry<R>>) -> Self {
        self.0.extend(entries.into_iter().map(|entry| entry.to_string()));
        self
    }
}

impl<R: Record> Claims<R> {
    /// Adds a unique value.
    pub fn and(mut self, claim: impl Claim<R>) -> Self {
        self.0.push(claim.to_string());
        self
    }

    /// Adds several unique values.
    pub fn and_all(mut self, claims: impl IntoIterator<Item = impl Claim<R>>) -> Self {
        self.0.extend(claims.into_iter().map(|claim| claim.to_string()));
        self
    }
}

/// Declares the index entries of one kind of records, each with its name in the index.
///
/// ```ignore
/// store::entries! {
///     /// The index entries of artifacts.
///     pub enum ArtifactIndex of Artifacts {
///         /// The artifacts of an app that wait for their bytes.
///         Pending { app: AppId } = "pending",
///     }
/// }
/// ```
#[macro_export]
macro_rules! entries {
    ($($declaration:tt)+) => { $crate::spelled! { Entry $($declaration)+ } };
}

/// Declares the unique values of one kind of records, like [`entries!`](crate::entries).
#[macro_export]
macro_rules! claims {
    ($($declaration:tt)+) => { $crate::spelled! { Claim $($declaration)+ } };
}

/// The common part of [`entries!`](crate::entries) and [`claims!`](crate::claims). The text of a
/// variant is its name and its fields, with slashes between them.
#[doc(hidden)]
#[macro_export]
macro_rules! spelled {
    (
        $role:ident
        $(#[$meta:meta])*
        $vis:vis enum $name:ident of $record:ty {
            $($(#[$variant_meta:meta])* $variant:ident $({ $($field:ident : $type:ty),+ })? = $text:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "a field whose name says all needs no sentence")]
        $vis enum $name {
            $($(#[$variant_meta])* $variant $({ $($field: $type),+ })?),+
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $($name::$variant $({ $($field),+ })? => {
                        f.write_str($text)?;
                        $($(write!(f, "/{}", $field)?;)+)?
                        Ok(())
                    })+
                }
            }
        }

        impl $crate::$role<$record> for $name {}
    };
}

/// A record that several writers add to. The committer applies each delta to the stored content, so
/// writers do not read first.
pub trait Merge: Record<Content: Clone> {
    /// The addition of one writer.
    type Delta: Send + Sync + 'static;
    /// Applies a delta. `None` removes the record.
    fn merge(old: Option<Self::Content>, delta: &Self::Delta) -> Option<Self::Content>;
    /// Why the stored content takes no such delta: [`StoreError::Refused`], and nothing of the change is
    /// written.
    fn refuses(_old: Option<&Self::Content>, _delta: &Self::Delta) -> Option<String> {
        None
    }
}

/// A record as a reader got it. Readers share it. It derefs to the content.
pub type Snapshot<R> = Arc<Stored<R>>;

/// A record as it is stored. It derefs to the content.
pub struct Stored<R: Record> {
    version: u64,
    content: R::Content,
}

impl<R: Record> Stored<R> {
    /// The successor of `before`, or the first version of a record.
    pub fn after(before: Option<&Stored<R>>, content: R::Content) -> Self {
        Stored { version: before.map_or(0, Stored::version) + 1, content }
    }

    /// A record that is not in the store, with version 0.
    pub fn unwritten(content: R::Content) -> Self {
        Stored { version: 0, content }
    }

    /// How often this record was written; 0 for a record that is not in the store.
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl<R: Record> Deref for Stored<R> {
    type Target = R::Content;
    fn deref(&self) -> &R::Content {
        &self.content
    }
}

impl<R: Record<Content: fmt::Debug>> fmt::Debug for Stored<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stored").field(&self.version).field(&self.content).finish()
    }
}

/// Bytes of schema and version before the JSON of the record.
const HEADER: usize = 10;

impl<R: Record> Stored<R> {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, StoreError> {
        encode::<R>(self.version, &self.content)
    }

    pub(crate) fn decode(key: &str, bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged =
            |why: &dyn fmt::Display| StoreError::Unreadable(format!("{}/{key}: {why}", R::TREE));
        let (schema, version) = header(bytes).ok_or_else(|| damaged(&"shorter than its header"))?;
        let body = bytes.get(HEADER..).unwrap_or_default();
        let content = match schema.cmp(&R::SCHEMA) {
            std::cmp::Ordering::Equal => serde_json::from_slice(body).map_err(|e| damaged(&e))?,
            std::cmp::Ordering::Less => {
                R::upgrade(schema, serde_json::from_slice(body).map_err(|e| damaged(&e))?)?
            }
            std::cmp::Ordering::Greater => {
                let known = R::SCHEMA;
                return Err(damaged(&format!(
                    "written with schema {schema}, this program knows up to {known}: use a newer version of it"
                )));
            }
        };
        Ok(Stored { version, content })
    }
}

pub(crate) fn encode<R: Record>(version: u64, content: &R::Content) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(&R::SCHEMA.to_be_bytes());
    bytes.extend_from_slice(&version.to_be_bytes());
    serde_json::to_writer(&mut bytes, content)
        .map_err(|e| StoreError::Unwritable(format!("{} cannot be written: {e}", R::TREE)))?;
    Ok(bytes)
}

pub(crate) fn header(bytes: &[u8]) -> Option<(u16, u64)> {
    let schema = bytes.get(..2)?.try_into().ok().map(u16::from_be_bytes)?;
    let version = bytes.get(2..HEADER)?.try_into().ok().map(u64::from_be_bytes)?;
    Some((schema, version))
}

/// The version of a stored value; 0 if there is none.
pub(crate) fn version_of(value: Option<&[u8]>) -> u64 {
    value.and_then(header).map_or(0, |(_, version)| version)
}
