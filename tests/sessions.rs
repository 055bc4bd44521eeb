//! Sessions: listed, replaced, and ended.

use crate::{
    identity::{open, text},
    support::service::Person,
};
use serde_json::{Value, json};

#[test]
fn sessions_are_listed_ended_and_replaced() {
    let service = open();
    let ada = service.register("ada");
    let (phone, laptop) =
        (service.sign_in(&ada, "correct horse"), service.sign_in(&ada, "correct horse"));
    let call =
        |who: &Person, function: &str, params: Value| service.call(Some(who), function, params);
    let sessions = call(&phone, "svc_getSessions", json!({})).ok();
    let sessions = sessions["items"].as_array().unwrap();
    assert_eq!(sessions.len(), 3);
    assert_eq!(sessions.iter().map(|s| &s["current"]).collect::<Vec<_>>(), [false, true, false]);
    assert!(!json!(sessions).to_string().contains(&phone.token[2..]), "a token is not shown again");

    // Another session of the account can end a session, and so can the session itself, but not a
    // stranger.
    let bob = service.register("bob");
    let laptop_id = json!({"sessionId": sessions[0]["id"]});
    assert_eq!(call(&bob, "svc_revokeSession", laptop_id.clone()).refusal(), (404, 101));
    call(&phone, "svc_revokeSession", laptop_id.clone()).ok();
    assert_eq!(call(&laptop, "getCurrentUser", json!({})).refusal(), (401, 119));
    assert_eq!(call(&phone, "svc_revokeSession", laptop_id).refusal(), (404, 101));
    call(&phone, "logout", json!({})).ok();
    assert_eq!(call(&phone, "getCurrentUser", json!({})).refusal(), (401, 119));
    assert_eq!(call(&ada, "svc_getSessions", json!({})).ok()["items"].as_array().unwrap().len(), 1);

    // An ended session does not prevent a new sign-in.
    let stale = service.call(
        Some(&phone),
        "loginWithEmail",
        json!({"email": "ADA@example.COM", "password": "correct horse"}),
    );
    let phone = Person { token: text(&stale.ok()["sessionToken"]), ..ada.clone() };

    // A new password ends all sessions, and the caller gets a new token.
    let change = |current: &str, new: &str| {
        call(&phone, "changePassword", json!({"currentPassword": current, "newPassword": new}))
    };
    assert_eq!(change("wrong horse", "another horse").refusal(), (404, 101));
    assert_eq!(change("correct horse", "short").refusal(), (400, 142));
    let token = text(&change("correct horse", "another horse").ok()["sessionToken"]);
    for ended in [&ada, &phone] {
        assert_eq!(call(ended, "getCurrentUser", json!({})).refusal(), (401, 119));
    }
    let phone = Person { token, ..phone.clone() };
    let sessions = call(&phone, "svc_getSessions", json!({})).ok();
    assert_eq!(sessions["items"].as_array().unwrap().len(), 1);
    assert_eq!(sessions["items"][0]["current"], true);
    let old = service.call(
        None,
        "loginWithEmail",
        json!({"email": ada.email, "password": "correct horse"}),
    );
    assert_eq!(old.refusal(), (404, 101));

    // A deploy token is not a session.
    let token = service.with_token(&phone, json!({"name": "ci", "scopes": ["artifact:upload"]}));
    for function in ["svc_getSessions", "logout"] {
        assert_eq!(call(&token, function, json!({})).refusal(), (401, 119), "{function}");
    }
}

#[test]
fn a_session_lives_while_it_is_used_and_ends_a_month_after() {
    const DAY: u64 = 24 * 3600;
    let mut service = open();
    let used = service.register("ada");
    let idle = service.sign_in(&used, "correct horse");
    let mut at = |seconds: u64| {
        service.stop();
        service.set("SVC_CLOCK_AHEAD", &seconds.to_string());
        service.boot();
        let alive = |who: &Person| service.call(Some(who), "getCurrentUser", json!({})).status;
        // The idle session is not called at first, because a call would use it.
        (alive(&used), if seconds < 40 * DAY { 0 } else { alive(&idle) })
    };
    assert_eq!(at(29 * DAY), (200, 0));
    assert_eq!(at(58 * DAY), (200, 401), "the one was used meanwhile, the other was not");
    assert_eq!(at(87 * DAY + 12 * 3600), (200, 401));
    assert_eq!(at(118 * DAY), (401, 401));
}

#[test]
fn a_session_that_was_idle_can_be_ended() {
    let mut service = open();
    let ada = service.register("ada");
    service.stop();
    service.set("SVC_CLOCK_AHEAD", "7200");
    service.boot();
    // The call records the use of the session, and also ends it.
    service.call(Some(&ada), "logout", json!({})).ok();
    assert_eq!(service.call(Some(&ada), "getCurrentUser", json!({})).refusal(), (401, 119));
}
