//! Reads `name=value` pairs as the parameters of a function, with the types of its schema.

use crate::failure::Failure;
use contract::Spec;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Number, Value};

/// Gives each value its type. The service checks for missing parameters and invalid values, because
/// its messages are better.
pub fn read(spec: &Spec, given: &[String]) -> Result<Value, Failure> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = (spec.params)(&mut settings.into_generator());
    let known = schema.get("properties").and_then(Value::as_object);
    let mut params = Map::new();
    for pair in given {
        let problem = |problem: &str| {
            Failure::usage(format!("--param {pair}: {problem}"), usage(spec, known))
        };
        let (name, text) = pair.split_once('=').ok_or_else(|| problem("must be NAME=VALUE"))?;
        let schema = known.and_then(|known| known.get(name));
        let schema = schema.ok_or_else(|| problem("the function has no such parameter"))?;
        let value = typed(schema, text).map_err(|wrong| problem(&wrong))?;
        match (params.get_mut(name), value) {
            (None, value) => {
                params.insert(name.to_owned(), value);
            }
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(_), _) => return Err(problem("it is given twice")),
        }
    }
    Ok(Value::Object(params))
}

fn usage(spec: &Spec, known: Option<&Map<String, Value>>) -> String {
    let names: Vec<_> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    match names.as_slice() {
        [] => format!("{} takes no parameters", spec.name),
        names => format!("{} takes {}", spec.name, names.join(", ")),
    }
}

/// The value of `text`, or a sentence that says what is expected.
fn typed(schema: &Value, text: &str) -> Result<Value, String> {
    let choices = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
    if let Some(choices) = choices {
        return one_of(choices, text);
    }
    if let Some(name) = schema.get("const").and_then(Value::as_str) {
        return if name == text { Ok(text.into()) } else { Err(format!("must be {name}")) };
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if text == "null" && kinds.contains(&"null") {
        return Ok(Value::Null);
    }
    match kinds.iter().find(|kind| **kind != "null") {
        Some(&"string") => Ok(text.into()),
        Some(&"integer") => {
            text.parse::<i64>().map(Value::from).map_err(|_| "must be a whole number".into())
        }
        Some(&"number") => {
            let number = text.parse().ok().and_then(Number::from_f64);
            number.map(Value::Number).ok_or_else(|| "must be a number".into())
        }
        Some(&"boolean") => {
            text.parse().map(Value::Bool).map_err(|_| "must be true or false".into())
        }
        Some(&"null") | None if text == "null" => Ok(Value::Null),
        Some(&"array") => list(schema, text),
        _ => serde_json::from_str(text).map_err(|_| "must be JSON".into()),
    }
}

fn one_of(choices: &[Value], text: &str) -> Result<Value, String> {
    let attempts: Vec<_> = choices.iter().map(|choice| typed(choice, text)).collect();
    if let Some(value) = attempts.iter().find_map(|attempt| attempt.as_ref().ok()) {
        return Ok(value.clone());
    }
    let names: Vec<_> = choices.iter().filter_map(|choice| choice.get("const")?.as_str()).collect();
    match names.as_slice() {
        [] => Err(attempts.into_iter().find_map(Result::err).unwrap_or_default()),
        names => Err(format!("must be one of {}", names.join(", "))),
    }
}

/// Items between commas, or a JSON array, for items that hold a comma.
fn list(schema: &Value, text: &str) -> Result<Value, String> {
    if text.starts_with('[') {
        let list: Vec<Value> = serde_json::from_str(text)
            .map_err(|_| "must be a JSON array, or items between commas")?;
        return Ok(Value::Array(list));
    }
    let items = schema.get("items").unwrap_or(&Value::Null);
    let texts = text.split(',').filter(|item| !item.is_empty());
    texts.map(|item| typed(items, item)).collect::<Result<_, _>>().map(Value::Array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn typed_for(function: &str, given: &[&str]) -> Result<Value, String> {
        let spec = contract::all().find(|spec| spec.name == function).unwrap();
        let given: Vec<_> = given.iter().map(|pair| (*pair).to_owned()).collect();
        read(spec, &given).map_err(|failure| format!("{failure}; {}", failure.hint()))
    }

    #[test]
    fn values_get_the_types_of_the_schema() {
        let params = typed_for("listApps", &["projectId=prj_1", "limit=20"]);
        assert_eq!(params, Ok(json!({"projectId": "prj_1", "limit": 20})));
        let params = typed_for("deleteOrganization", &["organizationId=org_1", "cascade=true"]);
        assert_eq!(params, Ok(json!({"organizationId": "org_1", "cascade": true})));
        let params = typed_for("svc_createProject", &["name=12", "description=a=b, c"]);
        assert_eq!(params, Ok(json!({"name": "12", "description": "a=b, c"})));
    }

    #[test]
    fn lists_are_repeated_or_separated_by_commas() {
        let expected = json!({"platforms": ["ios", "android"]});
        for given in [
            &["platforms=ios", "platforms=android"][..],
            &["platforms=ios,android"],
            &[r#"platforms=["ios", "android"]"#],
        ] {
            assert_eq!(typed_for("updateApp", given), Ok(expected.clone()), "{given:?}");
        }
        assert_eq!(typed_for("updateApp", &["platforms="]), Ok(json!({"platforms": []})));
    }

    #[test]
    fn null_clears_what_can_be_cleared_and_is_text_elsewhere() {
        assert_eq!(typed_for("updateApp", &["bundleId=null"]), Ok(json!({"bundleId": null})));
        assert_eq!(typed_for("createOrganization", &["name=null"]), Ok(json!({"name": "null"})));
    }

    #[test]
    fn what_cannot_be_is_said_with_what_can() {
        let wrong = |function, given: &[&str]| typed_for(function, given).unwrap_err();
        assert!(wrong("getApp", &["app=1"]).ends_with("getApp takes appId"));
        assert!(wrong("logout", &["all=1"]).ends_with("logout takes no parameters"));
        assert!(wrong("listApps", &["limit=many"]).contains("must be a whole number"));
        assert!(wrong("updateApp", &["platforms=web"]).contains("must be one of ios, android"));
        assert!(wrong("getApp", &["appId=1", "appId=2"]).contains("given twice"));
        assert!(wrong("getApp", &["appId"]).contains("must be NAME=VALUE"));
    }
}
