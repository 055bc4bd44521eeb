//! A call in the languages in which people write it.

use crate::{Spec, Standing};
use serde_json::Value;

/// Where the service is, and how clients name it.
pub struct Place<'a> {
    /// Such as `https://svc.example.com`.
    pub api_url: &'a str,
    /// The application id of the service.
    pub application_id: &'a str,
}

/// A call in one language.
pub struct Form {
    /// What people call the language.
    pub label: &'static str,
    /// The name of the language for a block of code in Markdown.
    pub language: &'static str,
    /// The call.
    pub text: String,
}

/// The call of a function with these parameters. The session is in the variable `SESSION_TOKEN` of a
/// shell, or `sessionToken` of a program; the master key in `MASTER_KEY` or `masterKey`.
pub fn forms(spec: &Spec, params: &Value, place: &Place<'_>) -> [Form; 4] {
    let Place { api_url: url, application_id: id } = place;
    let name = spec.name;
    let (header, field, option, key) = match spec.who {
        Standing::Public => ("", "", "", ""),
        Standing::Master => (
            " \\\n  -H \"X-Backend-Master-Key: $MASTER_KEY\"",
            ", masterKey",
            ", { useMasterKey: true }",
            ", undefined, masterKey",
        ),
        _ => (
            " \\\n  -H \"X-Backend-Session-Token: $SESSION_TOKEN\"",
            ", sessionToken",
            ", { sessionToken }",
            "",
        ),
    };
    let line = shell_quoted(&params.to_string());
    let lines = serde_json::to_string_pretty(params).unwrap_or_default();
    let form = |label, language, text| Form { label, language, text };
    [
        form(
            "curl",
            "sh",
            format!(
                "curl {url}/backend/functions/{name} \\\n  -H 'X-Backend-Application-Id: {id}'{header} \\\n  \
                 -H 'Content-Type: application/json' \\\n  -d {line}"
            ),
        ),
        form("Command line", "sh", format!("svc call {name} {line}")),
        form(
            "TypeScript",
            "ts",
            format!(
                "const svc = new Client({{ baseUrl: \"{url}/backend\", applicationId: \"{id}\"{field} }});\n\
                 const reply = await svc.call(\"{name}\", {lines});"
            ),
        ),
        form(
            "Parse library",
            "js",
            format!(
                "Parse.initialize(\"{id}\"{key});\nParse.serverURL = \"{url}/backend\";\n\
                 const reply = await Parse.Cloud.run(\"{name}\", {lines}{option});"
            ),
        ),
    ]
}

/// A text as one word of a shell.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
