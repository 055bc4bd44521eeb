//! What a service leaves when its test ends.

use super::Service;
use std::{
    path::Path,
    time::{Duration, Instant},
};

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.last_words());
            self.kill();
        } else {
            self.leaves_nothing();
        }
    }
}

impl Service {
    /// Stops the service, and asserts that it leaves a consistent store, and neither processes nor temporary
    /// files.
    pub fn leaves_nothing(&mut self) {
        if self.child.is_none() {
            return;
        }
        self.stop();
        self.check();
        // A process that was killed takes a moment to be gone.
        let begun = Instant::now();
        while !processes_of(&self.home).is_empty() && begun.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let processes = processes_of(&self.home);
        assert!(processes.is_empty(), "processes outlive the service: {processes:#?}");
        let files: Vec<_> = std::fs::read_dir(self.temporary()).unwrap().collect();
        assert!(files.is_empty(), "temporary files outlive the service: {files:#?}");
    }
}

/// The command lines of the processes that work in a folder, or have it in their command line.
fn processes_of(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let processes = entries.filter_map(|entry| {
        let process = entry.unwrap().path();
        let words = std::fs::read(process.join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_in_it =
            std::fs::read_link(process.join("cwd")).is_ok_and(|at| at.starts_with(folder));
        (is_in_it || words.contains(folder.to_str().unwrap())).then_some(words)
    });
    processes.collect()
}
