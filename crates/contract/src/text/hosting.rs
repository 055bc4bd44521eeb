//! Images, containers and what runs in them.

texts! {
    /// A name for URLs and references, such as `parse-server`.
    Slug,
    schema: {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let ends = !text.starts_with('-') && !text.ends_with('-') && (1..=63).contains(&text.len());
        if good && ends { Ok(text.to_owned()) } else { Err("must be a name such as parse-server: lower-case letters, digits and -, at most 63 characters".into()) }
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

    /// A tag under which a registry finds an image, such as `1.4.2`.
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

    /// The name of a cloud function of a user's backend.
    CloudFunctionName,
    schema: {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if good && first && text.len() <= 128 { Ok(text.to_owned()) } else { Err("must be the name of a cloud function".into()) }
    };

    /// A schedule: the five fields of a crontab line.
    CronExpression,
    schema: {"type": "string", "pattern": "^[0-9*/,A-Za-z#L?-]+( [0-9*/,A-Za-z#L?-]+){4}$", "maxLength": 100},
    rule: |text| {
        let field = |f: &str| f.bytes().all(|b| b.is_ascii_alphanumeric() || b"*/,-#?".contains(&b));
        let good = text.split(' ').count() == 5 && text.split(' ').all(|f| !f.is_empty() && field(f));
        if good && text.len() <= 100 { Ok(text.to_owned()) } else { Err("must be five fields such as 30 3 * * *: minute, hour, day, month, day of the week".into()) }
    };
}
