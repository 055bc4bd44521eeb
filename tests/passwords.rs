//! Changes and resets of passwords, and what they end.

use crate::{
    accounts::{error, open, statuses},
    support::{
        load::together,
        service::{Answer, Person, Service, eventually},
    },
};
use serde_json::{Value, json};

/// The password reset tokens in the operator's log.
fn reset_tokens(service: &Service) -> Vec<String> {
    let log = service.log().replace("\\n", "\n");
    let tokens = log.split("/reset-password?token=").skip(1);
    tokens.filter_map(|rest| rest.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn at_most_three_mails_an_hour_and_each_token_holds() {
    let mut service = open();
    let ada = service.register("ada");
    let ask = |service: &Service, email: &str| {
        service.call(None, "requestPasswordReset", json!({"email": email}))
    };
    let answers = together(16, |caller| {
        let emails = ["ada@example.com", "ADA@example.com"];
        ask(&service, emails[caller % 2])
    });
    assert_eq!(statuses(&answers, 200), 16, "{answers:?}");
    assert_eq!(ask(&service, "nobody@example.com").ok(), json!({}));
    // The reply does not wait for the mail. The audit log shows when all requests are handled.
    let dealt_with = |service: &Service, asked: usize| {
        let admin = service.administrator();
        let params = json!({"function": "requestPasswordReset", "limit": 200});
        eventually("all is dealt with", || {
            let log = service.call(Some(&admin), "svc_admin_getAuditLog", params.clone()).ok();
            log["items"].as_array().unwrap().len() == asked
        });
    };
    dealt_with(&service, 16);
    eventually("three mails go out", || reset_tokens(&service).len() == 3);
    let reset = |service: &Service, token: &str, password: &str| {
        service.call(None, "resetPassword", json!({"token": token, "newPassword": password}))
    };

    // A restart keeps the count, and an hour later three more mails are sent.
    for (ahead, asked, sent) in [("3000", 17, 3), ("3605", 21, 6)] {
        service.stop();
        service.set("SVC_CLOCK_AHEAD", ahead);
        service.boot();
        for _ in 0..(if sent == 3 { 1 } else { 4 }) {
            ask(&service, "ada@example.com").ok();
        }
        dealt_with(&service, asked);
        eventually("no more go out", || reset_tokens(&service).len() == sent);
    }
    let tokens = reset_tokens(&service);
    assert_eq!(reset(&service, &tokens[0], "another horse").refusal(), (401, 119), "expired");

    // A later token does not replace an earlier one. The first use of one ends them all.
    assert_eq!(reset(&service, &tokens[3], "short").refusal(), (400, 142));
    let answers = together(16, |_| reset(&service, &tokens[3], "another horse"));
    assert_eq!((statuses(&answers, 200), statuses(&answers, 401)), (1, 15), "{answers:?}");
    for token in &tokens {
        assert_eq!(reset(&service, token, "a third horse").refusal(), (401, 119));
    }
    service.sign_in(&ada, "another horse");
    service.stop();
    service.check();
}

#[test]
fn a_reset_does_not_tell_whether_there_is_an_account() {
    let service = open();
    service.register("ada");
    // The same request id with other parameters is refused, in either order of the e-mails.
    for (n, (first, second)) in
        [("ada@example.com", "nobody@example.com"), ("nobody@example.com", "ada@example.com")]
            .into_iter()
            .enumerate()
    {
        let once = format!("reset {n}");
        let ask = |email: &str| {
            let params = json!({"email": email});
            service.try_call(None, "requestPasswordReset", params, Some(&once)).unwrap()
        };
        assert_eq!(ask(first).ok(), json!({}));
        assert_eq!(ask(first).ok(), json!({}));
        assert_eq!(ask(second).refusal(), (400, 142));
    }
}

#[test]
fn a_new_password_ends_deploy_tokens_where_that_is_wanted() {
    let service = open();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let make = |who: &Person| {
        service.with_token(who, json!({"name": "ci", "scopes": ["artifact:upload"], "appId": app}))
    };
    let works = |token: &Person| {
        service.call(Some(token), "svc_getArtifacts", json!({"appId": app})).status == 200
    };
    let revoked = |who: &Person| -> Vec<bool> {
        let list = service.call(Some(who), "svc_getDeployTokens", json!({})).ok();
        let list = list["items"].as_array().unwrap().clone();
        list.iter().map(|token| !token["revokedAt"].is_null()).collect()
    };
    let change = |who: &Person, old: &str, new: &str, more: Value| {
        let mut params = json!({"currentPassword": old, "newPassword": new});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let token = service.call(Some(who), "changePassword", params).ok()["sessionToken"].clone();
        Person { token: token.as_str().unwrap().to_owned(), ..who.clone() }
    };
    let first = make(&ada);
    let ada = change(&ada, "correct horse", "horse 1 horse", json!({}));
    assert!(works(&first), "a change of the password leaves tokens alone");
    let ada = change(&ada, "horse 1 horse", "horse 2 horse", json!({"revokeTokens": true}));
    assert!(!works(&first), "unless it is asked to end them");
    let second = make(&ada);
    assert!(works(&second));
    assert_eq!(revoked(&ada), [false, true]);

    let reset = |more: Value| {
        let before = reset_tokens(&service).len();
        service.call(None, "requestPasswordReset", json!({"email": ada.email})).ok();
        eventually("the token is there", || reset_tokens(&service).len() > before);
        let token = reset_tokens(&service).pop();
        let mut params = json!({"token": token, "newPassword": "horse 3 horse"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        service.call(None, "resetPassword", params).ok();
    };
    reset(json!({"revokeTokens": false}));
    assert!(works(&second));
    reset(json!({}));
    assert!(!works(&second), "a reset ends the tokens that a thief may have made");
    let ada = service.sign_in(&ada, "horse 3 horse");
    assert_eq!(revoked(&ada), [true, true]);
    assert!(works(&make(&ada)));
}

/// Whoever registered the e-mail of somebody else first keeps nothing that works in the name of the
/// account, not even if the service is killed just after the reset.
#[test]
fn a_reset_ends_what_works_without_a_session() {
    let mut service = open();
    let thief = service.register("ada");
    let acme = json!({"name": "Acme"});
    let acme = service.call(Some(&thief), "createOrganization", acme).ok()["id"].clone();
    let (project, app) = service.project_with_app(&thief, Some(&acme));
    let other = json!({"projectId": project, "name": "Other"});
    let other = service.call(Some(&thief), "createApp", other).ok()["id"].clone();
    let apps = [app, other];
    let trust = |service: &Service, who: &Person, app: &Value, n: usize| {
        let params =
            json!({"appId": app, "repository": "acme/app", "workflow": format!("w{n}.yml")});
        service.call(Some(who), "svc_addTrustedPublisher", params).ok()
    };
    let hook = |service: &Service, who: &Person, n: usize| {
        let url = format!("https://hooks.example.com/{n}");
        let params = json!({"organizationId": acme, "url": url});
        service.call(Some(who), "svc_createWebhook", params).ok()
    };
    let publishers = |service: &Service, who: &Person| -> Vec<Value> {
        let of_app = |app: &Value| {
            let params = json!({"appId": app, "limit": 100});
            let list = service.call(Some(who), "svc_getTrustedPublishers", params).ok();
            list["items"].as_array().unwrap().clone()
        };
        apps.iter().flat_map(of_app).collect()
    };
    let disabled = |service: &Service, who: &Person| -> Vec<bool> {
        let params = json!({"organizationId": acme, "limit": 100});
        let list = service.call(Some(who), "svc_getWebhooks", params).ok();
        let list = list["items"].as_array().unwrap().clone();
        list.iter()
            .map(|webhook| {
                let why = webhook["disabledReason"].as_str().unwrap_or_default();
                assert_eq!(webhook["enabled"] == false, why.contains("password"), "{webhook}");
                webhook["enabled"] == false
            })
            .collect()
    };
    let make_all = |service: &Service, who: &Person| {
        for n in 0..20 {
            apps.iter().for_each(|app| drop(trust(service, who, app, n)));
        }
        (0..10).for_each(|n| drop(hook(service, who, n)));
    };
    let reset = |service: &Service, password: &str, revoke_tokens: bool| {
        let before = reset_tokens(service).len();
        service.call(None, "requestPasswordReset", json!({"email": thief.email})).ok();
        eventually("the token is there", || reset_tokens(service).len() > before);
        let token = reset_tokens(service).pop();
        let params =
            json!({"token": token, "newPassword": password, "revokeTokens": revoke_tokens});
        service.call(None, "resetPassword", params).ok();
    };

    make_all(&service, &thief);
    reset(&service, "horse 1 horse", false);
    let ada = service.sign_in(&thief, "horse 1 horse");
    assert_eq!((publishers(&service, &ada).len(), disabled(&service, &ada)), (40, vec![false; 10]));
    eventually("she is told", || service.log().contains("all sessions have ended"));
    assert!(!service.log().contains("webhooks that it made"));

    reset(&service, "horse 2 horse", true);
    service.kill();
    service.boot();
    let ada = service.sign_in(&thief, "horse 2 horse");
    // What she makes herself stays.
    let hers = trust(&service, &ada, &apps[1], 99);
    hook(&service, &ada, 99);
    eventually("what the other made is gone", || {
        let ended = disabled(&service, &ada).iter().filter(|disabled| **disabled).count();
        publishers(&service, &ada).len() == 1 && ended == 10
    });
    assert_eq!(publishers(&service, &ada), std::slice::from_ref(&hers));
    assert_eq!(disabled(&service, &ada).len(), 11);

    // Each is told in the audit log, once.
    let params = json!({"function": "resetPassword", "limit": 200});
    let admin = service.administrator();
    let log = service.call(Some(&admin), "svc_admin_getAuditLog", params).ok();
    let entries = log["items"].as_array().unwrap().iter();
    let resources: Vec<_> = entries.map(|entry| entry["resource"].as_str().unwrap()).collect();
    let publisher = hers["id"].as_str().unwrap()[..4].to_owned();
    for (prefix, count) in [(publisher.as_str(), 40), ("whk_", 10)] {
        let mut told: Vec<_> = resources.iter().filter(|id| id.starts_with(prefix)).collect();
        assert_eq!(told.len(), count, "{resources:?}");
        told.sort();
        told.dedup();
        assert_eq!(told.len(), count, "{resources:?}");
    }

    reset(&service, "horse 3 horse", true);
    let ada = service.sign_in(&thief, "horse 3 horse");
    eventually("all is gone", || publishers(&service, &ada).is_empty());
    eventually("the mail says so", || service.log().contains("webhooks that it made are disabled"));
}

#[test]
fn of_many_who_change_a_password_at_once_one_does() {
    let service = open();
    let ada = service.register("ada");
    let answers = together(16, |caller| {
        let new = format!("horse number {caller}");
        let params = json!({"currentPassword": "correct horse", "newPassword": new});
        let answer = service.call(Some(&ada), "changePassword", params);
        Answer { body: json!({"new": new, "answer": answer.body}), ..answer }
    });
    assert_eq!(statuses(&answers, 200), 1, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        let code = &answer.body["answer"]["code"];
        let lost = (answer.status, code.as_i64().unwrap());
        assert!([(404, 101), (401, 119)].contains(&lost), "{answer:?}");
    }
    let done = answers.iter().find(|answer| answer.status == 200).unwrap();
    let ada = Person {
        token: done.body["answer"]["result"]["sessionToken"].as_str().unwrap().to_owned(),
        ..ada
    };
    service.call(Some(&ada), "getCurrentUser", json!({})).ok();
    service.sign_in(&ada, done.body["new"].as_str().unwrap());
}

/// A client library of the Parse wire style saves a user with a new password in this way.
fn save(service: &Service, who: &Person, route: &str, mut fields: Value) -> Answer {
    fields["_method"] = "PUT".into();
    fields["_ApplicationId"] = service.application_id.clone().into();
    fields["_SessionToken"] = who.token.clone().into();
    let address = format!("{}/backend/{route}/{}", service.url, who.id);
    Service::answer(service.http.post(address).json(&fields).send().unwrap()).unwrap()
}

#[test]
fn a_session_alone_does_not_replace_the_password() {
    let mut service = open();
    let ada = service.register("ada");
    let new = json!({"password": "another horse"});
    let saved = save(&service, &ada, "classes/_User", new);
    assert_eq!(saved.status, 200, "she has just signed up: {saved:?}");
    let token = saved.body["sessionToken"].as_str().unwrap().to_owned();
    let ada = Person { token, ..ada };
    eventually("she is told", || service.log().matches("Your password was replaced").count() == 1);

    service.stop();
    service.set("SVC_CLOCK_AHEAD", "660");
    service.boot();
    for route in ["users", "classes/_User"] {
        let refused = save(&service, &ada, route, json!({"password": "a thief's horse"}));
        assert_eq!(refused.refusal(), (400, 142), "{refused:?}");
        assert_eq!(refused.body["details"][0]["field"], "currentPassword");
        let wrong = json!({"password": "a thief's horse", "currentPassword": "correct horse"});
        let refused = save(&service, &ada, route, wrong);
        assert_eq!(
            (refused.refusal(), error(&refused)),
            ((404, 101), "the current password is wrong")
        );
        let renamed = save(&service, &ada, route, json!({"name": "Ada L."}));
        assert_eq!(renamed.status, 200, "the profile needs no password: {renamed:?}");
    }
    service.sign_in(&ada, "another horse");
    let proven = json!({"password": "a third horse", "currentPassword": "another horse"});
    assert_eq!(save(&service, &ada, "users", proven).status, 200);
    let again = service.sign_in(&ada, "a third horse");
    let fresh = save(&service, &again, "users", json!({"password": "a fourth horse"}));
    assert_eq!(fresh.status, 200, "she has just signed in: {fresh:?}");
    eventually("she is told each time", || {
        service.log().matches("Your password was replaced").count() == 3
    });
}

/// The tokens for another e-mail in the operator's log.
fn email_tokens(service: &Service) -> Vec<String> {
    let log = service.log().replace("\\n", "\n");
    let tokens = log.split("/confirm-email?token=").skip(1);
    tokens.filter_map(|rest| rest.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn another_e_mail_is_set_by_whoever_reads_its_mail() {
    let service = open();
    let ada = service.register("ada");
    service.register("bob");
    let ask = |email: &str, password: &str| {
        let params = json!({"newEmail": email, "currentPassword": password});
        service.call(Some(&ada), "svc_changeEmail", params)
    };
    let confirm = |token: &str| service.call(None, "svc_confirmEmail", json!({"token": token}));
    let email =
        |who: &Person| service.call(Some(who), "getCurrentUser", json!({})).ok()["email"].clone();

    assert_eq!(ask("countess@example.com", "a wrong horse").refusal(), (404, 101));
    assert_eq!(ask("BOB@example.com", "correct horse").refusal(), (409, 137));
    assert_eq!(ask("ada@example.com", "correct horse").refusal(), (400, 142));
    assert_eq!(confirm("no token").refusal(), (401, 119));

    // A new password revokes what somebody else may have asked for.
    ask("thief@example.com", "correct horse").ok();
    eventually("the mail goes out", || email_tokens(&service).len() == 1);
    let params = json!({"currentPassword": "correct horse", "newPassword": "another horse"});
    let token = service.call(Some(&ada), "changePassword", params).ok()["sessionToken"].clone();
    let ada = Person { token: token.as_str().unwrap().to_owned(), ..ada.clone() };
    assert_eq!(confirm(&email_tokens(&service)[0]).refusal(), (401, 119));

    // Within ten minutes of the sign-in, no password is needed. At most three mails go out in an hour.
    let ask = |email: &str| service.call(Some(&ada), "svc_changeEmail", json!({"newEmail": email}));
    let answers = together(16, |caller| ask(&format!("ada{caller}@example.com")));
    assert_eq!((statuses(&answers, 200), statuses(&answers, 429)), (3, 13), "{answers:?}");
    eventually("three mails go out", || email_tokens(&service).len() == 4);
    assert_eq!(email(&ada), "ada@example.com", "nothing changes before it is confirmed");

    // A mail for a new password that went to the earlier e-mail is of no use afterwards.
    let mails = reset_tokens(&service).len();
    service.call(None, "requestPasswordReset", json!({"email": "ada@example.com"})).ok();
    eventually("the mail goes out", || reset_tokens(&service).len() > mails);
    let token = email_tokens(&service)[3].clone();
    let answers = together(16, |_| confirm(&token));
    assert_eq!((statuses(&answers, 200), statuses(&answers, 401)), (1, 15), "{answers:?}");
    let new = email(&ada);
    assert!(new.as_str().unwrap().starts_with("ada") && new != "ada@example.com", "{new}");
    let reset = reset_tokens(&service).pop().unwrap();
    let params = json!({"token": reset, "newPassword": "a third horse"});
    assert_eq!(service.call(None, "resetPassword", params).refusal(), (401, 119));
    let sign_in = |email: &Value| {
        let params = json!({"email": email, "password": "another horse"});
        service.call(None, "loginWithEmail", params).status
    };
    assert_eq!((sign_in(&new), sign_in(&json!("ada@example.com"))), (200, 404));

    // The earlier e-mail is free again, and its owner was told.
    service
        .call(
            None,
            "registerUser",
            json!({"email": "ada@example.com", "password": "correct horse"}),
        )
        .ok();
    eventually("the earlier e-mail is told", || {
        service.log().contains("The e-mail of your account was changed")
    });
}
