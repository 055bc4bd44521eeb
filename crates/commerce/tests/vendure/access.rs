//! Tokens, addresses, and shops that do not answer.

use super::place::{Place, refused};
use commerce::{Channel, RemoteError, Shop, Vendure};
use serde_json::json;
use test_support::vendure;

#[tokio::test]
async fn a_token_is_judged_by_what_it_may_do() {
    if !vendure::is_here("a_token_is_judged_by_what_it_may_do") {
        return;
    }
    let place = Place::new("access", "ng");
    let token = |name: &str| place.server.token(name).parse().unwrap();
    let of = |permissions: &[&str], channels: &[&str]| {
        let like = json!({"do": "administrator", "permissions": permissions, "channels": channels});
        place.server.tell(&like)["token"].as_str().unwrap().parse().unwrap()
    };
    let check = async |admin_token, channel_token: &str| {
        let channel_token = channel_token.to_owned();
        let channel = Channel { admin_token, channel_token, ..place.channel.clone() };
        place.shop.check_access(&channel).await
    };
    let ng = place.server.channel("ng");
    for name in ["session", "apiKey", "superadmin"] {
        let found = "The token opens the channel store-ng, which sells in NGN.";
        assert_eq!(check(token(name), ng).await, Ok(found.into()), "{name}");
    }
    let catalog =
        ["ReadOrder", "CreateOrder", "UpdateOrder", "DeleteOrder", "ReadCatalog", "ReadCustomer"];
    assert!(check(of(&catalog, &["ng"]), ng).await.is_ok());

    let why = refused(check(of(&["ReadOrder", "UpdateOrder", "ReadProduct"], &["ng"]), ng).await);
    assert!(
        why.ends_with("without the permissions CreateOrder, DeleteOrder, ReadCustomer."),
        "{why}"
    );
    let other = of(&catalog, &["eu"]);
    for token in [other, "0123456789abcdef".parse().unwrap(), "0123:4567".parse().unwrap()] {
        let why = refused(check(token, ng).await);
        assert!(why.starts_with("The shop does not accept the admin token"), "{why}");
    }
    let why = refused(check(token("session"), "nothing").await);
    assert!(why.starts_with("The shop has no channel with this token."), "{why}");
    // Without a token of a channel, Vendure answers for its default channel.
    let why = refused(check(token("superadmin"), "").await);
    assert!(why.contains("another channel"), "{why}");
    assert!(refused(check(token("session"), "line\nbreak").await).contains("no header"));
}

#[tokio::test]
async fn an_api_key_builds_and_settles() {
    if !vendure::is_here("an_api_key_builds_and_settles") {
        return;
    }
    let mut place = Place::new("api-key", "ng");
    place.channel.admin_token = place.server.token("apiKey").parse().unwrap();
    let order = place.order(vec![place.product("fan", 1000, None, 1)]);
    let built = place.build(&order).await.unwrap();
    place.settle(&order, &built).await.unwrap();
    let second = place.order(vec![place.product("van", 1000, None, 1)]);
    let built = place.build(&second).await.unwrap();
    place.cancel(&built.id, second.reference).await.unwrap();
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_a_shop_that_is_down_is_asked_again() {
    if !vendure::is_here("a_wrong_token_is_refused_and_a_shop_that_is_down_is_asked_again") {
        return;
    }
    let mut place = Place::new("down", "eu");
    let order = place.order(vec![place.product("cap", 1000, None, 1)]);
    let right = place.channel.clone();
    place.channel.admin_token = "0123456789abcdef".parse().unwrap();
    let why = refused(place.build(&order).await);
    assert!(why.contains("admin token") && !why.contains("0123456789abcdef"), "{why}");
    assert_eq!(place.server.requests("down"), ["Look"]);
    assert!(!format!("{:?}", place.channel).contains("0123456789abcdef"));

    place.channel = right;
    place.fail(0, &json!({"status": 503, "retryAfter": 7}));
    let busy = place.build(&order).await.unwrap_err();
    let after = std::time::Duration::from_secs(7);
    let why = "The shop answers 503: The shop is being repaired.".into();
    assert_eq!(busy, RemoteError::Busy { why, after });
    for status in [200, 307, 404] {
        place.fail(0, &json!({"status": status}));
        let why = refused(place.build(&order).await);
        assert!(why.contains("no admin API of Vendure") && why.contains("repaired"), "{why}");
    }
    // Nobody listens there.
    place.channel.admin_api_url = "http://127.0.0.1:9/admin-api".parse().unwrap();
    let busy = place.build(&order).await.unwrap_err();
    assert!(matches!(busy, RemoteError::Busy { .. }), "{busy:?}");
}

#[tokio::test]
async fn addresses_of_the_internal_network_are_refused() {
    if !vendure::is_here("addresses_of_the_internal_network_are_refused") {
        return;
    }
    let mut place = Place::new("inside", "eu");
    let own = place.channel.clone();
    assert!(place.shop.check_access(&own).await.is_ok(), "the service runs it itself");
    let asked = place.server.requests("inside").len();
    let (_, authority) = own.admin_api_url.as_str().split_once("://").unwrap();
    let (host, _) = authority.split_once('/').unwrap();
    let (_, port) = host.split_once(':').unwrap();
    place.channel.is_own = false;
    for (url, why) in [
        (format!("http://{authority}"), "https://"),
        (format!("https://{authority}"), "SVC_SHOP_PRIVATE_HOSTS"),
        // A name is judged by what it resolves to.
        (format!("https://localhost:{port}/inside/admin-api"), "SVC_SHOP_PRIVATE_HOSTS"),
        (format!("https://[::ffff:127.0.0.1]:{port}/"), "SVC_SHOP_PRIVATE_HOSTS"),
        ("https://169.254.169.254/latest/meta-data".into(), "SVC_SHOP_PRIVATE_HOSTS"),
        ("https://10.0.0.1/admin-api".into(), "SVC_SHOP_PRIVATE_HOSTS"),
        ("https://[::1]/admin-api".into(), "SVC_SHOP_PRIVATE_HOSTS"),
        ("https://me:secret@example.com/".into(), "user or a password"),
    ] {
        place.channel.admin_api_url = url.parse().unwrap();
        let refusal = refused(place.shop.check_access(&place.channel).await);
        assert!(refusal.contains(why) && !refusal.contains("secret"), "{url}: {refusal}");
        let reference = super::place::reference();
        refused(place.cancel("1", reference).await);
    }
    assert_eq!(place.server.requests("inside").len(), asked, "nothing arrives");

    let allowed = vec![("127.0.0.1".to_owned(), port.parse().unwrap())];
    place.shop = Vendure::new(allowed.into()).unwrap();
    place.channel.admin_api_url = own.admin_api_url.clone();
    assert_eq!(place.shop.check_address(&own.admin_api_url), Ok(()));
    assert!(place.shop.check_access(&place.channel).await.is_ok());
}
