//! Archives that were made to harm are refused, each for its reason.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::zip::{Entry, archive, deflated, stored};
use app_inspect::{Failure, Kind, Limits, Refusal, Report, inspect};

const INFO_PLIST: &str = "Payload/A.app/Info.plist";
const INFO: &str = "<?xml version='1.0'?><plist version='1.0'><dict>\
    <key>CFBundleIdentifier</key><string>com.example.a</string>\
    <key>CFBundleShortVersionString</key><string>1.0</string></dict></plist>";

fn look(bytes: &[u8], kind: Kind) -> Result<Report, Refusal> {
    look_within(bytes, kind, &Limits::default())
}

fn look_within(bytes: &[u8], kind: Kind, limits: &Limits) -> Result<Report, Refusal> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    match inspect(file.path(), kind, limits) {
        Ok(report) => Ok(report),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(Failure::Io(error)) => panic!("{error}"),
    }
}

fn ipa(entries: &[Entry]) -> Result<Report, Refusal> {
    look(&archive(entries), Kind::Ipa)
}

fn info() -> Entry {
    deflated(INFO_PLIST, INFO.as_bytes())
}

fn quoted(name: &str) -> String {
    format!("{name:?}")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../data/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn a_sound_archive_is_read() {
    let report = ipa(&[info(), stored("Payload/A.app/a.txt", b"a")]).unwrap();
    assert_eq!((&*report.identifier, report.version.as_deref()), ("com.example.a", Some("1.0")));
    assert_eq!(report.signer, None);
    assert_eq!(look(&crate::zip::zip64_archive(&[info()]), Kind::Ipa), Ok(report));
}

#[test]
fn a_zip_without_an_app_is_refused() {
    let plain = archive(&[stored("readme.txt", b"hello")]);
    for kind in [Kind::Ipa, Kind::Apk, Kind::Aab] {
        assert_eq!(look(&plain, kind), Err(Refusal::NotAnApp { kind }));
    }
    assert_eq!(look(&archive(&[]), Kind::Apk), Err(Refusal::NotAnApp { kind: Kind::Apk }));
    assert_eq!(look(b"", Kind::Apk), Err(Refusal::NotAnArchive));
    let two = [info(), stored("Payload/B.app/Info.plist", INFO.as_bytes())];
    assert_eq!(ipa(&two), Err(Refusal::SeveralApps));
}

#[test]
fn names_that_leave_the_archive_are_refused() {
    for name in ["../a", "a/../b", "/etc/passwd", "a\\b", "a\0b", ""] {
        let refusal = Refusal::UnsafeName { name: quoted(name) };
        assert_eq!(ipa(&[info(), stored(name, b"")]), Err(refusal));
    }
}

#[test]
fn two_readings_of_one_archive_are_refused() {
    let twice = [info(), stored("a", b"1"), stored("a", b"2")];
    assert_eq!(ipa(&twice), Err(Refusal::DuplicateName { name: quoted("a") }));

    let mut inside = stored("b", b"");
    inside.offset = Some(10);
    assert!(matches!(ipa(&[info(), inside]), Err(Refusal::OverlappingEntries { .. })));

    let mut renamed = info();
    renamed.local_name = b"Payload/B.app/Info.plist".to_vec();
    assert_eq!(ipa(&[renamed]), Err(Refusal::DamagedEntry { name: quoted(INFO_PLIST) }));

    let mut encrypted = info();
    encrypted.flags = 1;
    assert_eq!(ipa(&[encrypted]), Err(Refusal::Encrypted { name: quoted(INFO_PLIST) }));

    let prefixed = [b"dex\n".as_slice(), &archive(&[info()])].concat();
    assert_eq!(look(&prefixed, Kind::Ipa), Err(Refusal::NotAnArchive));
    let suffixed = [&*archive(&[info()]), b"more"].concat();
    assert_eq!(look(&suffixed, Kind::Ipa), Err(Refusal::NotAnArchive));
}

/// The Android Gradle Plugin fills gaps between entries, also before the first one.
#[test]
fn padding_that_no_program_takes_for_a_file_is_accepted() {
    let entries = [info(), stored("Payload/A.app/a.txt", b"a"), stored("b", b"")];
    let plain = look(&archive(&entries), Kind::Ipa).unwrap();
    let (short, long) = (crate::zip::virtual_entry(&[]), crate::zip::virtual_entry(&[0; 102]));
    let huge = crate::zip::virtual_entry(&[0; 65_535]).repeat(3);
    let mixed = [&*entries[0].descriptor(), &long, &[0; 40], &short].concat();
    for gaps in [
        [&*long, b"", b"", b""],
        [&*short, &mixed, &huge, &long],
        [b"", b"\0", &entries[1].descriptor(), &entries[2].descriptor()],
    ] {
        assert_eq!(
            look(&crate::zip::archive_with_gaps(&entries, &gaps), Kind::Ipa),
            Ok(plain.clone())
        );
    }
}

/// A program that reads local headers one after the other would see another file, or other bytes.
#[test]
fn bytes_between_the_entries_that_could_be_a_file_are_refused() {
    let entries = [info(), stored("Payload/A.app/a.txt", b"a")];
    let hidden = stored("Payload/A.app/b.txt", b"b").unlisted();
    let mut named = crate::zip::virtual_entry(&[0; 102]);
    named[26] = 1;
    let mut sized = crate::zip::virtual_entry(&[0; 102]);
    sized[18] = 1;
    let filled = crate::zip::virtual_entry(&hidden);
    // The extra field would reach into the next entry.
    let mut long = crate::zip::virtual_entry(&[0; 10]);
    long[28] = 200;
    let foreign = stored("c", b"other").descriptor();
    for stray in [&*hidden, &named, &sized, &filled, &long, &foreign, b"dex\n035", b"PK"] {
        for at in 0..=entries.len() {
            let mut gaps = vec![b"".as_slice(); at];
            gaps.push(stray);
            let answer = look(&crate::zip::archive_with_gaps(&entries, &gaps), Kind::Ipa);
            let refused = matches!(answer, Err(Refusal::StrayBytes { .. }));
            assert!(refused, "{stray:?} at {at}: {answer:?}");
        }
    }
    let zeros = crate::zip::archive_with_gaps(&entries, &[&[0; 8]]);
    assert_eq!(look(&zeros, Kind::Ipa), Err(Refusal::StrayBytes { offset: 0 }));
}

#[test]
fn an_android_app_may_leave_its_version_out() {
    // Attributes of the manifest are found by number, so another number hides the attribute.
    let version_name = 0x0101_021c_u32.to_le_bytes();
    let mut contents = crate::zip::contents(&fixture("sample-unsigned.apk"));
    let (_, manifest) =
        contents.iter_mut().find(|(name, _)| name == "AndroidManifest.xml").unwrap();
    let at = manifest.windows(4).position(|bytes| bytes == version_name).unwrap();
    manifest[at] ^= 0x40;
    let entries: Vec<_> = contents.iter().map(|(name, bytes)| stored(name, bytes)).collect();
    let report = look(&archive(&entries), Kind::Apk).unwrap();
    assert_eq!((report.version, report.build_number.as_deref()), (None, Some("42")));
}

#[test]
fn zip_bombs_are_refused_before_they_inflate() {
    let limits = Limits::default();
    let zeros = vec![0; 2 * limits.max_manifest_bytes as usize];
    let bomb = deflated(INFO_PLIST, &zeros);
    let name = quoted(INFO_PLIST);
    let (size, limit) = (zeros.len() as u64, limits.max_manifest_bytes);
    let refusal = Refusal::EntryTooLarge { name: name.clone(), size, limit };
    assert_eq!(ipa(std::slice::from_ref(&bomb)), Err(refusal));

    let mut lying = bomb;
    lying.inflated = 100;
    assert_eq!(ipa(&[lying]), Err(Refusal::DamagedEntry { name: name.clone() }));

    let dense = deflated(INFO_PLIST, &zeros[..limits.max_manifest_bytes as usize]);
    let refusal = Refusal::RatioTooHigh { name, limit: limits.max_ratio };
    assert_eq!(ipa(&[dense]), Err(refusal));

    let asset = deflated("Payload/A.app/zeros.bin", &zeros);
    assert!(ipa(&[info(), asset]).is_ok(), "only what is read into memory must not be dense");

    let limits = Limits { total_free_of_ratio: 1 << 20, ..Limits::default() };
    let asset = deflated("Payload/A.app/zeros.bin", &zeros);
    let refusal = look_within(&archive(&[info(), asset]), Kind::Ipa, &limits).unwrap_err();
    assert!(matches!(refusal, Refusal::ArchiveTooDense { limit: 50, .. }), "{refusal}");

    let mut entries: Vec<_> = (0..5).map(|n| stored(&format!("{n}"), b"")).collect();
    entries.iter_mut().for_each(|entry| entry.inflated = u32::MAX - 1);
    assert!(matches!(ipa(&entries), Err(Refusal::ArchiveTooLarge { .. })));
}

#[test]
fn too_many_entries_are_refused() {
    let entries: Vec<_> = (0..65_001).map(|n| stored(&format!("{n}"), b"")).collect();
    let refusal = ipa(&entries).unwrap_err();
    assert_eq!(refusal, Refusal::TooManyEntries { count: 65_001, limit: 65_000 });
    assert_eq!(
        refusal.to_string(),
        "the archive contains 65001 entries, more than the limit of 65000; remove files from the app"
    );
    let limits = Limits { max_directory_bytes: 1000, ..Limits::default() };
    let few = archive(&entries[..100]);
    let refusal = look_within(&few, Kind::Ipa, &limits).unwrap_err();
    assert!(matches!(refusal, Refusal::DirectoryTooLarge { limit: 1000, .. }));
}

/// Each list holds the next one many times, as in "a billion laughs".
#[test]
fn a_property_list_without_end_is_refused_soon() {
    for (levels, width) in [(60_u8, 2), (14, 15)] {
        let mut list = b"bplist00".to_vec();
        let mut offsets = vec![list.len() as u8];
        list.extend([0xd1, 1, 2]); // a dictionary: key 1, value 2
        offsets.push(list.len() as u8);
        list.extend(b"\x51k");
        for level in 0..levels {
            offsets.push(list.len() as u8);
            let next = level + 3;
            list.push(0xa0 | width);
            list.extend(vec![next; width.into()]);
        }
        offsets.push(list.len() as u8);
        list.extend(b"\x51v");
        let (count, table) = (offsets.len() as u64, list.len() as u64);
        list.extend(offsets);
        list.extend([0, 0, 0, 0, 0, 0, 1, 1]);
        for field in [count, 0, table] {
            list.extend(field.to_be_bytes());
        }
        let started = Instant::now();
        let answer = ipa(&[stored(INFO_PLIST, &list)]);
        assert_eq!(answer, Err(Refusal::Unreadable { part: "Info.plist" }));
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn what_was_added_after_signing_is_noticed() {
    let extra = stored("assets/extra.txt", b"extra");
    for (name, kind) in [("sample.aab", Kind::Aab), ("sample-v1.apk", Kind::Apk)] {
        let answer = look(&crate::zip::append(&fixture(name), &extra), kind);
        assert_eq!(answer, Err(Refusal::ChangedAfterSigning { scheme: "JAR" }), "{name}");
    }
    // Behind the new entry, the signing block is not directly before the central directory.
    let answer = look(&crate::zip::append(&fixture("sample.apk"), &extra), Kind::Apk);
    assert!(matches!(answer, Err(Refusal::StrayBytes { .. })), "{answer:?}");
}

#[test]
fn a_signing_block_cannot_be_removed_or_doubled() {
    let apk = fixture("sample.apk");
    let removed = crate::zip::replace_signing_block(&apk, |_| Vec::new());
    let stripped = |scheme| Err(Refusal::StrippedSignature { scheme });
    assert_eq!(look(&removed, Kind::Apk), stripped("APK v2 or v3"));

    let doubled = crate::zip::replace_signing_block(&apk, |block| {
        let pairs = &block[8..block.len() - 24];
        let first_len = u64::from_le_bytes(pairs[..8].try_into().unwrap()) as usize + 8;
        let pairs = [&pairs[..first_len], pairs].concat();
        let size = (pairs.len() as u64 + 24).to_le_bytes();
        [&size, &*pairs, &size, b"APK Sig Block 42"].concat()
    });
    let answer = look(&doubled, Kind::Apk);
    assert!(matches!(answer, Err(Refusal::DuplicateSignature { .. })), "{answer:?}");

    let without_v3 = crate::zip::replace_signing_block(&apk, |block| {
        let id = 0xf053_68c0_u32.to_le_bytes();
        let at = block.windows(4).position(|bytes| bytes == id).unwrap();
        let mut block = block.to_vec();
        block[at] ^= 1;
        block
    });
    assert_eq!(look(&without_v3, Kind::Apk), stripped("APK v3"));
}
