//! Text with rules: what a name, an e-mail or a version may be. A value of these types is valid.

/// Declares text types. The rule gives `Ok` or the sentence that the caller reads.
macro_rules! texts {
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

texts! {
    /// An e-mail address. Two that differ only in case are the same account; see [`Email::key`].
    Email,
    schema: {"type": "string", "format": "email", "maxLength": 254},
    rule: |text| {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@').unwrap_or_default();
        let plain = |b: u8| b.is_ascii_graphic() && !b"()<>[]:;,\\\"@".contains(&b) || b >= 0x80;
        let labels = domain.split('.').all(|l| !l.is_empty() && !l.starts_with('-') && !l.ends_with('-'));
        let domain_is_plain = domain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b >= 0x80);
        let good = !local.is_empty() && local.len() <= 64 && local.bytes().all(plain) && labels && domain_is_plain;
        if good && text.len() <= 254 { Ok(text.to_owned()) } else { Err("must be an e-mail address such as ada@example.com".into()) }
    };

    /// A password, 8 to 256 characters. It prints as dots.
    Password,
    schema: {"type": "string", "format": "password", "minLength": 8, "maxLength": 256},
    rule: |text| match text.chars().count() {
        8..=256 => Ok(text.to_owned()),
        _ => Err("must have 8 to 256 characters".into()),
    };

    /// The name of something, 1 to 120 characters on one line.
    Name,
    schema: {"type": "string", "minLength": 1, "maxLength": 120},
    rule: |text| {
        let text = text.trim();
        match text.chars().count() {
            1..=120 if !text.chars().any(char::is_control) => Ok(text.to_owned()),
            _ => Err("must have 1 to 120 characters on one line".into()),
        }
    };

    /// A longer description, at most 2,000 characters.
    Description,
    schema: {"type": "string", "maxLength": 2000},
    rule: |text| if text.chars().count() <= 2_000 { Ok(text.to_owned()) } else { Err("must have at most 2000 characters".into()) };

    /// Release notes, at most 10,000 characters.
    Notes,
    schema: {"type": "string", "maxLength": 10000},
    rule: |text| if text.chars().count() <= 10_000 { Ok(text.to_owned()) } else { Err("must have at most 10000 characters".into()) };

    /// A version as people write it, such as `1.4.2` or `2.0.0-rc.1`.
    VersionName,
    schema: {"type": "string", "pattern": "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b".+_-".contains(&b));
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if good && first && text.len() <= 64 { Ok(text.to_owned()) } else { Err("must be a version such as 1.4.2: letters, digits, . + _ -, at most 64 characters".into()) }
    };

    /// The name of a release channel, such as `production`.
    Channel,
    schema: {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if good && first && text.len() <= 63 { Ok(text.to_owned()) } else { Err("must be a channel name such as production: lower-case letters, digits, . _ -, at most 63 characters".into()) }
    };

    /// A SHA-256 in lower-case hex.
    Sha256,
    schema: {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    rule: |text| {
        let good = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if good { Ok(text.to_owned()) } else { Err("must be a SHA-256: 64 hexadecimal digits in lower case".into()) }
    };

    /// A web address that browsers may be shown. The service itself never opens it.
    WebUrl,
    schema: {"type": "string", "format": "uri", "maxLength": 2048},
    rule: |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let good = rest.is_some_and(|r| !r.is_empty() && !r.starts_with('/')) && text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b));
        if good && text.len() <= 2048 { Ok(text.to_owned()) } else { Err("must be a web address that starts with https:// or http://".into()) }
    };

    /// The name of an uploaded file, without a folder: it is shown, never used as a path.
    FileName,
    schema: {"type": "string", "pattern": "^[^/\\\\\\x00-\\x1f]{1,200}$"},
    rule: |text| {
        let good = !text.is_empty() && text.chars().count() <= 200 && !text.chars().any(|c| c.is_control() || c == '/' || c == '\\');
        if good { Ok(text.to_owned()) } else { Err("must be a file name without a folder, 1 to 200 characters".into()) }
    };

    /// The identifier of an app in its store: an iOS bundle identifier or an Android package name.
    StoreIdentifier,
    schema: {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*(\\.[A-Za-z0-9_-]+)+$", "maxLength": 155},
    rule: |text| {
        let mut labels = text.split('.');
        let plain = |l: &str| !l.is_empty() && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
        if first && text.len() <= 155 && text.contains('.') && labels.all(plain) { Ok(text.to_owned()) } else { Err("must be an identifier such as com.example.app".into()) }
    };
}

macro_rules! debug_as_text {
    ($($name:ty),+) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self.as_str(), f)
            }
        })+
    };
}
debug_as_text!(
    Email,
    Name,
    Description,
    Notes,
    VersionName,
    Channel,
    Sha256,
    WebUrl,
    FileName,
    StoreIdentifier
);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("••••••••")
    }
}

impl Email {
    /// The form in which addresses are compared.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}
