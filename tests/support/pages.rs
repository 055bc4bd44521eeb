//! What judges a page: axe-core for people with assistive technology, the HTML checker of the W3C, and
//! the browser itself for layout.

use super::{browser::Browser, requires, rig};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    process::Command,
};

/// The folder of `tests/support` with the judges.
const JUDGES: &str = "pages";
/// The widths of a phone and of a computer, in CSS pixels.
const WIDTHS: [u32; 2] = [390, 1440];
/// The narrowest and the widest screens that pages fit.
const EXTREMES: [u32; 2] = [360, 2560];
/// The most bytes of a page.
const HEAVIEST: usize = 100 * 1024;

/// The colour schemes that a browser prefers, and which rules of axe-core judge a page in it. Of all rules,
/// only this one depends on the colours.
const SCHEMES: [(&str, &str); 2] = [("light", "{}"), ("dark", "{runOnly: ['color-contrast']}")];

/// Tells what axe-core finds. Ends with the options of its run.
const AXE: &str = "const done = arguments[arguments.length - 1]; \
    const told = ({violations}) => \
        done(violations.map(({id, nodes}) => `${id}: ${nodes.map((n) => n.html).join(' ')}`)); \
    const run = (options) => axe.run(options).then(told, (why) => done(`${why}`));";

/// The sum of the shifts of the layout while the page loaded. What a live page shows later may move what is
/// below it.
const SHIFTS: &str = "const done = arguments[arguments.length - 1]; let sum = 0; \
    const loaded = (performance.getEntriesByType('navigation')[0].loadEventEnd || Infinity) + 100; \
    new PerformanceObserver((list) => list.getEntries().forEach((e) => { \
        if (!e.hadRecentInput && e.startTime <= loaded) sum += e.value; })).observe({type: 'layout-shift', buffered: true}); \
    setTimeout(() => done(sum), 100);";

/// The page as the server sends it, or why it did not come.
const SENT: &str = "const done = arguments[arguments.length - 1]; \
    fetch(location.href).then((answer) => answer.text()).then(done, (why) => done(`${why}`));";

/// Judges the pages of one test. What the HTML checker says comes when it is dropped: it starts slowly.
pub struct Judge {
    axe: String,
    checker: PathBuf,
    folder: tempfile::TempDir,
    names: RefCell<Vec<String>>,
}

impl Judge {
    /// `None` where a program that it needs is missing.
    pub fn start(test: &str) -> Option<Judge> {
        if !requires::programs(test, &["java"]) || !requires::node_packages(test, JUDGES) {
            return None;
        }
        let modules = rig::folder_of(JUDGES).join("node_modules");
        Some(Judge {
            axe: std::fs::read_to_string(modules.join("axe-core/axe.min.js")).unwrap(),
            checker: modules.join("vnu-jar/build/dist/vnu.jar"),
            folder: tempfile::tempdir().unwrap(),
            names: RefCell::default(),
        })
    }

    /// Judges the page that the browser shows. `SVC_SCREENSHOTS` names a folder for its pictures.
    pub fn page(&self, browser: &Browser, name: &str) {
        let shifts = browser.run_async(SHIFTS);
        assert_eq!(shifts.as_f64(), Some(0.0), "{name}: the layout shifts while the page loads");
        let sent = browser.run_async(SENT).as_str().unwrap().to_owned();
        assert!(sent.starts_with("<!"), "{name}: {sent}");
        assert!(sent.len() < HEAVIEST, "{name} has {} bytes", sent.len());
        std::fs::write(self.folder.path().join(format!("{name}.html")), sent).unwrap();
        self.names.borrow_mut().push(name.to_owned());
        let pictures = std::env::var_os("SVC_SCREENSHOTS").map(PathBuf::from);
        // The layout is the same in both schemes.
        for width in WIDTHS.into_iter().chain(EXTREMES) {
            browser.fits(name, width);
        }
        browser.set_size(WIDTHS[1], 900);
        let mut script = self.axe.clone();
        for (scheme, rules) in SCHEMES {
            browser.prefer(scheme);
            let found = browser.run_async(&format!("{script}\n{AXE} run({rules});"));
            assert_eq!(found, json!([]), "{name}, {scheme}");
            // The page has it now.
            script.clear();
            if let Some(folder) = &pictures {
                browser.pictures(folder, &format!("{name}-{scheme}"), WIDTHS);
            }
        }
        browser.prefer("light");
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.names.borrow().is_empty() {
            assert_eq!(faults(&self.checker, self.folder.path()), Vec::<String>::new());
        }
    }
}

/// What the HTML checker finds in the files of a folder.
fn faults(checker: &Path, folder: &Path) -> Vec<String> {
    let mut java = Command::new("java");
    // It ends before an optimizing compiler pays, and code of the simple one needs more stack.
    java.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss8m"]);
    java.arg("-jar").arg(checker).args(["--format", "json", "--stdout", "--errors-only"]);
    let done = java.arg(folder).output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    let told = told["messages"].as_array().unwrap().iter();
    let fault = |message: &Value| {
        let file = message["url"].as_str().unwrap_or_default().rsplit('/').next();
        format!("{}: {} {}", file.unwrap_or_default(), message["message"], message["extract"])
    };
    told.map(fault).collect()
}
