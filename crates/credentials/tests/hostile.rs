//! Hostile files are answered, without a panic and without much work.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use credentials::{File, MAX_FILE, Refusal, UploadedFiles, open};
use proptest::prelude::*;
use serde_json::json;
use test_support::credential_files::ios::{APP_STORE, PASSWORD, folder};
use test_support::credential_files::{P256, der, now};

/// A good file, and how it is uploaded.
struct Sample {
    bytes: Vec<u8>,
    /// The part for which the bytes stand.
    file: File,
}

struct Samples {
    all: Vec<Sample>,
    p12: Vec<u8>,
    profile: Vec<u8>,
    now: contract::Timestamp,
}

/// Files with one round of hashing, so that a test can try thousands of variants.
static SAMPLES: LazyLock<Samples> = LazyLock::new(|| {
    let folder = folder();
    folder.self_signed("app", P256, "/CN=Example");
    folder.sh(&format!(
        "export='openssl pkcs12 -export -iter 1 -nomaciter -passout'
         $export pass:p -inkey app.key -in app.pem -out modern.p12
         $export pass:p -legacy -inkey app.key -in app.pem -out legacy.p12
         $export pass:p -nomac -inkey app.key -in app.pem -out nomac.p12
         $export 'pass:{PASSWORD}' -inkey distribution.key -in distribution.pem -out ios.p12
         $export pass:p -nomac -certpbe NONE -inkey app.key -in app.pem -out plain.p12
         openssl pkcs8 -topk8 -nocrypt -in distribution.key -out rsa.pem
         openssl pkcs8 -topk8 -nocrypt -in app.key -out key.p8"
    ));
    let json = json!({
        "type": "service_account", "project_id": "p", "private_key_id": "1",
        "private_key": String::from_utf8(folder.read("rsa.pem")).unwrap(),
        "client_email": "a@b.iam.gserviceaccount.com",
    });
    let (p12, profile) = (folder.read("ios.p12"), APP_STORE.sign(&folder));
    let keystores = ["modern.p12", "legacy.p12", "nomac.p12", "plain.p12"];
    let mut all: Vec<Sample> = keystores
        .iter()
        .flat_map(|name| [folder.read(name), der::to_ber(&folder.read(name))])
        .map(|bytes| Sample { bytes, file: File::Keystore })
        .collect();
    all.extend([
        Sample { bytes: p12.clone(), file: File::P12 },
        Sample { bytes: profile.clone(), file: File::Profile },
        Sample { bytes: folder.read("key.p8"), file: File::P8 },
        Sample { bytes: json.to_string().into_bytes(), file: File::ServiceAccount },
    ]);
    Samples { all, p12, profile, now: now() }
});

impl Samples {
    fn upload<'a>(&'a self, file: File, bytes: &'a [u8]) -> UploadedFiles<'a> {
        match file {
            File::P12 => {
                UploadedFiles::IosSigning { p12: bytes, password: PASSWORD, profile: &self.profile }
            }
            File::Profile => {
                UploadedFiles::IosSigning { p12: &self.p12, password: PASSWORD, profile: bytes }
            }
            File::Keystore => test_support::credential_files::keystore(bytes, "p"),
            File::P8 => UploadedFiles::AppStoreConnectKey {
                p8: bytes,
                file_name: Some("AuthKey_2X9R4HXF34.p8"),
                key_id: None,
                issuer_id: None,
            },
            File::ServiceAccount => UploadedFiles::GoogleServiceAccount { json: bytes },
        }
    }

    /// Whether the file is accepted. Panics if a parser panicked, or took long.
    fn accepts(&self, file: File, bytes: &[u8]) -> bool {
        let start = Instant::now();
        let result = open(self.upload(file, bytes), self.now);
        assert!(start.elapsed() < Duration::from_secs(20), "{file:?} took {:?}", start.elapsed());
        if let Err(refusal) = &result {
            assert!(!matches!(refusal, Refusal::Unreadable { .. }), "a parser panicked");
            assert!(refusal.to_string().len() < 2_000, "{refusal}");
        }
        result.is_ok()
    }
}

#[test]
fn the_samples_are_good() {
    for sample in &SAMPLES.all {
        let result = open(SAMPLES.upload(sample.file, &sample.bytes), SAMPLES.now);
        assert!(result.is_ok(), "{:?}: {result:?}", sample.file);
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    for sample in &SAMPLES.all {
        // The line break at the end of a text is not needed, nor are ends of contents.
        for length in (0..sample.bytes.trim_ascii_end().len() - 1).step_by(7) {
            let cut = &sample.bytes[..length];
            assert!(!SAMPLES.accepts(sample.file, cut), "{:?} {length}", sample.file);
        }
    }
}

#[test]
fn files_of_the_largest_size_are_answered_soon() {
    let openings: [&[u8]; 8] =
        [b"0", b"\x30\x80", b"\x24\x80", b"[", b"{\"a\":", b"<array>", b"-----BEGIN ", b"A"];
    let every = [File::P12, File::Profile, File::Keystore, File::P8, File::ServiceAccount];
    for file in every {
        for opening in openings {
            let bytes = opening.repeat(MAX_FILE / opening.len());
            let start = Instant::now();
            assert!(!SAMPLES.accepts(file, &bytes));
            assert!(start.elapsed() < Duration::from_secs(2), "{file:?} {:?}", opening);
        }
        assert!(!SAMPLES.accepts(file, &vec![b' '; MAX_FILE + 1]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for file in [File::P12, File::Profile, File::Keystore, File::P8, File::ServiceAccount] {
            prop_assert!(!SAMPLES.accepts(file, &bytes));
        }
    }

    #[test]
    fn damaged_files_are_answered(
        sample in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let sample = sample.get(&SAMPLES.all);
        let mut bytes = sample.bytes.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        SAMPLES.accepts(sample.file, &bytes);
    }

    #[test]
    fn files_with_a_flipped_bit_are_answered(
        sample in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let sample = sample.get(&SAMPLES.all);
        let mut bytes = sample.bytes.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        SAMPLES.accepts(sample.file, &bytes);
    }
}
