//! Ids, timestamps, cursors and text survive a round trip, and wrong input is refused.

use contract::{
    Cursor, Email, Id, Limit, Patch, ProjectId, Timestamp, UserId, VersionName,
    authentication::UpdateProfile, params,
};
use proptest::prelude::*;
use ulid::Ulid;

proptest! {
    #[test]
    fn an_id_has_one_spelling_and_sorts_as_its_text(a in any::<u128>(), b in any::<u128>()) {
        let (a, b) = (ProjectId::of(Ulid(a)), ProjectId::of(Ulid(b)));
        prop_assert_eq!(a.to_string().parse::<ProjectId>().unwrap(), a);
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        prop_assert!(a.to_string().parse::<UserId>().is_err());
        prop_assert!(a.to_string().to_lowercase().parse::<ProjectId>().is_err());
    }

    #[test]
    fn text_that_is_an_id_is_spelled_as_one(text in "prj_[0-9A-Za-z]{26}") {
        if let Ok(id) = text.parse::<ProjectId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn a_moment_keeps_its_milliseconds(millis in -62_135_596_800_000_i64..253_402_300_799_999) {
        let moment = Timestamp::from_millis(millis);
        let json = serde_json::to_string(&moment).unwrap();
        prop_assert!(json.ends_with("Z\"") && json.contains('.'), "{}", json);
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), moment);
        let date = format!(r#"{{"__type":"Date","iso":{json}}}"#);
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&date).unwrap(), moment);
    }

    #[test]
    fn a_cursor_holds_its_key(key in "[a-z0-9_A-Z]{1,64}") {
        let cursor = Cursor::after(&key);
        let read: Cursor = serde_json::from_value(serde_json::to_value(&cursor).unwrap()).unwrap();
        prop_assert_eq!(read.key(), key);
    }

    #[test]
    fn no_text_that_clients_make_up_breaks_a_cursor(text in any::<String>()) {
        if let Ok(cursor) = serde_json::from_value::<Cursor>(text.clone().into()) {
            prop_assert_eq!(cursor.encode(), text.to_lowercase());
            prop_assert!(cursor.key().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        }
    }

    #[test]
    fn no_bytes_break_the_reading_of_parameters(bytes in any::<Vec<u8>>()) {
        let _ = params::read::<UpdateProfile>(&bytes);
    }

    #[test]
    fn no_text_breaks_the_rules_of_text(text in any::<String>()) {
        let _ = (text.parse::<Email>(), text.parse::<VersionName>(), text.parse::<contract::WebUrl>(), text.parse::<contract::Name>());
    }
}

#[test]
fn parameters_say_all_that_is_wrong_with_them() {
    let problems = |body: &str| match params::read::<UpdateProfile>(body.as_bytes()) {
        Err(fault) => fault.details().iter().map(|p| p.field.clone()).collect::<Vec<_>>(),
        Ok(_) => vec!["fine".into()],
    };
    assert_eq!(problems(""), ["fine"]);
    assert_eq!(problems(r#"{"_ApplicationId":"x","name":"Ada"}"#), ["fine"]);
    assert_eq!(problems(r#"{"nmae":"Ada","colour":1}"#), ["colour", "nmae"]);
    assert_eq!(problems(r#"{"name":7}"#), ["name"]);
    assert_eq!(problems("[]"), Vec::<String>::new());
    let deep = format!(r#"{{"name":{}1{}}}"#, "[".repeat(70), "]".repeat(70));
    assert!(
        params::read::<UpdateProfile>(deep.as_bytes()).unwrap_err().to_string().contains("deeper")
    );
}

#[test]
fn an_update_keeps_clears_or_sets() {
    let read = |body: &str| params::read::<UpdateProfile>(body.as_bytes()).unwrap().company;
    assert_eq!(read("{}"), Patch::Keep);
    assert_eq!(read(r#"{"company":null}"#), Patch::Clear);
    assert_eq!(read(r#"{"company":"Acme"}"#), Patch::Set("Acme".parse().unwrap()));
}

#[test]
fn e_mails_and_limits_have_rules() {
    for good in ["ada@example.com", "a.b+c@x-y.example", "admin@localhost", "ü@example.com"] {
        assert!(good.parse::<Email>().is_ok(), "{good}");
    }
    for bad in [
        "",
        "ada",
        "@example.com",
        "ada@",
        "a b@example.com",
        "ada@exa mple.com",
        "ada@-x.com",
        "a@b@c.com",
        "ada@example..com",
    ] {
        assert!(bad.parse::<Email>().is_err(), "{bad}");
    }
    for (text, good) in [
        ("1", true),
        ("200", true),
        ("50.0", true),
        ("0", false),
        ("201", false),
        ("1.5", false),
        ("\"5\"", false),
    ] {
        assert_eq!(serde_json::from_str::<Limit>(text).is_ok(), good, "{text}");
    }
}
