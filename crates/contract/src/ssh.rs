//! The keys of ssh, in the formats of OpenSSH.

use data_encoding::{BASE64, BASE64_NOPAD};
use sha2::{Digest, Sha256};

secrets! {
    /// A private key in a file of OpenSSH.
    SshPrivateKey,
    schema: {"type": "string", "pattern": "^-----BEGIN OPENSSH PRIVATE KEY-----\n", "maxLength": 4096},
    rule: |text| {
        let body = text.strip_prefix("-----BEGIN OPENSSH PRIVATE KEY-----\n").and_then(|rest| rest.strip_suffix("-----END OPENSSH PRIVATE KEY-----\n"));
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"+/=\n".contains(&b);
        let good = body.is_some_and(|body| body.bytes().all(plain)) && text.len() <= 4_096;
        if good { Ok(text.to_owned()) } else { Err("must be a private key of OpenSSH".into()) }
    };
}

texts! {
    /// A public key on one line: its type, the key in base64, and a comment.
    SshPublicKey,
    schema: {"type": "string", "pattern": "^[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( [ -~]*)?$", "maxLength": 4096},
    rule: |text| {
        let mut words = text.splitn(3, ' ');
        let is_key = is_key(words.next(), words.next());
        let comment = words.next().unwrap_or_default();
        let good = is_key && comment.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) && text.len() <= 4_096;
        if good { Ok(text.to_owned()) } else { Err("must be a public key such as ssh-ed25519 AAAA…".into()) }
    };

    /// The public key of a host on one line: its type, and the key in base64.
    SshHostKey,
    schema: {"type": "string", "pattern": "^[a-z0-9@.-]+ [A-Za-z0-9+/]+=*$", "maxLength": 4096},
    rule: |text| {
        let mut words = text.splitn(2, ' ');
        let good = is_key(words.next(), words.next()) && text.len() <= 4_096;
        if good { Ok(text.to_owned()) } else { Err("must be a key such as ssh-ed25519 AAAA…".into()) }
    };

    /// The fingerprint of a public key: `SHA256:`, and the digest in base64 without padding.
    SshFingerprint,
    schema: {"type": "string", "pattern": "^SHA256:[A-Za-z0-9+/]{43}$"},
    rule: |text| {
        let digest = text.strip_prefix("SHA256:").unwrap_or_default();
        let bytes = BASE64_NOPAD.decode(digest.as_bytes()).unwrap_or_default();
        if bytes.len() == 32 { Ok(text.to_owned()) } else { Err("must be a fingerprint such as SHA256:… (43 letters, digits, + and /)".into()) }
    };
}

/// Whether two words are the type of a key and a key.
fn is_key(kind: Option<&str>, key: Option<&str>) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"@.-".contains(&b);
    let kind = kind.unwrap_or_default();
    let key = BASE64.decode(key.unwrap_or_default().as_bytes()).unwrap_or_default();
    !kind.is_empty() && !kind.starts_with('-') && kind.bytes().all(plain) && !key.is_empty()
}

impl SshHostKey {
    /// The fingerprint as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> SshFingerprint {
        let key = self.as_str().split(' ').nth(1).unwrap_or_default();
        let key = BASE64.decode(key.as_bytes()).unwrap_or_default();
        SshFingerprint(format!("SHA256:{}", BASE64_NOPAD.encode(&Sha256::digest(key))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_key_has_the_fingerprint_that_its_owner_publishes() {
        // https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/githubs-ssh-key-fingerprints
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
        let published = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU";
        let key: SshHostKey = key.parse().unwrap();
        assert_eq!(key.fingerprint().as_str(), published);
        assert_eq!(published.parse::<SshFingerprint>().unwrap(), key.fingerprint());
    }

    #[test]
    fn a_key_is_one_line() {
        let key = "ssh-ed25519 AAAA";
        assert!(key.parse::<SshHostKey>().is_ok());
        assert!(format!("{key} svc app_1").parse::<SshPublicKey>().is_ok());
        for wrong in
            ["", "ssh-ed25519", "-o AAAA", "ssh-ed25519 AA\nAA", "a AAAA\nb AAAA", "* AAAA"]
        {
            assert!(wrong.parse::<SshHostKey>().is_err(), "{wrong:?}");
            assert!(wrong.parse::<SshPublicKey>().is_err(), "{wrong:?}");
        }
        assert!(format!("{key} a\nb").parse::<SshPublicKey>().is_err());
        for wrong in ["", "SHA256:", "MD5:00", "SHA256:AAAA"] {
            assert!(wrong.parse::<SshFingerprint>().is_err(), "{wrong:?}");
        }
    }
}
