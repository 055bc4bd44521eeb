//! Rate limits, and whom a call counts for.

use crate::{
    support::{
        load::together,
        service::{Answer, Person, Service, eventually},
    },
    uploads::opening,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn number(answer: &Answer, name: &str) -> u64 {
    let value = answer.headers.get(name).unwrap_or_else(|| panic!("no {name}: {answer:?}"));
    value.to_str().unwrap().parse().unwrap()
}

#[allow(clippy::disallowed_methods, reason = "the reply's moment is compared with the real one")]
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The remaining calls, and the limit.
fn left(answer: &Answer) -> (u64, u64) {
    (number(answer, "x-ratelimit-remaining"), number(answer, "x-ratelimit-limit"))
}

fn me(service: &Service, who: &Person) -> Answer {
    service.call(Some(who), "getCurrentUser", json!({}))
}

/// Calls until a call is refused. Returns the number of accepted calls, and the refusal.
fn exhaust(mut call: impl FnMut() -> Answer) -> (u64, Answer) {
    let mut passed = 0;
    loop {
        let answer = call();
        if answer.status == 429 {
            return (passed, answer);
        }
        assert!(passed < 200, "nothing limits this caller: {answer:?}");
        passed += 1;
    }
}

#[test]
fn a_free_account_makes_sixty_calls_a_minute_however_it_signs_in() {
    let service = Service::start();
    let admin = service.administrator();
    let (ada, bob) = (service.register_free("ada"), service.register_free("bob"));
    let begun = Instant::now();
    let first = me(&service, &ada);
    assert_eq!(left(&first), (59, 60));
    let token = service.with_token(&ada, json!({"name": "ci", "scopes": ["artifact:upload"]}));
    let again = service.sign_in(&ada, "correct horse");
    let mut calls = 2;
    let (passed, refused) = exhaust(|| {
        calls += 1;
        let answer = me(&service, if calls % 2 == 0 { &ada } else { &again });
        if answer.status == 200 {
            let regained = begun.elapsed().as_secs() + 1;
            let spent = u64::try_from(calls).unwrap();
            let (remaining, limit) = left(&answer);
            assert!(
                limit == 60 && remaining <= (60 + regained).saturating_sub(spent),
                "{answer:?}"
            );
            let now = unix_seconds();
            let reset = number(&answer, "x-ratelimit-reset");
            assert!((now..=now + 61).contains(&reset), "{reset} is not within a minute of {now}");
        }
        answer
    });
    let regained = begun.elapsed().as_secs() + 1;
    assert!((58..=58 + regained).contains(&passed), "{passed} of 60 passed after the first two");
    assert_eq!((refused.refusal(), left(&refused)), ((429, 429), (0, 60)));
    assert!((1..=2).contains(&number(&refused, "retry-after")), "{refused:?}");

    // Every address and credential checks the limit first.
    let session = |path: &str| {
        let request = service.http.post(format!("{}{path}", service.url)).json(&json!({}));
        request.header("X-Backend-Session-Token", &ada.token)
    };
    for path in [
        "/backend/functions/getCurrentUser",
        "/backend/nothing",
        "/api/v1/artifacts/upload-url",
        "/api",
    ] {
        exhaust(|| Service::answer(session(path).send().unwrap()).unwrap());
    }
    exhaust(|| service.call(Some(&token), "svc_getArtifacts", json!({})));
    assert_eq!(left(&me(&service, &bob)), (59, 60), "others are not touched");

    // A call succeeds after the pause that the refusal named.
    let (_, refused) = exhaust(|| me(&service, &ada));
    std::thread::sleep(Duration::from_secs(number(&refused, "retry-after")));
    assert_eq!(me(&service, &ada).status, 200);

    // A raised tier applies at once. A lowered tier caps the remaining calls.
    let set = |tier: &str| {
        let params = json!({"userId": ada.id, "tier": tier});
        assert_eq!(service.call(Some(&admin), "svc_admin_setTier", params).ok()["tier"], tier);
    };
    exhaust(|| me(&service, &ada));
    set("developer");
    assert_eq!(left(&me(&service, &ada)), (299, 300));
    set("free");
    assert!(left(&me(&service, &ada)).0 <= 10, "the calls before count in the lower tier");
    set("enterprise");
    assert_eq!(left(&me(&service, &ada)), (2_147_483_647, 2_147_483_647));
    let denied = service.call(
        Some(&bob),
        "svc_admin_setTier",
        json!({"userId": bob.id, "tier": "enterprise"}),
    );
    assert_eq!(denied.refusal(), (403, 403));
}

#[test]
fn callers_without_an_account_are_counted_by_their_address() {
    let service = &Service::start();
    let nobody = |address: [u8; 4]| {
        let client = Service::client_at(address);
        move |forwarded: &str| {
            let request = service_request(service, &client);
            Service::answer(request.header("X-Forwarded-For", forwarded).send().unwrap()).unwrap()
        }
    };
    let here = nobody([127, 0, 0, 2]);
    let mut hop = 0;
    let (passed, refused) = exhaust(|| {
        hop += 1;
        here(&format!("10.0.0.{hop}"))
    });
    assert!(passed <= 70, "a header that anyone can send made {passed} calls pass");
    assert_eq!(refused.refusal(), (429, 429));
    assert_eq!(nobody([127, 0, 0, 3])("10.0.0.1").status, 200);

    // Preflight requests and signed addresses are not counted.
    let client = Service::client_at([127, 0, 0, 2]);
    for _ in 0..5 {
        let address = format!("{}/backend/functions/getApp", service.url);
        let preflight = client
            .request(reqwest::Method::OPTIONS, address)
            .header("Origin", "https://example.com");
        assert_eq!(preflight.send().unwrap().status(), 204);
        let address = format!(
            "{}/api/v1/artifacts/art_01J9ZQ8F5W7V3T6M2K4N8R0P1S/content?expires=1&signature=x",
            service.url
        );
        let answer = Service::answer(client.put(address).body("x").send().unwrap()).unwrap();
        assert_eq!(answer.refusal(), (401, 119));
    }
}

fn service_request(
    service: &Service,
    client: &reqwest::blocking::Client,
) -> reqwest::blocking::RequestBuilder {
    service.request(client, "requestPasswordReset", &json!({"email": "nobody@example.com"}))
}

#[test]
fn a_trusted_proxy_says_who_calls_and_nobody_can_speak_for_it() {
    let service = Service::start_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.1,127.0.0.9")]);
    let from = |forwarded: &str| {
        let request = service_request(&service, &service.http);
        Service::answer(request.header("X-Forwarded-For", forwarded).send().unwrap()).unwrap()
    };
    exhaust(|| from("192.0.2.1"));
    assert_eq!(left(&from("192.0.2.2")), (59, 60));
    let spoofed = [
        "198.51.100.7, 192.0.2.1",
        "198.51.100.7,192.0.2.1, 127.0.0.9",
        "nonsense, 192.0.2.1",
        "::ffff:192.0.2.1",
    ];
    for forwarded in spoofed {
        eventually(&format!("{forwarded} is counted as 192.0.2.1"), || {
            from(forwarded).status == 429
        });
    }
    let two_lines =
        service_request(&service, &service.http).header("X-Forwarded-For", "198.51.100.8");
    let two_lines = two_lines.header("X-Forwarded-For", "192.0.2.1").send().unwrap();
    assert_eq!(Service::answer(two_lines).unwrap().status, 429, "the proxy wrote the last line");
    let away = Service::client_at([127, 0, 0, 5]);
    let request = service_request(&service, &away).header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(
        Service::answer(request.send().unwrap()).unwrap().status,
        200,
        "127.0.0.5 is no proxy"
    );
    let _: Value = from("192.0.2.3").ok();
}

#[test]
fn a_call_counts_as_much_as_it_costs() {
    let service = Service::start();
    let ada = service.register_free("ada");
    let document = service.http.get(format!("{}/openapi.json", service.url)).send().unwrap();
    let document: Value = document.json().unwrap();
    let cost = |function: &str| {
        document["paths"][format!("/functions/{function}")]["post"]["x-cost"].as_u64().unwrap()
    };
    let calls = [
        ("getCurrentUser", json!({}), 1),
        ("svc_getSessions", json!({}), 1),
        ("svc_getAuditLog", json!({}), 2),
    ];
    let begun = Instant::now();
    let mut spent = 0;
    for (function, params, told) in calls {
        assert_eq!(cost(function), told, "{function}");
        spent += told;
        let (remaining, limit) = left(&service.call(Some(&ada), function, params));
        let regained = begun.elapsed().as_secs() + 1;
        assert_eq!(limit, 60);
        assert!(
            (60 - spent..=60 - spent + regained).contains(&remaining),
            "{function}: {remaining}"
        );
    }
    // Eleven files are opened within a minute, and the refusal of the next one says when it passes.
    let (_, app) = service.project_with_app(&ada, None);
    let file =
        json!({"appId": app, "kind": "googleServiceAccount", "name": "play", "data": "bm9uZQ=="});
    assert_eq!(cost("svc_setCredential"), 5);
    let (passed, refused) = exhaust(|| service.call(Some(&ada), "svc_setCredential", file.clone()));
    assert!((1..=12).contains(&passed), "{passed} passed");
    let wait = number(&refused, "retry-after");
    assert!((1..=5).contains(&wait) && left(&refused).0 < 5, "{refused:?}");
    if left(&refused).0 == 0 {
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_eq!(me(&service, &ada).status, 200, "what is left is enough for a cheap call");
}

#[test]
fn the_networks_of_one_ipv6_customer_count_together() {
    let service = Service::start_with(&[("SVC_TRUSTED_PROXIES", "127.0.0.1")]);
    let from = |network: u8| {
        let address = format!("2001:db8:7:1{network:02x}::1");
        let request = service_request(&service, &service.http);
        Service::answer(request.header("X-Forwarded-For", address).send().unwrap()).unwrap()
    };
    let begun = Instant::now();
    let answers: Vec<_> = (0..=255).flat_map(|network| [from(network), from(network)]).collect();
    let passed = answers.iter().filter(|answer| answer.status == 200).count();
    let regained = 4 * (begun.elapsed().as_secs() as usize + 1);
    assert!((240..=240 + regained).contains(&passed), "{passed} of 512 passed");
}

#[test]
fn a_user_makes_three_organizations_and_keeps_a_hundred_sessions() {
    let mut service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let ada = service.register_free("ada");
    let make = |n: usize| {
        service.call(Some(&ada), "createOrganization", json!({"name": format!("Acme {n}")}))
    };
    let answers = together(16, make);
    let made = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(made, 3);
    let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
    assert_eq!(refused.refusal(), (409, 119), "{refused:?}");
    let page = service.call(Some(&ada), "listOrganizations", json!({"limit": 200})).ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 4, "the personal one does not count");
    let one = json!({"organizationId": page["items"][0]["id"]});
    service.call(Some(&ada), "deleteOrganization", one).ok();
    eventually("another one takes its place", || make(99).status == 200);

    let signed_in: Vec<_> =
        (0..7).flat_map(|_| together(16, |_| service.sign_in(&ada, "correct horse"))).collect();
    let newest = signed_in.last().unwrap();
    let page = service.call(Some(newest), "svc_getSessions", json!({"limit": 200})).ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 100);
    assert_eq!(me(&service, &ada).refusal(), (401, 119), "the oldest session has ended");
    service.stop();
    service.check();
}

/// The parameters that make one of many things.
type Params<'a> = &'a dyn Fn(usize) -> Value;

#[test]
fn what_an_app_or_an_organization_may_have_at_most_holds_for_sixteen_callers_at_once() {
    let mut service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let ada = service.register("ada");
    let acme = service.call(Some(&ada), "createOrganization", json!({"name": "Acme"})).ok();
    let (_, app) = service.project_with_app(&ada, Some(&acme["id"]));
    let credential = |n: usize| {
        let name = format!("git{n}.example.com");
        json!({"appId": app, "kind": "repositoryHost", "name": name, "data": "dG9rZW4="})
    };
    let webhook = |n: usize| {
        let url = format!("https://hooks.example.com/{n}");
        json!({"organizationId": acme["id"], "url": url})
    };
    let publisher =
        |n: usize| json!({"appId": app, "repository": "acme/app", "workflow": format!("w{n}.yml")});
    let of_app = json!({"appId": app, "limit": 200});
    let of_organization = json!({"organizationId": acme["id"], "limit": 200});
    let limits: [(&str, Params<'_>, &str, &Value, usize); 3] = [
        ("svc_setCredential", &credential, "svc_getCredentials", &of_app, 50),
        ("svc_createWebhook", &webhook, "svc_getWebhooks", &of_organization, 20),
        ("svc_addTrustedPublisher", &publisher, "svc_getTrustedPublishers", &of_app, 20),
    ];
    for (make, params, list, of, most) in limits {
        // All but four are there already, so that only one of four callers has room.
        let all: Vec<_> = (0..most - 4).map(params).collect();
        all.into_iter().for_each(|params| drop(service.call(Some(&ada), make, params).ok()));
        let wanted: Vec<_> = (100..116).map(params).collect();
        let answers = together(16, |n| service.call(Some(&ada), make, wanted[n].clone()));
        let (made, refused): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.status == 200);
        assert_eq!(made.len(), 4, "{make}: {refused:?}");
        for refused in refused {
            assert_eq!(refused.refusal(), (409, 119), "{make}");
            let why = refused.body["error"].as_str().unwrap();
            assert!(why.contains(&format!("{most} ")) && why.contains("first"), "{make}: {why}");
        }
        let held = service.call(Some(&ada), list, of.clone()).ok()["items"].clone();
        assert_eq!(held.as_array().unwrap().len(), most, "{list}");
    }
    service.stop();
    service.check();
}

#[test]
fn five_hundred_memberships_and_a_hundred_open_uploads_hold_for_sixteen_callers_at_once() {
    let mut service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    // Quotas would refuse others earlier.
    let admin = service.administrator();
    let (_, app) = service.project_with_app(&admin, None);
    let join = |_| service.call(Some(&admin), "createOrganization", json!({"name": "Acme"}));
    let open = |_| service.post(Some(&admin), "upload-url", &opening(&app));
    let fill = |most: usize, make: &(dyn Fn(usize) -> Answer + Sync)| {
        let (rounds, rest) = ((most - 4) / 16, (most - 4) % 16);
        for callers in [vec![16; rounds], vec![rest]].concat() {
            for answer in together(callers, make) {
                assert!([200, 201].contains(&answer.status), "{answer:?}");
            }
        }
        let refused: Vec<_> =
            together(16, make).into_iter().filter(|answer| answer.status >= 400).collect();
        assert_eq!(refused.len(), 12, "{most}");
        for answer in refused {
            assert_eq!(answer.refusal(), (409, 119), "{answer:?}");
        }
    };
    // One of them is the personal organization.
    fill(499, &join);
    fill(100, &open);
    service.stop();
    service.check();
}
