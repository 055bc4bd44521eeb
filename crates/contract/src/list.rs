//! Lists with a minimum and a maximum length.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::{borrow::Cow, ops::Deref};

/// Between `MIN` and `MAX` different values, in the order of the input. A repeated value counts
/// once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct BoundedSet<T, const MIN: usize, const MAX: usize>(Vec<T>);

impl<T, const MIN: usize, const MAX: usize> BoundedSet<T, MIN, MAX> {
    /// The values.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }

    /// Whether the list is empty.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T, const MAX: usize> BoundedSet<T, 1, MAX> {
    /// A list with one value.
    pub fn one(value: T) -> Self {
        BoundedSet(vec![value])
    }
}

impl<T, const MAX: usize> Default for BoundedSet<T, 0, MAX> {
    fn default() -> Self {
        BoundedSet(Vec::new())
    }
}

impl<T: PartialEq, const MIN: usize, const MAX: usize> TryFrom<Vec<T>> for BoundedSet<T, MIN, MAX> {
    type Error = String;
    fn try_from(values: Vec<T>) -> Result<Self, String> {
        // Checked before values are compared with each other: a caller controls how many there are.
        if values.len() > MAX.saturating_mul(2) {
            return Err(format!("must list at most {MAX}"));
        }
        let mut different: Vec<T> = Vec::with_capacity(values.len());
        for value in values {
            if !different.contains(&value) {
                different.push(value);
            }
        }
        match different.len() {
            n if n < MIN => Err(format!("must list at least {MIN}")),
            n if n > MAX => Err(format!("must list at most {MAX}")),
            _ => Ok(BoundedSet(different)),
        }
    }
}

impl<T, const MIN: usize, const MAX: usize> Deref for BoundedSet<T, MIN, MAX> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T, const MIN: usize, const MAX: usize> Deserialize<'de> for BoundedSet<T, MIN, MAX>
where
    T: Deserialize<'de> + PartialEq,
{
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Vec::deserialize(d)?.try_into().map_err(Error::custom)
    }
}

impl<T: JsonSchema, const MIN: usize, const MAX: usize> JsonSchema for BoundedSet<T, MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("BoundedSet{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({"type": "array", "items": items, "minItems": MIN, "maxItems": MAX})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_each_value_once_and_has_its_length() {
        let read = |text| serde_json::from_str::<BoundedSet<u8, 1, 2>>(text);
        assert_eq!(*read("[2,1,2]").unwrap(), [2, 1]);
        for (text, problem) in
            [("[]", "at least 1"), ("[1,2,3]", "at most 2"), ("[1,1,1,1,1]", "at most 2")]
        {
            assert!(read(text).unwrap_err().to_string().contains(problem), "{text}");
        }
    }
}
