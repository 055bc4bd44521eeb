//! Which values may be added to the APK Signing Block, which no signature covers.

use std::io::Write;

use app_inspect::{Failure, Kind, Limits, Refusal, Report, inspect};

const V3: u32 = 0xf053_68c0;
const V3_2: u32 = 0x70e1_c89f;
const SOURCE_STAMP: u32 = 0x6dff_800d;

/// The ids and values of a signing block.
type Pairs = Vec<(u32, Vec<u8>)>;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../data/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn look(bytes: &[u8]) -> Result<Report, Refusal> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    match inspect(file.path(), Kind::Apk, &Limits::default()) {
        Ok(report) => Ok(report),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(Failure::Io(error)) => panic!("{error}"),
    }
}

fn pairs(block: &[u8]) -> Pairs {
    let (mut rest, mut pairs) = (&block[8..block.len() - 24], Pairs::new());
    while !rest.is_empty() {
        let len = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        pairs.push((
            u32::from_le_bytes(rest[8..12].try_into().unwrap()),
            rest[12..8 + len].to_vec(),
        ));
        rest = &rest[8 + len..];
    }
    pairs
}

fn look_with(name: &str, edit: impl Fn(&mut Pairs)) -> Result<Report, Refusal> {
    look(&crate::zip::replace_signing_block(&fixture(name), |block| {
        let mut pairs = pairs(block);
        edit(&mut pairs);
        let mut body = Vec::new();
        for (id, value) in &pairs {
            body.extend_from_slice(&(value.len() as u64 + 4).to_le_bytes());
            body.extend_from_slice(&id.to_le_bytes());
            body.extend_from_slice(value);
        }
        let size = (body.len() as u64 + 24).to_le_bytes();
        [&size, &*body, &size, b"APK Sig Block 42"].concat()
    }))
}

/// The value with this id in the signing block of a fixture.
fn value(name: &str, id: u32) -> Vec<u8> {
    let found = std::cell::RefCell::new(Vec::new());
    let _ = look_with(name, |pairs| {
        found.replace(pairs.iter().find(|(known, _)| *known == id).unwrap().1.clone());
    });
    found.into_inner()
}

/// The parts of a list of length-prefixed parts.
fn split(list: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut parts) = (&list[4..], Vec::new());
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize + 4;
        parts.push(&rest[..len]);
        rest = &rest[len..];
    }
    parts
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&(body.len() as u32).to_le_bytes(), &*body].concat()
}

#[test]
fn metadata_of_any_store_is_let_through() {
    let plain = look(&fixture("sample.apk"));
    assert!(plain.is_ok());
    let stamp = value("sample.apk", V3);
    for (id, content) in [
        (0x7177_7777, b"{\"channel\":\"example\"}".to_vec()),
        (0x0bad_cafe, b"a note of a store that nobody knows".to_vec()),
        (0x0bad_cafe, vec![0; 4096]),
        // A source stamp is a signature, but does not say who signed the app.
        (SOURCE_STAMP, stamp),
    ] {
        let answer = look_with("sample.apk", |pairs| pairs.push((id, content.clone())));
        assert_eq!(answer, plain, "{id:x}");
    }
}

/// Phones of today ignore it; newer ones may take its key for the signer.
#[test]
fn a_signature_of_an_unknown_scheme_is_refused() {
    for id in [V3, 0x7109_871a] {
        let signers = value("sample.apk", id);
        let answer = look_with("sample.apk", |pairs| pairs.push((0x0bad_cafe, signers.clone())));
        assert_eq!(answer, Err(Refusal::UnknownScheme), "{id:x}");
    }
}

#[test]
fn a_hybrid_signature_counts_before_the_older_ones() {
    let report = look(&fixture("sample-hybrid.apk")).unwrap();
    let signer = report.signer.unwrap();
    assert_eq!(signer.sha256, "31bbb779961490e8b9e8178839604933089aed13116ebe7eb29839f781bacbb5");
    assert_eq!(signer.subject, "CN=Throwaway ML-DSA");
}

/// A stranger can neither change the reported signer of a genuine app nor remove its newest
/// signature.
#[test]
fn a_hybrid_signature_cannot_be_grafted_or_removed() {
    let hybrid = value("sample-hybrid.apk", V3_2);
    for name in ["sample.apk", "sample-1.5.0.apk"] {
        let answer = look_with(name, |pairs| pairs.push((V3_2, hybrid.clone())));
        assert_eq!(answer, Err(Refusal::ChangedAfterSigning { scheme: "APK v3.2" }), "{name}");
    }
    let removed = look_with("sample-hybrid.apk", |pairs| pairs.retain(|(id, _)| *id != V3_2));
    assert_eq!(removed, Err(Refusal::StrippedSignature { scheme: "APK v3.2" }));
}

#[test]
fn a_hybrid_signature_has_exactly_one_signer_of_each_kind() {
    let hybrid = value("sample-hybrid.apk", V3_2);
    let signers = split(&hybrid);
    let (classical, ml_dsa) = (signers[0], signers[1]);
    for parts in [
        vec![],
        vec![classical],
        vec![ml_dsa],
        vec![classical, classical],
        vec![ml_dsa, ml_dsa],
        vec![classical, ml_dsa, classical],
    ] {
        let answer = look_with("sample-hybrid.apk", |pairs| {
            pairs.iter_mut().find(|(id, _)| *id == V3_2).unwrap().1 = join(&parts);
        });
        let refused = matches!(answer, Err(Refusal::InvalidSignature { scheme: "APK v3.2", .. }));
        assert!(refused, "{} signers: {answer:?}", parts.len());
    }
    // As on a phone, a signature with only an ML-DSA key does not count.
    let answer = look_with("sample-hybrid.apk", |pairs| {
        pairs.retain(|(id, _)| *id != V3_2);
        pairs.iter_mut().find(|(id, _)| *id == V3).unwrap().1 = join(&[ml_dsa]);
    });
    assert_eq!(answer, Err(Refusal::UnsupportedSignature { scheme: "APK v3" }));
}
