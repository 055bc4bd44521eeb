//! Forms: what a person entered, and what is wrong with it. [`value`] reads it as the parameters of
//! functions.

pub mod value;

use crate::{
    arriving::{Arriving, in_time},
    cookies,
    response::Refused,
    visitor::form_token,
};
use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload, web};
use contract::{Fault, params};
use futures_util::future::{FutureExt, LocalBoxFuture};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The name of the field with the form token.
pub const TOKEN: &str = "formToken";
/// The name of the field that makes a form that is sent twice one change.
pub const KEY: &str = "formKey";

/// Parts of the names of fields that hold secrets, or may.
const SECRET: [&str; 7] =
    ["password", "secret", "token", "masterkey", "env", "buildargs", "parameters"];
/// The most bytes of a form.
const LARGEST: usize = 256 << 10;

/// What a person entered, in the order of the fields, and what the service says about it.
#[derive(Debug, Clone, Default)]
pub struct Form {
    fields: Vec<(String, String)>,
    fault: Option<Fault>,
}

impl Form {
    pub fn new(fields: Vec<(String, String)>) -> Form {
        Form { fields, fault: None }
    }

    /// A form that already says something, such as the present name.
    pub fn filled<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> Form {
        Form::new(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The form of a search: the fields of an address.
    pub fn search<'a>(fields: impl IntoIterator<Item = (&'a str, &'a String)>) -> Form {
        Form::filled(fields.into_iter().map(|(name, value)| (name, value.trim().to_owned())))
    }

    /// Adds a field.
    pub fn push(&mut self, name: String, value: String) {
        self.fields.push((name, value));
    }

    /// Checks that a page of this session made the form.
    pub fn check(&self, req: &HttpRequest) -> Result<(), Refused> {
        if self.value(TOKEN) == form_token(cookies::session(req).as_deref()) {
            return Ok(());
        }
        Err(Refused(Fault::Unauthenticated("this form was made for another session".into())))
    }

    /// What is in a field, or nothing.
    pub fn value(&self, name: &str) -> &str {
        let field = self.fields.iter().find(|(field, _)| field == name);
        field.map_or("", |(_, value)| value.as_str())
    }

    /// Whether a box is ticked, or one of several values is chosen.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.fields.iter().any(|(field, given)| field == name && given == value)
    }

    /// All values of a field, such as the ticked boxes of a group.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let given = self.fields.iter().filter(|(field, _)| field == name);
        given.map(|(_, value)| value.as_str()).collect()
    }

    /// The fields: names and values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What was entered under a name, as the value of a parameter. See [`value`].
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, Fault> {
        value::read(name, self.values(name))
    }

    /// What was entered as JSON under a name, as the value of a parameter.
    pub fn get_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Fault> {
        let json: Value = serde_json::from_str(self.value(name))
            .map_err(|e| Fault::invalid(name, format!("is not JSON: {e}")))?;
        params::read_field(name, json)
    }

    /// Checks that the person entered the name of what they delete or replace. `what` says whose name
    /// it is.
    pub fn confirm(&self, name: impl AsRef<str>, what: &str) -> Result<(), Fault> {
        match self.value("confirmation") == name.as_ref() {
            true => Ok(()),
            false => Err(Fault::invalid("confirmation", format!("is not {what}"))),
        }
    }

    pub fn key(&self) -> Option<String> {
        Some(self.value(KEY)).filter(|key| !key.is_empty()).map(str::to_owned)
    }

    /// The form again, with what the service says about it.
    pub fn refused(mut self, fault: Fault) -> Form {
        self.fault = Some(fault);
        self
    }

    /// The form again, where the service has other names for some fields: the name that the service
    /// has, and the name in the form. A problem is then shown at the field in which it was entered.
    pub fn refused_as(self, fault: Fault, names: &[(&str, &str)]) -> Form {
        let Fault::Invalid(mut problems) = fault else { return self.refused(fault) };
        for problem in &mut problems {
            let name = names.iter().find_map(|(theirs, ours)| {
                let rest = problem.field.strip_prefix(theirs)?;
                (rest.is_empty() || rest.starts_with(['[', '.'])).then(|| format!("{ours}{rest}"))
            });
            if let Some(name) = name {
                problem.field = name;
            }
        }
        self.refused(Fault::Invalid(problems))
    }

    /// This form on a page with others: they say what they said before. A field of this form that is
    /// in `others` too keeps what the person entered.
    pub fn beside(mut self, others: Form) -> Form {
        for (name, value) in others.fields {
            if !self.fields.iter().any(|(field, _)| *field == name) {
                self.fields.push((name, value));
            }
        }
        self
    }

    /// Says that boxes are empty if none of them is ticked: a browser does not send such boxes.
    pub fn mark_unticked(&mut self, names: &[&str]) {
        for name in names {
            if !self.fields.iter().any(|(field, _)| field == name) {
                self.push((*name).to_owned(), String::new());
            }
        }
    }

    /// What is wrong with a field.
    pub fn problem(&self, name: &str) -> Option<&str> {
        let Some(Fault::Invalid(problems)) = &self.fault else { return None };
        let of_field = problems.iter().find(|problem| {
            let rest = problem.field.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
        });
        of_field.map(|problem| problem.problem.as_str())
    }

    /// What is wrong with the whole.
    pub fn fault(&self) -> Option<String> {
        Some(match self.fault.as_ref()? {
            Fault::Invalid(problems) => problems
                .iter()
                .map(|problem| {
                    let what = problem.problem.trim_end_matches('.');
                    format!("{} {what}.", words_of(&problem.field))
                })
                .collect::<Vec<_>>()
                .join(" "),
            fault => fault.to_string(),
        })
    }

    /// The status of the page that shows the form.
    pub fn status(&self) -> u16 {
        self.fault.as_ref().map_or(200, Fault::status)
    }

    /// The fields that may stand in a page: no secrets, and nothing of the form itself.
    pub fn kept(&self) -> Vec<(String, String)> {
        let is_secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            name == "data" || SECRET.iter().any(|part| name.contains(part))
        };
        let kept =
            self.fields.iter().filter(|(name, _)| name != TOKEN && name != KEY && !is_secret(name));
        kept.cloned().collect()
    }
}

impl FromRequest for Form {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, Self::Error>>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (req, payload) = (req.clone(), payload.take());
        async move {
            let mut arriving = Arriving::of(&req, LARGEST)?;
            let body = in_time(&req, arriving.all(payload)).await?;
            let form = Form::new(
                web::Query::<Vec<(String, String)>>::from_query(
                    str::from_utf8(&body).map_err(|_| malformed())?,
                )
                .map_err(|_| malformed())?
                .into_inner(),
            );
            // Kept for the page that asks to sign in again.
            req.extensions_mut().insert(form.clone());
            form.check(&req)?;
            Ok(form)
        }
        .boxed_local()
    }
}

fn malformed() -> Refused {
    Refused(Fault::Malformed("this is not a form".into()))
}

/// The name of a field in words, such as `New version` for `newVersion`.
fn words_of(field: &str) -> String {
    let mut words = String::new();
    for letter in field.chars() {
        if letter.is_uppercase() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    crate::text::sentence(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, path::Path};

    #[test]
    fn a_refused_form_leaves_the_others_as_they_were() {
        let entered = Form::filled([("amount", "lots".to_owned()), ("featured", String::new())]);
        let others = Form::filled([
            ("amount", "5".to_owned()),
            ("featured", "yes".to_owned()),
            ("name", "Games".to_owned()),
        ]);
        let form = entered.beside(others);
        assert_eq!((form.value("amount"), form.value("name")), ("lots", "Games"));
        assert!(!form.has("featured", "yes"));
    }

    #[test]
    fn a_problem_stands_at_the_field_in_which_it_was_entered() {
        let names = [("version", "newVersion"), ("source.git.url", "url")];
        for (theirs, ours, not) in [
            ("version", "newVersion", "version"),
            ("source.git.url", "url", "ref"),
            ("versions", "versions", "newVersion"),
        ] {
            let fault = Fault::invalid(theirs, "is wrong");
            let form = Form::default().refused_as(fault, &names);
            assert_eq!(form.problem(ours), Some("is wrong"), "{theirs}");
            assert_eq!(form.problem(not), None, "{theirs}");
        }
    }

    #[test]
    fn a_refusal_names_its_fields_in_words() {
        let fault = Fault::invalid("newVersion", "must be a version");
        let form = Form::default().refused(fault);
        assert_eq!(form.fault().unwrap(), "New version must be a version.");
    }

    /// All files below a folder, as one text.
    fn text_of(folder: &Path) -> String {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|path| match path.is_dir() {
                true => text_of(&path),
                false => std::fs::read_to_string(&path).unwrap(),
            })
            .collect()
    }

    #[test]
    fn every_field_of_a_template_is_read() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (pages, sources) = (text_of(&package.join("templates")), text_of(&package.join("src")));
        let upto = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_owned();
        let plain = pages.split(" name=\"").skip(1).map(|rest| upto(rest, '"'));
        let macros = ["parts::field(", "parts::area(", "parts::search_field("].into_iter();
        let made = macros.flat_map(|call| pages.split(call).skip(1)).filter_map(|rest| {
            Some(rest.split(", ").nth(1)?.strip_prefix('"')?.trim_end_matches('"').to_owned())
        });
        // Those of macros are values, and some are for browsers and search engines.
        let is_field =
            |name: &String| !name.contains('{') && !["viewport", "robots"].contains(&name.as_str());
        let fields: BTreeSet<_> = plain.chain(made).filter(is_field).collect();
        assert!(fields.len() > 90, "{fields:?}");
        let is_read = |name: &&String| {
            sources.contains(&format!("\"{name}\"")) || sources.contains(&format!(" {name}:"))
        };
        let unread: Vec<_> = fields.iter().filter(|name| !is_read(name)).collect();
        assert!(unread.is_empty(), "no handler reads {unread:?}");
    }

    #[test]
    fn every_sentence_is_said() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (pages, sources) = (text_of(&package.join("templates")), text_of(&package.join("src")));
        let english = text_of(&package.join("../messages/locales/en"));
        let names = english.lines().filter_map(|line| line.split_once(" = ").map(|(name, _)| name));
        let names: Vec<_> = names.filter(|name| !name.starts_with(['#', ' '])).collect();
        assert!(names.len() > 900, "{}", names.len());
        let is_said = |name: &&str| {
            let (called, passed) = (format!(".{name}("), format!("Messages::{name}"));
            pages.contains(&called) || sources.contains(&called) || sources.contains(&passed)
        };
        // These two are of the crate that has the sentences.
        let is_size = |name: &&str| ["kibibytes", "mebibytes"].contains(name);
        let unsaid: Vec<_> = names.iter().filter(|name| !is_said(name) && !is_size(name)).collect();
        assert!(unsaid.is_empty(), "no page says {unsaid:?}");
    }
}
