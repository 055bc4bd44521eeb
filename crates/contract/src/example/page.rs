//! Writes the examples of all functions in Markdown.

use super::{Place, forms, params, reply};
use crate::{Spec, function::Group};
use serde_json::json;
use std::fmt::Write;

const HEADING: &str = "\
# Examples

This page is generated from the declarations. Do not edit it. [The reference](REFERENCE.md) explains the
parameters and the replies.

Each function is called with `curl`, with the command line, and with the
[client for TypeScript](../sdk/typescript/README.md). `SESSION_TOKEN` and `sessionToken` are the session of
`loginWithEmail`; `svc login` keeps its own. The parameters are those that a call needs. The reply has
all its fields, with values of the right form.
";

/// Where the service of the examples is.
const PLACE: Place<'static> =
    Place { api_url: "https://svc.example.com", application_id: "svc_JM3pKDCOL5JAMHQWRHR0UE95" };

/// Writes the examples of these groups.
pub fn markdown(groups: &[Group]) -> String {
    let mut page = String::from(HEADING);
    for group in groups {
        let _ = writeln!(page, "\n## {}", group.name);
        for function in group.functions {
            section(&mut page, function);
        }
    }
    page
}

fn section(page: &mut String, function: &Spec) {
    let _ = write!(page, "\n### {}\n\n{}\n", function.name, function.summary());
    let [curl, command, typescript, _] = forms(function, &params(function), &PLACE);
    for form in [curl, command, typescript] {
        let _ = write!(page, "\n```{}\n{}\n```\n", form.language, form.text);
    }
    let reply = serde_json::to_string_pretty(&json!({"result": reply(function)}));
    let _ = write!(page, "\n```json\n{}\n```\n", reply.unwrap_or_default());
}
