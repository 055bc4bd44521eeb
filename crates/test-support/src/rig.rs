//! Programs of `tests/support` in Node: each prints lines, and answers each line of its input with a
//! line.

use serde_json::Value;
use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Mutex,
};

/// A folder of the workspace's `tests/support`, also for the tests of a crate in `crates`.
pub fn folder_of(name: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_root = |folder: &&Path| folder.join("tests/support").is_dir();
    package.ancestors().find(is_root).unwrap().join("tests/support").join(name)
}

pub struct Rig {
    child: Child,
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Rig {
    /// Starts a script in a folder of `tests/support`.
    pub fn start(folder: &str, script: &str, arguments: &[&OsStr]) -> Rig {
        let folder = folder_of(folder);
        let mut node = Command::new("node");
        node.arg(script).args(arguments).current_dir(folder);
        let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Rig { child, talk: Mutex::new((input, output)) }
    }

    /// The next line that it prints.
    pub fn line(&self) -> String {
        let mut text = String::new();
        self.talk.lock().unwrap().1.read_line(&mut text).unwrap();
        text.trim().to_owned()
    }

    /// Sends a line, and returns the answer.
    pub fn ask(&self, question: &Value) -> String {
        let mut talk = self.talk.lock().unwrap();
        let (input, output) = &mut *talk;
        writeln!(input, "{question}").unwrap();
        let mut text = String::new();
        output.read_line(&mut text).unwrap();
        text.trim().to_owned()
    }
}

impl Rig {
    /// Sends a command, and returns its answer, which must not be an error.
    pub fn tell(&self, command: &Value) -> Value {
        let answer: Value = serde_json::from_str(&self.ask(command)).unwrap();
        assert_eq!(answer["error"], Value::Null, "{command}: {answer}");
        answer
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
