//! Invitations to an organization: who sees them, who withdraws them, and how many are sent.

use crate::support::{
    load::together,
    service::{Answer, Person, Service},
};
use serde_json::{Value, json};

struct Acme {
    service: Service,
    id: Value,
    ada: Person,
}

impl Acme {
    fn new() -> Acme {
        let service =
            Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise"), ("SVC_LOG", "warn")]);
        let ada = service.register("ada");
        let made = service.call(Some(&ada), "createOrganization", json!({"name": "Acme \"HQ\""}));
        Acme { id: made.ok()["id"].clone(), ada, service }
    }

    fn call(&self, who: &Person, function: &str, params: Value) -> Answer {
        self.service.call(Some(who), function, params)
    }

    fn invite(&self, email: &str) -> Answer {
        let params = json!({"organizationId": self.id, "email": email, "role": "client"});
        self.call(&self.ada, "inviteMember", params)
    }

    fn accept(&self, who: &Person, token: &Value) -> Answer {
        self.call(who, "acceptInvitation", json!({"token": token}))
    }

    fn pending(&self, who: &Person) -> Vec<Value> {
        let list = self.call(who, "svc_getInvitations", json!({"organizationId": self.id})).ok();
        list["items"].as_array().unwrap().clone()
    }

    fn revoke(&self, who: &Person, invitation: &Value) -> Answer {
        let params = json!({"organizationId": self.id, "invitationId": invitation});
        self.call(who, "svc_revokeInvitation", params)
    }
}

fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[test]
fn an_invitation_is_listed_until_it_is_taken_or_withdrawn() {
    let acme = Acme::new();
    let [bob, eve] = ["bob", "eve"].map(|name| acme.service.register(name));
    assert!(acme.pending(&acme.ada).is_empty());
    let for_bob = acme.invite(&bob.email).ok();
    let for_eve = acme.invite(&eve.email).ok();
    let pending = acme.pending(&acme.ada);
    assert_eq!(pending.len(), 2);
    assert_eq!((&pending[0]["id"], &pending[1]["id"]), (&for_eve["id"], &for_bob["id"]));
    assert_eq!((&pending[1]["email"], &pending[1]["role"]), (&json!(bob.email), &json!("client")));
    assert!(!json!(pending).to_string().contains("svc_inv_"), "a token is shown once");
    let token = for_bob["acceptToken"].as_str().unwrap();
    assert!(token.starts_with("svc_inv_"));

    // Inviting again renews the invitation and ends its earlier token.
    let again = acme.invite(&bob.email.to_uppercase()).ok();
    assert_eq!(acme.pending(&acme.ada).len(), 2);
    assert_eq!(acme.accept(&bob, &for_bob["acceptToken"]).refusal(), (404, 101));
    let joined = acme.accept(&bob, &again["acceptToken"]).ok();
    assert_eq!(joined["members"].as_array().unwrap().len(), 2);
    let pending = acme.pending(&acme.ada);
    assert_eq!(pending.len(), 1, "who joined is not invited any more");
    assert_eq!(acme.revoke(&acme.ada, &again["id"]).refusal(), (404, 101));

    // Only members who may invite can see and withdraw invitations.
    for who in [&bob, &eve] {
        let (status, code) = if who.id == bob.id { (403, 403) } else { (404, 101) };
        let params = json!({"organizationId": acme.id});
        assert_eq!(acme.call(who, "svc_getInvitations", params).refusal(), (status, code));
        assert_eq!(acme.revoke(who, &for_eve["id"]).refusal(), (status, code));
    }
    acme.revoke(&acme.ada, &for_eve["id"]).ok();
    assert!(acme.pending(&acme.ada).is_empty());
    assert_eq!(acme.accept(&eve, &for_eve["acceptToken"]).refusal(), (404, 101));
    assert_eq!(acme.revoke(&acme.ada, &for_eve["id"]).refusal(), (404, 101));

    // The mail says who invites, and quotes the name of the organization.
    let log = acme.service.log();
    assert!(log.contains("ada@example.com invites you"), "{log}");
    assert!(log.contains("“Acme 'HQ'”"), "{log}");
}

#[test]
fn many_accept_and_withdraw_at_once() {
    let acme = Acme::new();
    let [bob, eve] = ["bob", "eve"].map(|name| acme.service.register(name));
    let token = acme.invite(&bob.email).ok()["acceptToken"].clone();
    let answers = together(16, |_| acme.accept(&bob, &token));
    let first = answers[0].body["result"].clone();
    assert_eq!(first["members"].as_array().unwrap().len(), 2, "{first}");
    for answer in &answers {
        assert_eq!((answer.status, &answer.body["result"]), (200, &first));
    }

    // Of a withdrawal and an acceptance at the same moment, one succeeds.
    let invitation = acme.invite(&eve.email).ok();
    let answers = together(16, |caller| {
        if caller % 2 == 0 {
            acme.revoke(&acme.ada, &invitation["id"])
        } else {
            acme.accept(&eve, &invitation["acceptToken"])
        }
    });
    let organization = acme.call(&acme.ada, "getOrganization", json!({"organizationId": acme.id}));
    let joined = organization.ok()["members"].as_array().unwrap().len() == 3;
    assert_eq!(count(&answers, 200), if joined { 8 } else { 1 }, "{answers:?}");
    assert_eq!(count(&answers, 404), if joined { 8 } else { 15 }, "{answers:?}");
}

#[test]
fn a_recipient_is_invited_three_times_an_hour() {
    let acme = Acme::new();
    let answers = together(16, |_| acme.invite("bob@example.com"));
    assert_eq!((count(&answers, 200), count(&answers, 429)), (3, 13), "{answers:?}");
    assert_eq!(acme.pending(&acme.ada).len(), 1);
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert!(refused.body["error"].as_str().unwrap().contains("invitations"), "{}", refused.body);
    assert!(refused.headers.contains_key("retry-after"));

    // The limit also holds for another organization, because it protects the recipient.
    let other = acme.call(&acme.ada, "createOrganization", json!({"name": "Other"})).ok();
    let params =
        json!({"organizationId": other["id"], "email": "BOB@example.com", "role": "admin"});
    assert_eq!(acme.call(&acme.ada, "inviteMember", params).refusal(), (429, 429));
    // An invitation that is refused for another reason does not count.
    for _ in 0..4 {
        assert_eq!(acme.invite(&acme.ada.email).refusal(), (409, 137));
    }
}
