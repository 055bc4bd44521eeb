//! Reads the parameters of a call from its body, and explains what is wrong with them.

use crate::{
    Fault, FieldProblem,
    problems::{self, MOST_NAMED, problem},
};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The maximum nesting of JSON.
pub const DEEPEST: usize = 64;

/// Types that hold the parameters of an operation.
pub trait Parameters: DeserializeOwned + JsonSchema {}
impl<T: DeserializeOwned + JsonSchema> Parameters for T {}

/// Reads the parameters of an operation from a JSON object. An empty body means `{}`. Keys that
/// begin with `_` belong to client libraries and are ignored.
///
/// It is compiled once for each operation, so all that does not depend on `T` is elsewhere.
pub fn read<T: Parameters>(body: &[u8]) -> Result<T, Fault> {
    if let Some(body) = plain(body)?
        && let Ok(params) = serde_json::from_slice(body)
    {
        return Ok(params);
    }
    // Reads the parameters again, slower, to find the problems.
    let fields = without_reserved_keys(body)?;
    // From text, because reading `T` from a `Value` would be compiled once more for each `T`. The fields
    // were read from JSON, so they can be written as JSON.
    serde_json::from_slice(&serde_json::to_vec(&fields).unwrap_or_default()).map_err(|_| {
        let problems = problems::<T>(fields.clone());
        Fault::Invalid(match problems.is_empty() {
            // Each value is right, and not all of them together.
            true => problems::first_of::<T>(Value::Object(fields)).into_iter().collect(),
            false => problems,
        })
    })
}

/// Reads the value of the parameter with this name, and explains what is wrong with it as [`read`]
/// does.
pub fn read_field<'de, T: Deserialize<'de>>(
    name: &str,
    value: impl Deserializer<'de>,
) -> Result<T, Fault> {
    problems::read_field(name, value).map_err(|problem| Fault::Invalid(vec![problem]))
}

/// The body, if it is an object without reserved keys.
fn plain(body: &[u8]) -> Result<Option<&[u8]>, Fault> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    check_depth(body)?;
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    Ok((is_object && !has_reserved_keys(body)).then_some(body))
}

fn without_reserved_keys(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    let mut fields = object(body)?;
    fields.retain(|key, _| !key.starts_with('_'));
    Ok(fields)
}

/// The JSON object of a body, including its reserved keys.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    check_depth(body)?;
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Fault::Malformed("the body must be a JSON object of parameters".into())),
        Err(e) => Err(Fault::Malformed(format!(
            "the body is not JSON: it breaks off, or is wrong, at line {} column {}",
            e.line(),
            e.column()
        ))),
    }
}

/// Whether the body may contain reserved keys of a client library. The answer may be a false yes,
/// because an escaped character could be an underscore, but never a false no.
pub fn has_reserved_keys(body: &[u8]) -> bool {
    body.windows(2).any(|pair| pair == b"\"_" || pair == b"\\u")
}

/// SHA-256 over the canonical JSON of the parameters.
pub fn fingerprint(params: &impl Serialize) -> [u8; 32] {
    // Serialization cannot fail: all maps have string keys, and all numbers are finite.
    Sha256::digest(serde_json::to_vec(params).unwrap_or_default()).into()
}

/// All that is wrong with the parameters: unknown ones, missing ones, then wrong values.
fn problems<T: Parameters>(mut fields: Map<String, Value>) -> Vec<FieldProblem> {
    let schema = T::json_schema(&mut schemars::SchemaGenerator::default());
    let mut problems = unknown(&schema, &mut fields);
    problems.extend(missing(&schema, &fields));
    problems.extend(problems::of_values::<T>(&fields));
    problems
}

/// Takes out the unknown parameters.
fn unknown(schema: &Schema, fields: &mut Map<String, Value>) -> Vec<FieldProblem> {
    let known = schema.get("properties").and_then(Value::as_object);
    let mut unknown = Vec::new();
    fields.retain(|key, _| {
        let is_known = known.is_some_and(|known| known.contains_key(key));
        if !is_known && unknown.len() < MOST_NAMED {
            unknown.push(key.clone());
        }
        is_known
    });
    let names: Vec<_> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let told = match names.as_slice() {
        [] => "is not a parameter; there are none".to_owned(),
        names => format!("is not a parameter; there are {}", names.join(", ")),
    };
    unknown.into_iter().map(|key| problem(&key, told.as_str())).collect()
}

fn missing(schema: &Schema, fields: &Map<String, Value>) -> Vec<FieldProblem> {
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|key| !fields.contains_key(*key));
    missing.map(|key| problem(key, "is required")).collect()
}

/// Refuses JSON that nests deeper than [`DEEPEST`]. It runs before any parser.
fn check_depth(body: &[u8]) -> Result<(), Fault> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in body {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b'{' | b'[') => {
                depth += 1;
                if depth > DEEPEST {
                    return Err(Fault::Malformed(format!(
                        "the JSON nests deeper than {DEEPEST} levels"
                    )));
                }
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (false, _) => {}
        }
    }
    Ok(())
}
