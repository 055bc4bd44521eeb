//! Every file of a signed iOS app is checked against its signature.

use std::io::Write;

use app_inspect::{Failure, Kind, Limits, Refusal, Report, inspect};

const NAME: &str = "sample-nested.ipa";
const APP: &str = "Payload/SvcSample.app/";

type Contents = Vec<(String, Vec<u8>)>;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../data/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn look(contents: &Contents) -> Result<Report, Refusal> {
    let entries: Vec<_> =
        contents.iter().map(|(name, bytes)| crate::zip::deflated(name, bytes)).collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&crate::zip::archive(&entries)).unwrap();
    match inspect(file.path(), Kind::Ipa, &Limits::default()) {
        Ok(report) => Ok(report),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(Failure::Io(error)) => panic!("{error}"),
    }
}

fn look_with(edit: impl FnOnce(&mut Contents)) -> Result<Report, Refusal> {
    let mut contents = crate::zip::contents(&fixture(NAME));
    edit(&mut contents);
    look(&contents)
}

fn unsigned(path: &str) -> Result<Report, Refusal> {
    Err(Refusal::UnsignedFile { name: format!("{:?}", format!("{APP}{path}")) })
}

#[test]
fn a_signed_app_with_nested_code_is_reported_with_its_signer() {
    let report = look_with(|_| {}).unwrap();
    let signer = report.signer.unwrap();
    assert_eq!(signer.sha256, "a31686185b6474e48da7bdf4cdc8e56564bfbe55e387f086b9f558ea3ada1f81");
    assert_eq!(report.version.as_deref(), Some("1.4.2"));
}

/// Changes each file of the app, of its framework and of its plug-in's framework.
#[test]
fn no_file_of_an_app_can_change() {
    let original = crate::zip::contents(&fixture(NAME));
    assert!(original.len() > 15);
    for (at, (name, content)) in original.iter().enumerate() {
        // Apple's rules leave this file out, and no code reads it.
        if name.ends_with("/PkgInfo") {
            continue;
        }
        let mut contents = original.clone();
        // The middle, because the padding behind a signature is at the end.
        contents[at].1[content.len() / 2] ^= 1;
        assert!(look(&contents).is_err(), "{name} changed");

        let mut contents = original.clone();
        contents[at].1.push(b' ');
        assert!(look(&contents).is_err(), "{name} grew");
    }
}

#[test]
fn a_changed_bundle_of_scripts_is_refused_by_its_name() {
    let answer = look_with(|contents| {
        let (_, script) =
            contents.iter_mut().find(|(name, _)| name.ends_with("main.jsbundle")).unwrap();
        script.extend_from_slice(b"steal()");
    });
    assert_eq!(answer, unsigned("main.jsbundle"));
    assert_eq!(
        answer.unwrap_err().to_string(),
        "the iOS code signature does not cover the file \"Payload/SvcSample.app/main.jsbundle\" \
         as it is: it was changed, added or removed after signing; sign the app again"
    );
}

#[test]
fn no_file_can_be_added() {
    for path in [
        "extra.js",
        "_CodeSignature/extra",
        "Frameworks/Flat.framework/extra.js",
        "PlugIns/Outer.appex/extra.js",
        "PlugIns/Outer.appex/Frameworks/Kit.framework/extra.js",
        "PlugIns/New.appex/Info.plist",
        // The name of a signed folder is only a prefix of these.
        "PlugIns/Outer.appex2/extra.js",
        "Frameworks/library.dylib/extra.js",
    ] {
        let answer = look_with(|contents| contents.push((format!("{APP}{path}"), b"x".to_vec())));
        assert_eq!(answer, unsigned(path));
    }
    // No code reads these files.
    for path in [".DS_Store", "en.lproj/.DS_Store", "en.lproj/locversion.plist"] {
        let answer = look_with(|contents| contents.push((format!("{APP}{path}"), b"x".to_vec())));
        assert!(answer.is_ok(), "{path}: {answer:?}");
    }
    // Files beside the app are not installed.
    let beside = ("Symbols/x.symbols".to_owned(), b"x".to_vec());
    assert!(look_with(|contents| contents.push(beside)).is_ok());
}

#[test]
fn no_file_can_be_removed_unless_it_is_optional() {
    let without = |path: &str| {
        look_with(|contents| contents.retain(|(name, _)| *name != format!("{APP}{path}")))
    };
    for path in [
        "main.jsbundle",
        "newest",
        "Frameworks/library.dylib",
        "Frameworks/Flat.framework/asset.txt",
    ] {
        assert_eq!(without(path), unsigned(path));
    }
    assert!(without("en.lproj/Main.strings").is_ok());
    for path in ["PlugIns/Outer.appex/Outer", "PlugIns/Outer.appex/Info.plist"] {
        assert_eq!(without(path), unsigned("PlugIns/Outer.appex"));
    }
    let stripped = Err(Refusal::StrippedSignature { scheme: "iOS code" });
    assert_eq!(without("_CodeSignature/CodeResources"), stripped);
    assert_eq!(without("PlugIns/Outer.appex/_CodeSignature/CodeResources"), stripped);
    let removed = look_with(|contents| {
        contents.retain(|(name, _)| !name.starts_with(&format!("{APP}PlugIns/")));
    });
    assert_eq!(removed, unsigned("PlugIns/Outer.appex"));
}

/// Another version of signed code is refused, also when it is signed.
#[test]
fn nested_code_cannot_be_exchanged() {
    let contents = crate::zip::contents(&fixture(NAME));
    let find = |path: &str| {
        contents.iter().find(|(name, _)| *name == format!("{APP}{path}")).unwrap().1.clone()
    };
    let flat = find("Frameworks/Flat.framework/Flat");
    for path in ["Frameworks/library.dylib", "PlugIns/Outer.appex/Outer"] {
        let answer = look_with(|contents| {
            let place = contents.iter_mut().find(|(name, _)| *name == format!("{APP}{path}"));
            place.unwrap().1.clone_from(&flat);
        });
        assert!(matches!(answer, Err(Refusal::UnsignedFile { .. })), "{path}: {answer:?}");
    }
}
