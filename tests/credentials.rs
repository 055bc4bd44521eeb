//! Credentials of apps: stored, shown without their secrets, replaced and deleted.

use crate::support::{
    credentials::{
        HOST_TOKEN, KEYSTORE_PASSWORD, World,
        files::{der, ios},
        leaks, leaks_in, said,
    },
    load::together,
    service::{Person, eventually},
};
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn every_kind_is_stored_shown_replaced_and_deleted() {
    let Some(world) = World::new("every_kind_is_stored_shown_replaced_and_deleted", &[]) else {
        return;
    };
    let stored = world.store_all();
    let [ios, keystore, p8, google, firebase, host] = &stored[..] else { panic!("{stored:?}") };
    for (credential, path, expected) in [
        (ios, "/facts/profile/bundleId", "com.example.app"),
        (ios, "/facts/profile/distribution", "appStore"),
        (ios, "/facts/certificate/teamId", ios::TEAM),
        (ios, "/facts/certificate/kind", "Apple Distribution"),
        (keystore, "/facts/alias", "upload"),
        (keystore, "/facts/certificate/subject", "CN=Example App, O=Example"),
        (p8, "/facts/keyId", "ABCDE12345"),
        (google, "/facts/clientEmail", "publisher@acme.iam.gserviceaccount.com"),
        (firebase, "/facts/projectId", "acme"),
        (host, "/name", "git.example.com"),
    ] {
        assert_eq!(credential.pointer(path).unwrap(), expected, "{credential}");
    }
    let fingerprint = world.folder.sh("openssl x509 -in upload.pem -noout -fingerprint -sha256");
    let sha256 = keystore["facts"]["certificate"]["sha256"].as_str().unwrap();
    assert!(fingerprint.replace(':', "").to_lowercase().contains(sha256), "{fingerprint}");
    assert!(ios["expiresAt"].is_string() && p8["expiresAt"].is_null());
    assert_eq!((&keystore["warnings"], &ios["warnings"]), (&json!([]), &json!([])));
    let warned = p8["warnings"][0].as_str().unwrap();
    assert!(warned.contains("no issuer id"), "{warned}");

    let ids = |credentials: &[Value]| -> BTreeSet<String> {
        credentials.iter().map(|c| c["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&world.listed()), ids(&stored));
    let google_only = world.call("svc_getCredentials", json!({"kind": "googleServiceAccount"}));
    assert_eq!(google_only["items"], json!([google]));
    let app = world.app.as_str().unwrap();
    let table = said(&world.service.cli(&["credential", "list", "--app", app]));
    assert!(stored.iter().all(|c| table.contains(c["id"].as_str().unwrap())), "{table}");

    let id = keystore["id"].as_str().unwrap();
    let checked = said(&world.service.cli(&["credential", "check", id]));
    assert!(checked.contains("It is valid until"), "{checked}");

    // Another file under the same name takes the place of the first one.
    world.folder.sh(&format!(
        "openssl req -x509 -newkey rsa:1024 -nodes -days 20 -keyout short.key -out short.pem \
         -subj '/CN=Example App' 2>&1
         openssl pkcs12 -export -inkey short.key -in short.pem -out short.p12 -name short \
         -passout 'pass:{KEYSTORE_PASSWORD}'"
    ));
    let replaced = world.stored("androidKeystore", "short.p12", &[], Some(KEYSTORE_PASSWORD));
    assert_eq!((&replaced["id"], &replaced["facts"]["alias"]), (&keystore["id"], &json!("short")));
    assert_eq!(replaced["createdAt"], keystore["createdAt"]);
    assert_eq!(replaced["check"], Value::Null, "the check was of the first file");
    let warnings = replaced["warnings"].to_string();
    for warning in ["expires on", "22 October 2033", "1024 bits"] {
        assert!(warnings.contains(warning), "{warning}: {warnings}");
    }
    assert_eq!(world.listed().len(), 6);
    world.stored("androidKeystore", "upload.p12", &["--name", "spare"], Some(KEYSTORE_PASSWORD));
    assert_eq!(world.listed().len(), 7);

    let deleted = said(&world.service.cli(&["credential", "delete", id]));
    assert!(deleted.contains("is deleted"), "{deleted}");
    assert!(!ids(&world.listed()).contains(id));
    assert_eq!(world.about("svc_deleteCredential", keystore).refusal(), (404, 101));
}

#[test]
fn a_refusal_names_the_parameter_and_what_to_do() {
    let Some(world) = World::new("a_refusal_names_the_parameter_and_what_to_do", &[]) else {
        return;
    };
    let folder = &world.folder;
    folder.sh(&format!(
        "keytool -genkeypair -keyalg RSA -keysize 2048 -storetype JKS -keystore old.jks -alias a \
         -storepass '{KEYSTORE_PASSWORD}' -keypass '{KEYSTORE_PASSWORD}' -dname CN=Example 2>&1
         keytool -genkeypair -keyalg EC -groupname secp256r1 -storetype pkcs12 -keystore past.p12 \
         -alias a -storepass '{KEYSTORE_PASSWORD}' -startdate -700d -validity 100 -dname CN=Past 2>&1
         for name in one two; do
         keytool -genkeypair -keyalg EC -groupname secp256r1 -storetype pkcs12 -keystore two.p12 \
         -alias $name -storepass '{KEYSTORE_PASSWORD}' -validity 10000 -dname CN=$name 2>&1
         done"
    ));
    let other_team = ios::Profile { team: "ZYXWV54321", ..ios::APP_STORE };
    folder.write("other.mobileprovision", other_team.sign(folder));
    let file = |name: &str| world.base64(name);
    let keystore = |name: &str, password: &str| json!({"kind": "androidKeystore", "data": file(name), "password": password});
    let with = |params: Value, field: &str, value: Value| {
        let mut params = params;
        params[field] = value;
        params
    };
    let p8 = json!({"kind": "appStoreConnectKey", "data": file("AuthKey_ABCDE12345.p8")});
    let signing = json!({"kind": "iosSigning", "data": file("distribution.p12"),
        "password": ios::PASSWORD});
    let host = |name: &str, token: &[u8]| json!({"kind": "repositoryHost", "name": name, "data": BASE64.encode(token)});
    for (params, field, advice) in [
        (keystore("upload.p12", "not it"), "password", "does not open the keystore"),
        (keystore("old.jks", KEYSTORE_PASSWORD), "data", "keytool -importkeystore"),
        (keystore("past.p12", KEYSTORE_PASSWORD), "data", "make a new one and upload it"),
        (keystore("two.p12", KEYSTORE_PASSWORD), "alias", "one, two"),
        (
            with(keystore("two.p12", KEYSTORE_PASSWORD), "alias", json!("three")),
            "alias",
            "has no key with the alias three",
        ),
        (keystore("AuthKey_ABCDE12345.p8", ""), "data", "upload the keystore"),
        (signing.clone(), "profile", "is required"),
        (
            with(signing.clone(), "profile", json!(file("other.mobileprovision"))),
            "profile",
            "upload both of one team",
        ),
        (with(signing, "profile", json!(file("upload.p12"))), "profile", "profile"),
        (p8.clone(), "keyId", "the key id is missing"),
        (with(p8.clone(), "keyId", json!("abc")), "keyId", "ten characters"),
        (
            with(with(p8.clone(), "keyId", json!("ABCDE12345")), "issuerId", json!("acme")),
            "issuerId",
            "is not a UUID",
        ),
        (with(p8.clone(), "alias", json!("upload")), "alias", "is not for credentials of the kind"),
        (with(p8, "data", json!("AAA")), "data", "base64"),
        (
            json!({"kind": "googleServiceAccount", "data": BASE64.encode(b"{}")}),
            "data",
            "upload the JSON file",
        ),
        (host("git.example.com", b"two words"), "data", "access token"),
        (host("git.example.com/acme", b"a-token"), "name", "a host such as git.example.com"),
        (host("a name", b"a-token"), "name", "a host such as git.example.com"),
        (host("git.example.com:0", b"a-token"), "name", "a host such as git.example.com"),
    ] {
        let params = match params["name"].is_null() {
            true => with(params, "name", json!("a name")),
            false => params,
        };
        let refused = world.call_as(&world.ada, "svc_setCredential", params);
        assert_eq!(refused.refusal(), (400, 142), "{field}: {advice}");
        let problem = &refused.body["details"][0];
        let told = problem["problem"].as_str().unwrap();
        assert!(problem["field"] == field && told.contains(advice), "{}", refused.body);
        assert!(!refused.body.to_string().contains("not it"), "{}", refused.body);
    }
    assert_eq!(world.listed(), Vec::<Value>::new());

    // The command line shows the same sentence, and does not ask where nobody answers.
    let told = said(&world.set("androidKeystore", "old.jks", &[], Some(KEYSTORE_PASSWORD)));
    assert!(told.contains("keytool -importkeystore"), "{told}");
    let asked = world.set("androidKeystore", "upload.p12", &[], None);
    assert!(
        !asked.status.success() && said(&asked).contains("no terminal to ask for"),
        "{asked:?}"
    );

    // A key with a password of its own: the refusal names it, and the command line sends it.
    folder.sh(
        "openssl pkcs8 -topk8 -in upload.key -outform DER -passout 'pass:the keys own' -out key
         openssl x509 -in upload.pem -outform DER -out certificate",
    );
    let own = der::pkcs12(&folder.read("key"), &folder.read("certificate"));
    folder.write("own.p12", der::with_mac(folder, &own, KEYSTORE_PASSWORD));
    let refused = world.set("androidKeystore", "own.p12", &[], Some(KEYSTORE_PASSWORD));
    assert!(said(&refused).contains("keyPassword: the key 1 has another"), "{}", said(&refused));
    let both = format!("{KEYSTORE_PASSWORD}\nthe keys own");
    world.stored("androidKeystore", "own.p12", &["--key-password"], Some(&both));
}

#[test]
fn a_secret_lies_nowhere_in_readable_form() {
    let Some(mut world) =
        World::new("a_secret_lies_nowhere_in_readable_form", &[("SVC_LOG", "debug")])
    else {
        return;
    };
    let mut texts: Vec<String> = world.store_all().iter().map(Value::to_string).collect();
    // Refusals, a repetition, and what failed calls write into the log.
    let profile = ["--profile", &world.path("app.mobileprovision")];
    for (kind, file, more, password) in [
        ("androidKeystore", "distribution.p12", &[][..], Some(ios::PASSWORD)),
        ("iosSigning", "upload.p12", &profile, Some(KEYSTORE_PASSWORD)),
        ("iosSigning", "distribution.p12", &profile, Some(KEYSTORE_PASSWORD)),
        ("googleServiceAccount", "google.key", &[], None),
        ("appStoreConnectKey", "google.json", &[], None),
        ("repositoryHost", "google.json", &["--name", "git.example.com"], None),
    ] {
        texts.push(said(&world.set(kind, file, more, password)));
    }
    let params = json!({"kind": "repositoryHost", "name": "h.example.com",
        "data": BASE64.encode(HOST_TOKEN.as_bytes())});
    for key in ["once", "once"] {
        let mut params = params.clone();
        params["appId"] = world.app.clone();
        let answer =
            world.service.try_call(Some(&world.ada), "svc_setCredential", params, Some(key));
        texts.push(answer.unwrap().body.to_string());
    }
    for credential in world.listed() {
        texts.push(credential.to_string());
        texts.push(world.about("svc_checkCredential", &credential).body.to_string());
    }
    let everything = json!({"function": "svc_setCredential"});
    let administrator = world.service.administrator();
    let audit = world.service.call(Some(&administrator), "svc_admin_getAuditLog", everything).ok();
    texts.push(audit.to_string());

    let secrets = world.secrets();
    assert!(secrets.len() > 40, "{}", secrets.len());
    for (name, secret) in &secrets {
        assert!(
            leaks_in(std::slice::from_ref(secret), &secrets).contains(name),
            "{name} is searched"
        );
    }
    let in_files = [("an e-mail".to_owned(), world.ada.email.clone().into_bytes())];
    assert_eq!(leaks(&world.service, &[], &in_files).len(), 1, "the search reads the store");
    assert_eq!(leaks(&world.service, &texts, &secrets), BTreeSet::new());
    // The same when the store was closed, and in a backup.
    world.service.stop();
    assert_eq!(leaks(&world.service, &[], &secrets), BTreeSet::new());
}

#[test]
fn members_read_and_owners_and_admins_change() {
    let Some(mut world) = World::new("members_read_and_owners_and_admins_change", &[]) else {
        return;
    };
    let organization =
        world.service.call(Some(&world.ada), "createOrganization", json!({"name": "Acme"})).ok();
    let id = &organization["id"];
    (_, world.app) = world.service.project_with_app(&world.ada, Some(id));
    let join = |name: &str, role: &str| -> Person {
        let person = world.service.register(name);
        let params = json!({"organizationId": id, "email": person.email, "role": role});
        let invited = world.service.call(Some(&world.ada), "inviteMember", params).ok();
        let token = json!({"token": invited["acceptToken"]});
        world.service.call(Some(&person), "acceptInvitation", token).ok();
        person
    };
    let [admin, supervisor, client] =
        [("adam", "admin"), ("sue", "supervisor"), ("carl", "client")].map(|(n, r)| join(n, r));
    let stranger = world.service.register("eve");

    let token = || {
        json!({"kind": "repositoryHost", "name": "git.example.com",
        "data": BASE64.encode(HOST_TOKEN.as_bytes())})
    };
    let set = |who: &Person| world.call_as(who, "svc_setCredential", token());
    assert_eq!(set(&supervisor).refusal(), (403, 403));
    assert_eq!(set(&client).refusal(), (404, 101));
    assert_eq!(set(&stranger).refusal(), (404, 101));
    let credential = set(&admin).ok();
    assert_eq!(credential["createdBy"], json!(admin.id));

    let list = |who: &Person| world.call_as(who, "svc_getCredentials", json!({}));
    assert_eq!(list(&supervisor).ok()["items"], json!([credential]));
    assert_eq!(list(&client).refusal(), (404, 101));
    let about = |who: &Person, function: &str| {
        let params = json!({"credentialId": credential["id"]});
        world.service.call(Some(who), function, params)
    };
    assert_eq!(about(&supervisor, "svc_deleteCredential").refusal(), (403, 403));
    assert_eq!(about(&stranger, "svc_deleteCredential").refusal(), (404, 101));
    assert_eq!(about(&stranger, "svc_checkCredential").refusal(), (404, 101));
    set(&world.ada).ok();
    about(&admin, "svc_deleteCredential").ok();
    assert_eq!(world.events("svc_setCredential", &credential), 2);
    assert_eq!(world.events("svc_deleteCredential", &credential), 1);

    // Who made a project rules its apps, also their credentials.
    let params = json!({"organizationId": id, "name": "Of a client"});
    let project = world.service.call(Some(&client), "svc_createProject", params).ok();
    let params = json!({"name": "Of a client", "projectId": project["id"]});
    let app = world.service.call(Some(&client), "createApp", params).ok();
    let mut params = token();
    params["appId"] = app["id"].clone();
    let own = world.service.call(Some(&client), "svc_setCredential", params).ok();
    let params = json!({"credentialId": own["id"]});
    world.service.call(Some(&client), "svc_deleteCredential", params.clone()).ok();

    // Credentials go with their app.
    let credential = set(&admin).ok();
    world.call("deleteApp", json!({}));
    eventually("the credential is deleted with its app", || {
        about(&world.ada, "svc_checkCredential").status == 404
    });
    drop(credential);
    world.service.stop();
    world.service.check();
}

#[test]
fn callers_at_once_store_one_credential_and_a_crash_loses_none() {
    let Some(mut world) =
        World::new("callers_at_once_store_one_credential_and_a_crash_loses_none", &[])
    else {
        return;
    };
    let token = |name: &str, n: usize| {
        json!({"kind": "repositoryHost", "name": name,
            "data": BASE64.encode(format!("token-{n}").as_bytes())})
    };
    let set = |world: &World, name: &str, n| {
        world.call_as(&world.ada, "svc_setCredential", token(name, n))
    };
    for name in ["one.example.com", "two.example.com", "One.Example.com"] {
        let answers = together(16, |n| set(&world, name, n));
        for answer in &answers {
            assert!(matches!(answer.status, 200 | 409), "{}", answer.body);
        }
        assert!(answers.iter().any(|answer| answer.status == 200), "{name}");
    }
    assert_eq!(world.listed().len(), 2, "a host has no upper case");

    // Some delete while others store: the end is one of the two.
    let first = world.listed().pop().unwrap();
    let name = first["name"].as_str().unwrap();
    let answers = together(16, |n| match n % 2 {
        0 => set(&world, name, n),
        _ => world.about("svc_deleteCredential", &first),
    });
    for answer in &answers {
        assert!(matches!(answer.status, 200 | 404 | 409), "{}", answer.body);
    }

    let stored: Vec<Value> =
        (0..5).map(|n| set(&world, &format!("h{n}.example.com"), n).ok()).collect();
    let replaced = set(&world, "h0.example.com", 7).ok();
    world.service.kill();
    world.service.boot();
    let listed = world.listed();
    assert!(stored[1..].iter().all(|credential| listed.contains(credential)), "{listed:?}");
    assert!(listed.contains(&replaced), "{listed:?}");
    world.service.stop();
    world.service.check();
}
