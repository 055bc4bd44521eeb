//! Certificates and provisioning profiles for iOS.

use credentials::{AppleCertificate, Facts, IosSigning, Opened, ProfileKind, UploadedFiles};
use test_support::credential_files::ios::{
    APP_STORE, DEVICES, PASSWORD, Profile, TEAM, folder, issue, sign, signing,
};
use test_support::credential_files::{Folder, RSA, code, der, now, open, years_later};

fn ios(opened: Opened) -> IosSigning {
    match opened.facts {
        Facts::IosSigning(facts) => facts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_certificate_and_its_profile_are_read() {
    let folder = folder();
    let p12 = folder.read("distribution.p12");
    let opened = open(signing(&p12, &APP_STORE.sign(&folder))).unwrap();
    assert_eq!(opened.warnings, []);
    let facts = ios(opened);
    let shown = folder.sh("openssl x509 -in distribution.pem -noout -fingerprint -sha256 -serial");
    let fingerprint = facts.certificate.sha256.to_uppercase();
    assert!(shown.replace(':', "").contains(&fingerprint), "{shown}");
    assert!(shown.contains(&facts.certificate.serial.to_uppercase()), "{shown}");
    assert_eq!(facts.certificate_kind, AppleCertificate::Distribution);
    assert_eq!(facts.team_id, TEAM);
    let profile = facts.profile;
    assert_eq!(profile.name, "Example Profile");
    assert_eq!(profile.bundle_id, "com.example.app");
    assert_eq!(profile.kind, ProfileKind::AppStore);
    assert_eq!(profile.expires_at.to_string(), "2098-01-01T00:00:00.000Z");
    assert_eq!(profile.aps_environment.as_deref(), Some("production"));
    assert_eq!((profile.get_task_allow, profile.devices), (false, 0));
}

#[test]
fn the_kind_of_profile_and_of_certificate_fit() {
    let folder = folder();
    let distribution = folder.read("distribution.p12");
    let development = folder.read("development.p12");
    let ad_hoc = Profile { more: DEVICES, application: "ABCDE12345.*", ..APP_STORE };
    let enterprise = Profile { more: "<key>ProvisionsAllDevices</key><true/>", ..APP_STORE };
    let for_developers = Profile {
        more: DEVICES,
        get_task_allow: true,
        certificate: "development.pem",
        ..APP_STORE
    };
    let cases = [
        (&ad_hoc, &distribution, ProfileKind::AdHoc, 1),
        (&enterprise, &distribution, ProfileKind::Enterprise, 0),
        (&for_developers, &development, ProfileKind::Development, 1),
    ];
    for (profile, p12, kind, devices) in cases {
        let facts = ios(open(signing(p12, &profile.sign(&folder))).unwrap()).profile;
        assert_eq!((facts.kind, facts.devices), (kind, devices));
    }
    let wildcard = ios(open(signing(&distribution, &ad_hoc.sign(&folder))).unwrap());
    assert_eq!(wildcard.profile.bundle_id, "*");

    assert_eq!(code(signing(&development, &APP_STORE.sign(&folder))), "kindMismatch");
    let refusal = open(signing(&distribution, &for_developers.sign(&folder))).unwrap_err();
    assert_eq!(refusal.code(), "kindMismatch");
    assert!(refusal.to_string().contains("upload an Apple Development certificate"), "{refusal}");
}

#[test]
fn a_profile_that_does_not_fit_is_refused() {
    let folder = folder();
    issue(&folder, "renewed", "Apple Distribution: Example", "1.2.840.113635.100.6.1.4");
    let p12 = folder.read("distribution.p12");
    let cases = [
        (Profile { team: "ZYXWV54321", ..APP_STORE }, "teamMismatch"),
        (Profile { certificate: "renewed.pem", ..APP_STORE }, "certificateNotInProfile"),
        (Profile { expires: "2026-02-01T00:00:00Z", ..APP_STORE }, "profileExpired"),
        (Profile { application: "", ..APP_STORE }, "incompleteProfile"),
        (
            Profile { more: "<key>Platform</key><array><string>OSX</string></array>", ..APP_STORE },
            "otherPlatform",
        ),
    ];
    for (profile, expected) in cases {
        assert_eq!(code(signing(&p12, &profile.sign(&folder))), expected);
    }
    for field in ["Name", "UUID", "ExpirationDate", "TeamIdentifier", "DeveloperCertificates"] {
        let list = APP_STORE.list(&folder).replace(&format!("<key>{field}<"), "<key>Other<");
        assert_eq!(code(signing(&p12, &sign(&folder, &list, ""))), "incompleteProfile", "{field}");
    }
}

#[test]
fn what_is_no_signed_profile_is_refused() {
    let folder = folder();
    let p12 = folder.read("distribution.p12");
    let list = APP_STORE.list(&folder);
    let profile = APP_STORE.sign(&folder);
    let refusal = open(signing(&p12, list.as_bytes())).unwrap_err();
    assert!(refusal.to_string().contains("it is a property list"), "{refusal}");
    let refusal = open(signing(&p12, &p12)).unwrap_err();
    assert!(refusal.to_string().contains("a PKCS#12 file"), "{refusal}");
    let refusal = open(signing(&p12, &profile[..2000])).unwrap_err();
    assert!(refusal.to_string().contains("cut off"), "{refusal}");
    assert_eq!(code(signing(&p12, &sign(&folder, "<html>", ""))), "notAProfile");

    let mut altered = profile.clone();
    let at = profile.windows(7).position(|bytes| bytes == b"Example").unwrap();
    altered[at] = b'X';
    assert_eq!(code(signing(&p12, &altered)), "profileAltered");
    folder.write("altered", &altered);
    let verify = "openssl cms -verify -noverify -inform DER -out /dev/null -in";
    assert!(!folder.succeeds(&format!("{verify} altered")));
    assert!(folder.succeeds(&format!("{verify} signed 2>&1")));
    assert_eq!(code(signing(&p12, &sign(&folder, &list, "-nocerts"))), "damaged");
    assert_eq!(code(signing(&p12, &sign(&folder, &list, "-md sha224"))), "unsupportedSignature");
}

#[test]
fn profiles_in_ber_are_read() {
    let folder = folder();
    let p12 = folder.read("distribution.p12");
    let profile = sign(&folder, &APP_STORE.list(&folder), "-stream");
    assert_eq!(profile[..2], [0x30, 0x80], "openssl writes an indefinite length");
    open(signing(&p12, &profile)).unwrap();
    open(signing(&p12, &der::to_ber(&APP_STORE.sign(&folder)))).unwrap();
}

#[test]
fn lists_without_end_are_refused() {
    let folder = folder();
    let p12 = folder.read("distribution.p12");
    let (open_arrays, closed) = ("<array>".repeat(50_000), "</array>".repeat(50_000));
    let deep = format!("<plist><dict><key>Name</key>{open_arrays}{closed}</dict></plist>");
    let binary = "bplist00".to_owned();
    for content in [deep, binary] {
        let refusal = open(signing(&p12, &sign(&folder, &content, ""))).unwrap_err();
        assert!(["damaged", "notAProfile"].contains(&refusal.code()), "{refusal}");
    }
}

#[test]
fn only_certificates_for_ios_apps_are_taken() {
    let folder = folder();
    let profile = APP_STORE.sign(&folder);
    let cases = [
        (
            "Apple Push Services: com.example",
            "1.2.840.113635.100.6.3.2",
            "an Apple Push certificate",
        ),
        ("Apple Push Services: com.example", "1.2.3.4", "an Apple Push certificate"),
        ("Developer ID Application: Example", "1.2.840.113635.100.6.1.13", "for the Mac"),
        ("Mac Developer: Jane", "1.2.840.113635.100.6.1.12", "for the Mac"),
        ("Pass Type ID: pass.example", "1.2.840.113635.100.6.1.16", "Wallet"),
        ("Example App", "1.2.3.4", "not one that Apple issues"),
    ];
    for (name, marker, what) in cases {
        issue(&folder, "other", name, marker);
        let refusal = open(signing(&folder.read("other.p12"), &profile)).unwrap_err();
        assert_eq!(refusal.code(), "notForIosApps");
        assert!(refusal.to_string().contains(what), "{refusal}");
    }
    for name in ["iPhone Distribution: Example", "Apple Distribution: Example"] {
        issue(&folder, "named", name, "1.2.3.4");
        let profile = Profile { certificate: "named.pem", ..APP_STORE }.sign(&folder);
        open(signing(&folder.read("named.p12"), &profile)).unwrap();
    }
}

#[test]
fn certificates_of_others_and_without_a_team_are_told() {
    let folder = folder();
    let make = |subject: &str| {
        folder.self_signed("own", RSA, subject);
        folder.sh(&format!(
            "openssl pkcs12 -export -inkey own.key -in own.pem -out own.p12 -passout 'pass:{PASSWORD}'"
        ));
        let profile = Profile { certificate: "own.pem", ..APP_STORE }.sign(&folder);
        open(signing(&folder.read("own.p12"), &profile))
    };
    let opened = make("/CN=Apple Distribution: Me/OU=ABCDE12345").unwrap();
    let warnings: Vec<_> = opened.warnings.iter().map(|warning| warning.code()).collect();
    assert_eq!(warnings, ["notIssuedByApple"]);
    assert_eq!(make("/CN=Apple Distribution: Me").unwrap_err().code(), "noTeam");
}

#[test]
fn both_parts_expire() {
    let folder = folder();
    let p12 = folder.read("distribution.p12");
    let profile = APP_STORE.sign(&folder);
    let opened = open(signing(&p12, &profile)).unwrap();
    let end = ios(opened.clone()).certificate.not_after;
    assert_eq!(opened.facts.expires_at(), Some(end));
    let later = credentials::open(signing(&p12, &profile), years_later(2)).unwrap_err();
    assert_eq!(later.code(), "certificateExpired");

    let soon = folder.sh("date -u -d '+10 days' +%Y-%m-%dT%H:%M:%SZ");
    let soon: &'static str = soon.trim().to_owned().leak();
    let opened =
        open(signing(&p12, &Profile { expires: soon, ..APP_STORE }.sign(&folder))).unwrap();
    assert_eq!(opened.warnings[0].code(), "expiresSoon");
    assert!(opened.warnings[0].to_string().contains("provisioning profile"));
    assert!(opened.facts.expires_at().unwrap() > now());
}

#[test]
fn the_password_of_the_p12_is_checked() {
    let folder = folder();
    let profile = APP_STORE.sign(&folder);
    let p12 = folder.read("distribution.p12");
    let wrong = UploadedFiles::IosSigning { p12: &p12, password: "other", profile: &profile };
    assert_eq!(code(wrong), "wrongPassword");
    let swapped = UploadedFiles::IosSigning { p12: &profile, password: PASSWORD, profile: &p12 };
    assert!(open(swapped).unwrap_err().to_string().contains("mobileprovision"));
    folder.sh("openssl x509 -in distribution.pem -outform DER -out distribution.cer");
    let refusal = open(signing(&folder.read("distribution.cer"), &profile)).unwrap_err();
    assert!(refusal.to_string().contains("together with its private key"), "{refusal}");
    let _: Folder = folder;
}
