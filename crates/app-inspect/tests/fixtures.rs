//! Every fixture gives exactly the expected answer.

use std::path::{Path, PathBuf};

use app_inspect::{Failure, Kind, Limits, Refusal, Report, Signer, inspect};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/fixtures").join(name)
}

fn look(name: &str) -> Result<Report, Refusal> {
    let kind = Kind::of_file_name(name).unwrap();
    look_as(name, kind)
}

fn look_as(name: &str, kind: Kind) -> Result<Report, Refusal> {
    match inspect(&fixture(name), kind, &Limits::default()) {
        Ok(report) => Ok(report),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(Failure::Io(error)) => panic!("{name}: {error}"),
    }
}

fn sample(version: &str, build: &str, minimum_os: &str, signer: Option<Signer>) -> Report {
    Report {
        identifier: "com.example.svcsample".into(),
        version: Some(version.into()),
        build_number: Some(build.into()),
        display_name: Some("Svc Sample".into()),
        minimum_os: Some(minimum_os.into()),
        signer,
        profile: None,
    }
}

/// The report on an iOS app without its profile, which is there.
fn look_at_app(name: &str) -> Result<Report, Refusal> {
    let mut report = look(name)?;
    assert!(report.profile.take().is_some_and(|profile| profile.len() > 1000), "{name}");
    Ok(report)
}

fn signer(sha256: &str, subject: &str) -> Option<Signer> {
    Some(Signer { sha256: sha256.into(), subject: subject.into() })
}

fn android() -> Option<Signer> {
    let sha256 = "422bf8e407a15a30ab43263f674b668ad4196adc463e1721cb91d51bff710e9e";
    signer(sha256, "C=DE, O=Example, CN=Throwaway")
}

fn apple() -> Option<Signer> {
    let sha256 = "dd95d355ad7b6eaf41a35f85f9d36256684bacc25d78e56ed49d308637c8c496";
    let subject = "uid=ABCDE12345, CN=Apple Distribution: Example (ABCDE12345), OU=ABCDE12345, O=Example, C=US";
    signer(sha256, subject)
}

#[test]
fn sound_fixtures_report_who_they_are() {
    for name in ["sample.apk", "sample-v1.apk", "sample.aab"] {
        assert_eq!(look(name), Ok(sample("1.4.2", "42", "24", android())), "{name}");
    }
    for name in ["sample-1.5.0.apk", "sample-1.5.0.aab"] {
        assert_eq!(look(name), Ok(sample("1.5.0", "43", "24", android())), "{name}");
    }
    assert_eq!(look("sample-unsigned.apk"), Ok(sample("1.4.2", "42", "24", None)));
    assert_eq!(look_at_app("sample.ipa"), Ok(sample("1.4.2", "42", "14.0", apple())));
    assert_eq!(look_at_app("sample-1.5.0.ipa"), Ok(sample("1.5.0", "43", "14.0", apple())));
    assert_eq!(look_at_app("sample-unsigned.ipa"), Ok(sample("1.4.2", "42", "14.0", None)));
}

#[test]
fn damaged_fixtures_are_refused_with_the_reason() {
    assert_eq!(look("sample-truncated.apk"), Err(Refusal::NotAnArchive));
    assert_eq!(look("sample-tampered.apk"), Err(Refusal::ChangedAfterSigning { scheme: "APK v3" }));
    assert_eq!(look("sample-simulator.ipa"), Err(Refusal::SimulatorBuild));
    assert_eq!(look_as("README.md", Kind::Apk), Err(Refusal::NotAnArchive));
}

#[test]
fn renamed_fixtures_are_told_what_they_are() {
    let refusal = look("sample-aab-renamed.apk").unwrap_err();
    assert_eq!(refusal, Refusal::Renamed { declared: Kind::Apk, actual: Kind::Aab });
    assert_eq!(
        refusal.to_string(),
        "this is an Android App Bundle (.aab), but it was uploaded as .apk; upload it as .aab"
    );
    for (name, kind, actual) in [
        ("sample.apk", Kind::Ipa, Kind::Apk),
        ("sample.apk", Kind::Aab, Kind::Apk),
        ("sample.ipa", Kind::Apk, Kind::Ipa),
        ("sample.aab", Kind::Ipa, Kind::Aab),
    ] {
        assert_eq!(look_as(name, kind), Err(Refusal::Renamed { declared: kind, actual }));
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_not_the_senders_fault() {
    let answer = inspect(&fixture("absent.apk"), Kind::Apk, &Limits::default());
    assert!(matches!(answer, Err(Failure::Io(_))), "{answer:?}");
}

#[test]
fn kinds_are_told_by_extension() {
    assert_eq!(Kind::of_file_name("Svc.Sample.IPA"), Some(Kind::Ipa));
    assert_eq!(Kind::of_file_name("release.aab"), Some(Kind::Aab));
    assert_eq!(Kind::of_file_name("release.zip"), None);
    assert_eq!(Kind::of_file_name("apk"), None);
}
