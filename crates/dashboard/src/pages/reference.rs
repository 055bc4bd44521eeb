//! The reference of the functions, made from their declarations, with a console that calls them.

use crate::{
    form::Form,
    frame::Frame,
    response::{PageResult, Refused, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Effect, Fault, PUBLISHED, Spec,
    example::{self, Place},
    fault::Failure,
    reference::{self, Field},
};
use messages::Messages;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/reference", web::get().to(list))
        .route("/reference/{name}", web::get().to(show))
        .route("/reference/{name}", web::post().to(call));
}

/// The words that a person searches for.
#[derive(Deserialize)]
pub struct FunctionsQuery {
    #[serde(default)]
    pub q: String,
}

/// A group of functions, or what a search finds of it.
pub struct FunctionGroup {
    pub name: &'static str,
    pub functions: Vec<FunctionSummary>,
}

/// A function in a list.
pub struct FunctionSummary {
    pub name: &'static str,
    pub text: String,
}

/// The functions whose name or summary contains all words.
pub fn find(query: &str) -> Vec<FunctionGroup> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let groups = PUBLISHED.iter().map(|group| {
        let summaries =
            group.functions.iter().map(|f| FunctionSummary { name: f.name, text: f.summary() });
        let fits = |summary: &FunctionSummary| {
            let text = format!("{} {}", summary.name, summary.text).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        FunctionGroup { name: group.name, functions: summaries.filter(fits).collect() }
    });
    groups.filter(|group| !group.functions.is_empty()).collect()
}

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferencePage {
    frame: Frame,
    query: String,
    groups: Vec<FunctionGroup>,
    api_url: String,
}

async fn list(visitor: Visitor, query: web::Query<FunctionsQuery>) -> PageResult {
    let query = query.into_inner().q;
    let frame = Frame::of(&visitor, Messages::api_reference).await?;
    let api_url = visitor.settings().api_url.clone();
    page(&ReferencePage { frame, groups: find(&query), query, api_url })
}

/// A type that parameters name, with what it allows.
struct NamedType {
    name: String,
    meaning: String,
    fields: Vec<Field>,
}

/// What a function answered in the console.
struct ConsoleOutput {
    status: u16,
    json: String,
}

#[derive(Template)]
#[template(path = "function.html")]
struct FunctionPage {
    frame: Frame,
    spec: &'static Spec,
    paragraphs: Vec<String>,
    fields: Vec<Field>,
    types: Vec<NamedType>,
    reply: String,
    /// The example in each language.
    examples: [example::Form; 4],
    /// An example of the reply.
    example_reply: String,
    form: Form,
    output: Option<ConsoleOutput>,
}

impl FunctionPage {
    fn is_change(&self) -> bool {
        self.spec.effect == Effect::Change
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let spec = named(&path)?;
    let example = pretty(&example::params(spec));
    show_with(&visitor, spec, Form::filled([("parameters", example)]), None).await
}

async fn show_with(
    visitor: &Visitor,
    spec: &'static Spec,
    form: Form,
    output: Option<ConsoleOutput>,
) -> PageResult {
    let frame = Frame::of(visitor, |_| spec.name.to_owned())
        .await?
        .below_page(Messages::api_reference, "/reference");
    let mut schemas = SchemaSettings::draft2020_12().into_generator();
    let params = (spec.params)(&mut schemas).to_value();
    let types =
        schemas.take_definitions(true).into_iter().map(|(name, schema)| named_type(name, &schema));
    let types = types.collect();
    let reply = plain(&reference::kind((spec.reply)(&mut schemas).as_value()));
    let documentation = spec.documentation();
    let paragraphs = documentation.split("\n\n").map(|text| text.replace('\n', " ")).collect();
    let fields = fields(&params);
    let settings = visitor.settings();
    let place = Place { api_url: &settings.api_url, application_id: &settings.application_id };
    let examples = example::forms(spec, &example::params(spec), &place);
    let example_reply = pretty(&example::reply(spec));
    form_page(
        &form.clone(),
        &FunctionPage {
            frame,
            spec,
            paragraphs,
            fields,
            types,
            reply,
            examples,
            example_reply,
            form,
            output,
        },
    )
}

/// Calls the function with the session of the person.
async fn call(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let spec = named(&path)?;
    let parameters = form.value("parameters").as_bytes().to_vec();
    let output = match visitor.call_named(spec.name, parameters, form.key()).await {
        Ok(reply) => {
            let json: Value = serde_json::from_slice(&reply.json).unwrap_or_default();
            ConsoleOutput { status: if reply.created { 201 } else { 200 }, json: pretty(&json) }
        }
        Err(fault) => {
            let failure = serde_json::to_value(Failure::new(&fault, "of this page"));
            ConsoleOutput { status: fault.status(), json: pretty(&failure.unwrap_or_default()) }
        }
    };
    show_with(&visitor, spec, form, Some(output)).await
}

fn named(name: &str) -> Result<&'static Spec, Refused> {
    let all = PUBLISHED.iter().flat_map(|group| group.functions);
    all.into_iter().find(|spec| spec.name == name).ok_or(Refused(Fault::NotFound("function")))
}

fn named_type(name: String, schema: &Value) -> NamedType {
    let mut meaning = reference::description(schema);
    let values = reference::values(schema).unwrap_or_default();
    if schema.get("properties").is_none() {
        let allowed: Vec<_> = values.iter().map(|(value, _)| plain(value)).collect();
        let allowed =
            if allowed.is_empty() { plain(&reference::text(schema)) } else { allowed.join(", ") };
        meaning = format!("{meaning} {allowed}").trim().to_owned();
    }
    NamedType { name, meaning, fields: fields(schema) }
}

fn fields(schema: &Value) -> Vec<Field> {
    let fields = reference::fields_of(schema).into_iter();
    fields
        .map(|field| Field { kind: plain(&field.kind), meaning: plain(&field.meaning), ..field })
        .collect()
}

/// Markdown without its marks: names of types are links there, and values are code.
fn plain(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(at) = rest.find("](#") {
        text.push_str(&rest[..at].replace(['[', '`'], ""));
        rest = rest[at..].split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(&rest.replace('`', ""));
    text
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_text() {
        assert_eq!(plain("list of [AppId](#appid) or `null`"), "list of AppId or null");
    }

    #[test]
    fn each_function_is_found_by_its_name_and_its_words() {
        for spec in contract::all().filter(|spec| named(spec.name).is_ok()) {
            let found = find(spec.name);
            assert!(found.iter().flat_map(|group| &group.functions).any(|f| f.name == spec.name));
        }
        assert!(find("roll back release").iter().any(|group| group.name == "Releases"));
        assert!(find("no such words").is_empty());
    }
}
