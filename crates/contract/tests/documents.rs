//! The checked-in documents must match the declarations. `UPDATE=1` writes them again; review the
//! difference.

use std::path::Path;

fn compare(file: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/{file} is not what the declarations say; run `make openapi` and read the difference"
    );
}

#[test]
fn the_openapi_document_is_what_the_declarations_say() {
    let document = contract::openapi::document("http://127.0.0.1:8080", contract::PUBLISHED);
    compare("openapi.json", &(serde_json::to_string_pretty(&document).unwrap() + "\n"));
}

#[test]
fn the_reference_is_what_the_declarations_say() {
    compare("REFERENCE.md", &contract::reference::markdown(contract::PUBLISHED));
}

#[test]
fn the_examples_are_what_the_declarations_say() {
    compare("EXAMPLES.md", &contract::example::markdown(contract::PUBLISHED));
}

#[test]
fn the_events_of_webhooks_are_what_the_declarations_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/WEBHOOKS.md");
    let kept = std::fs::read_to_string(path).unwrap();
    let (before, rest) = kept.split_once("<!-- events -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of events -->").unwrap();
    let table = contract::webhooks::table();
    compare(
        "WEBHOOKS.md",
        &format!("{before}<!-- events -->\n{table}<!-- end of events -->{after}"),
    );
}

#[test]
fn every_function_is_documented() {
    for function in contract::all() {
        let summary = function.summary();
        assert!(summary.len() > 5 && summary.ends_with('.'), "{}: {summary:?}", function.name);
    }
}

#[test]
fn every_field_is_explained() {
    fn look(at: &str, value: &serde_json::Value, without: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(object) => {
                let properties = object.get("properties").and_then(|fields| fields.as_object());
                for (name, schema) in properties.into_iter().flatten() {
                    let told = schema["description"].as_str().unwrap_or_default();
                    // The envelope of every reply.
                    if told.len() < 5 && name != "result" {
                        without.push(format!("{at}.{name}"));
                    }
                }
                object.values().for_each(|inner| look(at, inner, without));
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| look(at, item, without));
            }
            _ => {}
        }
    }
    let document = contract::openapi::document("http://127.0.0.1:8080", contract::PUBLISHED);
    let mut without = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        look(path, operations, &mut without);
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        look(name, schema, &mut without);
    }
    without.sort();
    without.dedup();
    assert!(without.is_empty(), "{} fields need a doc comment: {without:#?}", without.len());
}

#[test]
fn names_of_schemas_do_not_depend_on_their_order() {
    let document = contract::openapi::document("http://127.0.0.1:8080", contract::PUBLISHED);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
        assert!(bare == name || !schemas.contains_key(bare), "{name} is numbered: name it");
    }
    assert!(schemas.contains_key("ProjectPage") && schemas.contains_key("ServiceRole"));
}

#[test]
fn the_document_says_what_the_service_answers() {
    let document = contract::openapi::document("http://127.0.0.1:8080", contract::PUBLISHED);
    let told = |path: &str, status: &str| {
        let response = &document["paths"][path]["post"]["responses"][status];
        let shared = response["$ref"].as_str().map(|to| to.trim_start_matches('#').to_owned());
        let response = shared.map_or(response, |to| document.pointer(&to).unwrap());
        response["description"].as_str().unwrap_or_default().to_owned()
    };
    assert!(told("/functions/svc_runCloudFunction", "424").contains("100: the backend does not"));
    assert!(told("/functions/resetPassword", "401").contains("119: the token is wrong"));
    assert_eq!(told("/functions/resetPassword", "409"), "");
    assert!(told("/functions/svc_restartBackendInstance", "409").contains("119: "));
    for function in ["getTemplate", "deleteTemplate", "updateDockerImage", "getBuildJobStatus"] {
        assert!(told(&format!("/functions/{function}"), "404").contains("101: "), "{function}");
    }
    let upload = "/api/v1/artifacts/upload-url";
    assert!(told(upload, "201").contains("open") && told(upload, "200").contains("resumed"));

    let security = |path: &str| document["paths"][path]["post"]["security"].to_string();
    assert!(!security("/functions/createOrganization").contains("masterKey"));
    assert!(security("/functions/svc_getProject").contains("masterKey"));
    assert_eq!(
        security(upload),
        r#"[{"session":[]},{"masterKey":[]},{"deployToken":["artifact:upload"]}]"#
    );
    let required =
        |path: &str| document["paths"][path]["post"]["requestBody"]["required"].as_bool();
    assert_eq!(required("/functions/svc_getProject"), Some(true));
    assert_eq!(required("/functions/getCurrentUser"), Some(false));
}

#[test]
fn every_endpoint_has_a_name_and_an_address_of_its_own() {
    let mut names: Vec<_> = contract::endpoint::all().map(|endpoint| endpoint.name).collect();
    let mut addresses: Vec<_> =
        contract::endpoint::all().map(|endpoint| (endpoint.method.name(), endpoint.path)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!((names.len(), addresses.len()), (count, count));
}
