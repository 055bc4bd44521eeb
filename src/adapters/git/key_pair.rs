//! New key pairs, in the formats of OpenSSH.

use actors::ports::{PortError, sources::KeyPair};
use aws_lc_rs::{
    encoding::AsBigEndian,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use data_encoding::BASE64;

const KIND: &str = "ssh-ed25519";
/// Lines of a private key have this length, like those of `ssh-keygen`.
const LINE: usize = 70;
/// The private part is padded to a multiple of this, without a cipher (PROTOCOL.key).
const BLOCK: usize = 8;

/// Makes an Ed25519 key pair whose public half ends with this comment.
pub(super) fn generate(comment: &str) -> Result<KeyPair, PortError> {
    let impossible = || PortError("no key pair could be made".into());
    let pair = Ed25519KeyPair::generate().map_err(|_| impossible())?;
    let seed = pair.seed().and_then(|seed| seed.as_be_bytes()).map_err(|_| impossible())?;
    written(seed.as_ref(), pair.public_key().as_ref(), comment).map_err(PortError)
}

/// Writes a key pair: the public half as RFC 8709 says, and both as OpenSSH's PROTOCOL.key says,
/// without a pass phrase.
fn written(seed: &[u8], public: &[u8], comment: &str) -> Result<KeyPair, String> {
    let blob = [string(KIND.as_bytes()), string(public)].concat();
    // Two equal numbers tell whether a pass phrase was the right one. Without one, they are constant.
    let check = [0; 8];
    let both = string(&[seed, public].concat());
    let mut private = [&check[..], &blob, &both, &string(comment.as_bytes())].concat();
    let padding = private.len().next_multiple_of(BLOCK) - private.len();
    private.extend((1..).take(padding));
    let file = [
        b"openssh-key-v1\0".to_vec(),
        string(b"none"),
        string(b"none"),
        string(b""),
        1_u32.to_be_bytes().to_vec(),
        string(&blob),
        string(&private),
    ];
    let text = BASE64.encode(&file.concat());
    let lines: Vec<_> = text.as_bytes().chunks(LINE).map(String::from_utf8_lossy).collect();
    let lines = lines.join("\n");
    let private = format!(
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n"
    );
    Ok(KeyPair {
        private: private.parse()?,
        public: format!("{KIND} {} {comment}", BASE64.encode(&blob)).parse()?,
    })
}

/// A `string` of RFC 4251: its length and its bytes.
fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Write, os::unix::fs::OpenOptionsExt, process::Command};

    #[test]
    fn ssh_keygen_reads_a_key_pair() {
        let pair = generate("svc app_1").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
        file.write_all(pair.private.as_str().as_bytes()).unwrap();
        // Prints the public half of a private key.
        let Ok(read) = Command::new("ssh-keygen").arg("-yf").arg(&path).output() else { return };
        let read = String::from_utf8(read.stdout).unwrap();
        assert_eq!(read.trim_end(), pair.public.as_str());
        assert_eq!(format!("{:?}", pair.private), contract::text::MASK);
        assert_ne!(generate("svc app_1").unwrap().public, pair.public);
    }
}
