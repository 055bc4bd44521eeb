//! The examples of the API reference, as the languages run them: each sends what the reference says, and
//! gives the reply that stands beside it.

use crate::support::requires;
use contract::example::{self, Place};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Stdio},
};

#[test]
fn every_example_runs_in_every_language() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let test = "every_example_runs_in_every_language";
    if !requires::node_packages(test, "parse-client")
        || !requires::node_packages_in(test, &root.join("sdk/typescript"))
        || !requires::programs(test, &["curl"])
    {
        return;
    }
    // The script listens where the examples say that the service is.
    let place = Place { api_url: "https://svc.example.com", application_id: "svc_example" };
    let functions = contract::PUBLISHED.iter().flat_map(|group| group.functions);
    let examples: Vec<Value> = functions
        .map(|spec| {
            let (params, reply) = (example::params(spec), example::reply(spec));
            let forms = example::forms(spec, &params, &place);
            let forms = forms.iter().map(|form| (form.label.to_owned(), json!(form.text)));
            let forms: serde_json::Map<_, _> = forms.collect();
            json!({"name": spec.name, "params": params, "reply": reply, "forms": forms})
        })
        .collect();
    assert!(examples.len() > 130);
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("examples.json");
    std::fs::write(&file, serde_json::to_vec(&examples).unwrap()).unwrap();
    let mut run = Command::new("node");
    run.arg("run.mjs").arg(&file).arg(place.api_url).arg(env!("CARGO_BIN_EXE_svc"));
    run.current_dir(root.join("tests/support/examples")).env("HOME", home.path());
    let ran = run.stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
}
