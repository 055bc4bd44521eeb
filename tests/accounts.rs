//! The protection of accounts: failed sign-ins, and what is known of an account.

use crate::support::{
    load::together,
    service::{Answer, Service},
};
use serde_json::json;

pub fn open() -> Service {
    Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise"), ("SVC_LOG", "warn")])
}

pub fn error(answer: &Answer) -> &str {
    answer.body["error"].as_str().unwrap_or_default()
}

/// Signs in from this loopback address.
fn sign_in_from(service: &Service, last: u8, email: &str, password: &str) -> Answer {
    let client = Service::client_at([127, 0, 0, last]);
    let params = json!({"email": email, "password": password});
    Service::answer(service.request(&client, "loginWithEmail", &params).send().unwrap()).unwrap()
}

pub fn statuses(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[test]
fn what_does_not_sign_in_is_told_nothing_more() {
    let service = open();
    let ada = service.register("ada");
    let long = "x".repeat(300);
    let wrong = [
        (ada.email.as_str(), "wrong horse"),
        (&ada.email, "short"),
        (&ada.email, ""),
        (&ada.email, &long),
        ("nobody@example.com", "wrong horse"),
        ("no address", "wrong horse"),
        ("", "short"),
    ];
    for (email, password) in wrong {
        let params = json!({"email": email, "password": password});
        let refused = service.call(None, "loginWithEmail", params);
        assert_eq!(refused.refusal(), (404, 101), "{email:?} {password:?}");
        assert_eq!(error(&refused), "wrong e-mail or password");
        assert!(refused.body.get("details").is_none(), "{}", refused.body);
        let login = service.http.post(format!("{}/backend/login", service.url));
        let login = login.json(&json!({"username": email, "password": password, "_method": "GET"}));
        let login = login.header("X-Parse-Application-Id", &service.application_id);
        let refused = Service::answer(login.send().unwrap()).unwrap();
        assert_eq!((refused.refusal(), error(&refused)), ((404, 101), "wrong e-mail or password"));
    }
    for params in [
        json!({"email": ada.email}),
        json!({"password": "correct horse"}),
        json!({"email": ada.email, "password": 12345678}),
        json!({"email": [ada.email], "password": "correct horse"}),
        json!({"email": ada.email, "password": null}),
    ] {
        let refused = service.call(None, "loginWithEmail", params.clone());
        assert_eq!(refused.refusal(), (400, 142), "{params}");
        assert!(!error(&refused).contains("12345678"), "{}", refused.body);
    }

    // Other functions have their own sentences.
    let change = |current: &str, new: &str| {
        let params = json!({"currentPassword": current, "newPassword": new});
        service.call(Some(&ada), "changePassword", params)
    };
    for current in ["wrong horse", "short"] {
        let refused = change(current, "another horse");
        let told = (refused.refusal(), error(&refused));
        assert_eq!(told, ((404, 101), "the current password is wrong"));
    }
    assert_eq!(change("correct horse", "short").refusal(), (400, 142));
    let params = json!({"token": "no such token", "newPassword": "another horse"});
    let refused = service.call(None, "resetPassword", params);
    assert_eq!(refused.refusal(), (401, 119));
    assert!(error(&refused).contains("reset token"), "{}", refused.body);
    assert!(!service.log().contains("horse"), "no password is logged");
}

#[test]
fn ten_failures_lock_an_address_out_and_ten_more_all_that_are_new() {
    let mut service = open();
    let ada = service.register("ada");
    let sign_in = |last: u8, password: &str| sign_in_from(&service, last, &ada.email, password);
    assert_eq!(sign_in(2, "correct horse").status, 200, "a second address is known from now on");

    // A known address of the account also gets only ten guesses.
    for _ in 0..10 {
        assert_eq!(sign_in(2, "wrong").refusal(), (404, 101));
    }
    let locked = sign_in(2, "correct horse");
    assert_eq!(locked.refusal(), (429, 429));
    assert!(error(&locked).contains("too many failed sign-ins"), "{}", locked.body);
    assert!(error(&locked).contains("15 minutes"), "{}", locked.body);
    assert!(locked.headers.contains_key("retry-after"));
    assert_eq!(sign_in(1, "correct horse").status, 200, "a known address that did not fail");

    // The same holds for an e-mail without an account.
    for email in [ada.email.as_str(), "nobody@example.com"] {
        let sign_in = |last: u8, password: &str| sign_in_from(&service, last, email, password);
        for _ in 0..10 {
            assert_eq!(sign_in(3, "wrong horse").refusal(), (404, 101));
        }
        let upper = sign_in_from(&service, 3, &email.to_uppercase(), "correct horse");
        assert_eq!(upper.refusal(), (429, 429));
        // One address alone cannot keep others out.
        for _ in 0..9 {
            assert_eq!(sign_in(4, "wrong horse").refusal(), (404, 101));
        }
        assert_eq!(sign_in(5, "wrong horse").refusal(), (404, 101));
        let new = sign_in(6, "correct horse");
        assert_eq!(new.refusal(), (429, 429), "{email}: twenty failures from new addresses");
        assert!(error(&new).contains("new addresses"), "{}", new.body);
    }
    assert_eq!(sign_in(1, "correct horse").status, 200, "the person gets in all the same");
    assert_eq!(sign_in(3, "correct horse").refusal(), (429, 429), "and frees no guesser");

    // Guesses of the current password have their own count, over all addresses.
    let change = |current: &str| {
        let params = json!({"currentPassword": current, "newPassword": "another horse"});
        service.call(Some(&ada), "changePassword", params)
    };
    for _ in 0..10 {
        assert_eq!(change("wrong horse").refusal(), (404, 101));
    }
    let locked = change("correct horse");
    assert_eq!(locked.refusal(), (429, 429), "a stolen session guesses ten times");
    assert!(error(&locked).contains("current password"), "{}", locked.body);

    // No kill of the service gives more guesses.
    service.kill();
    service.boot();
    let locked = sign_in_from(&service, 3, &ada.email, "correct horse");
    assert_eq!(locked.refusal(), (429, 429));
}

#[test]
fn the_networks_of_one_ipv6_site_are_one_guesser() {
    let settings = [("SVC_TRUSTED_PROXIES", "127.0.0.1"), ("SVC_ANONYMOUS_TIER", "enterprise")];
    let service = Service::start_with(&settings);
    let ada = service.register("ada");
    let sign_in = |address: &str, password: &str| {
        let params = json!({"email": ada.email, "password": password});
        let request = service.request(&service.http, "loginWithEmail", &params);
        Service::answer(request.header("X-Forwarded-For", address).send().unwrap()).unwrap()
    };
    for network in 1..=10 {
        let address = format!("2001:db8:7:{network}::1");
        assert_eq!(sign_in(&address, "wrong horse").refusal(), (404, 101), "{address}");
    }
    let locked = sign_in("2001:db8:7:11::1", "correct horse");
    assert_eq!(locked.refusal(), (429, 429));
    assert!(error(&locked).contains("from your address"), "{}", locked.body);
    let another_site = sign_in("2001:db8:8:1::1", "wrong horse");
    assert_eq!(another_site.refusal(), (404, 101));
}

#[test]
fn many_sign_ins_at_once_count_as_many() {
    let service = open();
    let ada = service.register("ada");
    let right = together(16, |_| sign_in_from(&service, 1, &ada.email, "correct horse"));
    assert_eq!(statuses(&right, 200), 16, "{right:?}");
    let wrong = together(16, |_| sign_in_from(&service, 7, &ada.email, "wrong horse"));
    assert_eq!((statuses(&wrong, 404), statuses(&wrong, 429)), (10, 6), "{wrong:?}");
    let right = together(16, |_| sign_in_from(&service, 1, &ada.email, "correct horse"));
    assert_eq!(statuses(&right, 200), 16, "{right:?}");
}

#[test]
fn addresses_cannot_be_read_from_the_store() {
    use sha2::{Digest, Sha256};
    let mut service = open();
    service.register("ada");
    service.stop();
    let dump = service.cli(&["admin", "backup", "store.gz"]);
    assert!(dump.status.success());
    let bytes = std::fs::read(service.home.join("store.gz")).unwrap();
    let mut text = String::new();
    let mut store = flate2::read::MultiGzDecoder::new(&bytes[..]);
    std::io::Read::read_to_string(&mut store, &mut text).unwrap();
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    assert!(text.contains(&hex(b"ada@example.com")), "the backup can be read");
    let hash = hex(&Sha256::digest("127.0.0.1"));
    assert!(!text.contains(&hex(hash.as_bytes())), "it is as good as the address itself");
}

#[test]
fn a_password_in_an_address_signs_nobody_in_unless_the_operator_wants_it() {
    for (settings, status) in [(&[][..], 400), (&[("SVC_LOGIN_BY_GET", "true")][..], 200)] {
        let service = Service::start_with(settings);
        let ada = service.register("ada");
        let query = "username=ada@example.com&password=correct%20horse";
        let login = service.http.get(format!("{}/backend/login?{query}", service.url));
        let login = login.header("X-Parse-Application-Id", &service.application_id);
        let answer = Service::answer(login.send().unwrap()).unwrap();
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.body["objectId"] == json!(ada.id), status == 200);
    }
}
