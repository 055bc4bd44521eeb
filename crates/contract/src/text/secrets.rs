//! Texts that may be secret. Their `Debug` output is masked.

secrets! {
    /// A password, 8 to 256 characters.
    Password,
    schema: {"type": "string", "format": "password", "minLength": 8, "maxLength": 256},
    rule: |text| match text.chars().count() {
        8..=256 => Ok(text.to_owned()),
        _ => Err("must have 8 to 256 characters".into()),
    };

    /// A password to check. Any text is allowed: an impossible password is a wrong one.
    PasswordAttempt,
    schema: {"type": "string", "format": "password"},
    rule: |text| Ok(text.to_owned());

    /// The value of an environment variable, at most 16 KiB.
    EnvValue,
    schema: {"type": "string", "maxLength": 16384},
    rule: |text| {
        if text.len() <= 16_384 && !text.contains('\0') { Ok(text.to_owned()) } else { Err("must have at most 16384 bytes, and no NUL".into()) }
    };

    /// A session token of a user's backend.
    SessionToken,
    schema: {"type": "string", "pattern": "^[!-~]{1,200}$"},
    rule: |text| {
        if (1..=200).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) { Ok(text.to_owned()) } else { Err("must be a session token".into()) }
    };

    /// A token for a host of repositories.
    AccessToken,
    schema: {"type": "string", "pattern": "^[!-~]{1,1000}$"},
    rule: |text| {
        if (1..=1000).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) { Ok(text.to_owned()) } else { Err("must be an access token".into()) }
    };

    /// The secret by which the service knows a runner.
    RunnerKey,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_-]{20,100}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if good && (20..=100).contains(&text.len()) { Ok(text.to_owned()) } else { Err("must be 20 to 100 random letters and digits".into()) }
    };

    /// The identity token of a CI job, a JSON Web Token.
    IdentityToken,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]*$", "maxLength": 16384},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) && text.split('.').count() == 3;
        if good && text.len() <= 16_384 { Ok(text.to_owned()) } else { Err("must be a JSON Web Token".into()) }
    };

    /// The bytes of a file in base64, at most 256 KiB.
    FileData,
    schema: {"type": "string", "contentEncoding": "base64", "maxLength": 349_528},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        if good && !text.is_empty() && text.len() <= 349_528 { Ok(text.to_owned()) } else { Err("must be a file of at most 256 KiB in base64".into()) }
    };

    /// A private key in PEM or of OpenSSH, at most 16 KiB.
    PrivateKeyPem,
    schema: {"type": "string", "pattern": "^-----BEGIN [A-Z ]*PRIVATE KEY-----", "maxLength": 16384},
    rule: |text| {
        let first = text.trim_start().lines().next().unwrap_or_default().trim_end();
        let good = first.starts_with("-----BEGIN ") && first.ends_with("PRIVATE KEY-----");
        if good && text.len() <= 16_384 { Ok(text.trim_start().to_owned()) } else { Err("must be a private key in PEM, which begins with -----BEGIN PRIVATE KEY-----".into()) }
    };
}
