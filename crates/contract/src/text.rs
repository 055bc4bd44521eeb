//! Text types with rules, such as names, e-mail addresses and versions. Every value is valid.

/// Declares text types. A rule returns the text, or an error message for the caller.
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
    /// An e-mail address. Addresses that differ only in case belong to the same account; see
    /// [`Email::key`].
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

    /// A password, 8 to 256 characters. Its `Debug` output is masked.
    Password,
    schema: {"type": "string", "format": "password", "minLength": 8, "maxLength": 256},
    rule: |text| match text.chars().count() {
        8..=256 => Ok(text.to_owned()),
        _ => Err("must have 8 to 256 characters".into()),
    };

    /// A password to check. Any text is allowed: an impossible password is a wrong one. Its `Debug`
    /// output is masked.
    PasswordAttempt,
    schema: {"type": "string", "format": "password"},
    rule: |text| Ok(text.to_owned());

    /// A name, 1 to 120 characters on one line.
    Name,
    schema: {"type": "string", "minLength": 1, "maxLength": 120},
    rule: |text| {
        let text = text.trim();
        match text.chars().count() {
            1..=120 if !text.chars().any(char::is_control) => Ok(text.to_owned()),
            _ => Err("must have 1 to 120 characters on one line".into()),
        }
    };

    /// A name that is given now: a [`Name`] in which every character shows. Names that were given earlier
    /// may hide some.
    NewName,
    schema: {"type": "string", "minLength": 1, "maxLength": 120},
    rule: |text| {
        let name: Name = text.parse()?;
        match hidden(name.as_str()) {
            None => Ok(name.into()),
            Some(c) => Err(format!("must not have characters that do not show, such as U+{:04X}", u32::from(c))),
        }
    };

    /// A description, at most 2,000 characters.
    Description,
    schema: {"type": "string", "maxLength": 2000},
    rule: |text| if text.chars().count() <= 2_000 { Ok(text.to_owned()) } else { Err("must have at most 2000 characters".into()) };

    /// Release notes, at most 10,000 characters.
    Notes,
    schema: {"type": "string", "maxLength": 10000},
    rule: |text| if text.chars().count() <= 10_000 { Ok(text.to_owned()) } else { Err("must have at most 10000 characters".into()) };

    /// A version name, such as `1.4.2` or `2.0.0-rc.1`.
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

    /// A web address to show to users. The service never opens it.
    WebUrl,
    schema: {"type": "string", "format": "uri", "maxLength": 2048},
    rule: |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let good = rest.is_some_and(|r| !r.is_empty() && !r.starts_with('/')) && text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b));
        if good && text.len() <= 2048 { Ok(text.to_owned()) } else { Err("must be a web address that starts with https:// or http://".into()) }
    };

    /// The name of an uploaded file, without a folder. The service never uses it as a path.
    FileName,
    schema: {"type": "string", "pattern": "^[^/\\\\\\x00-\\x1f]{1,200}$"},
    rule: |text| {
        let good = !text.is_empty() && text.chars().count() <= 200 && !text.chars().any(|c| c.is_control() || c == '/' || c == '\\');
        if good { Ok(text.to_owned()) } else { Err("must be a file name without a folder, 1 to 200 characters".into()) }
    };

    /// The identifier of an app: an iOS bundle identifier or an Android package name.
    StoreIdentifier,
    schema: {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*(\\.[A-Za-z0-9_-]+)+$", "maxLength": 155},
    rule: |text| {
        let mut labels = text.split('.');
        let plain = |l: &str| !l.is_empty() && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
        if first && text.len() <= 155 && text.contains('.') && labels.all(plain) { Ok(text.to_owned()) } else { Err("must be an identifier such as com.example.app".into()) }
    };

    /// A name for URLs and references, such as `parse-server`.
    Slug,
    schema: {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let ends = !text.starts_with('-') && !text.ends_with('-') && (1..=63).contains(&text.len());
        if good && ends { Ok(text.to_owned()) } else { Err("must be a name such as parse-server: lower-case letters, digits and -, at most 63 characters".into()) }
    };

    /// Search words, 1 to 100 characters.
    Query,
    schema: {"type": "string", "minLength": 1, "maxLength": 100},
    rule: |text| match text.trim().chars().count() {
        1..=100 => Ok(text.trim().to_owned()),
        _ => Err("must have 1 to 100 characters".into()),
    };

    /// A reason in words, 1 to 500 characters.
    Reason,
    schema: {"type": "string", "minLength": 1, "maxLength": 500},
    rule: |text| match text.trim().chars().count() {
        1..=500 => Ok(text.trim().to_owned()),
        _ => Err("must have 1 to 500 characters".into()),
    };

    /// The repository of an image, without tag and digest, such as
    /// `registry.example.com/team/name`.
    ImageRepository,
    schema: {"type": "string", "pattern": "^([a-z0-9.-]+(:[0-9]+)?/)?[a-z0-9._-]+(/[a-z0-9._-]+)*$", "maxLength": 200},
    rule: |text| {
        let (host, path) = match text.split_once('/') {
            Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (Some(host), path),
            _ => (None, text),
        };
        let part = |p: &str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b)) && p.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric()) && p.bytes().last().is_some_and(|b| b.is_ascii_alphanumeric());
        let label = |l: &str| !l.is_empty() && !l.starts_with('-') && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let name = |h: &str| h.split('.').all(label);
        let host = host.is_none_or(|h| match h.split_once(':') {
            Some((h, port)) => name(h) && port.parse::<u16>().is_ok(),
            None => name(h),
        });
        if host && path.split('/').all(part) && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be a repository such as registry.example.com/team/name, without a tag".into()) }
    };

    /// The tag of an image.
    ImageTag,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        if good && first && text.len() <= 128 { Ok(text.to_owned()) } else { Err("must be a tag such as 9.10.0".into()) }
    };

    /// The digest of an image: `sha256:` and 64 hexadecimal digits in lower case.
    ImageDigest,
    schema: {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
    rule: |text| {
        let hex = text.strip_prefix("sha256:").unwrap_or_default();
        let good = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if good { Ok(text.to_owned()) } else { Err("must be sha256: and 64 hexadecimal digits in lower case".into()) }
    };

    /// The name of an environment variable.
    EnvName,
    schema: {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if good && first && text.len() <= 128 { Ok(text.to_owned()) } else { Err("must be the name of a variable such as LOG_LEVEL".into()) }
    };

    /// The value of an environment variable, at most 16 KiB. It may be a secret, so its `Debug`
    /// output is masked.
    EnvValue,
    schema: {"type": "string", "maxLength": 16384},
    rule: |text| {
        if text.len() <= 16_384 && !text.contains('\0') { Ok(text.to_owned()) } else { Err("must have at most 16384 bytes, and no NUL".into()) }
    };

    /// An absolute path in a container.
    ContainerPath,
    schema: {"type": "string", "pattern": "^(/[A-Za-z0-9._-]+)+$", "maxLength": 200},
    rule: |text| {
        let part = |p: &str| !p.is_empty() && p != "." && p != ".." && p.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let good = text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(part));
        if good && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be an absolute path such as /var/lib/data".into()) }
    };

    /// The path of a URL, with its query, such as `/health`.
    HttpPath,
    schema: {"type": "string", "pattern": "^/[!-~]*$", "maxLength": 500},
    rule: |text| {
        let good = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic()) && text.len() <= 500;
        if good { Ok(text.to_owned()) } else { Err("must be a path such as /health".into()) }
    };

    /// One argument of a command, at most 2,000 characters.
    Argument,
    schema: {"type": "string", "maxLength": 2000},
    rule: |text| {
        if text.len() <= 2_000 && !text.contains('\0') { Ok(text.to_owned()) } else { Err("must have at most 2000 bytes, and no NUL".into()) }
    };

    /// A name in a database or a template, such as `svc`.
    Identifier,
    schema: {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,62}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if good && first && text.len() <= 63 { Ok(text.to_owned()) } else { Err("must be a name of letters, digits and _, at most 63 characters".into()) }
    };

    /// The address of a git repository: an https URL without user and password, or an ssh URL. The
    /// short form `git@host:team/app.git` stands for `ssh://git@host/team/app.git`. The service
    /// refuses addresses of the internal network when it opens the address.
    GitUrl,
    schema: {"type": "string", "pattern": "^(https?://[A-Za-z0-9.-]+(:[0-9]+)?/|ssh://([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9.-]+(:[0-9]+)?/|[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9.-]+:)[A-Za-z0-9._~/-]+$", "maxLength": 500},
    rule: crate::git_url::checked;

    /// A branch, tag or commit.
    GitRef,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b)) && !text.contains("..");
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        if good && first && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be a branch, tag or commit such as main".into()) }
    };

    /// The relative path of a file in a repository.
    ContextPath,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", "maxLength": 200},
    rule: |text| {
        let part = |p: &str| !p.is_empty() && p != "." && p != ".." && p.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if text.split('/').all(part) && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be a path in the repository such as deploy/Dockerfile".into()) }
    };

    /// The name of a cloud function of a user's backend.
    CloudFunctionName,
    schema: {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if good && first && text.len() <= 128 { Ok(text.to_owned()) } else { Err("must be the name of a cloud function".into()) }
    };

    /// A token for a host of repositories. Its `Debug` output is masked.
    AccessToken,
    schema: {"type": "string", "pattern": "^[!-~]{1,1000}$"},
    rule: |text| {
        if (1..=1000).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) { Ok(text.to_owned()) } else { Err("must be an access token".into()) }
    };

    /// The name of a repository with that of its owner, such as `acme/app`.
    RepositoryName,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$", "maxLength": 200},
    rule: |text| {
        let part = |p: &str| !["", ".", ".."].contains(&p) && p.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        let good = text.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name));
        if good && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be a repository such as acme/app".into()) }
    };

    /// The file name of a workflow, such as `svc-build.yml`.
    WorkflowFile,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_.-]+\\.ya?ml$", "maxLength": 200},
    rule: |text| {
        let stem = text.strip_suffix(".yml").or_else(|| text.strip_suffix(".yaml")).unwrap_or_default();
        let good = !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        if good && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be the file name of a workflow such as svc-build.yml".into()) }
    };

    /// A workflow of a repository, such as `acme/ci/.github/workflows/build.yml`, in any version or, with
    /// `@refs/tags/v1`, in one.
    WorkflowPath,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/\\.github/workflows/[A-Za-z0-9_.-]+\\.ya?ml(@[A-Za-z0-9_./-]+)?$", "maxLength": 400},
    rule: |text| {
        let (path, version) = text.split_once('@').map_or((text, None), |(path, version)| (path, Some(version)));
        let (repository, file) = path.split_once("/.github/workflows/").unwrap_or_default();
        let version = version.is_none_or(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./-".contains(&b)));
        let good = repository.parse::<RepositoryName>().is_ok() && file.parse::<WorkflowFile>().is_ok() && version;
        if good && text.len() <= 400 { Ok(text.to_owned()) } else { Err("must be a workflow such as acme/ci/.github/workflows/build.yml".into()) }
    };

    /// The name of an environment of a CI, 1 to 255 characters.
    Environment,
    schema: {"type": "string", "minLength": 1, "maxLength": 255},
    rule: |text| match text.chars().count() {
        1..=255 if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err("must have 1 to 255 characters on one line".into()),
    };

    /// A branch or a tag with its full name, such as `refs/heads/main`, or those that begin alike,
    /// such as `refs/tags/v*`.
    RefPattern,
    schema: {"type": "string", "pattern": "^refs/[A-Za-z0-9_./+@-]+\\*?$", "maxLength": 255},
    rule: |text| {
        let name = text.strip_suffix('*').unwrap_or(text).strip_prefix("refs/").unwrap_or_default();
        let good = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./+@-".contains(&b));
        if good && text.len() <= 255 { Ok(text.to_owned()) } else { Err("must be a full name such as refs/heads/main, or the beginning of such names and * as in refs/tags/v*".into()) }
    };

    /// The event that begins a run of a CI, such as `push`. `pull_request_target` and `workflow_run` are
    /// refused: such runs may execute the code of strangers with the rights of the repository.
    CiEvent,
    schema: {"type": "string", "pattern": "^[a-z_]{1,50}$"},
    rule: |text| match text {
        "pull_request_target" | "workflow_run" => Err("must not be an event whose runs may execute the code of strangers".into()),
        _ if (1..=50).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') => Ok(text.to_owned()),
        _ => Err("must be the name of an event such as push".into()),
    };

    /// The number that a host of repositories gave to a repository or an account. It never changes.
    HostId,
    schema: {"type": "string", "pattern": "^[0-9]{1,20}$"},
    rule: |text| {
        if (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) { Ok(text.to_owned()) } else { Err("must be a number, as text".into()) }
    };

    /// The identity token of a CI job, a JSON Web Token. Its `Debug` output is masked.
    IdentityToken,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]*$", "maxLength": 16384},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) && text.split('.').count() == 3;
        if good && text.len() <= 16_384 { Ok(text.to_owned()) } else { Err("must be a JSON Web Token".into()) }
    };

    /// The secret by which the service knows a runner. Its `Debug` output is masked.
    RunnerKey,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_-]{20,100}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if good && (20..=100).contains(&text.len()) { Ok(text.to_owned()) } else { Err("must be 20 to 100 random letters and digits".into()) }
    };

    /// A session token of a user's backend. Its `Debug` output is masked.
    SessionToken,
    schema: {"type": "string", "pattern": "^[!-~]{1,200}$"},
    rule: |text| {
        if (1..=200).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) { Ok(text.to_owned()) } else { Err("must be a session token".into()) }
    };

    /// A schedule: the five fields of a crontab line.
    CronExpression,
    schema: {"type": "string", "pattern": "^[0-9*/,A-Za-z#L?-]+( [0-9*/,A-Za-z#L?-]+){4}$", "maxLength": 100},
    rule: |text| {
        let field = |f: &str| f.bytes().all(|b| b.is_ascii_alphanumeric() || b"*/,-#?".contains(&b));
        let good = text.split(' ').count() == 5 && text.split(' ').all(|f| !f.is_empty() && field(f));
        if good && text.len() <= 100 { Ok(text.to_owned()) } else { Err("must be five fields such as 30 3 * * *: minute, hour, day, month, day of the week".into()) }
    };

    /// A currency code of ISO 4217.
    Currency,
    schema: {"type": "string", "pattern": "^[A-Z]{3}$"},
    rule: |text| {
        if text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase()) { Ok(text.to_owned()) } else { Err("must be a currency such as EUR".into()) }
    };

    /// A country code of ISO 3166.
    CountryCode,
    schema: {"type": "string", "pattern": "^[A-Z]{2}$"},
    rule: |text| {
        if text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase()) { Ok(text.to_owned()) } else { Err("must be a country such as NG".into()) }
    };

    /// The bytes of a file in base64, at most 256 KiB. Its `Debug` output is masked.
    FileData,
    schema: {"type": "string", "contentEncoding": "base64", "maxLength": 349_528},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        if good && !text.is_empty() && text.len() <= 349_528 { Ok(text.to_owned()) } else { Err("must be a file of at most 256 KiB in base64".into()) }
    };

    /// A plan code of a payment provider.
    PlanCode,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if good && (1..=100).contains(&text.len()) { Ok(text.to_owned()) } else { Err("must be a plan code of letters, digits, _ and -".into()) }
    };
}

impl From<NewName> for Name {
    fn from(name: NewName) -> Name {
        Name(name.0)
    }
}

/// The first character of a text that does not show, and so makes the text look like another one or
/// turns the direction of what stands behind it. Joiners show by what they join, in scripts that have
/// them and between emoji.
///
/// These are the characters with the property `Default_Ignorable_Code_Point` of Unicode 17, without the
/// selectors of variants, and the separators of lines and paragraphs.
fn hidden(text: &str) -> Option<char> {
    let mut before = None;
    text.chars().find(|c| {
        let joins = before.replace(*c).is_some_and(|before: char| !before.is_ascii());
        match c {
            '\u{200C}' | '\u{200D}' => !joins,
            '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'
            | '\u{200E}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E00FF}'
            | '\u{E01F0}'..='\u{E0FFF}' => true,
            _ => false,
        }
    })
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
    RepositoryName,
    WorkflowFile,
    WorkflowPath,
    Environment,
    RefPattern,
    CiEvent,
    HostId,
    Name,
    NewName,
    Description,
    Notes,
    VersionName,
    Channel,
    Sha256,
    WebUrl,
    FileName,
    StoreIdentifier,
    Slug,
    Query,
    Reason,
    ImageRepository,
    ImageTag,
    ImageDigest,
    EnvName,
    ContainerPath,
    HttpPath,
    Argument,
    Identifier,
    GitUrl,
    GitRef,
    ContextPath,
    CloudFunctionName,
    CronExpression,
    Currency,
    CountryCode,
    PlanCode
);

/// The text that replaces a secret.
pub const MASK: &str = "••••••••";

macro_rules! debug_as_mask {
    ($($name:ty),+) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::text::MASK)
            }
        })+
    };
}
debug_as_mask!(
    Password,
    PasswordAttempt,
    EnvValue,
    SessionToken,
    AccessToken,
    RunnerKey,
    IdentityToken,
    FileData
);

impl Email {
    /// The form in which the store compares addresses.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_hides_nothing() {
        for name in
            ["Café Zürich", "日本語", "می\u{200C}خواهم", "👩\u{200D}💻 Lab", "❤\u{FE0F}", "a b"]
        {
            assert!(name.parse::<NewName>().is_ok(), "{name:?}");
        }
        for name in [
            "Shop\u{200B}",
            "\u{202E}pohS",
            "\u{2066}Shop\u{2069}",
            "Sh\u{200D}op",
            "\u{200C}Shop",
            "\u{FEFF}Shop",
            "Shop\u{E0041}",
            "\u{3164}",
            "a\u{2028}b",
        ] {
            let refused = name.parse::<NewName>().unwrap_err();
            assert!(refused.contains("do not show, such as U+"), "{name:?}: {refused}");
            assert!(name.parse::<Name>().is_ok(), "a stored name is read: {name:?}");
        }
    }
}
