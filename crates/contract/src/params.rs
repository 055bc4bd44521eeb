//! Reads the parameters of a call from its body, and explains what is wrong with them.

use crate::{Fault, FieldProblem};
use schemars::{JsonSchema, Schema};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The maximum length of a field's name and of its problem in an answer, in characters.
const LONGEST_NAME: usize = 128;
const LONGEST_PROBLEM: usize = 300;
/// The maximum number of unknown parameters in an answer.
const MOST_NAMED: usize = 20;

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
    check_names(&T::json_schema(&mut schemars::SchemaGenerator::default()), &fields)?;
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(invalid)
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
        Err(e) => Err(Fault::Malformed(format!("the body is not JSON: {e}"))),
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

/// Refuses unknown parameters, then missing ones. The answer names all of them.
fn check_names(schema: &Schema, fields: &Map<String, Value>) -> Result<(), Fault> {
    let known = schema.get("properties").and_then(Value::as_object);
    let is_known = |key: &str| known.is_some_and(|k| k.contains_key(key));
    let unknown: Vec<_> = fields.keys().filter(|key| !is_known(key)).collect();
    if !unknown.is_empty() {
        let names: Vec<_> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let problem = match names.as_slice() {
            [] => "is not a parameter; there are none".to_owned(),
            names => {
                format!("is not a parameter; there are {}", names.join(", "))
            }
        };
        let problems = unknown.into_iter().take(MOST_NAMED).map(|key| FieldProblem {
            field: key.chars().take(LONGEST_NAME).collect(),
            problem: problem.clone(),
        });
        return Err(Fault::Invalid(problems.collect()));
    }
    let required = schema.get("required").and_then(Value::as_array);
    let missing = required.into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<_> = missing.filter(|key| !fields.contains_key(*key)).collect();
    if !missing.is_empty() {
        let problems = missing
            .into_iter()
            .map(|key| FieldProblem { field: key.into(), problem: "is required".into() });
        return Err(Fault::Invalid(problems.collect()));
    }
    Ok(())
}

/// The problem of a wrong value. It never contains the value, which may be long or secret.
fn invalid(e: serde_path_to_error::Error<serde_json::Error>) -> Fault {
    let field: String = e.path().to_string().chars().take(LONGEST_NAME).collect();
    let problem = e.into_inner().to_string();
    let problem = match problem.rsplit_once(", expected ") {
        Some((_, "f64")) => "must be a number".into(),
        Some((_, "u64" | "u32" | "u16")) => "must be a whole number".into(),
        Some((_, expected)) => format!("must be {expected}"),
        None => problem.chars().take(LONGEST_PROBLEM).collect(),
    };
    Fault::invalid(if field == "." { "body" } else { &field }, problem)
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
