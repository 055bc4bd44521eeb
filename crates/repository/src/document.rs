//! JSON and YAML files as trees whose parts know their lines.
//!
//! Strangers wrote the files, so the depth and the size of a tree are limited: a few aliases of YAML
//! can stand for billions of parts, or repeat a long text thousands of times.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::collections::HashMap;

/// How deep lists and maps may be nested.
const DEEPEST: usize = 64;
/// How large a tree may be, aliases resolved. Each part counts as one, and as one more for each
/// [`TEXT`] bytes of its text.
const LARGEST: usize = 20_000;
const TEXT: usize = 64;

const TWICE: &str = "a name appears twice";

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line on which the part begins, from 1. `None` if it is not known.
    pub line: Option<u32>,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Number(String),
    Bool(bool),
    Null,
    List(Vec<Node>),
    /// In the order of the file.
    Map(Vec<(DocumentKey, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct DocumentKey {
    pub line: Option<u32>,
    pub name: String,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntaxError {
    pub line: Option<u32>,
    pub problem: String,
}

impl Node {
    /// The entries of a map; of any other part none.
    pub fn entries(&self) -> &[(DocumentKey, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The entry of a map with this name.
    pub fn entry(&self, name: &str) -> Option<&(DocumentKey, Node)> {
        self.entries().iter().find(|(key, _)| key.name == name)
    }

    /// The value of a map under this name.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|(_, node)| node)
    }

    /// The elements of a list; of any other part none.
    pub fn elements(&self) -> &[Node] {
        match &self.value {
            Value::List(elements) => elements,
            _ => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }
}

/// Reads a JSON file. JSON is a part of YAML, and the YAML parser knows lines; but it accepts more
/// than JSON, so a JSON parser reads the file first.
pub fn json(text: &str) -> Result<Node, SyntaxError> {
    let strict: serde_json::Value = serde_json::from_str(text).map_err(|e| SyntaxError {
        line: u32::try_from(e.line()).ok().filter(|line| *line > 0),
        problem: e.to_string(),
    })?;
    match yaml(text) {
        // The JSON parser takes the last one, and other programs refuse the file.
        Err(e) if e.problem == TWICE => Err(e),
        read => Ok(read.unwrap_or_else(|_| Node::without_lines(strict))),
    }
}

impl Node {
    fn without_lines(value: serde_json::Value) -> Node {
        let value = match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::Number(number) => Value::Number(number.to_string()),
            serde_json::Value::String(text) => Value::Text(text),
            serde_json::Value::Array(list) => {
                Value::List(list.into_iter().map(Node::without_lines).collect())
            }
            serde_json::Value::Object(map) => {
                let entry =
                    |(name, value)| (DocumentKey { line: None, name }, Node::without_lines(value));
                Value::Map(map.into_iter().map(entry).collect())
            }
        };
        Node { line: None, value }
    }
}

/// Reads the first document of a YAML file (version 1.2, where `on` is text). An empty file is
/// `Null`.
pub fn yaml(text: &str) -> Result<Node, SyntaxError> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| SyntaxError {
            line: u32::try_from(e.marker().line()).ok(),
            problem: e.info().to_owned(),
        })?;
        let problem = match reader.take(event, span) {
            Ok(None) => continue,
            Ok(Some(document)) => return Ok(document),
            Err(problem) => problem,
        };
        return Err(SyntaxError { line: line(span), problem: problem.into() });
    }
    Ok(Node { line: None, value: Value::Null })
}

fn line(span: Span) -> Option<u32> {
    u32::try_from(span.start.line()).ok()
}

/// Builds a tree from the events of the parser.
#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    /// Parts that aliases may repeat, with their sizes.
    anchors: HashMap<usize, (Node, usize)>,
    /// The size of the tree so far.
    size: usize,
}

/// A list or map that has not ended.
struct Open {
    node: Node,
    anchor: usize,
    /// The name of the entry whose value comes next.
    key: Option<DocumentKey>,
    /// The size of the tree before this part.
    size_before: usize,
}

impl Reader {
    /// Takes an event. Returns the document when it is complete.
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<Option<Node>, &'static str> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                let node = Node { line: line(span), value: scalar(&text, is_plain) };
                let size = 1 + text.len() / TEXT;
                self.grow(size)?;
                self.end(node, anchor, size)
            }
            Event::SequenceStart(anchor, _) => self.begin(Value::List(vec![]), span, anchor),
            Event::MappingStart(anchor, _) => self.begin(Value::Map(vec![]), span, anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(None) };
                self.end(open.node, open.anchor, self.size - open.size_before)
            }
            Event::Alias(anchor) => {
                let Some((_, size)) = self.anchors.get(&anchor) else {
                    return Err("an alias repeats a part that contains it");
                };
                // Before the part is copied.
                self.grow(*size)?;
                let repeated = self.anchors.get(&anchor).map(|(node, _)| node.clone());
                repeated.map_or(Ok(None), |node| self.end(node, 0, 0))
            }
            _ => Ok(None),
        }
    }

    fn begin(
        &mut self,
        value: Value,
        span: Span,
        anchor: usize,
    ) -> Result<Option<Node>, &'static str> {
        if self.open.len() >= DEEPEST {
            return Err("lists and maps are nested too deep");
        }
        let (node, size_before) = (Node { line: line(span), value }, self.size);
        self.grow(1)?;
        self.open.push(Open { node, anchor, key: None, size_before });
        Ok(None)
    }

    fn grow(&mut self, by: usize) -> Result<(), &'static str> {
        self.size += by;
        if self.size > LARGEST { Err("the file has too much in it") } else { Ok(()) }
    }

    /// Puts a complete part of this size into the list or map around it.
    fn end(
        &mut self,
        node: Node,
        anchor: usize,
        size: usize,
    ) -> Result<Option<Node>, &'static str> {
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let Some(around) = self.open.last_mut() else { return Ok(Some(node)) };
        match (&mut around.node.value, around.key.take()) {
            (Value::List(elements), _) => elements.push(node),
            (Value::Map(entries), Some(key)) => entries.push((key, node)),
            (Value::Map(entries), None) => {
                let name = name(node.value).ok_or("a name must be text")?;
                if entries.iter().any(|(key, _)| key.name == name) {
                    return Err(TWICE);
                }
                around.key = Some(DocumentKey { line: node.line, name });
            }
            _ => {}
        }
        Ok(None)
    }
}

/// The name that a key stands for.
fn name(key: Value) -> Option<String> {
    match key {
        Value::Text(text) | Value::Number(text) => Some(text),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null => Some("null".into()),
        Value::List(_) | Value::Map(_) => None,
    }
}

/// The value of a scalar, by the core schema of YAML 1.2.
fn scalar(text: &str, is_plain: bool) -> Value {
    match text {
        _ if !is_plain => Value::Text(text.into()),
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_number(text) => Value::Number(text.into()),
        _ => Value::Text(text.into()),
    }
}

fn is_number(text: &str) -> bool {
    let begins_so = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    begins_so && text.contains(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(text: &str) -> (Option<u32>, String) {
        let error = yaml(text).unwrap_err();
        (error.line, error.problem)
    }

    #[test]
    fn parts_know_their_lines() {
        let root = json("{\n\t\"a\": [\"x\",\n\t\t{\"b\": null}],\n\n\t\"c\": 1\n}").unwrap();
        let (key, list) = root.entry("a").unwrap();
        assert_eq!((key.line, list.elements().len()), (Some(2), 2));
        assert_eq!(list.elements()[1].entry("b").unwrap().0.line, Some(3));
        assert_eq!(root.get("c").unwrap().line, Some(5));
        // YAML has no pairs of surrogates.
        let root = json(r#"{"c": "\ud83d\ude00"}"#).unwrap();
        assert_eq!(root.get("c").and_then(Node::text), Some("😀"));
        let root = yaml("on:\n  workflow_dispatch:\nx: 'true'\n").unwrap();
        let (key, dispatch) = root.get("on").unwrap().entry("workflow_dispatch").unwrap();
        assert_eq!((key.line, &dispatch.value), (Some(2), &Value::Null));
        assert_eq!(root.get("x").unwrap().value, Value::Text("true".into()));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_line() {
        for wrong in ["{\n\"a\": 1,\n}", "{a: 1}", "{\"a\": 'x'}", "{} {}", "", "\u{feff}{}"] {
            assert!(json(wrong).is_err(), "{wrong}");
        }
        assert_eq!(json("{\n\"a\": 1,\n}").unwrap_err().line, Some(3));
        assert_eq!(problem("a: 1\nb: 2\na: 3\n"), (Some(3), "a name appears twice".into()));
        assert_eq!(problem("a:\n  - [b\nc: 1\n").0, Some(3));
    }

    #[test]
    fn a_hostile_file_costs_little() {
        assert!(problem(&"- ".repeat(30_000)).1.contains("too deep"));
        assert!(problem(&"[".repeat(30_000)).1.contains("recursion"));
        let mut laughs = String::from("a0: &a0 [x, x]\n");
        for n in 1..40 {
            laughs += &format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1);
        }
        assert!(problem(&laughs).1.contains("too much"));
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), "*a,".repeat(10_000));
        assert!(problem(&long).1.contains("too much"));
        assert!(problem("a: &a [*a]\n").1.contains("contains it"));
        assert!(problem(&"- x\n".repeat(30_000)).1.contains("too much"));
    }

    #[test]
    fn aliases_repeat_their_parts() {
        let root = yaml("a: &a {x: 1}\nb: *a\n").unwrap();
        assert_eq!(root.get("a"), root.get("b"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|[-\\[\\]{}:,&*!|>'\"#a0 \n\t]*") {
            let _ = (yaml(&text), json(&text));
        }

        #[test]
        fn every_json_is_read_as_it_is(names in prop::collection::btree_map("\\PC*", "\\PC*", 0..5)) {
            let text = serde_json::to_string_pretty(&names).unwrap();
            let root = json(&text).unwrap();
            for (name, value) in &names {
                prop_assert_eq!(root.get(name).and_then(Node::text), Some(value.as_str()));
            }
        }
    }
}
