//! What a service leaves when its test ends.

use super::Service;
use std::{
    path::Path,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

/// The kinds that wait for a container engine, and those that wait for the end of one below them.
const NEED_ENGINE: [&str; 4] = ["instance", "deployment", "imageBuild", "backup"];
const ABOVE: [&str; 3] = ["app", "project", "organization"];
/// How long the work of owners may go on after the end of a test.
const WORKS_FOR: Duration = Duration::from_secs(60);
/// How long processes may go on after the end of their service.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

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
    /// Stops the service, and asserts that it leaves a consistent store without owners that still have work,
    /// and neither processes nor temporary files.
    pub fn leaves_nothing(&mut self) {
        if !self.runs() {
            return;
        }
        self.stop();
        self.finishes_its_work();
        // The processes of a service that was killed end with the answers that they wait for.
        let begun = Instant::now();
        while !processes_of(&self.home).is_empty() && begun.elapsed() < ENDS_WITHIN {
            std::thread::sleep(Duration::from_millis(20));
        }
        let processes = processes_of(&self.home);
        assert!(processes.is_empty(), "processes outlive the service: {processes:#?}");
        let files: Vec<_> = std::fs::read_dir(self.temporary()).unwrap().collect();
        assert!(files.is_empty(), "temporary files outlive the service: {files:#?}");
    }
}

impl Service {
    /// The test leaves work to owners on purpose: the reason says why it cannot come to an end.
    pub fn leaves_work(&self, _reason: &'static str) {
        self.leaves_work.store(true, Relaxed);
    }

    /// Asserts that what the owners were doing when the service stopped comes to its end.
    fn finishes_its_work(&mut self) {
        let begun = Instant::now();
        loop {
            let report = self.check();
            let left = self.work_left(&report);
            if left.is_empty() || self.leaves_work.load(Relaxed) {
                return;
            }
            assert!(begun.elapsed() < WORKS_FOR, "owners still have work: {left:?}");
            self.boot();
            std::thread::sleep(Duration::from_millis(500));
            self.stop();
        }
    }

    /// The kinds whose owners have work, as `svc admin check` reports them, without those that wait for a
    /// container engine that the service does not have.
    fn work_left<'a>(&self, report: &'a str) -> Vec<&'a str> {
        let (_, rest) = report.split_once(" with work left").unwrap();
        let kinds = rest.strip_prefix(" (").and_then(|rest| rest.split_once(')'));
        let kinds = kinds.map_or("", |(kinds, _)| kinds).split(", ");
        let kinds: Vec<_> = kinds.filter_map(|kind| Some(kind.split_once(' ')?.1)).collect();
        let has_engine = self.settings.iter().any(|(name, _)| name == "SVC_DOCKER_HOST");
        if has_engine || !kinds.iter().any(|kind| NEED_ENGINE.contains(kind)) {
            return kinds;
        }
        let waits = |kind: &&str| NEED_ENGINE.contains(kind) || ABOVE.contains(kind);
        kinds.into_iter().filter(|kind| !waits(kind)).collect()
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
