//! The API reference in Markdown, from the declarations alone.

use crate::{Spec, function::Group};
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::fmt::Write;

/// The whole page of these groups.
pub fn markdown(groups: &[Group]) -> String {
    let mut page = String::from(
        "# API reference\n\nMade from the declarations; do not edit. A function is called with\n\
         `POST {base_url}/functions/{name}` and a JSON object of parameters.\n",
    );
    for group in groups {
        let _ = writeln!(page, "\n## {}", group.name);
        for function in group.functions {
            section(&mut page, function);
        }
    }
    page
}

fn section(page: &mut String, function: &Spec) {
    let mut schemas = SchemaSettings::draft2020_12().into_generator();
    let params = (function.params)(&mut schemas);
    let _ = write!(
        page,
        "\n### {}\n\n{}\n\nWho: {}",
        function.name,
        function.documentation(),
        function.who.label()
    );
    if let Some(scope) = function.scope {
        let _ = write!(page, ", or a deploy token with `{}`", scope.name());
    }
    if let Some(scope) = function.own_scope {
        let _ = write!(page, "; `{}` is enough for what the token itself created", scope.name());
    }
    page.push_str(".\n");
    parameters(page, params.as_value());
    let reply = (function.reply)(&mut schemas);
    let _ = writeln!(page, "\nReply: {}.", kind(reply.as_value()));
    if !function.errors.is_empty() {
        page.push_str("\nErrors of its own:\n\n");
        for (code, why) in function.errors {
            let _ = writeln!(page, "- {code}: {why}");
        }
    }
}

fn parameters(page: &mut String, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if properties.is_empty() {
        return;
    }
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    page.push_str("\n| parameter | type | meaning |\n|---|---|---|\n");
    for (name, property) in properties {
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        let meaning = property
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .replace('\n', " ");
        let _ = writeln!(page, "| `{name}`{optional} | {} | {meaning} |", kind(property));
    }
}

/// A short name for a schema.
pub fn kind(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return name.rsplit('/').next().unwrap_or(name).replace('_', " of ");
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let named: Vec<_> = choices.iter().map(kind).filter(|k| k != "null").collect();
        return named.join(" or ");
    }
    match schema.get("type") {
        Some(Value::String(t)) if t == "array" => {
            format!("list of {}", schema.get("items").map(kind).unwrap_or_default())
        }
        Some(Value::String(t)) => t.clone(),
        Some(Value::Array(types)) => {
            let named: Vec<_> =
                types.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect();
            named.join(" or ")
        }
        _ => "any".into(),
    }
}
