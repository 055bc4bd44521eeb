//! Finds all that is wrong with the values of parameters, field by field, and says it in words for
//! people.
//!
//! Serde stops at the first wrong value. So each field is read once more alone, and a wrong list or
//! object item by item. What is then missing beside the field says nothing about its value.

use crate::FieldProblem;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

/// The maximum length of a field's name and of its problem in an answer, in characters.
const LONGEST_NAME: usize = 128;
const LONGEST_PROBLEM: usize = 300;
/// The maximum number of problems of one kind in an answer.
pub(crate) const MOST_NAMED: usize = 20;
/// The maximum number of values that are read alone, so that a long list costs little.
const MOST_READ: usize = 500;

/// A problem with this field, whose name a caller may have made up.
pub(crate) fn problem(field: &str, problem: impl Into<String>) -> FieldProblem {
    FieldProblem { field: field.chars().take(LONGEST_NAME).collect(), problem: problem.into() }
}

/// The wrong values among these parameters of type `T`. Empty if each value is right by itself.
pub(crate) fn of_values<T: DeserializeOwned>(params: &Map<String, Value>) -> Vec<FieldProblem> {
    let mut search =
        Search { read: &|params| first::<T>(params), found: Vec::new(), left: MOST_READ };
    for (name, value) in params {
        search.visit(&mut vec![PathStep::Field(name.clone())], value);
    }
    search.found
}

/// What is wrong first with parameters of type `T`, in the order in which Serde reads them.
pub(crate) fn first_of<T: DeserializeOwned>(params: Value) -> Option<FieldProblem> {
    first::<T>(params).map(|wrong| wrong.told(&[]))
}

/// Reads the value of the parameter with this name, or says what is wrong with it first.
pub(crate) fn read_field<'de, T: Deserialize<'de>>(
    name: &str,
    value: impl Deserializer<'de>,
) -> Result<T, FieldProblem> {
    read(value).map_err(|mut wrong| {
        wrong.path.insert(0, PathStep::Field(name.to_owned()));
        wrong.told(&[])
    })
}

/// A step from a value into it.
#[derive(Debug, Clone, PartialEq)]
enum PathStep {
    Field(String),
    Item(usize),
}

/// The first problem with parameters.
struct Wrong {
    /// Where it is.
    path: Vec<PathStep>,
    /// What Serde says.
    problem: String,
}

fn first<T: DeserializeOwned>(params: Value) -> Option<Wrong> {
    read::<T>(params).err()
}

fn read<'de, T: Deserialize<'de>>(value: impl Deserializer<'de>) -> Result<T, Wrong> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let steps = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(PathStep::Item(*index)),
            Segment::Map { key } => Some(PathStep::Field(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        Wrong { path: steps.collect(), problem: error.into_inner().to_string() }
    })
}

impl Wrong {
    /// Whether the problem is in the value at `path`, read alone: each list on the way has only the
    /// item that leads there.
    fn is_in(&self, path: &[PathStep]) -> bool {
        let alone = path.iter().map(|step| match step {
            PathStep::Item(_) => PathStep::Item(0),
            field => field.clone(),
        });
        self.path.len() >= path.len() && alone.eq(self.path.iter().take(path.len()).cloned())
    }

    /// The problem for people. `path` leads to the value that was read alone.
    fn told(self, path: &[PathStep]) -> FieldProblem {
        let (inside, words) = in_words(&self.problem);
        let rest = self.path.into_iter().skip(path.len());
        let steps = path.iter().cloned().chain(rest).chain(inside.map(PathStep::Field));
        let name = steps.fold(String::new(), |name, step| match step {
            PathStep::Item(index) => format!("{name}[{index}]"),
            PathStep::Field(field) if name.is_empty() => field,
            PathStep::Field(field) => format!("{name}.{field}"),
        });
        problem(if name.is_empty() { "body" } else { &name }, words)
    }
}

struct Search<'a> {
    read: &'a dyn Fn(Value) -> Option<Wrong>,
    found: Vec<FieldProblem>,
    /// How many values may still be read alone.
    left: usize,
}

impl Search<'_> {
    /// Finds the problems in the value at `path`.
    fn visit(&mut self, path: &mut Vec<PathStep>, value: &Value) {
        if self.left == 0 || self.found.len() == MOST_NAMED {
            return;
        }
        self.left -= 1;
        let Some(wrong) = (self.read)(alone(path, value)).filter(|wrong| wrong.is_in(path)) else {
            return;
        };
        let before = self.found.len();
        let mut inside = |step: PathStep, value: &Value| {
            path.push(step);
            self.visit(path, value);
            path.pop();
        };
        match value {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(name, value)| inside(PathStep::Field(name.clone()), value));
            }
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| inside(PathStep::Item(index), item));
            }
            _ => {}
        }
        if self.found.len() == before {
            self.found.push(wrong.told(path));
        }
    }
}

/// The parameters with only the value at `path`.
fn alone(path: &[PathStep], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |inside, step| match step {
        PathStep::Field(name) => Value::Object(Map::from_iter([(name.clone(), inside)])),
        PathStep::Item(_) => Value::Array(vec![inside]),
    })
}

/// A problem in the words of Serde, for people: the field of the value that it is about, if it is about
/// one, and what is wrong. It never contains a value, which may be long or secret.
fn in_words(problem: &str) -> (Option<String>, String) {
    if let Some(field) = quoted_after("missing field ", problem) {
        return (Some(field.to_owned()), "is required".to_owned());
    }
    let expected = problem.rsplit_once(", expected ").map(|(_, expected)| expected);
    if let Some(field) = quoted_after("unknown field ", problem) {
        let words = match expected {
            Some(known) => format!("is not a field; there are {}", names(known)),
            None => "is not a field; there are none".to_owned(),
        };
        return (Some(field.to_owned()), words);
    }
    let words = match expected {
        Some(expected) => format!("must be {}", kind(expected)),
        None if problem.starts_with("data did not match any variant") => {
            "has none of the forms that the reference describes".to_owned()
        }
        None => problem.chars().take(LONGEST_PROBLEM).collect(),
    };
    (None, words)
}

/// The name between backticks after these words.
fn quoted_after<'a>(words: &str, problem: &'a str) -> Option<&'a str> {
    let quoted = problem.strip_prefix(words)?.strip_prefix('`')?;
    quoted.split_once('`').map(|(name, _)| name)
}

/// "one of `a`, `b`", "`a` or `b`" and "`a`" as names between commas.
fn names(known: &str) -> String {
    known.trim_start_matches("one of ").replace(" or ", ", ").replace('`', "")
}

/// What Serde expects, in words for people.
fn kind(expected: &str) -> String {
    let first = expected.split(' ').next().unwrap_or_default();
    let words = match (expected, first) {
        (_, "f32" | "f64") => "a number",
        (_, "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize") => {
            "a whole number"
        }
        ("a boolean", _) => "true or false",
        ("unit", _) => "null",
        ("a sequence", _) | (_, "tuple") => "a list",
        ("a map" | "map", _) | (_, "struct" | "internally" | "adjacently") => "an object",
        ("string or map" | "map with a single key" | "variant identifier", _) | (_, "enum") => {
            "a string"
        }
        (names_of, _) if names_of.contains('`') => return format!("one of {}", names(names_of)),
        (other, _) => other,
    };
    words.to_owned()
}
