//! Random damage never causes a panic, and a damaged file never passes as signed.

use std::io::Write;

use app_inspect::{Failure, Kind, Limits, Refusal, Report, inspect};

const SIGNED: [&str; 5] =
    ["sample.apk", "sample-v1.apk", "sample.aab", "sample.ipa", "sample-nested.ipa"];
/// All its signatures are in the signing block, so repacking removes them.
const HYBRID: &str = "sample-hybrid.apk";
const UNSIGNED: [&str; 3] = ["sample-unsigned.apk", "sample-unsigned.ipa", "sample-simulator.ipa"];
/// Damaged variants of each fixture. A larger number found no more bugs.
const ROUNDS: usize = 2_000;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../data/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Inspects bytes through one file that is rewritten each time.
struct Bench {
    file: tempfile::NamedTempFile,
    kind: Kind,
}

impl Bench {
    fn new(name: &str) -> Self {
        Self {
            file: tempfile::NamedTempFile::new().unwrap(),
            kind: Kind::of_file_name(name).unwrap(),
        }
    }

    fn look(&mut self, bytes: &[u8]) -> Result<Report, Refusal> {
        self.file.as_file().set_len(0).unwrap();
        std::io::Seek::rewind(self.file.as_file_mut()).unwrap();
        self.file.write_all(bytes).unwrap();
        match inspect(self.file.path(), self.kind, &Limits::default()) {
            Ok(report) => Ok(report),
            // The answer of `inspect` when it catches a panic of a parser.
            Err(Failure::Refused(Refusal::Unreadable { part: "file" })) => {
                panic!("a parser panicked")
            }
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(Failure::Io(error)) => panic!("blamed on the disk: {error}"),
        }
    }
}

/// The generator "xorshift64", which gives the same bytes on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn damaged_files_are_answered_without_panic() {
    let mut random = Random(0x5eed);
    for name in SIGNED.into_iter().chain(UNSIGNED).chain([HYBRID]) {
        let original = fixture(name);
        let mut bench = Bench::new(name);
        for _ in 0..ROUNDS {
            let mut bytes = original.clone();
            for _ in 0..=random.below(8) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            if random.below(4) == 0 {
                bytes.truncate(random.below(bytes.len()));
            }
            let _ = bench.look(&bytes);
        }
    }
}

/// Damages the content of an entry and repacks the archive, as an attacker would, so that the
/// damage passes the checksums and reaches the parsers.
#[test]
fn damaged_contents_are_answered_without_panic_and_never_pass_as_signed() {
    let mut random = Random(0xc0de);
    for name in SIGNED.into_iter().chain(UNSIGNED) {
        let contents = crate::zip::contents(&fixture(name));
        let pack = |contents: &[(String, Vec<u8>)]| {
            let entries = contents.iter().map(|(name, content)| crate::zip::stored(name, content));
            crate::zip::archive(&entries.collect::<Vec<_>>())
        };
        let mut bench = Bench::new(name);
        let original = bench.look(&fixture(name));
        let signer = original.as_ref().ok().and_then(|report| report.signer.clone());
        for _ in 0..ROUNDS {
            let mut contents = contents.clone();
            let at = random.below(contents.len());
            let content = &mut contents[at].1;
            if content.is_empty() {
                continue;
            }
            for _ in 0..=random.below(4) {
                let at = random.below(content.len());
                content[at] = if random.below(3) == 0 { 0xff } else { random.below(256) as u8 };
            }
            if random.below(8) == 0 {
                content.truncate(random.below(content.len()));
            }
            if let Ok(mut report) = bench.look(&pack(&contents))
                && SIGNED.contains(&name)
            {
                // A JAR or CMS signature does not cover its certificate; only the key has to match.
                // A changed certificate has another fingerprint and is another signer.
                let signer = report.signer.replace(signer.clone().unwrap());
                assert!(signer.is_some(), "{name}");
                assert_eq!(Ok(report), original, "{name}");
            }
        }
    }
}

/// A changed byte in a signed file is refused, or the signature need not cover it. Then the report
/// and the signer stay the same.
#[test]
fn a_signed_file_with_one_changed_byte_is_refused_or_reported_the_same() {
    for name in SIGNED.into_iter().chain([HYBRID]) {
        let original = fixture(name);
        let mut bench = Bench::new(name);
        let report = bench.look(&original).unwrap();
        assert!(report.signer.is_some());
        let mut random = Random(0xb17);
        // Nested code takes long to verify, and tests/resources.rs changes each of its files.
        let step = if name == "sample-nested.ipa" { 8 } else { 1 };
        for at in (0..original.len()).step_by(step) {
            let mut bytes = original.clone();
            bytes[at] ^= 1 << random.below(8);
            if let Ok(changed) = bench.look(&bytes) {
                assert_eq!(changed, report, "{name}: byte {at}");
            }
        }
    }
}

/// The v2 and v3 signatures cover every byte of an apk except their signing block.
#[test]
fn no_byte_outside_of_the_signing_block_of_an_apk_can_change() {
    let original = fixture("sample.apk");
    let end = original.len();
    let directory = u32::from_le_bytes(original[end - 6..end - 2].try_into().unwrap()) as usize;
    let size = u64::from_le_bytes(original[directory - 24..directory - 16].try_into().unwrap());
    let block = directory - size as usize - 8..directory;

    let mut bench = Bench::new("sample.apk");
    for at in (0..end).filter(|at| !block.contains(at)) {
        let mut bytes = original.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(bench.look(&bytes).is_err(), "byte {at}");
    }
}

/// An accepted archive has the same files for a program that reads one local header after the other
/// as for a program that reads the directory.
#[test]
fn bytes_between_entries_never_make_two_readings() {
    let info = "<plist version='1.0'><dict><key>CFBundleIdentifier</key><string>a</string>\
        <key>CFBundleShortVersionString</key><string>1</string></dict></plist>";
    let entries = [
        crate::zip::stored("Payload/A.app/Info.plist", info.as_bytes()),
        crate::zip::deflated("Payload/A.app/a", &[7; 100]),
        crate::zip::stored("Payload/A.app/empty", b""),
    ];
    let names: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
    let pieces = [
        vec![0; 5],
        crate::zip::virtual_entry(&[]),
        crate::zip::virtual_entry(&[0; 40]),
        entries[0].descriptor(),
        entries[2].descriptor(),
        crate::zip::stored("Payload/A.app/hidden", b"x").unlisted(),
        b"PK".to_vec(),
    ];
    let mut random = Random(0x9a9);
    let mut bench = Bench::new("sample.ipa");
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let mut gaps = vec![Vec::new(); 4];
        for _ in 0..=random.below(3) {
            let mut piece = pieces[random.below(pieces.len())].clone();
            if random.below(3) == 0 {
                let at = random.below(piece.len());
                piece[at] = random.below(256) as u8;
            }
            gaps[random.below(4)].extend(piece);
        }
        let gaps: Vec<_> = gaps.iter().map(Vec::as_slice).collect();
        let bytes = crate::zip::archive_with_gaps(&entries, &gaps);
        if bench.look(&bytes).is_ok() {
            accepted += 1;
            let in_sequence = crate::zip::names_in_sequence(&bytes);
            assert!(names.starts_with(&in_sequence), "{gaps:?}");
        } else {
            refused += 1;
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} accepted, {refused} refused");
}
