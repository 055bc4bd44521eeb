//! Makes an example of a call from the schemas of its function: parameters, a reply, and the call as
//! people write it.

mod forms;
mod page;
mod values;

pub use forms::{Form, Place, forms};
pub use page::markdown;

use crate::Spec;
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// An example of the parameters of a function: those that are required, with values of the right form.
pub fn params(spec: &Spec) -> Value {
    Example::of(spec.params, Fields::Required)
}

/// An example of the reply of a function, with all its fields. What tells of a failure is null.
pub fn reply(spec: &Spec) -> Value {
    Example::of(spec.reply, Fields::All)
}

/// The examples of a schema.
const EXAMPLES: &str = "examples";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    Required,
    All,
}

struct Example {
    fields: Fields,
    definitions: Map<String, Value>,
}

impl Example {
    fn of(schema: fn(&mut SchemaGenerator) -> Schema, fields: Fields) -> Value {
        let mut schemas = SchemaSettings::draft2020_12().into_generator();
        let schema = schema(&mut schemas).to_value();
        let example = Example { fields, definitions: schemas.take_definitions(true) };
        example.value("", &schema)
    }

    /// The fields of an object, and those that a declaration gives an example. Of an object that takes one of several fields, the first one.
    fn object(&self, schema: &Value) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let is_shown = |name: &str| {
            self.fields == Fields::All
                || required.is_some_and(|names| names.iter().any(|known| known == name))
        };
        let named = |(name, schema): (&String, &Value)| (name.clone(), self.value(name, schema));
        let all = || properties.into_iter().flatten();
        let shown = all().filter(|(name, schema)| is_shown(name) || schema.get(EXAMPLES).is_some());
        let mut fields: Map<_, _> = shown.map(named).collect();
        if schema.get("minProperties").is_some() && fields.is_empty() {
            fields.extend(all().next().map(named));
        }
        fields.into()
    }

    fn value(&self, name: &str, schema: &Value) -> Value {
        let may_be_null = || may_be_null(schema);
        if self.fields == Fields::All && values::tells_of_a_failure(name) && may_be_null() {
            return Value::Null;
        }
        if let Some(first) = schema.get(EXAMPLES).and_then(|examples| examples.get(0)) {
            return first.clone();
        }
        self.of_type(name, "", schema)
    }

    /// A value of the type with this name, which is empty for a type that is written where it is used.
    fn of_type(&self, name: &str, type_name: &str, schema: &Value) -> Value {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target.rsplit('/').next().unwrap_or(target);
            let found = self.definitions.get(target);
            return found.map_or(Value::Null, |schema| self.of_type(name, target, schema));
        }
        if let Some(first) = ["enum", EXAMPLES].iter().find_map(|key| schema.get(key)?.get(0)) {
            return first.clone();
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(first) = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.get(0)) {
            return self.value(name, first);
        }
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
            kind => kind.and_then(Value::as_str),
        };
        match kind {
            Some("object") => self.object(schema),
            Some("array") => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or_default();
                let is_shown = self.fields == Fields::All || least > 0;
                let item = schema.get("items").filter(|_| is_shown);
                item.map(|item| self.value(name, item)).into_iter().collect()
            }
            Some("boolean") => true.into(),
            Some("integer" | "number") => values::number(name, schema),
            Some("string") => values::text(name, type_name, schema).into(),
            _ => Value::Null,
        }
    }
}

fn may_be_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let kinds = schema.get("type").and_then(Value::as_array).into_iter().flatten();
    let choices = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    kinds.chain(choices.filter_map(|choice| choice.get("type"))).any(is_null)
}
