//! What is in the file of an app: its hash, and what the app says of itself.

use crate::adapters::credential_files::distribution;
use actors::ports::binaries::{AppMetadata, Examined};
use contract::artifacts::{AppProfile, ArtifactKind, Signer};
use credentials::{InstallsOn, installs_on};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    thread,
};

/// The bytes between two moments at which other threads go first.
const HASHED_AT_ONCE: usize = 64 << 10;
/// Apple registers 100 devices of each of five families for a team in a year.
const MOST_DEVICES: usize = 500;
/// Characters at the end of the identifier of a device: a person recognizes their own by them, and nobody
/// else learns it.
const SHOWN_OF_A_DEVICE: usize = 6;

/// Hashes all bytes, then inspects the app.
pub(super) fn examine(path: &Path, kind: ArtifactKind) -> io::Result<Examined> {
    let (size, sha256) = hash(&mut File::open(path)?)?;
    let kind = match kind {
        ArtifactKind::Ipa => app_inspect::Kind::Ipa,
        ArtifactKind::Apk => app_inspect::Kind::Apk,
        ArtifactKind::Aab => app_inspect::Kind::Aab,
    };
    let content = match app_inspect::inspect(path, kind, &app_inspect::Limits::default()) {
        Ok(report) => Ok(AppMetadata {
            identifier: report.identifier,
            version: report.version,
            build_number: report.build_number,
            signer: report.signer.and_then(|signer| {
                Some(Signer { sha256: signer.sha256.parse().ok()?, subject: signer.subject })
            }),
            profile: report.profile.and_then(|profile| installs_on(&profile)).map(profile_of),
        }),
        Err(app_inspect::Failure::Refused(why)) => Err(why.to_string()),
        Err(app_inspect::Failure::Io(e)) => return Err(e),
    };
    Ok(Examined { size, sha256, content })
}

fn profile_of(found: InstallsOn) -> AppProfile {
    let ending = |udid: &String| {
        let skipped = udid.chars().count().saturating_sub(SHOWN_OF_A_DEVICE);
        udid.chars().skip(skipped).collect()
    };
    AppProfile {
        distribution: distribution(found.kind),
        expires_at: found.expires_at,
        device_endings: found.devices.iter().take(MOST_DEVICES).map(ending).collect(),
    }
}

/// The number of bytes from the current position to the end, and their hash. Lets other threads go first after each
/// piece: short requests would wait for a processor.
pub fn hash(file: &mut File) -> io::Result<(u64, contract::Sha256)> {
    let (mut hasher, mut size, mut piece) = (Sha256::new(), 0, vec![0; HASHED_AT_ONCE]);
    loop {
        let n = file.read(&mut piece)?;
        match piece.get(..n) {
            Some([]) | None => break,
            Some(bytes) => hasher.update(bytes),
        }
        size += n as u64;
        thread::yield_now();
    }
    let sha256 = HEXLOWER.encode(&hasher.finalize()).parse().map_err(io::Error::other)?;
    Ok((size, sha256))
}
