//! An issuer of identity tokens, as the CI of a repository has one.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// An issuer of identity tokens: npm `oauth2-mock-server`.
pub struct Issuer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub url: String,
    /// Where a job asks for its token.
    pub endpoint: String,
}

impl Issuer {
    pub fn start() -> Issuer {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/oidc");
        let mut node = Command::new("node");
        node.arg("issuer.mjs").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (url, endpoint) = (line(&mut output), line(&mut output));
        Issuer { child, input, output, url, endpoint }
    }

    /// A token of this kind, as `issuer.mjs` names them.
    pub fn token(&mut self, kind: &str, claims: &Value) -> String {
        writeln!(self.input, "{}", json!({"kind": kind, "claims": claims})).unwrap();
        line(&mut self.output)
    }
}

fn line(output: &mut impl BufRead) -> String {
    let mut text = String::new();
    output.read_line(&mut text).unwrap();
    text.trim().to_owned()
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
