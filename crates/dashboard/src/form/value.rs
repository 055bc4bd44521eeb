//! Reads what a form has under a name as the value of a parameter.
//!
//! The type says how the text is read, through Serde: an empty field is `None` for an `Option`, and
//! missing for all else. Numbers may have space around them. A list takes all values of the name, a map
//! the lines `NAME=value`.

use contract::{Fault, params};
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, Error as _, Visitor,
        value::{Error, MapDeserializer, SeqDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

/// Reads the values that were entered under this name. Empty ones say nothing.
pub fn read<'a, T: DeserializeOwned>(
    name: &str,
    entered: impl IntoIterator<Item = &'a str>,
) -> Result<T, Fault> {
    let entered = entered.into_iter().filter(|value| !value.is_empty());
    params::read_field(name, Entered(entered.collect()))
}

/// The values of a field.
struct Entered<'a>(Vec<&'a str>);

impl<'a> Entered<'a> {
    fn text(&self) -> Result<&'a str, Error> {
        self.0.first().copied().ok_or_else(|| Error::custom("is required"))
    }

    /// Shows a number, or the text, so that the visitor says what it expects instead.
    fn number<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Error> {
        let text = self.text()?;
        let number = text.trim();
        if let Ok(number) = number.parse::<u64>() {
            return visitor.visit_u64(number);
        }
        if let Ok(number) = number.parse::<i64>() {
            return visitor.visit_i64(number);
        }
        match number.parse::<f64>() {
            // Browsers may send a whole number as 7.0 or 7e0.
            Ok(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                visitor.visit_i64(number as i64)
            }
            Ok(number) if number.is_finite() => visitor.visit_f64(number),
            _ => visitor.visit_str(text),
        }
    }

    /// The names and values of the lines. Empty lines say nothing.
    fn pairs(&self) -> Result<Vec<(&'a str, &'a str)>, Error> {
        let lines = self.0.first().into_iter().flat_map(|text| text.lines());
        let lines = lines.filter(|line| !line.trim().is_empty());
        let pair = |line: &'a str| {
            let (name, value) = line.trim_end_matches('\r').split_once('=')?;
            Some((name.trim(), value))
        };
        let pairs: Option<_> = lines.map(pair).collect();
        pairs.ok_or_else(|| Error::custom("must have lines such as NAME=value"))
    }
}

impl<'de> Deserializer<'de> for Entered<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.is_empty() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.text()? {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            other => visitor.visit_str(other),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(self.0.into_iter()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(MapDeserializer::new(self.pairs()?.into_iter()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(StrDeserializer::new(self.text()?))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.number(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.number(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.number(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.number(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.number(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.number(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.number(visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 f32 char str string bytes byte_buf unit unit_struct tuple tuple_struct struct identifier
        ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{
        AppId, BoundedSet, Limit, NewName, Patch, Scope, Timestamp, env::Env,
        instances::InstanceKind, publishing::Percent,
    };

    fn problem<T: DeserializeOwned>(entered: &[&str]) -> (String, String) {
        match read::<T>("f", entered.iter().copied()) {
            Err(Fault::Invalid(mut problems)) => {
                let first = problems.remove(0);
                (first.field, first.problem)
            }
            _ => panic!("{entered:?} is taken"),
        }
    }

    fn value<T: DeserializeOwned>(entered: &[&str]) -> T {
        read("f", entered.iter().copied()).unwrap_or_else(|fault| panic!("{entered:?}: {fault}"))
    }

    #[test]
    fn the_type_says_how_text_is_read() {
        assert_eq!(value::<String>(&[" a "]), " a ");
        assert_eq!(value::<NewName>(&["Shop"]).as_str(), "Shop");
        assert_eq!(value::<Option<u32>>(&[" 7 "]), Some(7));
        assert_eq!(value::<u64>(&["7.0"]), 7);
        assert_eq!(value::<f64>(&["0.5"]), 0.5);
        assert_eq!(value::<Limit>(&["20"]), Limit::at_most(20));
        assert_eq!(value::<Percent>(&["12.5"]), Percent::try_from(12.5).unwrap());
        assert!(value::<bool>(&["true"]));
        assert_eq!(value::<InstanceKind>(&["market"]), InstanceKind::Market);
        let day = "2026-01-31T00:00:00Z";
        assert_eq!(value::<Timestamp>(&[day]), day.parse().unwrap());
    }

    #[test]
    fn an_empty_field_says_nothing() {
        for entered in [&[][..], &[""]] {
            assert_eq!(value::<Option<u32>>(entered), None);
            assert_eq!(value::<Patch<NewName>>(entered), Patch::Clear);
            assert_eq!(value::<BoundedSet<Scope, 0, 7>>(entered).len(), 0);
            assert_eq!(value::<Env>(entered), Env::default());
            let required = ("f".to_owned(), "is required".to_owned());
            assert_eq!(problem::<NewName>(entered), required);
            assert_eq!(problem::<u32>(entered), required);
            assert_eq!(problem::<AppId>(entered), required);
            assert_eq!(problem::<InstanceKind>(entered), required);
        }
    }

    #[test]
    fn lists_take_all_values_and_maps_take_lines() {
        let scopes = value::<Option<BoundedSet<Scope, 1, 7>>>(&["deploy", "build:run"]);
        assert_eq!(*scopes.unwrap(), [Scope::Deploy, Scope::BuildRun]);
        let env = value::<Env>(&["A=1\r\n\r\n B =x=y\nC="]);
        let env: Vec<_> = env.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        assert_eq!(env, ["A:1", "B:x=y", "C:"]);
    }

    #[test]
    fn a_problem_has_the_words_of_the_service() {
        let expected = |field: &str, problem: &str| (field.to_owned(), problem.to_owned());
        assert_eq!(problem::<u32>(&["lots"]), expected("f", "must be a whole number"));
        assert_eq!(problem::<Option<u32>>(&["1.5"]), expected("f", "must be a whole number"));
        assert_eq!(problem::<u32>(&["-1"]), expected("f", "must be a whole number"));
        assert_eq!(problem::<f64>(&["inf"]), expected("f", "must be a number"));
        assert_eq!(
            problem::<InstanceKind>(&["x"]),
            expected("f", "must be one of backend, market")
        );
        assert_eq!(problem::<Env>(&["A"]), expected("f", "must have lines such as NAME=value"));
        let (field, _) =
            problem::<BoundedSet<AppId, 1, 3>>(&["app_01J9ZQ8F5W7V3T6M2K4N8R0P1S", "x"]);
        assert_eq!(field, "f[1]");
        let nothing = problem::<BoundedSet<AppId, 1, 3>>(&[]);
        assert_eq!(nothing, expected("f", "must list at least 1"));
    }
}
