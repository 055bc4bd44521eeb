//! What callers are told of wrong parameters, for every function and endpoint: wrong values are made
//! from the schemas.

use contract::{
    Fault, FieldProblem, Operation, Route, Server, Serves, authentication::RegisterUser,
    checkouts::CreateCheckout, params,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A server that nobody calls.
struct Nobody;

impl Server for Nobody {
    type Context = ();
}

impl<O: Operation> Serves<O> for Nobody {
    async fn serve(&self, (): &(), _: O) -> Result<O::Reply, Fault> {
        Err(Fault::Busy)
    }
}

fn routes() -> Vec<Route<Nobody>> {
    contract::routes::<Nobody>().chain(contract::endpoint::routes::<Nobody>()).collect()
}

/// The problems of a body.
fn problems(route: &Route<Nobody>, body: &Value) -> Vec<FieldProblem> {
    // The path of an endpoint has the id of an artifact or of an app.
    ["art", "app"].into_iter().fold(Vec::new(), |mut problems, kind| {
        let path = [format!("{kind}_01J9ZQ8F5W7V3T6M2K4N8R0P1S")];
        if let Err(fault) = (route.prepare)(&path, body.to_string().as_bytes()) {
            problems.extend_from_slice(fault.details());
        }
        problems
    })
}

/// The schema of a route's parameters, without references.
fn schema(route: &Route<Nobody>) -> Value {
    let settings = schemars::generate::SchemaSettings::default();
    let mut generator =
        settings.with(|settings| settings.inline_subschemas = true).into_generator();
    (route.spec.params)(&mut generator).to_value()
}

/// Objects with one value of this schema or inside of it, each made wrong in every way.
fn wrong(schema: &Value, depth: usize) -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("\u{7f}"),
        json!("x".repeat(5000)),
        json!([]),
        json!([null]),
        json!([[], {}]),
        json!({}),
        json!({"nothing": 1}),
    ];
    if depth > 0 {
        for choices in ["anyOf", "oneOf", "allOf"] {
            let choices = schema[choices].as_array().into_iter().flatten();
            values.extend(choices.flat_map(|choice| wrong(choice, depth - 1)));
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            values.extend(wrong(field, depth - 1).into_iter().map(|value| json!({name: value})));
        }
        if schema["items"].is_object() {
            let items = wrong(&schema["items"], depth - 1);
            values.extend(items.into_iter().map(|value| json!([value])));
        }
    }
    values
}

fn fields(schema: &Value) -> Map<String, Value> {
    schema["properties"].as_object().cloned().unwrap_or_default()
}

#[test]
fn no_message_has_words_of_a_programming_language() {
    let words = [
        "struct",
        "sequence",
        "map",
        "expected",
        "tuple",
        "variant",
        "enum",
        "untagged",
        "serde",
        "f64",
        "i64",
        "u64",
        "u32",
        "u16",
        "u8",
        "usize",
        "deserialize",
        "`",
    ];
    let mut told = BTreeSet::new();
    for route in routes() {
        for (name, field) in fields(&schema(&route)) {
            for value in wrong(&field, 6) {
                for problem in problems(&route, &json!({name.as_str(): value})) {
                    told.insert((problem.problem, route.spec.name));
                }
            }
        }
    }
    assert!(told.len() > 300);
    let is_word = |text: &str, word: &str| match word {
        "`" => text.contains(word),
        word => text.split(|c: char| !c.is_alphanumeric()).any(|part| part == word),
    };
    let foreign: Vec<_> =
        told.iter().filter(|(text, _)| words.iter().any(|word| is_word(text, word))).collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
}

#[test]
fn every_wrong_field_is_named() {
    for route in routes() {
        let all = fields(&schema(&route));
        let wrong = json!([[{"nothing": [null]}]]);
        let named = |body: Value| -> BTreeSet<String> {
            let problems = problems(&route, &body).into_iter();
            let wrong = problems.filter(|problem| problem.problem != "is required");
            wrong
                .map(|problem| problem.field.split(['.', '[']).next().unwrap().to_owned())
                .collect()
        };
        let alone: BTreeSet<String> =
            all.keys().flat_map(|name| named(json!({name.as_str(): wrong}))).collect();
        let together = all.keys().map(|name| (name.clone(), wrong.clone()));
        assert_eq!(named(Value::Object(together.collect())), alone, "{}", route.spec.name);
    }
}

fn told<T: params::Parameters + std::fmt::Debug>(body: Value) -> Vec<String> {
    let fault = params::read::<T>(body.to_string().as_bytes()).unwrap_err();
    fault.details().iter().map(|it| format!("{}: {}", it.field, it.problem)).collect()
}

#[test]
fn problems_are_told_with_their_place() {
    let both = told::<RegisterUser>(json!({"email": "x", "password": "y", "nmae": 1}));
    let [unknown, email, password] = &both[..] else { panic!("{both:?}") };
    assert!(unknown.starts_with("nmae: is not a parameter; there are email, "));
    assert!(email.starts_with("email: ") && password.starts_with("password: "), "{both:?}");

    let checkout = told::<CreateCheckout>(json!({
        "customer": {"email": "x", "name": 7},
        "lineItems": [{"name": "Tea", "unitAmount": 1, "quantity": 1}, 7, {"quantity": "many"}],
        "metadata": [],
    }));
    for expected in [
        "flow: is required",
        "appId: is required",
        "customer.email: ",
        "customer.name: must be a string",
        "lineItems[1]: must be an object",
        "lineItems[2].quantity: must be a whole number",
        "metadata: must be an object",
    ] {
        assert!(checkout.iter().any(|told| told.starts_with(expected)), "{expected} {checkout:#?}");
    }
    assert_eq!(
        told::<CreateCheckout>(json!({"lineItems": {}}))[3..],
        ["lineItems: must be a list"]
    );
}
