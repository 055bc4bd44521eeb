//! Writes the API reference in Markdown from the declarations.

use crate::{
    Effect, FaultKind, Spec,
    authentication::Tier,
    endpoint::{self, Access, BodyContent, Endpoint},
    function::{Group, SessionUse},
    glossary,
};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};
use std::fmt::Write;

const HEADING: &str = "\
# API reference

This page is generated from the declarations. Do not edit it.

Call a function with `POST {base_url}/functions/{name}` and a JSON object of parameters. A successful
call returns HTTP 200 and `{\"result\": …}`. Every other call returns `{\"code\": …, \"error\": \"…\"}`, and
`details` if fields are invalid. `{base_url}` is `{api_url}/backend`.

## Headers

| header of a request | |
|---|---|
| `X-Backend-Application-Id` | The application id. Functions and session routes require it, except with a deploy token. |
| `X-Backend-Session-Token` | A session token. It identifies the caller. |
| `Authorization: Bearer svc_dt_…` | A deploy token. It acts for the user who created it. |
| `X-Backend-Master-Key` | The master key. It may call everything that does not require a user. |
| `X-Backend-Javascript-Key` | The JavaScript key, if the operator configured one. |
| `X-Backend-Request-Id` | The idempotency key of a change. If the same caller sends it again within 24 hours, the service returns the first reply and changes nothing. |
| `X-Request-Id` | An id for the request. The answer and the log contain it. |

| header of an answer | |
|---|---|
| `X-Request-Id` | The id of the request, as in the log. |
| `X-RateLimit-Limit` | The rate limit, in calls a minute. 2147483647 means unlimited. |
| `X-RateLimit-Remaining` | The number of calls that are left. |
| `X-RateLimit-Reset` | When all calls are available again, in Unix seconds. |
| `Retry-After` | With 429 and 503: seconds until a retry can succeed. |
";

const LIMITS: &str = "
## Limits

JSON nests at most 64 levels. A page of a list has 50 items by default and at most 200. Unless the
operator sets other limits, a JSON body has at most 1 MiB, an artifact has at most 4 GiB, an upload URL
is valid for one hour, and a function takes at most 30 s.

The rate limit counts the calls of each account. Without an account, it counts the calls of each IP
address:

| tier | calls a minute |
|---|---|
";

/// Writes the reference of these groups and of all endpoints.
pub fn markdown(groups: &[Group]) -> String {
    let mut page = String::from(HEADING);
    codes(&mut page);
    page.push_str(LIMITS);
    for tier in [Tier::Free, Tier::Developer, Tier::Professional, Tier::Enterprise] {
        let calls = tier.per_minute().map_or("unlimited".to_owned(), |calls| calls.to_string());
        let _ = writeln!(page, "| {} | {calls} |", format!("{tier:?}").to_lowercase());
    }
    let mut schemas = SchemaSettings::draft2020_12().into_generator();
    for group in groups {
        let _ = writeln!(page, "\n## {}", group.name);
        for function in group.functions {
            section(&mut page, function, &mut schemas);
        }
    }
    let mut last = "";
    for group in endpoint::GROUPS {
        if group.name != last {
            let _ = writeln!(page, "\n## {}", group.name);
            last = group.name;
        }
        for endpoint in group.endpoints {
            endpoint_section(&mut page, endpoint, &mut schemas);
        }
    }
    records(&mut page, schemas.take_definitions(true));
    page
}

fn codes(page: &mut String) {
    page.push_str("\n## Codes\n\n| code | HTTP | when |\n|---|---|---|\n");
    for kind in FaultKind::ALL {
        let _ = writeln!(page, "| {} | {} | {} |", kind.code(), kind.status(), kind.when());
    }
}

fn section(page: &mut String, function: &Spec, schemas: &mut SchemaGenerator) {
    let params = (function.params)(schemas);
    let _ = write!(page, "\n### {}\n\n{}\n", function.name, function.documentation());
    who(page, function);
    fields(page, "parameter", params.as_value());
    let reply = (function.reply)(schemas);
    let _ = writeln!(page, "\nReply: {}.", kind(reply.as_value()));
    errors(page, function.errors);
    let _ = writeln!(page, "\n[Example](EXAMPLES.md#{})", function.name.to_lowercase());
}

/// Who may call, and other properties of the call.
fn who(page: &mut String, spec: &Spec) {
    let _ = write!(page, "\nWho: {}", spec.least().label());
    for rule in spec.scopes {
        let _ = write!(page, ", or a deploy token with `{}`", rule.scope.name());
        if let Some(own) = rule.own {
            let _ = write!(page, " (`{}` for what the token itself created)", own.name());
        }
        if let Some(when) = rule.when {
            let _ = write!(page, " {when}");
        }
    }
    if spec.any_token {
        page.push_str(", or any deploy token");
    }
    page.push('.');
    if spec.person {
        page.push_str(" It requires a user: the master key alone is refused.");
    }
    if spec.session == SessionUse::Ignored {
        page.push_str(" A session is ignored.");
    }
    if spec.effect == Effect::Change {
        page.push_str(" It changes data.");
    }
    let cost = spec.cost();
    if cost > 1 {
        let _ = write!(page, " It counts as {cost} calls of the rate limit.");
    }
    page.push('\n');
}

fn endpoint_section(page: &mut String, endpoint: &Endpoint, schemas: &mut SchemaGenerator) {
    let (name, method, path) = (endpoint.name, endpoint.method.name(), endpoint.path);
    let _ = write!(
        page,
        "\n### {name}\n\n`{method} {{api_url}}{path}`\n\n{}\n",
        endpoint.documentation()
    );
    match &endpoint.access {
        Access::Operation(spec) => who(page, spec),
        Access::Anyone => page.push_str("\nWho: Public.\n"),
        Access::SignedAddress => {
            page.push_str("\nWho: everybody with the signed URL, until it expires.\n")
        }
        Access::Application => page.push_str("\nWho: Public, with the application id.\n"),
        Access::Session => page.push_str("\nWho: User, with the application id.\n"),
    }
    if !endpoint.reads.is_empty() {
        page.push_str("\n| header | meaning |\n|---|---|\n");
        for (name, why) in endpoint.reads {
            let _ = writeln!(page, "| `{name}` | {why} |");
        }
    }
    if let Some(body) = content(endpoint.body, schemas) {
        let _ = writeln!(page, "\nBody: {body}.");
    }
    page.push_str("\n| HTTP | answer | |\n|---|---|---|\n");
    for answer in endpoint.answers {
        let told = content(answer.content, schemas).unwrap_or_default();
        let _ = writeln!(page, "| {} | {told} | {} |", answer.status, answer.why);
    }
    errors(page, endpoint.errors);
    if let Access::Operation(spec) = &endpoint.access {
        errors(page, spec.errors);
    }
}

fn content(content: BodyContent, schemas: &mut SchemaGenerator) -> Option<String> {
    match content {
        BodyContent::Empty => None,
        BodyContent::Json(schema) => Some(kind(schema(schemas).as_value())),
        BodyContent::Media(media) => Some(format!("`{media}`")),
    }
}

fn errors(page: &mut String, errors: &[(FaultKind, &str)]) {
    if errors.is_empty() {
        return;
    }
    page.push_str("\nSpecific errors:\n\n");
    for (kind, why) in errors {
        let _ = writeln!(page, "- {} (HTTP {}): {why}", kind.code(), kind.status());
    }
}

/// Every record, with its fields or its values.
fn records(page: &mut String, definitions: Map<String, Value>) {
    page.push_str("\n## Records\n\nA field with `?` may be missing or null.\n");
    for (name, schema) in definitions {
        let meaning = description(&schema);
        let _ = write!(page, "\n### {name}\n");
        if !meaning.is_empty() {
            let _ = write!(page, "\n{meaning}\n");
        }
        if schema.get("properties").is_some() {
            fields(page, "field", &schema);
        } else if let Some(values) = values(&schema) {
            page.push_str("\n| value | meaning |\n|---|---|\n");
            for (value, meaning) in values {
                let _ = writeln!(page, "| {value} | {meaning} |");
            }
        } else {
            let _ = writeln!(page, "\n{}.", text(&schema));
        }
    }
}

/// The values of an enumeration, in Markdown, with their meanings.
pub fn values(schema: &Value) -> Option<Vec<(String, String)>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().map(|value| (code(value), String::new())).collect());
    }
    let choices = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let told = |choice: &Value| match (choice.get("const"), choice.get("enum")) {
        (Some(value), _) => code(value),
        (None, Some(Value::Array(values))) => {
            values.iter().map(code).collect::<Vec<_>>().join(", ")
        }
        _ => shape(choice),
    };
    Some(choices.iter().map(|choice| (told(choice), description(choice))).collect())
}

/// A choice that is an object: its fields and their types.
fn shape(choice: &Value) -> String {
    let Some(properties) = choice.get("properties").and_then(Value::as_object) else {
        return kind(choice);
    };
    let fields = properties.iter().map(|(name, schema)| format!("{name}: {}", kind(schema)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

fn code(value: &Value) -> String {
    format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// The type and the constraints of a plain value.
pub fn text(schema: &Value) -> String {
    let mut told = kind(schema);
    for (key, name) in [
        ("format", "format"),
        ("pattern", "pattern"),
        ("minLength", "at least"),
        ("maxLength", "at most"),
        ("minimum", "from"),
        ("maximum", "to"),
    ] {
        if let Some(value) = schema.get(key) {
            let unit = if key.ends_with("Length") { " characters" } else { "" };
            let _ = write!(told, ", {name} {}{unit}", code(value));
        }
    }
    told
}

/// The meaning of a value, on one line.
pub fn description(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ")
}

fn fields(page: &mut String, heading: &str, schema: &Value) {
    let fields = fields_of(schema);
    if fields.is_empty() {
        return;
    }
    let _ = write!(page, "\n| {heading} | type | meaning |\n|---|---|---|\n");
    for Field { name, optional, kind, meaning } in fields {
        let optional = if optional { "?" } else { "" };
        let _ = writeln!(page, "| `{name}`{optional} | {kind} | {meaning} |");
    }
}

/// A field of parameters or of a record.
pub struct Field {
    /// Its name on the wire.
    pub name: String,
    /// Whether it may be missing or null.
    pub optional: bool,
    /// Its type, as [`kind`] writes it.
    pub kind: String,
    /// What it says, on one line.
    pub meaning: String,
}

/// The fields of an object, in their order.
pub fn fields_of(schema: &Value) -> Vec<Field> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let field = |(name, property): (&String, &Value)| Field {
        name: name.clone(),
        optional: !required.contains(&name.as_str()) || may_be_null(property),
        kind: kind(property),
        meaning: Some(description(property))
            .filter(|own| !own.is_empty())
            .or_else(|| glossary::meaning(name).map(str::to_owned))
            .unwrap_or_default(),
    };
    properties.into_iter().flatten().map(field).collect()
}

fn may_be_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind.as_str() == Some("null");
    let kinds = schema.get("type").and_then(Value::as_array);
    let choices = schema.get("anyOf").and_then(Value::as_array);
    kinds.is_some_and(|kinds| kinds.iter().any(is_null))
        || choices
            .is_some_and(|all| all.iter().any(|choice| choice.get("type").is_some_and(is_null)))
}

/// A short name for a schema. The name of a record links to the record.
pub fn kind(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or(name);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let named: Vec<_> = choices.iter().map(kind).filter(|k| k != "null").collect();
        return named.join(" or ");
    }
    let list = || format!("list of {}", schema.get("items").map(kind).unwrap_or_default());
    let name = |name: &str| if name == "array" { list() } else { name.to_owned() };
    match schema.get("type") {
        Some(Value::String(kind)) => name(kind),
        Some(Value::Array(kinds)) => {
            let named = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            named.map(name).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".into(),
    }
}
