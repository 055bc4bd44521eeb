//! What operators tell everybody who uses the service, until a moment.

use crate::support::service::{Answer, Person, Service, eventually};
use actors::kinds::people::announcements::Announcements;
use contract::Timestamp;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The service does not doubt a clock that goes ahead by less than an hour.
const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

fn announce(service: &Service, who: &Person, params: Value) -> Answer {
    service.call(Some(who), "svc_createAnnouncement", params)
}

/// The texts of the announcements that this person sees.
fn seen(service: &Service, who: &Person) -> Vec<String> {
    let list = service.call(Some(who), "svc_getAnnouncements", json!({})).ok();
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["text"].as_str().unwrap().to_owned()).collect()
}

/// How many announcements the store of a stopped service has.
fn stored(service: &Service) -> usize {
    let store = service.open_store();
    let count = store.whole::<Announcements>(None).count();
    store.close();
    count
}

#[test]
fn everybody_sees_an_announcement_until_it_ends_or_is_deleted() {
    let mut service = Service::start();
    let (operator, ada) = (service.administrator(), service.register("ada"));
    let news = json!({"text": " Builds of iOS are back. "});
    assert_eq!(announce(&service, &ada, news.clone()).refusal(), (403, 403));
    let news = announce(&service, &operator, news).ok();
    assert_eq!((&news["tone"], &news["until"]), (&json!("info"), &Value::Null));
    let until = now() + HALF_AN_HOUR;
    let params = json!({"text": "Maintenance at 20:00.", "tone": "warning", "until": until});
    let maintenance = announce(&service, &operator, params).ok();
    assert_eq!((&maintenance["tone"], &maintenance["until"]), (&json!("warning"), &json!(until)));
    assert_eq!(seen(&service, &ada), ["Maintenance at 20:00.", "Builds of iOS are back."]);
    let nobody = service.call(None, "svc_getAnnouncements", json!({}));
    assert_eq!(nobody.refusal(), (401, 119));

    // When its time has come, nobody sees it, and then it is removed.
    service.stop();
    service.set("SVC_CLOCK_AHEAD", &(HALF_AN_HOUR.as_secs() + 1).to_string());
    service.boot();
    assert_eq!(seen(&service, &ada), ["Builds of iOS are back."]);
    eventually("what has ended is removed", || {
        service.stop();
        let left = stored(&service);
        service.boot();
        left == 1
    });

    let delete = |who: &Person, id: &Value| {
        service.call(Some(who), "svc_deleteAnnouncement", json!({"announcementId": id}))
    };
    assert_eq!(delete(&operator, &maintenance["id"]).refusal(), (404, 101));
    assert_eq!(delete(&ada, &news["id"]).refusal(), (403, 403));
    assert_eq!(delete(&operator, &news["id"]).ok(), json!({"deleted": news["id"]}));
    assert!(seen(&service, &ada).is_empty());
}

#[test]
fn announcements_are_few_and_end_within_a_year() {
    let service = Service::start();
    let operator = service.administrator();
    for (until, why) in [
        ("2020-01-31T12:00:00.000Z", "must lie ahead"),
        ("2999-01-31T12:00:00.000Z", "must lie at most 365 days ahead"),
    ] {
        let refused = announce(&service, &operator, json!({"text": "Soon", "until": until}));
        assert_eq!(refused.refusal(), (400, 142));
        assert!(refused.body["error"].as_str().unwrap().contains(why), "{}", refused.body);
    }
    let made: Vec<_> = (0..20)
        .map(|n| announce(&service, &operator, json!({"text": format!("News {n}")})).ok())
        .collect();
    let refused = announce(&service, &operator, json!({"text": "More"}));
    assert_eq!(refused.refusal(), (409, 119));
    let error = refused.body["error"].as_str().unwrap();
    assert!(error.contains("delete one with svc_deleteAnnouncement"), "{error}");
    let one = json!({"announcementId": made[7]["id"]});
    service.call(Some(&operator), "svc_deleteAnnouncement", one).ok();
    announce(&service, &operator, json!({"text": "More"})).ok();
    let seen = seen(&service, &operator);
    assert_eq!((seen.len(), seen[0].as_str()), (20, "More"));
    assert!(!seen.contains(&"News 7".to_owned()), "{seen:?}");
}
