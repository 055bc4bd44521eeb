//! Text types with rules, such as names, e-mail addresses and versions. Every value is valid.

/// Declares text types. A rule returns the text, or an error message for the caller.
macro_rules! texts {
    ($($(#[$doc:meta])+ $name:ident, schema: $schema:tt, rule: $rule:expr;)+) => {
        checked_texts! { $($(#[$doc])+ $name, schema: $schema, rule: $rule;)+ }
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self.as_str(), f)
            }
        })+
    };
}

/// Declares text types like `texts!`, whose `Debug` output is masked.
macro_rules! secrets {
    ($($(#[$doc:meta])+ $name:ident, schema: $schema:tt, rule: $rule:expr;)+) => {
        checked_texts! { $($(#[$doc])+ $name, schema: $schema, rule: $rule;)+ }
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::text::MASK)
            }
        })+
    };
}

/// What `texts!` and `secrets!` have in common: everything but `Debug`.
macro_rules! checked_texts {
    ($($(#[$doc:meta])+ $name:ident, schema: $schema:tt, rule: $rule:expr;)+) => {
        $(
            $(#[$doc])+
            #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
            pub struct $name(String);

            impl $name {
                /// The text.
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }
            impl std::str::FromStr for $name {
                type Err = String;
                fn from_str(text: &str) -> Result<Self, String> {
                    let rule: fn(&str) -> Result<String, String> = $rule;
                    rule(text).map($name)
                }
            }
            impl std::fmt::Display for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(&self.0)
                }
            }
            impl From<$name> for String {
                fn from(text: $name) -> String {
                    text.0
                }
            }
            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                    let text = std::borrow::Cow::<str>::deserialize(d)?;
                    text.parse().map_err(serde::de::Error::custom)
                }
            }
            impl schemars::JsonSchema for $name {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    stringify!($name).into()
                }
                fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    schemars::json_schema!($schema)
                }
            }
        )+
    };
}

mod commerce;
mod delivery;
mod engines;
mod hosting;
mod people;
mod secrets;

pub use commerce::*;
pub use delivery::*;
pub use engines::*;
pub use hosting::*;
pub use people::*;
pub use secrets::*;

/// The text that replaces a secret.
pub const MASK: &str = "••••••••";
