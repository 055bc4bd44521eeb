//! The storefront of the shipped recipe, alone: its pages, and what it asks of the platform.

use crate::support::{ports::free_port, rig::Rig, service::eventually};
use reqwest::{
    blocking::{Client, Response},
    redirect::Policy,
};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

struct Storefront {
    child: Child,
    url: String,
    http: Client,
    stub: Rig,
}

impl Drop for Storefront {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Storefront {
    fn start(settings: &[(&str, &str)]) -> Storefront {
        let stub = Rig::start("storefront", "stub.mjs", &[]);
        let of_stub = format!("http://127.0.0.1:{}", stub.line());
        let port = free_port();
        let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/images/vendure-storefront");
        let mut node = Command::new("node");
        node.arg("server.js").current_dir(recipe).env("PORT", port.to_string());
        node.env("SHOP_API_URL", format!("{of_stub}/shop-api"));
        node.env("SVC_URL", format!("{of_stub}/backend")).env("SVC_APPLICATION_ID", "svc_a");
        node.env("SVC_APP_ID", "app_1").env("STOREFRONT_URL", "https://shop.example.com/a");
        node.envs(settings.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = node.spawn().unwrap();
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        let made = Storefront { child, url: format!("http://127.0.0.1:{port}"), http, stub };
        eventually("the storefront answers", || {
            made.http.get(format!("{}/health", made.url)).send().is_ok()
        });
        made
    }

    fn get(&self, path: &str) -> (u16, String) {
        let request = self.http.get(format!("{}{path}", self.url));
        read(request.header("X-Forwarded-Prefix", "/instances/i~storefront").send().unwrap())
    }

    fn buy(&self, form: &[(&str, &str)]) -> Response {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.http.post(format!("{}/products/pen", self.url)).body(body).send().unwrap()
    }

    /// Sets the answers of the platform, and returns the calls so far.
    fn platform(&self, answers: &Value) -> Value {
        serde_json::from_str(&self.stub.ask(answers)).unwrap()
    }
}

fn read(answer: Response) -> (u16, String) {
    (answer.status().as_u16(), answer.text().unwrap())
}

fn request_id(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"requestId\" value=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[test]
fn a_shopper_buys_and_sees_what_became_of_the_payment() {
    let shop = Storefront::start(&[("STORE_ID", "main")]);
    let (status, page) = shop.get("/");
    assert_eq!(status, 200);
    let link = "<a href=\"/instances/i~storefront/products/pen\">Pen &#60;b&#62;</a>";
    assert!(page.contains(link) && page.contains("€12.34"), "{page}");
    let (_, page) = shop.get("/products/pen");
    assert!(page.contains("<p>Blue &#38; fine</p>") && page.contains(">Germany<"), "{page}");
    let id = request_id(&page);
    assert_ne!(request_id(&shop.get("/products/pen").1), id, "one for each form");
    assert_eq!(shop.get("/products/nothing").0, 404);

    let form = [
        ("requestId", id.as_str()),
        ("variantId", "7"),
        ("quantity", "2"),
        ("email", "ada@example.com"),
        ("name", "Ada"),
        ("line1", "Street 1"),
        ("line2", ""),
        ("city", "Berlin"),
        ("country", "DE"),
    ];
    let reply = json!({"reference": "r1", "checkoutUrl": "https://pay.example.com/r1", "amount": 2468, "currency": "EUR"});
    let pending =
        json!({"reference": "r1", "status": "pending", "amount": 2468, "currency": "EUR"});
    shop.platform(&json!({"create": [200, reply]}));
    let answer = shop.buy(&form);
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["location"].to_str().unwrap()),
        (303, "https://pay.example.com/r1")
    );
    let calls = shop.platform(&json!({"verify": [200, pending]}));
    let params = json!({
        "flow": "commerce", "appId": "app_1", "storeId": "main",
        "lineItems": [{"variantId": "7", "quantity": 2}],
        "customer": {"email": "ada@example.com", "name": "Ada"},
        "shippingAddress": {"fullName": "Ada", "line1": "Street 1", "city": "Berlin", "country": "DE"},
        "callbackUrl": "https://shop.example.com/a/thanks",
    });
    let path = "/backend/functions/svc_checkout_create";
    let call = json!({"path": path, "requestId": id, "application": "svc_a", "params": params});
    assert_eq!(calls, json!([call]));

    let (_, page) = shop.get("/thanks?reference=r1");
    assert!(page.contains("is not complete yet") && page.contains("http-equiv=\"refresh\""));
    for (status, words) in [
        ("paid", "Paid: <b>€24.68</b>"),
        ("failed", "Nothing was paid"),
        ("abandoned", "Nothing was paid"),
    ] {
        let ended = json!({"reference": "r1", "status": status, "amount": 2468, "currency": "EUR", "orderCode": "X1"});
        shop.platform(&json!({"verify": [200, ended]}));
        let (_, page) = shop.get("/thanks?reference=r1");
        assert!(page.contains(words) && page.contains("X1"), "{page}");
        assert!(!page.contains("http-equiv=\"refresh\""), "{status} is final");
    }
    shop.platform(&json!({"verify": [404, {"code": 101, "error": "there is no such checkout"}]}));
    let (status, page) = shop.get("/thanks?reference=r2");
    assert!(status == 404 && page.contains("There is no such checkout."), "{page}");
}

#[test]
fn a_refusal_is_a_sentence_and_only_an_order_of_unknown_fate_is_repeated() {
    let shop = Storefront::start(&[("STORE_ID", "main")]);
    let form = |quantity: &'static str| {
        vec![
            ("requestId", "first"),
            ("variantId", "7"),
            ("quantity", quantity),
            ("email", "ada@example.com"),
            ("name", "Ada \"A\""),
            ("line1", "Street 1"),
            ("city", "Berlin"),
            ("country", "DE"),
        ]
    };
    let (status, page) = read(shop.buy(&form("0")));
    assert!(
        status == 400 && page.contains("The quantity must be a number from 1 to 999."),
        "{page}"
    );
    assert!(page.contains("value=\"Ada &#34;A&#34;\""), "what was entered stays: {page}");
    assert_ne!(request_id(&page), "first");

    shop.platform(&json!({"create": [400, {"code": 142, "error": "only 3 of Pen are left"}]}));
    let (status, page) = read(shop.buy(&form("9")));
    assert!(
        status == 400
            && page.contains("role=\"alert\" tabindex=\"-1\" autofocus>Only 3 of Pen are left."),
        "{page}"
    );
    assert_ne!(request_id(&page), "first");

    shop.platform(&json!({"create": [503, {"code": 100, "error": "connection failed"}]}));
    let (status, page) = read(shop.buy(&form("1")));
    assert!(status == 502 && page.contains("please try again"), "{page}");
    assert_eq!(request_id(&page), "first", "the same checkout");

    let large = "x".repeat(20_000);
    assert_eq!(shop.buy(&[("name", &large)]).status(), 400);
}

#[test]
fn without_a_store_it_only_lists() {
    let shop = Storefront::start(&[]);
    let (status, page) = shop.get("/");
    assert!(
        status == 200
            && page.contains("Pen &#60;b&#62;")
            && !page.contains("<a href=\"/instances/i~storefront/products")
    );
    for path in ["/products/pen", "/thanks?reference=r1"] {
        assert_eq!(shop.get(path).0, 404, "{path}");
    }
    assert_eq!(shop.buy(&[("variantId", "7")]).status(), 404);
    assert_eq!(shop.platform(&json!({})), json!([]));
}

#[test]
fn pages_are_in_the_language_of_the_browser() {
    let shop = Storefront::start(&[("STORE_ID", "main")]);
    let read_as = |languages: &str, path: &str| {
        let request = shop.http.get(format!("{}{path}", shop.url));
        request.header("Accept-Language", languages).send().unwrap().text().unwrap()
    };
    for (languages, tag, words, price) in [
        ("", "en", "Continue to payment", "€12.34"),
        ("xx, ja;q=0.9", "en", "Continue to payment", "€12.34"),
        ("de-AT, en;q=0.5", "de", "Weiter zur Zahlung", "12,34\u{a0}€"),
        ("en;q=0.5, fr-CH", "fr", "Continuer vers le paiement", "12,34\u{a0}€"),
        ("de;q=0, es;q=0.1", "es", "Continuar al pago", "12,34\u{a0}€"),
        ("toString, constructor", "en", "Continue to payment", "€12.34"),
    ] {
        let page = read_as(languages, "/products/pen");
        assert!(page.contains(&format!("<html lang=\"{tag}\">")), "{languages}: {page}");
        assert!(page.contains(words) && page.contains(price), "{languages}: {page}");
        assert!(!page.contains("undefined"), "{languages}: {page}");
    }
    let paid = json!({"reference": "r1", "status": "paid", "amount": 2468, "currency": "EUR", "orderCode": "$&"});
    shop.platform(&json!({"verify": [200, paid]}));
    let page = read_as("de", "/thanks?reference=r1");
    assert!(page.contains("Ihre Bestellung ist <b>$&#38;</b>."), "{page}");
    assert!(page.contains("Bezahlt: <b>24,68\u{a0}€</b>"), "{page}");

    // Each language has each sentence, with its placeholders.
    let sentences = |tag: &str| {
        let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/images/vendure-storefront");
        let file = std::fs::read(recipe.join(format!("languages/{tag}.json"))).unwrap();
        let sentences: std::collections::BTreeMap<String, String> =
            serde_json::from_slice(&file).unwrap();
        let holes = |text: &String| text.matches(['{', '}']).count();
        sentences.iter().map(|(name, text)| (name.clone(), holes(text))).collect::<Vec<_>>()
    };
    for tag in ["fr", "de", "es"] {
        assert_eq!(sentences(tag), sentences("en"), "{tag}");
    }
}
