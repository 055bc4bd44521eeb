//! The checked-in documents are what the declarations say. `UPDATE=1` writes them anew: their
//! difference is what a reviewer reads.

#![allow(clippy::unwrap_used, reason = "tests say so by failing")]

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
fn every_function_is_documented() {
    for function in contract::all() {
        let summary = function.summary();
        assert!(summary.len() > 5 && summary.ends_with('.'), "{}: {summary:?}", function.name);
    }
}
