//! Who may register: anybody, people with an invitation, or nobody.

use crate::support::{load::together, service::Service};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse";

fn started(registration: &str) -> Service {
    Service::start_with(&[
        ("SVC_REGISTRATION", registration),
        ("SVC_ANONYMOUS_TIER", "enterprise"),
        ("SVC_LOG", "warn"),
    ])
}

fn register(service: &Service, params: Value) -> (u16, Value) {
    let mut all = json!({"email": "bob@example.com", "password": PASSWORD});
    all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
    let answer = service.call(None, "registerUser", all);
    (answer.status, answer.body)
}

/// A sign-up as client libraries send it.
fn sign_up(service: &Service, more: Value) -> (u16, Value) {
    let mut body = json!({"username": "bob@example.com", "password": PASSWORD});
    body["_ApplicationId"] = json!(service.application_id);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = service.http.post(format!("{}/backend/users", service.url)).json(&body).send();
    let answer = answer.unwrap();
    (answer.status().as_u16(), answer.json().unwrap())
}

fn page(service: &Service, path: &str) -> String {
    service.http.get(format!("{}{path}", service.dashboard())).send().unwrap().text().unwrap()
}

fn info(service: &Service) -> Value {
    service.call(None, "svc_getServiceInfo", json!({})).ok()
}

#[test]
fn nobody_registers_where_registration_is_closed_and_a_superadmin_makes_accounts() {
    let service = started("closed");
    assert_eq!(info(&service)["registration"], "closed");
    let administrator = service.administrator();
    let invite = |email: &str| {
        let acme = service.call(Some(&administrator), "createOrganization", json!({"name": "A"}));
        let params = json!({"organizationId": acme.ok()["id"], "email": email, "role": "client"});
        service.call(Some(&administrator), "inviteMember", params).ok()["acceptToken"].clone()
    };
    let token = invite("bob@example.com");
    for (status, body) in [
        register(&service, json!({})),
        register(&service, json!({"invitation": token})),
        sign_up(&service, json!({})),
    ] {
        assert_eq!((status, &body["code"]), (409, &json!(119)), "{body}");
        assert!(body["error"].as_str().unwrap().contains("closed"), "{body}");
    }
    assert!(!page(&service, "/sign-in").contains("/register"));
    let shown = page(&service, "/register");
    assert!(shown.contains("closed") && !shown.contains("action=\"/register\""), "{shown}");

    // Of sixteen calls at once, one makes the account.
    let make = |email: &str| {
        service.call(Some(&administrator), "svc_admin_createUser", json!({"email": email}))
    };
    let made = together(16, |_| make("bob@example.com"));
    let refused = made.iter().filter(|answer| answer.status == 409).count();
    assert_eq!(refused, 15);
    let made = made.into_iter().find(|answer| answer.status == 200).unwrap().ok();
    assert_eq!(made["user"]["email"], "bob@example.com");
    let link = made["url"].as_str().unwrap();
    assert!(link.starts_with(&service.dashboard()), "{link}");
    assert!(link.contains(made["token"].as_str().unwrap()), "{link}");
    let sign_in = |password: &str| {
        let params = json!({"email": "bob@example.com", "password": password});
        service.call(None, "loginWithEmail", params)
    };
    assert_eq!(sign_in(PASSWORD).refusal(), (404, 101));
    let set = |password: &str| {
        let params = json!({"token": made["token"], "newPassword": password});
        service.call(None, "resetPassword", params)
    };
    set(PASSWORD).ok();
    assert_eq!(set("another horse").refusal(), (401, 119), "the token works once");
    let bob = sign_in(PASSWORD).ok();
    let bob = crate::support::service::Person {
        id: bob["user"]["id"].as_str().unwrap().into(),
        email: "bob@example.com".into(),
        token: bob["sessionToken"].as_str().unwrap().into(),
    };
    // A member who is no superadmin makes none.
    let by_bob =
        service.call(Some(&bob), "svc_admin_createUser", json!({"email": "eve@example.com"}));
    assert_eq!(by_bob.refusal(), (403, 403));
}

#[test]
fn only_invited_people_register_where_registration_is_by_invitation() {
    let service = started("invitation");
    assert_eq!(info(&service)["registration"], "invitation");
    let administrator = service.administrator();
    let acme = service.call(Some(&administrator), "createOrganization", json!({"name": "Acme"}));
    let acme = acme.ok()["id"].clone();
    let invite = |email: &str| {
        let params = json!({"organizationId": acme, "email": email, "role": "client"});
        service.call(Some(&administrator), "inviteMember", params).ok()
    };
    let refused = |(status, body): (u16, Value), expected: (u16, i64)| {
        assert_eq!((status, body["code"].as_i64()), (expected.0, Some(expected.1)), "{body}");
    };
    refused(register(&service, json!({})), (409, 119));
    refused(sign_up(&service, json!({})), (409, 119));
    refused(register(&service, json!({"invitation": "svc_inv_guessed"})), (404, 101));
    let of_eve = invite("eve@example.com")["acceptToken"].clone();
    refused(register(&service, json!({"invitation": of_eve})), (404, 101));
    let withdrawn = invite("bob@example.com");
    let revoke = json!({"organizationId": acme, "invitationId": withdrawn["id"]});
    service.call(Some(&administrator), "svc_revokeInvitation", revoke).ok();
    refused(register(&service, json!({"invitation": withdrawn["acceptToken"]})), (404, 101));
    assert!(page(&service, "/register?to=/invitations%3Ftoken%3Dsvc_inv_1").contains("svc_inv_1"));

    let token = invite("Bob@example.com")["acceptToken"].clone();
    let (status, body) = register(&service, json!({"invitation": token}));
    assert_eq!(status, 200, "{body}");
    let session = body["result"]["sessionToken"].as_str().unwrap();
    let bob = crate::support::service::Person {
        id: body["result"]["user"]["id"].as_str().unwrap().into(),
        email: "bob@example.com".into(),
        token: session.into(),
    };
    service.call(Some(&bob), "acceptInvitation", json!({"token": token})).ok();
    // The token has done its work: it registers nobody else.
    refused(register(&service, json!({"invitation": token})), (404, 101));
    // Client libraries send the token with the sign-up.
    let (status, body) =
        sign_up(&service, json!({"username": "eve@example.com", "invitation": of_eve}));
    assert_eq!(status, 201, "{body}");
}

#[test]
fn anybody_registers_by_default() {
    let service = Service::start();
    assert_eq!(info(&service)["registration"], "open");
    assert!(page(&service, "/sign-in").contains("/register"));
    service.register("bob");
}
