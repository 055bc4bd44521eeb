//! Enumerations in the form that generators of clients read best.

use serde_json::{Map, Value, json};

/// Writes each choice among texts as one `enum`. Its explanations stand in `x-enumDescriptions`, by value.
///
/// A schema of Rust has a choice for each variant, so that each can have an explanation. Generators take
/// them for as many types.
pub fn join(document: &mut Value) {
    match document {
        Value::Object(object) => {
            if let Some((values, meanings)) = object.get("oneOf").and_then(texts) {
                object.remove("oneOf");
                object.insert("type".into(), json!("string"));
                object.insert("enum".into(), values);
                if !meanings.is_empty() {
                    object.insert("x-enumDescriptions".into(), meanings.into());
                }
            }
            object.values_mut().for_each(join);
        }
        Value::Array(items) => items.iter_mut().for_each(join),
        _ => {}
    }
}

/// The texts among which a schema chooses, and their explanations. `None`: some choice is no text.
fn texts(choices: &Value) -> Option<(Value, Map<String, Value>)> {
    let (mut values, mut meanings) = (Vec::new(), Map::new());
    for choice in choices.as_array()? {
        let several = choice.get("enum").and_then(Value::as_array);
        let one = choice.get("const").into_iter();
        let found: Vec<_> = one.chain(several.into_iter().flatten()).collect();
        if found.is_empty() {
            return None;
        }
        for value in found {
            let text = value.as_str()?;
            if let Some(meaning) = choice.get("description") {
                meanings.insert(text.to_owned(), meaning.clone());
            }
            values.push(value.clone());
        }
    }
    Some((values.into(), meanings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_among_texts_become_one_enumeration() {
        let mut schema = json!({"oneOf": [
            {"type": "string", "enum": ["a", "b"]},
            {"type": "string", "const": "c", "description": "The last."},
        ], "description": "Which."});
        join(&mut schema);
        let joined = json!({
            "type": "string", "enum": ["a", "b", "c"], "description": "Which.",
            "x-enumDescriptions": {"c": "The last."},
        });
        assert_eq!(schema, joined);
        let mut mixed = json!({"oneOf": [{"const": "a"}, {"type": "object"}]});
        let before = mixed.clone();
        join(&mut mixed);
        assert_eq!(mixed, before);
    }
}
