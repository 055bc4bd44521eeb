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

    /// Where the Docker API of a machine is: a host and a port, such as `10.0.0.21:2376`.
    EngineAddress,
    schema: {"type": "string", "pattern": "^(\\[[0-9a-f:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5}$", "maxLength": 260},
    rule: |text| {
        let (host, port) = text.rsplit_once(':').unwrap_or_default();
        let label = |l: &str| !l.is_empty() && l.len() <= 63 && !l.starts_with('-') && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
            None => host.len() <= 253 && host.split('.').all(label),
        };
        let port = port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
        if host && port { Ok(text.to_owned()) } else { Err("must be the host and the port of a Docker engine, such as 10.0.0.21:2376".into()) }
    };

    /// An address of a private network, such as `10.0.0.21`.
    PrivateAddress,
    schema: {"type": "string", "maxLength": 45},
    rule: |text| match text.parse::<std::net::IpAddr>() {
        Ok(address) if is_private(address) => Ok(address.to_string()),
        _ => Err("must be an address of a private network, such as 10.0.0.21: others would reach the servers of instances at a public one".into()),
    };

    /// Certificates in PEM, at most 64 KiB.
    CertificatePem,
    schema: {"type": "string", "pattern": "^-----BEGIN CERTIFICATE-----", "maxLength": 65536},
    rule: |text| {
        let text = text.trim_start();
        if text.starts_with("-----BEGIN CERTIFICATE-----") && text.len() <= 65_536 { Ok(text.to_owned()) } else { Err("must be a certificate in PEM, which begins with -----BEGIN CERTIFICATE-----".into()) }
    };
}

/// Whether only machines of one network, or only this one, reach the address (RFC 1918, 6598 and 4193).
fn is_private(address: std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(v4) => {
            let is_shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            v4.is_private() || v4.is_loopback() || is_shared
        }
        std::net::IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
    }
}

impl PrivateAddress {
    /// The address.
    pub fn ip(&self) -> std::net::IpAddr {
        // The rule has parsed the text.
        self.as_str().parse().unwrap_or(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
    }
}
