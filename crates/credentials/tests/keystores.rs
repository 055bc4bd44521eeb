//! Keystores that `openssl` and `keytool` make are judged as these tools judge them.

use credentials::{AndroidKeystore, Facts, KeyKind, Opened, Refusal, UploadedFiles, Warning};
use test_support::credential_files::{
    Folder, P256, RSA, code, der, keystore, now, open, years_later,
};

const SUBJECT: &str = "/C=DE/O=Example/CN=Example App";

fn android(opened: Opened) -> AndroidKeystore {
    match opened.facts {
        Facts::AndroidKeystore(facts) => facts,
        other => panic!("{other:?}"),
    }
}

/// The value after the first `label` in the output of a tool.
fn field(output: &str, label: &str) -> String {
    let line = output.lines().find_map(|line| line.trim().strip_prefix(label));
    line.unwrap_or_else(|| panic!("no {label} in {output}")).trim().to_owned()
}

/// Compares what is said of `ks.p12` with what keytool says.
fn compare_with_keytool(folder: &Folder, name: &str, password: &str) {
    let facts = compare_with_openssl(folder, name, password);
    let list = |password: &str| {
        format!("keytool -list -v -keystore ks.p12 -storetype pkcs12 -storepass '{password}'")
    };
    let listed = folder.sh(&list(password));
    let fingerprint = field(&listed, "SHA256:").replace(':', "").to_lowercase();
    assert_eq!(facts.certificate.sha256, fingerprint, "{name}");
    assert_eq!(facts.certificate.serial, field(&listed, "Serial number:"), "{name}");
    assert_eq!(facts.alias, field(&listed, "Alias name:"), "{name}");
    assert!(!folder.succeeds(&list("not it")), "{name}");
}

/// Compares what is said of `ks.p12` and of wrong passwords with what openssl says.
fn compare_with_openssl(folder: &Folder, name: &str, password: &str) -> AndroidKeystore {
    let extract = |password: &str| {
        format!("openssl pkcs12 -legacy -in ks.p12 -nodes -passin 'pass:{password}' -out all.pem")
    };
    folder.sh(&extract(password));
    let shown = folder.sh("openssl x509 -in all.pem -noout -fingerprint -sha256 -enddate");
    let bytes = folder.read("ks.p12");
    let facts = android(open(keystore(&bytes, password)).unwrap_or_else(|r| panic!("{name}: {r}")));
    let fingerprint = field(&shown, "sha256 Fingerprint=").replace(':', "").to_lowercase();
    assert_eq!(facts.certificate.sha256, fingerprint, "{name}");
    assert_eq!(facts.certificate.subject, "C=DE, O=Example, CN=Example App", "{name}");
    let year = facts.certificate.not_after.day()[..4].to_owned();
    assert!(field(&shown, "notAfter=").contains(&year), "{name}");

    for wrong in ["not it", "", &password.to_uppercase()] {
        assert_eq!(code(keystore(&bytes, wrong)), "wrongPassword", "{name}: {wrong}");
        assert!(!folder.succeeds(&extract(wrong)), "{name}: {wrong}");
    }
    facts
}

#[test]
fn keystores_of_openssl_are_read_with_every_encryption() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    let makes = [
        ("", true),
        ("-legacy", true),
        ("-certpbe AES-128-CBC -keypbe PBE-SHA1-3DES -macalg sha512", true),
        ("-legacy -certpbe PBE-SHA1-RC2-128 -keypbe PBE-SHA1-3DES -macalg sha224", true),
        ("-certpbe NONE", true),
        ("-iter 1 -nomaciter", true),
        ("-certpbe AES-192-CBC -keypbe DES-EDE3-CBC -macalg sha384", false),
        ("-legacy -certpbe PBE-SHA1-2DES -keypbe PBE-SHA1-RC2-40", false),
    ];
    for (make, java_reads_it) in makes {
        folder.sh(&format!(
            "openssl pkcs12 -export {make} -inkey app.key -in app.pem -out ks.p12 -name upload \
             -passout 'pass:a store password'"
        ));
        if java_reads_it {
            compare_with_keytool(&folder, make, "a store password");
        } else {
            compare_with_openssl(&folder, make, "a store password");
        }
    }
}

#[test]
fn a_password_beyond_ascii_opens_and_is_warned_of() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    let password = "Gänsefüßchen 🔑";
    for make in ["", "-legacy"] {
        folder.sh(&format!(
            "openssl pkcs12 -export {make} -inkey app.key -in app.pem -out ks.p12 -passout 'pass:{password}'"
        ));
        let opened = open(keystore(&folder.read("ks.p12"), password)).unwrap();
        assert_eq!(opened.warnings, [Warning::PasswordBeyondAscii]);
        assert_eq!(code(keystore(&folder.read("ks.p12"), "Gansefu?chen ?")), "wrongPassword");
        let list = format!("keytool -list -keystore ks.p12 -storepass '{password}'");
        assert!(!folder.succeeds(&list), "{make}");
    }
}

#[test]
fn keystores_of_keytool_are_read() {
    let makes = [
        ("-keyalg RSA -keysize 2048", KeyKind::Rsa { bits: 2048 }),
        ("-J-Dkeystore.pkcs12.legacy -keyalg RSA -keysize 3072", KeyKind::Rsa { bits: 3072 }),
        ("-keyalg EC -groupname secp256r1", KeyKind::Ec { bits: 256 }),
        ("-keyalg EC -groupname secp384r1", KeyKind::Ec { bits: 384 }),
        ("-keyalg EC -groupname secp521r1", KeyKind::Ec { bits: 521 }),
    ];
    for (make, kind) in makes {
        let folder = Folder::default();
        folder.sh(&format!(
            "keytool -genkeypair {make} -keystore ks.p12 -storepass 'a store password' -alias upload \
             -validity 10000 -dname 'CN=Example App,O=Example,C=DE' 2>&1"
        ));
        compare_with_keytool(&folder, make, "a store password");
        let opened = open(keystore(&folder.read("ks.p12"), "a store password")).unwrap();
        assert_eq!(opened.warnings, []);
        assert_eq!(opened.facts.expires_at().unwrap().day()[..4], *"2054");
        assert_eq!(android(opened).certificate.key, kind);
    }
}

#[test]
fn without_a_code_the_encryption_tells_a_wrong_password() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    for make in ["", "-certpbe NONE"] {
        folder.sh(&format!(
            "openssl pkcs12 -export -nomac {make} -inkey app.key -in app.pem -out ks.p12 -passout pass:right"
        ));
        let bytes = folder.read("ks.p12");
        assert_eq!(android(open(keystore(&bytes, "right")).unwrap()).alias, "1");
        assert_eq!(code(keystore(&bytes, "wrong")), "wrongPassword");
    }
}

#[test]
fn both_forms_of_the_empty_password_open() {
    let folder = Folder::default();
    folder.self_signed("app", P256, SUBJECT);
    folder.sh("openssl pkcs12 -export -inkey app.key -in app.pem -out ks.p12 -passout pass:");
    open(keystore(&folder.read("ks.p12"), "")).unwrap();
    assert_eq!(code(keystore(&folder.read("ks.p12"), "x")), "wrongPassword");
}

#[test]
fn one_of_several_keys_is_named() {
    let folder = Folder::default();
    for alias in ["First", "second", "third"] {
        folder.sh(&format!(
            "keytool -genkeypair -keyalg EC -keystore ks.p12 -storepass password -alias {alias} \
             -validity 10000 -dname 'CN={alias}' 2>&1"
        ));
    }
    let bytes = folder.read("ks.p12");
    let named = |alias| UploadedFiles::AndroidKeystore {
        keystore: &bytes,
        password: "password",
        alias,
        key_password: None,
    };
    let refusal = open(named(None)).unwrap_err();
    let Refusal::SeveralKeys { ref aliases, .. } = refusal else { panic!("{refusal}") };
    assert_eq!(aliases.len(), 3);
    assert!(refusal.to_string().contains("second"), "{refusal}");
    for (alias, subject) in [("second", "CN=second"), ("FIRST", "CN=First"), ("first", "CN=First")]
    {
        let facts = android(open(named(Some(alias))).unwrap());
        assert_eq!(facts.certificate.subject, subject);
        assert_eq!(facts.aliases.len(), 3);
        assert!(folder.succeeds(&format!(
            "keytool -list -keystore ks.p12 -storepass password -alias {alias}"
        )));
    }
    let refusal = open(named(Some("fourth"))).unwrap_err();
    assert_eq!(refusal.code(), "unknownAlias");
    assert!(refusal.to_string().contains("first, second, third"), "{refusal}");
}

#[test]
fn java_keystores_are_refused_with_the_command_that_converts_them() {
    for store_type in ["jks", "jceks"] {
        let folder = Folder::default();
        folder.sh(&format!(
            "keytool -genkeypair -storetype {store_type} -keyalg RSA -keystore old.jks -storepass storepass \
             -keypass storepass -alias upload -validity 10000 -dname CN=Old 2>&1"
        ));
        let refusal = open(keystore(&folder.read("old.jks"), "storepass")).unwrap_err();
        assert_eq!(refusal.code(), "javaKeystore");
        let sentence = refusal.to_string();
        assert!(sentence.contains(&store_type.to_uppercase()), "{sentence}");
        let command = sentence.split('`').nth(1).unwrap();
        folder.sh(&format!("{command} -srcstorepass storepass -deststorepass storepass 2>&1"));
        let listed = folder.sh("keytool -list -v -keystore old.jks -storepass storepass");
        let facts = android(open(keystore(&folder.read("new.p12"), "storepass")).unwrap());
        let fingerprint = field(&listed, "SHA256:").replace(':', "").to_lowercase();
        assert_eq!(facts.certificate.sha256, fingerprint);
    }
}

/// One wrong password in 256 decrypts to bytes whose padding is valid.
#[test]
fn no_wrong_password_is_taken_for_a_damaged_key() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    folder.sh(
        "openssl pkcs8 -topk8 -in app.key -outform DER -v2 aes-256-cbc -iter 1 -passout pass:keypass -out key
         openssl x509 -in app.pem -outform DER -out certificate",
    );
    let file = der::pkcs12(&folder.read("key"), &folder.read("certificate"));
    for number in 0..3000 {
        let wrong = format!("wrong {number}");
        let upload = UploadedFiles::AndroidKeystore {
            keystore: &file,
            password: "storepass",
            alias: None,
            key_password: Some(&wrong),
        };
        assert_eq!(code(upload), "wrongKeyPassword", "{wrong}");
    }
}

#[test]
fn a_key_may_have_a_password_of_its_own() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    folder.sh(
        "openssl pkcs8 -topk8 -in app.key -outform DER -v2 aes-256-cbc -passout pass:keypass -out key
         openssl x509 -in app.pem -outform DER -out certificate",
    );
    folder.write("ks.p12", der::pkcs12(&folder.read("key"), &folder.read("certificate")));
    let judge = |key_password| {
        let keystore = folder.read("ks.p12");
        let (alias, password) = (Some("1"), "storepass");
        let upload =
            UploadedFiles::AndroidKeystore { keystore: &keystore, password, alias, key_password };
        open(upload).map(drop).map_err(|refusal| refusal.code())
    };
    assert_eq!(judge(Some("keypass")), Ok(()));
    assert_eq!(judge(Some("wrong")), Err("wrongKeyPassword"));
    // Nothing tells yet what the password of the keystore is.
    assert_eq!(judge(None), Err("wrongPassword"));
    folder.write("ks.p12", der::with_mac(&folder, &folder.read("ks.p12"), "storepass"));
    assert_eq!(judge(None), Err("keyPasswordNeeded"));
    assert_eq!(judge(Some("keypass")), Ok(()));
    assert_eq!(judge(Some("wrong")), Err("wrongKeyPassword"));

    folder.sh(&format!("cp {}/../../data/fixtures/sample.apk app.apk", env!("CARGO_MANIFEST_DIR")));
    let sign = |password: &str| {
        folder.succeeds(&format!(
            "apksigner sign --ks ks.p12 --ks-type pkcs12 --ks-pass pass:storepass --key-pass pass:{password} \
             --ks-key-alias 1 app.apk"
        ))
    };
    assert!(sign("keypass"));
    assert!(!sign("wrong"));
}

#[test]
fn the_key_must_belong_to_the_certificate() {
    let folder = Folder::default();
    for key in [RSA, P256, "rsa:1024"] {
        folder.self_signed("app", key, SUBJECT);
        folder.self_signed("other", key, SUBJECT);
        folder.sh("openssl pkcs8 -topk8 -in app.key -outform DER -passout pass:p -out key
             openssl x509 -in app.pem -outform DER -out certificate
             openssl x509 -in other.pem -outform DER -out other");
        let key = folder.read("key");
        open(keystore(&der::pkcs12(&key, &folder.read("certificate")), "p")).unwrap();
        let bytes = der::pkcs12(&key, &folder.read("other"));
        assert_eq!(code(keystore(&bytes, "p")), "keyMismatch");
    }
}

#[test]
fn a_key_without_encryption_is_for_openssl_only() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    folder.sh("openssl pkcs12 -export -keypbe NONE -inkey app.key -in app.pem -out ks.p12 -passout pass:p");
    assert_eq!(code(keystore(&folder.read("ks.p12"), "p")), "keyNotEncrypted");
    let listed = folder.sh("keytool -list -keystore ks.p12 -storepass p");
    assert!(listed.contains("0 entries"), "{listed}");
}

#[test]
fn a_keystore_needs_a_key_and_a_certificate() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    folder.sh("openssl pkcs12 -export -nokeys -in app.pem -out no-key.p12 -passout pass:p
         openssl pkcs12 -export -nocerts -inkey app.key -out no-certificate.p12 -passout pass:p
         keytool -importcert -noprompt -keystore trust.p12 -storepass password -file app.pem 2>&1");
    assert_eq!(code(keystore(&folder.read("no-key.p12"), "p")), "noPrivateKey");
    assert_eq!(code(keystore(&folder.read("trust.p12"), "password")), "noPrivateKey");
    assert_eq!(code(keystore(&folder.read("no-certificate.p12"), "p")), "noCertificate");
}

#[test]
fn certificates_are_valid_for_a_time() {
    let folder = Folder::default();
    folder.sh(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 20 -keyout app.key -out app.pem -subj /CN=A 2>&1
         openssl pkcs12 -export -inkey app.key -in app.pem -out ks.p12 -passout pass:p",
    );
    let bytes = folder.read("ks.p12");
    let at = |time| credentials::open(keystore(&bytes, "p"), time);
    let opened = at(now()).unwrap();
    let not_after = opened.facts.expires_at().unwrap();
    let warnings: Vec<_> = opened.warnings.iter().map(|warning| warning.code()).collect();
    assert_eq!(warnings, ["tooShortForPlay", "expiresSoon"]);
    assert!(opened.warnings[1].to_string().contains(&not_after.day()));
    at(not_after).unwrap();
    for (time, code) in
        [(years_later(1), "certificateExpired"), (years_later(-1), "certificateNotYetValid")]
    {
        let refusal = at(time).unwrap_err();
        assert_eq!(refusal.code(), code);
    }
    assert!(at(years_later(1)).unwrap_err().to_string().contains(&not_after.day()));
}

#[test]
fn a_certificate_without_an_end_can_be_told() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    folder.write("ca.cnf", "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=optional\n");
    folder.sh(
        "touch index; echo 01 > serial
         openssl req -new -key app.key -subj '/CN=Example' -out csr
         openssl ca -batch -config ca.cnf -selfsign -keyfile app.key -in csr -enddate 99991231235959Z \
             -out ever.pem 2>&1
         openssl pkcs12 -export -inkey app.key -in ever.pem -out ks.p12 -passout pass:p",
    );
    let opened = open(keystore(&folder.read("ks.p12"), "p")).unwrap();
    assert_eq!(opened.facts.expires_at().unwrap().day(), "9999-12-30");
}

#[test]
fn keys_for_debugging_and_of_other_algorithms_are_told() {
    let folder = Folder::default();
    let cases = [
        (RSA, "/C=US/O=Android/CN=Android Debug", Err("debugCertificate")),
        ("rsa:1024", SUBJECT, Ok(vec![Warning::WeakKey { bits: 1024 }])),
        ("ed25519", SUBJECT, Err("unsupportedKey")),
        ("ec -pkeyopt ec_paramgen_curve:secp256k1", SUBJECT, Err("unsupportedKey")),
    ];
    for (key, subject, expected) in cases {
        folder.self_signed("app", key, subject);
        folder.sh("openssl pkcs12 -export -inkey app.key -in app.pem -out ks.p12 -passout pass:p");
        let result = open(keystore(&folder.read("ks.p12"), "p"));
        let result = result.map(|opened| opened.warnings).map_err(|refusal| refusal.code());
        assert_eq!(result, expected, "{key}");
    }
}

#[test]
fn what_is_no_pkcs12_is_named() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    folder.sh(
        "openssl x509 -in app.pem -outform DER -out app.cer
         openssl pkcs8 -topk8 -nocrypt -in app.key -outform DER -out app.der
         openssl pkcs12 -export -inkey app.key -in app.pem -out ks.p12 -passout pass:p
         base64 ks.p12 > ks.txt
         head -c 1000 ks.p12 > cut.p12
         openssl cms -sign -nodetach -signer app.pem -inkey app.key -in app.pem -outform DER -out message",
    );
    let cases = [
        (folder.read("app.pem"), "PEM format that begins with a CERTIFICATE"),
        (folder.read("app.cer"), "a certificate (.cer)"),
        (folder.read("app.der"), "a private key without a certificate"),
        (folder.read("ks.txt"), "Base64"),
        (folder.read("message"), ".mobileprovision"),
        (b"<!DOCTYPE html><html>".to_vec(), "a web page"),
        (b"PK\x03\x04".to_vec(), "a zip archive"),
        (Vec::new(), "empty"),
        (b"anything".to_vec(), "unknown format"),
    ];
    for (bytes, looks) in cases {
        let refusal = open(keystore(&bytes, "p")).unwrap_err();
        assert_eq!(refusal.code(), "notPkcs12", "{refusal}");
        assert!(refusal.to_string().contains(looks), "{refusal}");
    }
    assert_eq!(code(keystore(&folder.read("cut.p12"), "p")), "damaged");
    assert_eq!(code(keystore(&vec![0; credentials::MAX_FILE + 1], "p")), "tooLarge");
}

#[test]
fn ber_is_read_as_openssl_reads_it() {
    let folder = Folder::default();
    folder.self_signed("app", RSA, SUBJECT);
    folder.sh("openssl pkcs12 -export -inkey app.key -in app.pem -out der.p12 -passout pass:p");
    let ber = der::to_ber(&folder.read("der.p12"));
    folder.write("ks.p12", &ber);
    assert!(folder.succeeds("openssl pkcs12 -in ks.p12 -nodes -passin pass:p"));
    open(keystore(&ber, "p")).unwrap();
    assert_eq!(code(keystore(&ber, "wrong")), "wrongPassword");
}

#[test]
fn a_file_may_not_ask_for_endless_work() {
    let folder = Folder::default();
    folder.self_signed("app", P256, SUBJECT);
    for (make, rounds) in [("", 2048_u16), ("-legacy", 2048), ("-nomac", 2048)] {
        folder.sh(&format!(
            "openssl pkcs12 -export {make} -inkey app.key -in app.pem -out ks.p12 -passout pass:p"
        ));
        let absurd = der::replace_integers(
            &folder.read("ks.p12"),
            &rounds.to_be_bytes(),
            &i32::MAX.to_be_bytes(),
        );
        assert_eq!(code(keystore(&absurd, "p")), "tooMuchWork", "{make}");
    }
}

#[test]
fn the_keystore_of_the_fixtures_opens() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/fixtures/throwaway.p12");
    let facts = android(open(keystore(&std::fs::read(path).unwrap(), "throwaway")).unwrap());
    let listed =
        Folder::default().sh(&format!("keytool -list -v -keystore {path} -storepass throwaway"));
    let fingerprint = field(&listed, "SHA256:").replace(':', "").to_lowercase();
    assert_eq!(facts.certificate.sha256, fingerprint);
    assert_eq!(facts.alias, "upload");
}
