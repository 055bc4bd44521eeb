//! Makes an example of a function's parameters from their schema.

use crate::Spec;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// An example of the parameters of a function: those that are required, with values of the right form.
pub fn params(spec: &Spec) -> Value {
    let mut schemas: SchemaGenerator = SchemaSettings::draft2020_12().into_generator();
    let params = (spec.params)(&mut schemas).to_value();
    object(&params, &schemas.take_definitions(true))
}

/// The required fields of an object. Of an object that takes one of several fields, the first one.
fn object(schema: &Value, definitions: &Map<String, Value>) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let named =
        |(name, schema): (&String, &Value)| (name.clone(), value(name, schema, definitions));
    let all = || properties.into_iter().flatten();
    let mut fields: Map<_, _> = all().filter(|(name, _)| is_required(name)).map(named).collect();
    if schema.get("minProperties").is_some() && fields.is_empty() {
        fields.extend(all().next().map(named));
    }
    fields.into()
}

fn value(name: &str, schema: &Value, definitions: &Map<String, Value>) -> Value {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.rsplit('/').next().unwrap_or(target);
        return definitions
            .get(target)
            .map_or(Value::Null, |schema| value(target, schema, definitions));
    }
    if let Some(first) = ["enum", "examples"].iter().find_map(|key| schema.get(key)?.get(0)) {
        return first.clone();
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    if let Some(first) = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.get(0)) {
        return value(name, first, definitions);
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("object") => object(schema, definitions),
        Some("array") => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or_default();
            let item = schema.get("items").filter(|_| least > 0);
            item.map(|item| value(name, item, definitions)).into_iter().collect()
        }
        Some("boolean") => true.into(),
        Some("integer" | "number") => {
            schema.get("minimum").cloned().filter(|least| *least != 0).unwrap_or_else(|| 1.into())
        }
        Some("string") => text(name, schema).into(),
        _ => Value::Null,
    }
}

/// A text of the form that the schema asks for. A form that no rule here knows has its name.
fn text(name: &str, schema: &Value) -> String {
    let of = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(prefix) = of("pattern").and_then(id_prefix) {
        return format!("{prefix}01J9ZQ8F5W7V3T6M2K4N8R0P1S");
    }
    match (of("format"), name) {
        (Some("email"), _) => "ada@example.com",
        (Some("uri"), _) => "https://example.com/",
        (Some("date-time"), _) => "2026-01-31T12:00:00.000Z",
        (Some("password"), _) => "correct horse",
        (_, "GitUrl") => "https://example.com/team/app.git",
        (_, "VersionName" | "SemanticVersion") => "1.4.2",
        (_, "CronExpression") => "30 3 * * *",
        (_, "RepositoryName") => "acme/app",
        (_, "RunnerKey") => "0123456789abcdefghij",
        (_, "WorkflowFile") => "build.yml",
        (_, "Channel") => "production",
        (_, "Sha256") => "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        _ => "example",
    }
    .to_owned()
}

/// The beginning of an id: `app_` of `^app_[0-9A-HJKMNP-TV-Z]{26}$`.
fn id_prefix(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('^')?.strip_suffix("[0-9A-HJKMNP-TV-Z]{26}$")
}
