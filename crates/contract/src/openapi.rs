//! Writes the OpenAPI 3.1 document from the declarations.

use crate::{
    Effect, FaultKind, Spec, Standing,
    endpoint::{self, Access, BodyContent, Endpoint, Method},
    enums, example,
    fault::Failure,
    function::Group,
    glossary,
};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The headers of all answers. Only answers that a client may retry have `Retry-After`.
const HEADERS: [(&str, &str, &str); 5] = [
    ("X-Request-Id", "string", "The id of the request, as in the log."),
    ("X-RateLimit-Limit", "integer", "The rate limit, in calls a minute."),
    ("X-RateLimit-Remaining", "integer", "The number of calls that are left."),
    ("X-RateLimit-Reset", "integer", "When all calls are available again, in Unix seconds."),
    (RETRY_AFTER, "integer", "Seconds until a retry can succeed."),
];
const RETRY_AFTER: &str = "Retry-After";

/// Writes the document of these groups and of all endpoints, for a service at `api_url`.
pub fn document(api_url: &str, groups: &[Group]) -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let schemas = settings.into_generator();
    let mut writer = Writer { schemas, shared: Map::new() };
    let mut paths = Map::new();
    for group in groups {
        for function in group.functions {
            let path = format!("/functions/{}", function.name);
            paths.insert(path, json!({"post": writer.function(function, group.name)}));
        }
    }
    let mut tags: Vec<_> = groups.iter().map(|group| group.name).collect();
    for group in endpoint::GROUPS {
        if !tags.contains(&group.name) {
            tags.push(group.name);
        }
        for endpoint in group.endpoints {
            let below_base = endpoint.path.strip_prefix(endpoint::BASE_PATH);
            let path =
                paths.entry(below_base.unwrap_or(endpoint.path)).or_insert_with(
                    || match below_base {
                        Some(_) => json!({}),
                        None => json!({"servers": [{"url": api_url}]}),
                    },
                );
            let method = endpoint.method.name().to_lowercase();
            set(path, &method, writer.endpoint(endpoint, group.name));
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "svc",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Build, release and run mobile apps and their backends.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": format!("{api_url}{}", endpoint::BASE_PATH)}],
        "tags": tags.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": writer.schemas.take_definitions(true),
            "responses": writer.shared,
            "headers": HEADERS.iter().map(|(name, kind, why)| {
                ((*name).to_owned(), json!({"description": why, "schema": {"type": kind}}))
            }).collect::<Map<_, _>>(),
            "parameters": {"IdempotencyKey": {
                "name": "X-Backend-Request-Id", "in": "header", "schema": {"type": "string", "maxLength": 256},
                "description": "The idempotency key. If the same caller sends it again within 24 hours, the service returns the first reply and changes nothing.",
            }},
            "securitySchemes": security_schemes(),
        },
    });
    enums::join(&mut document);
    glossary::explain(&mut document);
    document
}

/// Refusals by HTTP status. Each has a text, and a name if it is shared.
#[derive(Default)]
struct Refusals(BTreeMap<u16, Vec<(Option<String>, String)>>);

impl Refusals {
    /// A refusal of one operation.
    fn own(&mut self, kind: FaultKind, why: &str) {
        self.add(kind, None, why);
    }

    /// A refusal that many operations share.
    fn shared(&mut self, kind: FaultKind, name: impl Into<String>, why: &str) {
        self.add(kind, Some(name.into()), why);
    }

    fn add(&mut self, kind: FaultKind, name: Option<String>, why: &str) {
        let reasons = self.0.entry(kind.status()).or_default();
        reasons.push((name, format!("{}: {why}", kind.code())));
    }
}

/// All refusals of an operation: its own, and those that follow from its declaration.
fn refusals(spec: &Spec, names_an_object: bool) -> Refusals {
    let mut all = Refusals::default();
    for (kind, why) in spec.errors {
        all.own(*kind, why);
    }
    all.shared(FaultKind::Invalid, "Invalid", "a parameter is missing, unknown or invalid");
    match spec.who {
        Standing::Public => all.shared(
            FaultKind::Unauthenticated,
            "UnknownApplication",
            "no or invalid application id",
        ),
        _ => all.shared(
            FaultKind::Unauthenticated,
            "Unauthenticated",
            "no or invalid application id, session, token or key",
        ),
    }
    if !matches!(spec.who, Standing::Public | Standing::User) {
        let name = format!("Requires{}", spec.who.label().replace([' ', '/'], ""));
        let scope = if spec.scopes.is_empty() { "" } else { ", or a deploy token with the scope" };
        let name = if spec.scopes.is_empty() { name } else { format!("{name}OrScope") };
        let why = format!("this requires {}{scope}", spec.who.required());
        all.shared(FaultKind::Forbidden, name, &why);
    }
    let below = matches!(spec.who, Standing::Member | Standing::OwnerOrAdmin | Standing::Owner);
    if below || names_an_object {
        let why = "no such object, or one that the caller may not see";
        all.shared(FaultKind::NotFound, "NotFound", why);
    }
    counted(&mut all);
    all.shared(FaultKind::Unavailable, "Unavailable", FaultKind::Unavailable.when());
    if spec.effect == Effect::Change {
        all.shared(FaultKind::Uncertain, "Uncertain", FaultKind::Uncertain.when());
    }
    all
}

fn counted(all: &mut Refusals) {
    all.shared(FaultKind::RateLimited, "RateLimited", FaultKind::RateLimited.when());
}

struct Writer {
    schemas: SchemaGenerator,
    /// Responses that many operations share.
    shared: Map<String, Value>,
}

impl Writer {
    fn function(&mut self, function: &Spec, group: &str) -> Value {
        let params = (function.params)(&mut self.schemas).to_value();
        let mut reply = (function.reply)(&mut self.schemas).to_value();
        if reply == true {
            // Any value. Generators read this, and not the schema that is only `true`.
            reply = json!({"description": "Any JSON value."});
        }
        let result =
            json!({"type": "object", "required": ["result"], "properties": {"result": reply}});
        let example = json!({"result": example::reply(function)});
        let mut responses = self.refused(refusals(function, names_an_object(&params)), true);
        let mut done = answer("Done.", Some(("application/json", result)), false, &[]);
        if let Some(content) = done.pointer_mut("/content/application~1json") {
            set(content, "example", example);
        }
        responses.insert("200".into(), done);
        let example = example::params(function);
        let required = params.get("required").and_then(Value::as_array);
        let required = required.is_some_and(|names| !names.is_empty());
        let mut operation = json!({
            "operationId": function.name,
            "summary": function.summary(),
            "description": function.documentation(),
            "tags": [group],
            "security": security(function),
            "x-required-role": function.least().label(),
            "x-effect": if function.effect == Effect::Read { "read" } else { "change" },
            "x-scopes": scopes(function),
            "x-cost": function.cost(),
            "requestBody": {"required": required, "content": {"application/json": {"schema": params, "example": example}}},
            "responses": responses,
        });
        if function.secret {
            // The reply of a repetition lacks the secret, so clients do not repeat the call.
            set(&mut operation, "x-secret", true.into());
        }
        if function.effect == Effect::Change {
            let key = json!({"$ref": "#/components/parameters/IdempotencyKey"});
            set(&mut operation, "parameters", json!([key]));
        }
        operation
    }

    fn endpoint(&mut self, endpoint: &Endpoint, group: &str) -> Value {
        let mut refused = match endpoint.access {
            Access::Operation(ref spec) => refusals(spec, true),
            _ => Refusals::default(),
        };
        for (kind, why) in endpoint.errors {
            refused.own(*kind, why);
        }
        if matches!(endpoint.access, Access::Application | Access::Session) {
            let why = "no or invalid application id";
            refused.shared(FaultKind::Unauthenticated, "UnknownApplication", why);
            counted(&mut refused);
        }
        let has_bodies = endpoint.method != Method::Head;
        let mut responses = self.refused(refused, has_bodies);
        for told in endpoint.answers {
            let content = self.content(told.content);
            responses
                .insert(told.status.to_string(), answer(told.why, content, false, told.headers));
        }
        let mut operation = json!({
            "operationId": endpoint.name,
            "summary": endpoint.summary(),
            "description": endpoint.documentation(),
            "tags": [group],
            "security": access(endpoint.access),
            "responses": responses,
        });
        if let Access::Operation(spec) = endpoint.access {
            set(&mut operation, "x-required-role", spec.least().label().into());
            set(&mut operation, "x-scopes", scopes(&spec));
            set(&mut operation, "x-cost", spec.cost().into());
        }
        let parameters = parameters(endpoint);
        if !parameters.is_empty() {
            set(&mut operation, "parameters", parameters.into());
        }
        let takes_a_body = !matches!(endpoint.method, Method::Get | Method::Head);
        if let (true, Some((media, schema))) = (takes_a_body, self.content(endpoint.body)) {
            let body = json!({"required": true, "content": {media: {"schema": schema}}});
            set(&mut operation, "requestBody", body);
        }
        operation
    }

    fn content(&mut self, content: BodyContent) -> Option<(&'static str, Value)> {
        match content {
            BodyContent::Empty => None,
            BodyContent::Json(schema) => {
                Some(("application/json", schema(&mut self.schemas).to_value()))
            }
            BodyContent::Media(media) => Some((media, json!({}))),
        }
    }

    /// The responses for refusals. A response that many operations share is written once.
    fn refused(&mut self, refusals: Refusals, has_bodies: bool) -> Map<String, Value> {
        let failure = self.schemas.subschema_for::<Failure>().to_value();
        let mut responses = Map::new();
        for (status, reasons) in refusals.0 {
            let text: Vec<_> = reasons.iter().map(|(_, text)| text.as_str()).collect();
            let body = has_bodies.then(|| ("application/json", failure.clone()));
            let response = answer(&text.join("; "), body, matches!(status, 429 | 503), &[]);
            let response = match reasons.as_slice() {
                [(Some(name), _)] if has_bodies => {
                    self.shared.insert(name.clone(), response);
                    json!({"$ref": format!("#/components/responses/{name}")})
                }
                _ => response,
            };
            responses.insert(status.to_string(), response);
        }
        responses
    }
}

fn header(name: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{name}")})
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// A response with the common headers, its own headers, and `Retry-After` if a client may retry.
fn answer(why: &str, body: Option<(&str, Value)>, retry: bool, own: &[(&str, &str)]) -> Value {
    let common = HEADERS.iter().map(|(name, _, _)| *name);
    let common = common.filter(|name| retry || *name != RETRY_AFTER);
    let mut headers: Map<_, _> = common.map(|name| (name.to_owned(), header(name))).collect();
    for (name, why) in own {
        let described = json!({"description": why, "schema": {"type": "string"}});
        headers.insert((*name).to_owned(), described);
    }
    let mut response = json!({"description": why, "headers": headers});
    if let Some((media, schema)) = body {
        set(&mut response, "content", json!({media: {"schema": schema}}));
    }
    response
}

/// Whether the parameters contain an id: the object may then be missing.
fn names_an_object(params: &Value) -> bool {
    match params {
        Value::Object(fields) => fields.iter().any(|(key, value)| match value {
            Value::String(to) => key == "$ref" && to.ends_with("Id"),
            value => names_an_object(value),
        }),
        Value::Array(items) => items.iter().any(names_an_object),
        _ => false,
    }
}

/// The scopes that let a deploy token call an operation.
fn scopes(spec: &Spec) -> Value {
    let rule = |rule: &crate::ScopeRule| {
        let mut told = json!({"scope": rule.scope.name()});
        if let Some(own) = rule.own {
            set(&mut told, "forItsOwn", own.name().into());
        }
        if let Some(when) = rule.when {
            set(&mut told, "when", when.into());
        }
        told
    };
    spec.scopes.iter().map(rule).collect()
}

/// The credentials of an operation. Each alternative is sufficient.
fn security(spec: &Spec) -> Value {
    let mut ways = Vec::new();
    let mut with_application = |mut way: Value| {
        if spec.application {
            set(&mut way, "applicationId", json!([]));
        }
        ways.push(way);
    };
    match spec.who {
        Standing::Public => with_application(json!({})),
        Standing::Master => {}
        _ => with_application(json!({"session": []})),
    }
    if spec.who != Standing::Public && !spec.person {
        with_application(json!({"masterKey": []}));
    }
    // A deploy token needs no application id.
    let always = spec.scopes.iter().filter(|rule| rule.when.is_none());
    let always: Vec<_> = always.map(|rule| rule.scope.name()).collect();
    if !always.is_empty() || spec.any_token {
        ways.push(json!({"deployToken": always}));
    }
    Value::Array(ways)
}

fn access(access: Access) -> Value {
    match access {
        Access::Anyone | Access::SignedAddress => json!([]),
        Access::Application => json!([{"applicationId": []}]),
        Access::Session => json!([{"applicationId": [], "session": []}]),
        Access::Operation(spec) => security(&spec),
    }
}

fn security_schemes() -> Value {
    json!({
        "applicationId": {"type": "apiKey", "in": "header", "name": "X-Backend-Application-Id"},
        "session": {"type": "apiKey", "in": "header", "name": "X-Backend-Session-Token"},
        "masterKey": {"type": "apiKey", "in": "header", "name": "X-Backend-Master-Key"},
        "deployToken": {"type": "http", "scheme": "bearer", "description": "svc_dt_ and 40 characters"},
    })
}

/// The path, query and header parameters of an endpoint.
fn parameters(endpoint: &Endpoint) -> Vec<Value> {
    let names = endpoint.path.split('{').skip(1).filter_map(|part| part.split('}').next());
    let mut all: Vec<_> = names
        .map(|name| {
            let mut parameter =
                json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
            if let Some(meaning) = glossary::meaning(name) {
                set(&mut parameter, "description", meaning.into());
            }
            parameter
        })
        .collect();
    if matches!(endpoint.access, Access::SignedAddress) {
        for (name, kind) in [("expires", "integer"), ("signature", "string")] {
            all.push(
                json!({"name": name, "in": "query", "required": true, "schema": {"type": kind}}),
            );
        }
    }
    for (name, why) in endpoint.reads {
        all.push(
            json!({"name": name, "in": "header", "description": why, "schema": {"type": "string"}}),
        );
    }
    all
}
