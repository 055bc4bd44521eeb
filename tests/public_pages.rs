//! The pages for people who have no account, in the language of their browser.

use crate::support::service::Service;
use serde_json::json;

const LANGUAGES: [(&str, &str); 4] =
    [("en-GB", "en"), ("fr-CA,fr;q=0.9", "fr"), ("de-AT,en;q=0.5", "de"), ("es-419", "es")];

/// A page as a browser with these languages gets it: its status and its text.
fn page(service: &Service, address: &str, languages: &str) -> (u16, String) {
    let get = service.http.get(address).header("Accept", "text/html");
    let answer = get.header("Accept-Language", languages).send().unwrap();
    (answer.status().as_u16(), answer.text().unwrap())
}

#[test]
fn an_install_page_speaks_the_language_of_the_phone() {
    let service = Service::start();
    let ada = service.register("ada");
    let call = |function: &str, params| service.call(Some(&ada), function, params).ok();
    let (_, app) = service.project_with_app(&ada, None);
    let (apk, ipa) = (
        service.upload(&ada, &app, "sample.apk", "1.4.2")["id"].clone(),
        service.upload(&ada, &app, "sample.ipa", "1.4.2")["id"].clone(),
    );
    let notes = "Fewer <b>crashes</b>";
    let wanted =
        json!({"appId": app, "artifactIds": [apk, ipa], "channel": "beta", "notes": notes});
    let release = call("svc_createRelease", wanted)["id"].clone();
    call("svc_publishRelease", json!({"releaseId": release, "targets": ["ota"]}));
    let address = format!("{}/install/{}", service.url, release.as_str().unwrap());
    for ((languages, tag), (button, unit)) in LANGUAGES.into_iter().zip([
        ("Install on Android", "KiB"),
        ("Installer sur Android", "Kio"),
        ("Auf Android installieren", "KiB"),
        ("Instalar en Android", "KiB"),
    ]) {
        let (status, page) = page(&service, &address, languages);
        assert_eq!(status, 200);
        for part in [&format!("<html lang=\"{tag}\">"), button, unit, "itms-services://"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.contains("Fewer &#60;b&#62;crashes"), "{page}");
    }
    // The file for iOS has a profile for one device, whose owner finds it, and nobody reads it whole.
    let (_, shown) = page(&service, &address, "en");
    for part in ["Installs on 1 registered device<", "<li>…4E5F6A</li>", "until November 1, 2036"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("0A1B2C3D4E5F6A"), "{shown}");
    // The way of iOS is one address, which the browser reads whole.
    let manifest = shown.split("url=").nth(1).unwrap().split('"').next().unwrap();
    let manifest = format!("u={manifest}");
    let (_, manifest) = url::form_urlencoded::parse(manifest.as_bytes()).next().unwrap();
    let manifest = service.http.get(manifest.as_ref()).send().unwrap();
    assert!(manifest.text().unwrap().contains("software-package"));

    let next = service.upload(&ada, &app, "sample-1.5.0.apk", "1.5.0")["id"].clone();
    let wanted = json!({"appId": app, "artifactIds": [next], "channel": "beta"});
    let next = call("svc_createRelease", wanted)["id"].clone();
    call("svc_publishRelease", json!({"releaseId": next, "targets": ["ota"]}));
    call("svc_rollbackRelease", json!({"releaseId": next, "dryRun": false}));
    let address = format!("{}/install/{}", service.url, next.as_str().unwrap());
    let (status, page) = page(&service, &address, "de");
    assert!(status == 200 && page.contains("zurückgezogen"), "{page}");
}

#[test]
fn a_link_to_nothing_says_so() {
    let service = Service::start();
    for path in ["/install/rel_01J9ZQ8F5W7V3T6M2K4N8R0P1S", "/install/x", "/checkouts/x"] {
        let address = format!("{}{path}", service.url);
        let (status, page) = page(&service, &address, "fr");
        assert!(status == 404 && page.contains("<html lang=\"fr\">"), "{page}");
        assert!(page.contains("Introuvable"), "{page}");
        // A program gets a failure.
        let answer = service.http.get(address).send().unwrap();
        assert_eq!(answer.json::<serde_json::Value>().unwrap()["code"], 101);
    }
}

#[test]
fn who_is_not_signed_in_reads_their_own_language() {
    let service = Service::start();
    let dashboard = service.dashboard();
    let german = [
        ("/sign-in", "Ich habe mein Passwort vergessen"),
        ("/register", "Mindestens 8 Zeichen."),
        ("/forgot-password", "Dieser Server verschickt keine E-Mails."),
        ("/reset-password", "Token des Links"),
        ("/reset-password?token=x", "Damit werden Sie überall abgemeldet"),
        ("/first-start?token=x", "Administrator werden"),
        ("/invitations?token=x", "Verwenden Sie die Adresse"),
    ];
    for (path, text) in german {
        let (status, page) = page(&service, &format!("{dashboard}{path}"), "de");
        assert_eq!(status, 200, "{path}");
        assert!(page.contains("<html lang=\"de\"") && page.contains(text), "{path}: {page}");
    }
    // Until somebody follows the link in the log, the page to sign in says where it is.
    let waits = "Dieser Server hat noch keinen Administrator.";
    let sign_in = format!("{dashboard}/sign-in");
    assert!(page(&service, &sign_in, "de").1.contains(waits));
    service.administrator();
    assert!(!page(&service, &sign_in, "de").1.contains(waits));
    // The pages of those who are signed in are in English, and say so.
    let (_, page) = page(&service, &format!("{dashboard}/nothing"), "es");
    assert!(page.contains("<html lang=\"es\""), "{page}");
}
