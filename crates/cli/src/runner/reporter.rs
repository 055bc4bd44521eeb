//! Reports to the service: that the build runs, and the lines of its log.

use crate::client::Client;
use contract::{
    BuildId,
    builds::BuildState,
    runners::{MOST_LINES, ReportBuild},
    text::RunnerKey,
};
use std::{
    io::{BufRead, BufReader, Read},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use svc_client::varied;

/// How long lines wait for others before they are sent. The lowest tier has 60 requests a minute.
const GATHER: Duration = Duration::from_secs(3);
/// The least time between two reports, also of a build that prints much.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// How often the service hears of a silent build. Its patience is a minute.
const AT_LEAST_EVERY: Duration = Duration::from_secs(15);
/// How many lines wait for a service that does not answer. Then the build waits too.
const MOST_WAITING: usize = 10_000;
/// Longer lines are cut, in bytes.
const LONGEST_LINE: u64 = 8 << 10;
/// The size of the lines of one report, in bytes.
const LARGEST_REPORT: usize = 256 << 10;
/// How long the last lines of a program may take after its end.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(5);
/// The longest pause after a report that did not arrive.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Reports until it is finished or dropped.
pub struct Reporter {
    /// `None` ends the reports.
    lines: SyncSender<Option<String>>,
    stopped: Arc<Stopped>,
    thread: JoinHandle<()>,
}

/// Adds the output of a program to the log.
pub struct Follower(Receiver<()>);

impl Follower {
    /// Waits for the end of the output. A program that left its group may hold the pipe open: its
    /// lines are not waited for longer than [`LAST_LINES_WITHIN`].
    pub fn wait(self) {
        let _ = self.0.recv_timeout(LAST_LINES_WITHIN);
    }
}

/// Whether the service told the runner to stop, and why.
#[derive(Default)]
struct Stopped {
    is_set: AtomicBool,
    why: Mutex<String>,
}

impl Stopped {
    fn set(&self, why: String) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
        self.is_set.store(true, SeqCst);
    }
}

impl Reporter {
    /// Begins to report. Each of `secrets` is masked in the lines.
    pub fn start(
        client: Client,
        build_id: BuildId,
        runner: RunnerKey,
        secrets: Vec<String>,
    ) -> Reporter {
        let (lines, incoming) = mpsc::sync_channel(MOST_WAITING);
        let stopped = Arc::new(Stopped::default());
        let sender = Sender { client, build_id, runner, secrets, stopped: stopped.clone() };
        let thread = thread::spawn(move || sender.run(&incoming));
        Reporter { lines, stopped, thread }
    }

    /// Adds a line. Waits while too many lines are to be sent.
    pub fn say(&self, line: impl Into<String>) {
        // Fails only after the service told the runner to stop.
        let _ = self.lines.send(Some(line.into()));
    }

    /// Adds each line of the output of a program, until it ends.
    pub fn follow(&self, output: impl Read + Send + 'static) -> Follower {
        let lines = self.lines.clone();
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            let _end = end;
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            loop {
                line.clear();
                match output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let text = String::from_utf8_lossy(&line);
                // What a progress display overwrites is not part of the log.
                let text = text.trim_end_matches(['\n', '\r']).rsplit('\r').next();
                if lines.send(Some(text.unwrap_or_default().to_owned())).is_err() {
                    return;
                }
            }
        });
        Follower(ended)
    }

    /// Whether the service told the runner to stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_set.load(SeqCst)
    }

    /// Sends what is left. Returns why the runner had to stop, if it had to.
    pub fn finish(self) -> Option<String> {
        let Reporter { lines, stopped, thread } = self;
        let _ = lines.send(None);
        let _ = thread.join();
        let why = stopped.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        stopped.is_set.load(SeqCst).then_some(why)
    }
}

/// The part of a reporter that runs in its own thread.
struct Sender {
    client: Client,
    build_id: BuildId,
    runner: RunnerKey,
    secrets: Vec<String>,
    stopped: Arc<Stopped>,
}

impl Sender {
    fn run(self, incoming: &Receiver<Option<String>>) {
        let mut sent = 0;
        loop {
            let begun = Instant::now();
            let (lines, more) = gather(incoming, &self.secrets);
            let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
            if !self.send(sent, lines) {
                // The program that writes these lines is being stopped.
                if more {
                    incoming.iter().take_while(Option::is_some).for_each(drop);
                }
                return;
            }
            sent += count;
            if !more {
                return;
            }
            thread::sleep(AT_MOST_EVERY.saturating_sub(begun.elapsed()));
        }
    }

    /// Reports these lines until the service has them. False: the runner must stop.
    fn send(&self, from: u32, lines: Vec<String>) -> bool {
        let report =
            ReportBuild { build_id: self.build_id, runner: self.runner.clone(), from, lines };
        loop {
            match self.client.call(&report) {
                Ok(reported) if reported.state == BuildState::Running => return true,
                Ok(reported) => {
                    let state = crate::printer::word(&reported.state);
                    self.stopped.set(format!("the build is {state}"));
                    return false;
                }
                Err(failure) if failure.is_passing() => thread::sleep(varied(TRY_AGAIN_AFTER)),
                Err(failure) => {
                    self.stopped.set(failure.to_string());
                    return false;
                }
            }
        }
    }
}

/// A line as the log shows it: without secrets, and without control characters, which could take
/// over a terminal and take six bytes each in a report.
fn shown(line: &str, secrets: &[String]) -> String {
    let masked = secrets.iter().fold(line.to_owned(), |line, secret| line.replace(secret, "••••"));
    let is_control = |c: char| c.is_control() && c != '\t';
    masked.chars().map(|c| if is_control(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The next lines to report, and whether others may follow.
fn gather(incoming: &Receiver<Option<String>>, secrets: &[String]) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    let mut bytes = 0;
    let mut until = Instant::now() + AT_LEAST_EVERY;
    while lines.len() < MOST_LINES && bytes < LARGEST_REPORT {
        match incoming.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Some(line)) => {
                if lines.is_empty() {
                    until = Instant::now() + GATHER;
                }
                let shown = shown(&line, secrets);
                bytes += shown.len();
                lines.push(shown);
            }
            Err(RecvTimeoutError::Timeout) => return (lines, true),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return (lines, false),
        }
    }
    (lines, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestService;
    use serde_json::json;

    fn reporter(service: &TestService, secrets: &[&str]) -> Reporter {
        let build = "bld_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        let secrets = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        let key = "0123456789abcdefghij".parse().unwrap();
        Reporter::start(service.client(), build, key, secrets)
    }

    #[test]
    fn lines_arrive_in_order_and_without_secrets() {
        let running = json!({"result": {"state": "running", "lines": 0}});
        let replies = [0; 3].map(|_| (200, running.clone()));
        let service = TestService::start([]).answering("svc_reportBuild", replies);
        let reporter = reporter(&service, &["s3cret"]);
        let output = "one\r\n10 %\r50 %\r100 %\nthe token is s3cret\nlast".as_bytes();
        reporter.follow(output).wait();
        assert_eq!(reporter.finish(), None);
        let sent: Vec<_> = service.bodies("svc_reportBuild");
        let lines: Vec<_> = sent.iter().flat_map(|b| b["lines"].as_array().unwrap()).collect();
        assert_eq!(lines, ["one", "100 %", "the token is ••••", "last"]);
        assert_eq!(sent[0]["from"], 0);
    }

    #[test]
    fn a_runner_learns_that_its_build_was_cancelled() {
        let cancelled = json!({"result": {"state": "cancelled", "lines": 0}});
        let service = TestService::start([]).answering("svc_reportBuild", [(200, cancelled)]);
        let reporter = reporter(&service, &[]);
        reporter.say("working");
        while !reporter.is_stopped() {
            thread::sleep(Duration::from_millis(10));
        }
        // Lines of a program that is about to end do not block it.
        (0..2 * MOST_WAITING).for_each(|_| reporter.say("still working"));
        assert_eq!(reporter.finish().unwrap(), "the build is cancelled");
    }

    #[test]
    fn the_last_report_may_be_the_one_that_is_told_to_stop() {
        let cancelled = json!({"result": {"state": "cancelled", "lines": 0}});
        let service = TestService::start([]).answering("svc_reportBuild", [(200, cancelled)]);
        let reporter = reporter(&service, &[]);
        reporter.say("the last line");
        assert_eq!(reporter.finish().unwrap(), "the build is cancelled");
    }

    #[test]
    fn a_line_holds_no_control_characters() {
        assert_eq!(shown("a\tb \u{1b}[31mred\u{1b}[0m\0", &[]), "a\tb �[31mred�[0m�");
    }
}
