//! The OpenAPI document, checked with another program.

use crate::support::requires;
use std::{path::Path, process::Command};

#[test]
fn a_validator_accepts_the_document() {
    if !requires::node_packages("a_validator_accepts_the_document", "openapi") {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut check = Command::new("node");
    check.arg("check.mjs").arg(root.join("docs/openapi.json"));
    let checked = check.current_dir(root.join("tests/support/openapi")).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    assert!(checked.status.success(), "{out}{err}");
}
