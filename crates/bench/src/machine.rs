//! The machine: its description, its load, and the time and memory that processes use.

use crate::outcome::{Explain, Outcome};
use std::{
    fs::read_to_string,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// The longest wait for a quiet machine.
const QUIET_WITHIN: Duration = Duration::from_secs(60);
/// A machine is quiet when this percentage of its processors is idle for two seconds.
const QUIET: u64 = 85;

pub fn this_program() -> Outcome<PathBuf> {
    std::env::current_exe().or_say("this program")
}

/// An empty directory on the disk of the build, because `/tmp` may be in memory. Dropping the value
/// removes it.
pub fn scratch() -> Outcome<tempfile::TempDir> {
    let program = this_program()?;
    let beside = program.parent().or_say("the build's directory")?;
    tempfile::Builder::new().prefix("bench-").tempdir_in(beside).or_say("a scratch directory")
}

pub fn half_of_the_processors() -> usize {
    (processors() / 2).max(1)
}

pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Waits for a limited time until the machine is quiet. Prints a remark if it stays busy; then only
/// the median of several rounds evens out the load.
pub fn wait_until_quiet() {
    let begun = Instant::now();
    let mut seconds = 0;
    while seconds < 2 {
        let Some(idle) = idle_percent() else { return };
        seconds = if idle >= QUIET { seconds + 1 } else { 0 };
        if begun.elapsed() > QUIET_WITHIN {
            eprintln!("  the machine is busy ({idle} % idle): measuring regardless");
            return;
        }
    }
}

/// The idle share of the next second, in percent.
fn idle_percent() -> Option<u64> {
    let (idle, all) = processor_times()?;
    std::thread::sleep(Duration::from_secs(1));
    let (idle_now, all_now) = processor_times()?;
    Some(100 * idle_now.saturating_sub(idle) / all_now.saturating_sub(all).max(1))
}

/// The idle time and the total time of the processors since the start of the machine, in ticks.
fn processor_times() -> Option<(u64, u64)> {
    let stat = read_to_string("/proc/stat").ok()?;
    let ticks = stat.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = ticks.filter_map(|n| n.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((idle, ticks.iter().sum()))
}

/// Gives this thread the lowest priority.
pub fn work_after_others() -> Outcome<()> {
    rustix::process::setpriority_process(None, 19).or_say("the priority of a thread")
}

/// Gives this program, and those that it starts from now on, the weight against containers that `docs/OPERATING.md`
/// gives the service on a machine without systemd: that of a session (`man 7 sched`, *The autogroup feature*).
pub fn weigh_as_the_service() -> Outcome<()> {
    let own = rustix::process::getpid();
    // In the session of a shell, what the shell runs next would have the weight too.
    if rustix::process::setsid().is_err() && rustix::process::getsid(None) != Ok(own) {
        return Err("a job of a shell has the shell's weight: start it with setsid --wait".into());
    }
    // A key of the terminal reaches only the session that was left.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .or_say("the end of this program with the one that began it")?;
    std::fs::write("/proc/self/autogroup", "-10").or_say("the weight of this session")
}

/// What all processors have worked since the start of the machine, in seconds.
pub fn busy_time() -> Outcome<f64> {
    let (idle, all) = processor_times().or_say("the time of the processors")?;
    Ok(all.saturating_sub(idle) as f64 / 100.0)
}

/// The processor time of a process, in seconds. The clock ticks a hundred times a second.
pub fn processor_time(process: u32) -> Outcome<f64> {
    Ok(Stat::of(process).or_say("the processor time")?.time)
}

/// The processor time of a process and of those that it started, in seconds.
pub fn processor_time_with_children(process: u32) -> Outcome<f64> {
    let all = std::fs::read_dir("/proc").or_say("the processes")?;
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let children = all.filter_map(Stat::of).filter(|stat| stat.parent == process);
    Ok(processor_time(process)? + children.map(|stat| stat.time).sum::<f64>())
}

/// What the kernel says of a process.
struct Stat {
    parent: u32,
    /// Its processor time, in seconds.
    time: f64,
}

impl Stat {
    /// `None` if there is no such process.
    fn of(process: u32) -> Option<Stat> {
        let stat = read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, in parentheses, may hold any text. The parent is the second field after it, and the times
        // are the 12th and 13th.
        let (_, after_name) = stat.rsplit_once(')')?;
        let mut fields = after_name.split_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let ticks = fields.skip(9).take(2).filter_map(|n| n.parse::<f64>().ok());
        Some(Stat { parent, time: ticks.sum::<f64>() / 100.0 })
    }
}

/// Resident bytes of a process; `None` means this process.
pub fn resident(process: Option<u32>) -> Outcome<u64> {
    status(process, "VmRSS:")
}

/// The most resident bytes of a process since [`forget_peak`].
pub fn peak(process: u32) -> Outcome<u64> {
    status(Some(process), "VmHWM:")
}

/// Resets the peak of a process.
pub fn forget_peak(process: u32) -> Outcome<()> {
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").or_say("the peak of memory")
}

fn status(process: Option<u32>, field: &str) -> Outcome<u64> {
    let process = process.map_or("self".to_owned(), |id| id.to_string());
    let status = read_to_string(format!("/proc/{process}/status")).or_say(field)?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).or_say(field)?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().or_say(field)?;
    Ok(kib << 10)
}

/// The machine in a few lines of Markdown.
pub fn describe() -> Outcome<String> {
    let here = scratch()?;
    let idle = idle_percent().map_or("unknown".into(), |idle| format!("{idle} %"));
    let lines = [
        ("Processor", format!("{}, {} in use", processor_model(), processors())),
        ("Memory", memory()),
        ("Kernel", said("uname", &["-srm"])),
        ("Disk", file_system(here.path())),
        ("Compiler", said("rustc", &["--version"])),
        ("Load generator", said("wrk", &["--version"])),
        ("Idle when the run was over", idle),
        ("Date", said("date", &["-u", "+%Y-%m-%d"])),
    ];
    Ok(lines.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect())
}

fn processor_model() -> String {
    let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    model.map_or("unknown", |model| model.trim_start_matches(['\t', ' ', ':'])).to_owned()
}

fn memory() -> String {
    let info = read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = kib.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or("unknown".into(), |kib| format!("{:.1} GiB", kib as f64 / f64::from(1 << 20)))
}

fn file_system(at: &Path) -> String {
    let text = said("df", &["--output=fstype", &at.to_string_lossy()]);
    text.lines().last().unwrap_or("unknown").trim().to_owned()
}

/// The output of a program; only the first line of `wrk`.
fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let text = text.unwrap_or_else(|_| "unknown".into());
    if program == "wrk" { text.lines().next().unwrap_or_default().to_owned() } else { text }
}
