//! Values of the command line that are more than text: names of the API, and moments.

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use contract::{Timestamp, text::Slug};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{str::FromStr, time::Duration};

/// The end of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expiry {
    At(Timestamp),
    /// A duration from the present.
    In(Duration),
    Never,
}

impl FromStr for Expiry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem =
            || format!("{text:?} is no moment such as 2030-01-31T12:00:00Z, nor 90d, 12h or never");
        if text == "never" {
            return Ok(Expiry::Never);
        }
        let seconds = match text.char_indices().next_back() {
            Some((end, 'd')) => Some((end, 86_400)),
            Some((end, 'h')) => Some((end, 3_600)),
            _ => None,
        };
        match seconds {
            Some((end, unit)) => {
                let count = text.get(..end).and_then(|count| count.parse::<u32>().ok());
                let count = count.filter(|count| *count > 0).ok_or_else(problem)?;
                Ok(Expiry::In(Duration::from_secs(u64::from(count) * unit)))
            }
            None => text.parse().map(Expiry::At).map_err(|_| problem()),
        }
    }
}

/// A label of a container engine, such as `region=eu`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub name: Slug,
    pub value: Slug,
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} is no label such as region=eu"))?;
        Ok(Label { name: name.parse()?, value: value.parse()? })
    }
}

/// Accepts any text as the name of a function, and offers the existing names to completion. So the
/// error for a mistyped name can show the nearest name and not the list of all names.
#[derive(Clone)]
pub struct FunctionName;

impl TypedValueParser for FunctionName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            contract::all().map(|spec| PossibleValue::new(spec.name).help(spec.summary())),
        ))
    }
}

/// Accepts the wire names of a type of the contract.
pub fn one_of<T>() -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(wire_names::<T>())
        .try_map(|name| serde_json::from_value::<T>(Value::String(name)))
}

fn wire_names<T: JsonSchema>() -> Vec<PossibleValue> {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let choices = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let choice = |choice: &Value| {
        let name = choice.get("const")?.as_str()?.to_owned();
        let help = choice.get("description").and_then(Value::as_str).map(str::to_owned);
        Some(PossibleValue::new(name).help(help.unwrap_or_default()))
    };
    choices.filter_map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_moment_or_a_time_from_now() {
        assert_eq!("12h".parse(), Ok(Expiry::In(Duration::from_secs(43_200))));
        assert_eq!("never".parse(), Ok(Expiry::Never));
        assert_eq!("1970-01-01T00:00:00Z".parse(), Ok(Expiry::At(Timestamp::from_millis(0))));
        for wrong in ["", "d", "0d", "-1d", "soon", "5m", "€"] {
            assert!(wrong.parse::<Expiry>().is_err(), "{wrong}");
        }
    }
}
