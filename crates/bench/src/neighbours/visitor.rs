//! Somebody who uses the service while others attack it.

use super::{BINDS, SLOWEST};
use crate::{
    Pace,
    client::Client,
    machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
};
use serde_json::json;
use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Where the visitor calls from. The attackers call from 127.0.0.1.
const AT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// How long an attack may take to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(120);

pub struct Visitor {
    pub session: String,
}

/// How long the visitor waited, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    median: f64,
    p95: f64,
}

/// What the visitor met for some seconds.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    call: Waits,
    page: Waits,
    /// The share of the processors that other programs of the machine took.
    others: f64,
}

/// What the visitor met before an attack and during it.
pub struct Beside {
    before: Window,
    /// The calmest window during the attack.
    during: Window,
    /// The one in which the visitor waited the longest.
    worst: Window,
    /// How many bytes more the service had during the attack.
    grown: u64,
}

/// Tells the threads of an attack when it is over.
#[derive(Default)]
pub struct Signal {
    is_begun: AtomicBool,
    is_over: AtomicBool,
}

impl Signal {
    /// The attack is under way.
    pub fn begin(&self) {
        self.is_begun.store(true, Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Waits until the attack is over.
    pub fn wait(&self) {
        while !self.is_over() {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Does the work again and again until the attack is over, on so many threads. Each gets its number
    /// and how often it did it.
    pub fn repeat(
        &self,
        threads: usize,
        work: impl Fn(usize, usize) -> Outcome<()> + Sync,
    ) -> Outcome<()> {
        self.begin();
        let work = |number| (0..).take_while(|_| !self.is_over()).try_for_each(|n| work(number, n));
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..threads).map(|number| scope.spawn(move || work(number))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(panicked))
        })
    }
}

fn panicked<T>(_: Box<dyn std::any::Any + Send>) -> Outcome<T> {
    Err("a thread panicked".into())
}

impl Visitor {
    /// What the visitor meets in the next seconds.
    pub fn look(&self, server: &Server, seconds: u64) -> Outcome<Window> {
        let client = Client { from: AT, ..server.client.clone() };
        let nothing = json!({});
        let worked = || -> Outcome<(f64, f64)> {
            let own = machine::processor_time(server.process())?;
            Ok((machine::busy_time()?, own + machine::processor_time(std::process::id())?))
        };
        let (begun, (busy, own)) = (Instant::now(), worked()?);
        let (mut calls, mut pages) = (Vec::new(), Vec::new());
        while begun.elapsed() < Duration::from_secs(seconds) {
            let before = Instant::now();
            client.call(Some(&self.session), "getCurrentUser", &nothing)?;
            calls.push(before.elapsed());
            let before = Instant::now();
            server.page_from(AT, "/", &self.session)?;
            pages.push(before.elapsed());
        }
        let (busy_then, own_then) = worked()?;
        let processors = machine::processors() as f64 * begun.elapsed().as_secs_f64();
        let others = ((busy_then - busy) - (own_then - own)) / processors;
        Ok(Window { call: Waits::of(calls)?, page: Waits::of(pages)?, others })
    }

    /// The calmest of the windows of a pace.
    pub fn in_peace(&self, server: &Server, pace: Pace) -> Outcome<Window> {
        let windows = (0..pace.rounds.max(1)).map(|_| self.look(server, pace.seconds));
        calmest(&windows.collect::<Outcome<Vec<_>>>()?)
    }

    /// What the visitor meets before the attack and during it. The attack lasts until the signal, or
    /// until it returns.
    pub fn beside(
        &self,
        server: &Server,
        pace: Pace,
        attack: impl FnOnce(&Signal) -> Outcome<()> + Send,
    ) -> Outcome<Beside> {
        let before = self.in_peace(server, pace)?;
        let bytes = machine::resident(Some(server.process()))?;
        machine::forget_peak(server.process())?;
        let signal = Signal::default();
        let windows = thread::scope(|scope| {
            let attack = scope.spawn(|| {
                // Its threads inherit the priority.
                machine::work_after_others()?;
                attack(&signal)
            });
            let asked = Instant::now();
            while !signal.is_begun.load(Relaxed) && !attack.is_finished() {
                if asked.elapsed() > BEGINS_WITHIN {
                    signal.is_over.store(true, Relaxed);
                    return Err("the attack does not begin".into());
                }
                thread::sleep(Duration::from_millis(5));
            }
            let mut windows = Vec::new();
            let mut looked = Ok(());
            while looked.is_ok() && !attack.is_finished() && windows.len() < pace.rounds.max(1) {
                looked = self.look(server, pace.seconds).map(|window| windows.push(window));
            }
            signal.is_over.store(true, Relaxed);
            attack.join().unwrap_or_else(panicked)?;
            looked.map(|()| windows)
        })?;
        let grown = machine::peak(server.process())?.saturating_sub(bytes);
        Ok(Beside { before, during: calmest(&windows)?, worst: worst(&windows)?, grown })
    }
}

/// The window in which other programs worked the least.
fn calmest(windows: &[Window]) -> Outcome<Window> {
    windows.iter().copied().min_by(|a, b| a.others.total_cmp(&b.others)).or_say("a window")
}

/// The window in which the visitor waited the longest.
fn worst(windows: &[Window]) -> Outcome<Window> {
    let waited = |window: &Window| window.call.p95 + window.page.p95;
    windows.iter().copied().max_by(|a, b| waited(a).total_cmp(&waited(b))).or_say("a window")
}

impl Waits {
    fn of(mut times: Vec<Duration>) -> Outcome<Waits> {
        times.sort_unstable();
        let at = |percent: usize| {
            let time = times.get(times.len() * percent / 100);
            time.map(Duration::as_secs_f64).or_say("a measurement")
        };
        Ok(Waits { median: at(50)?, p95: at(95)? })
    }

    fn text(&self) -> String {
        format!("median {:.2} ms, p95 {:.2} ms", self.median * 1e3, self.p95 * 1e3)
    }
}

impl Beside {
    pub fn new(before: Window, during: Window) -> Beside {
        Beside { before, during, worst: during, grown: 0 }
    }

    /// The rows of the visitor's calls and pages, in the calmest window.
    pub fn rows(&self, attack: &str) -> [Row; 2] {
        self.rows_in(attack, &self.during)
    }

    /// The same in the worst window, for an attack by other programs of the machine: no window is calm then.
    pub fn rows_at_worst(&self, attack: &str) -> [Row; 2] {
        self.rows_in(attack, &self.worst)
    }

    fn rows_in(&self, attack: &str, during: &Window) -> [Row; 2] {
        let before = &self.before;
        eprintln!(
            "  {attack}: others took {:.0} % of the processors before, {:.0} % during",
            before.others * 100.0,
            during.others * 100.0
        );
        let row = |what: &str, before: Waits, during: Waits| {
            let ratio = (during.median / before.median).max(during.p95 / before.p95);
            let yardstick = (1.0, format!("{}, before", before.text()));
            let row =
                Row::new(&format!("{what} beside {attack}"), (ratio, during.text()), yardstick);
            row.aim("ratio at most 2".into(), ratio <= SLOWEST, BINDS)
        };
        [
            row("`getCurrentUser`", before.call, during.call),
            row("start page", before.page, during.page),
        ]
    }

    /// The row of the memory that the attack took, of which it may take so many bytes.
    pub fn memory(&self, attack: &str, most: u64) -> Row {
        let mib = |bytes: u64| (bytes as f64, format!("{} MiB", bytes >> 20));
        let row = Row::new(&format!("memory of {attack}"), mib(self.grown), mib(most));
        let aim = format!("under {} MB", most / 1_000_000);
        row.aim(aim, self.grown < most, "what the service keeps.")
    }
}
