//! Writes a method of `Messages` for each sentence of the English files, which the other languages follow: a
//! file of another language that lacks one of their messages, or a placeholder, ends the build.

use fluent_syntax::{
    ast::{Entry, Expression, InlineExpression, Message, Pattern, PatternElement, Resource},
    parser::parse,
};
use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

const ENGLISH: &str = "en";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=locales");
    let (locales, out) = (Path::new("locales"), PathBuf::from(env::var("OUT_DIR")?));
    for folder in paths_in(locales)? {
        let language = folder.file_name().unwrap_or_default();
        let mut whole = String::new();
        for path in paths_in(&folder)? {
            let english = locales.join(ENGLISH).join(path.file_name().unwrap_or_default());
            check_follows(&path, &english)?;
            whole.push_str(&fs::read_to_string(&path)?);
            whole.push('\n');
        }
        if language == ENGLISH {
            let file = parse(whole.as_str()).map_err(|(_, errors)| format!("{errors:?}"))?;
            fs::write(out.join("sentences.rs"), methods(&file)?)?;
        }
        fs::write(out.join(language).with_extension("ftl"), whole)?;
    }
    Ok(())
}

fn paths_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

/// Checks that a file has the messages of the English one, each once and with the same placeholders.
fn check_follows(path: &Path, english: &Path) -> Result<(), Box<dyn Error>> {
    let (found, wanted) = (placeholders(path)?, placeholders(english)?);
    let names = found.keys().chain(wanted.keys());
    match names.into_iter().find(|name| found.get(*name) != wanted.get(*name)) {
        None => Ok(()),
        Some(name) => {
            Err(format!("{}: {name} is not as in {}", path.display(), english.display()).into())
        }
    }
}

/// The messages of a file, each with its placeholders in the order of their names.
fn placeholders(path: &Path) -> Result<BTreeMap<String, Vec<String>>, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let file = parse(text.as_str()).map_err(|(_, e)| format!("{}: {e:?}", path.display()))?;
    let mut messages = BTreeMap::new();
    for entry in &file.body {
        let Entry::Message(message) = entry else { continue };
        let mut values = Vec::new();
        collect(pattern_of(message)?, &mut values);
        values.sort_unstable();
        let values = values.into_iter().map(str::to_owned).collect();
        if messages.insert(message.id.name.to_owned(), values).is_some() {
            return Err(format!("{} has {} twice", path.display(), message.id.name).into());
        }
    }
    Ok(messages)
}

fn pattern_of<'a, 's>(message: &'a Message<&'s str>) -> Result<&'a Pattern<&'s str>, String> {
    message.value.as_ref().ok_or_else(|| format!("{} has no text", message.id.name))
}

fn methods(file: &Resource<&str>) -> Result<String, Box<dyn Error>> {
    let mut code = String::from("impl Messages {\n");
    for entry in &file.body {
        let Entry::Message(message) = entry else { continue };
        write_method(&mut code, message)?;
    }
    code.push_str("}\n");
    Ok(code)
}

fn write_method(code: &mut String, message: &Message<&str>) -> Result<(), Box<dyn Error>> {
    let name = message.id.name;
    let mut values = Vec::new();
    collect(pattern_of(message)?, &mut values);
    let english = fluent_syntax::serializer::serialize(&Resource {
        body: vec![Entry::Message(message.clone())],
    });
    writeln!(code, "    #[doc = {:?}]", format!("```text\n{english}```"))?;
    let parameters = values.iter().map(|name| format!(", {name}: impl std::fmt::Display"));
    let parameters: String = parameters.collect();
    writeln!(code, "    pub fn {name}(self{parameters}) -> String {{")?;
    let set = values.iter().map(|name| match is_count(name) {
        true => format!("(\"{name}\", FluentValue::try_number(&{name}.to_string()))"),
        false => format!("(\"{name}\", {name}.to_string().into())"),
    });
    let set: Vec<String> = set.collect();
    writeln!(code, "        self.get(\"{name}\", [{}])\n    }}", set.join(", "))?;
    Ok(())
}

/// Whether a value is a number, on which the form of the other words depends.
fn is_count(name: &str) -> bool {
    name == "count"
}

/// The values of a pattern, in the order in which they appear.
fn collect<'a>(pattern: &Pattern<&'a str>, found: &mut Vec<&'a str>) {
    for element in &pattern.elements {
        let PatternElement::Placeable { expression } = element else { continue };
        match expression {
            Expression::Inline(inline) => add(inline, found),
            Expression::Select { selector, variants } => {
                add(selector, found);
                variants.iter().for_each(|variant| collect(&variant.value, found));
            }
        }
    }
}

fn add<'a>(inline: &InlineExpression<&'a str>, found: &mut Vec<&'a str>) {
    let InlineExpression::VariableReference { id } = inline else { return };
    if !found.contains(&id.name) {
        found.push(id.name);
    }
}
