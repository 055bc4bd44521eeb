//! `svc top`: the state of the installation in a terminal, drawn again every two seconds.

use crate::{
    Context, args,
    client::Client,
    failure::Failure,
    printer::{Table, on_one_line, word},
};
use console::{Key, Term, style, truncate_str};
use contract::{
    Timestamp,
    operators::{
        Actor, ActorCount, ActorState, Attention, AttentionAction, GetActors, GetOverview,
        NodeStatus, Overview, StoreUsage,
    },
    page::Limit,
};
use std::{
    fmt::{self, Display, Write},
    io::IsTerminal,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

/// The pause between two drawings.
const EVERY: Duration = Duration::from_secs(2);
/// The actors are read at every third drawing only: each reading counts against the rate limit.
const ACTORS_EVERY: u32 = 3;

pub fn top(cx: &Context<'_>, args: &args::TopArgs) -> Result<(), Failure> {
    let client = cx.client()?;
    let screen = Term::stdout();
    let mut seen = Readings { overview: client.call(&GetOverview {})?, actors: Vec::new() };
    if args.once || !cx.printer.is_for_people() || !screen.is_term() {
        if cx.printer.is_for_people() {
            seen.actors = read_actors(&client)?;
        }
        let Readings { overview, actors } = &seen;
        return cx.printer.reply(overview, |_| Sheet { overview, actors });
    }
    let keys = keys();
    for round in 0_u32.. {
        // The screen stays with what was read last until the service answers again.
        let read = || -> Result<Readings, Failure> {
            let actors = match round % ACTORS_EVERY {
                0 => read_actors(&client)?,
                _ => seen.actors.clone(),
            };
            Ok(Readings { overview: client.call(&GetOverview {})?, actors })
        };
        let problem = match read() {
            Ok(new) => {
                seen = new;
                None
            }
            Err(failure) => Some(failure.to_string()),
        };
        draw(&screen, &seen, problem.as_deref())?;
        match keys.recv_timeout(EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            // Without a terminal to read from, only a signal ends it.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(EVERY),
            Ok(()) => break,
        }
    }
    Ok(())
}

/// What was read last.
struct Readings {
    overview: Overview,
    actors: Vec<Actor>,
}

fn read_actors(client: &Client) -> Result<Vec<Actor>, Failure> {
    let (limit, cursor) = (Limit::default(), None);
    Ok(client.call(&GetActors { kind: None, state: None, query: None, limit, cursor })?.items)
}

/// Says when a person pressed `q` or Ctrl-C.
fn keys() -> Receiver<()> {
    let (pressed, keys) = channel();
    if std::io::stdin().is_terminal() {
        thread::spawn(move || {
            let term = Term::stdout();
            while let Ok(key) = term.read_key_raw() {
                if matches!(key, Key::Char('q' | 'Q') | Key::CtrlC | Key::Escape) {
                    // The command has ended if nobody listens.
                    let _ = pressed.send(());
                    return;
                }
            }
        });
    }
    keys
}

fn draw(screen: &Term, seen: &Readings, problem: Option<&str>) -> Result<(), Failure> {
    let (rows, columns) = screen.size();
    let sheet = Sheet { overview: &seen.overview, actors: &seen.actors }.to_string();
    let text = fit(&sheet, problem, usize::from(rows), usize::from(columns));
    let drawn = screen.clear_screen().and_then(|()| screen.write_str(&text));
    drawn.map_err(|error| {
        Failure::local(format!("standard output: {error}"), "check where the output goes")
    })
}

/// The part of the text that fits a screen, above a line that says how to end.
fn fit(sheet: &str, problem: Option<&str>, rows: usize, columns: usize) -> String {
    let end = match problem {
        Some(problem) => style(on_one_line(problem)).red().to_string(),
        None => style("q ends").dim().to_string(),
    };
    let lines = sheet.lines().take(rows.saturating_sub(1)).chain([end.as_str()]);
    lines.map(|line| truncate_str(line, columns, "…")).collect::<Vec<_>>().join("\n")
}

/// The text: what needs attention first, then the figures and the actors.
struct Sheet<'a> {
    overview: &'a Overview,
    actors: &'a [Actor],
}

impl Display for Sheet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = self.overview.at;
        writeln!(f, "{}", summary(self.overview))?;
        writeln!(f)?;
        if self.overview.attention.is_empty() {
            writeln!(f, "Nothing needs attention.")?;
        } else {
            writeln!(f, "{}", style("Needs attention").bold())?;
            for entry in &self.overview.attention {
                writeln!(f, "{}", attention(entry, now))?;
            }
        }
        writeln!(f)?;
        if self.overview.nodes.len() > 1 {
            let rows = self.overview.nodes.iter().fold(nodes(), |table, it| node(table, it, now));
            writeln!(f, "{rows}")?;
        }
        write!(f, "{}", self.overview.actors.iter().fold(kinds(), count))?;
        let busy: Vec<_> = self.actors.iter().filter(|actor| is_busy(actor)).collect();
        if !busy.is_empty() {
            writeln!(f)?;
            write!(f, "{}", busy.into_iter().fold(heading(), actor))?;
        }
        Ok(())
    }
}

fn summary(overview: &Overview) -> String {
    let Overview { readiness, store, disk, .. } = overview;
    let checks = &readiness.checks;
    let up = age(Duration::from_millis(readiness.uptime_ms));
    let engine = if checks.engine.ok { "reachable" } else { "unreachable" };
    let mut text = format!(
        "svc {} is {}, up {up}, engine {engine}, {} orphans\nstore {} MiB",
        readiness.version,
        word(&readiness.status),
        checks.engine.orphans,
        store.bytes >> 20
    );
    // A string takes all that is written.
    if let Some(disk) = disk {
        let _ = write!(text, ", {} of {} GiB free", disk.free_bytes >> 30, disk.bytes >> 30);
    }
    let StoreUsage { changes_waiting, events_waiting, .. } = store;
    let _ = write!(text, ", {changes_waiting} changes and {events_waiting} events wait");
    text
}

fn attention(entry: &Attention, now: Timestamp) -> String {
    let since = entry.since.map(|since| format!(" ({})", age(now.since(since))));
    let subject = entry.subject.as_deref().unwrap_or_default();
    let next = match entry.action {
        AttentionAction::RestartActor => {
            format!("; svc call svc_admin_restartActor --param actorId={subject}")
        }
        AttentionAction::SettleCheckout => {
            format!("; svc call svc_settleCheckout --param reference={subject}")
        }
        AttentionAction::VerifyBackup => {
            format!("; svc call svc_verifyBackup --param backupId={subject}")
        }
        AttentionAction::OpenApp => {
            entry.app_id.map(|app| format!("; see app {app}")).unwrap_or_default()
        }
        AttentionAction::CheckMachine | AttentionAction::Wait => String::new(),
    };
    format!(
        "{}{}: {}{}",
        style(entry.reason.label()).red(),
        since.unwrap_or_default(),
        on_one_line(&entry.detail),
        on_one_line(&next)
    )
}

fn nodes() -> Table {
    Table::new(["NODE", "STATE", "VERSION", "UP", "SHARDS", "COPY BEHIND"])
}

fn node(table: Table, node: &NodeStatus, now: Timestamp) -> Table {
    let answers = if node.answers { " (answers)" } else { "" };
    table.row([
        format!("{}{answers}", on_one_line(&node.machine)),
        word(&node.status),
        on_one_line(&node.version),
        age(now.since(node.started_at)),
        node.shards.map_or_else(|| "-".into(), |shards| shards.to_string()),
        format!("{}s", node.copy_age),
    ])
}

fn kinds() -> Table {
    Table::new(["KIND", "RUNNING", "RESTARTING", "PARKED", "STUCK", "QUEUED", "RESTARTS"])
}

fn count(table: Table, count: &ActorCount) -> Table {
    table.row([
        count.kind.clone(),
        count.running.to_string(),
        count.restarting.to_string(),
        count.gave_up.to_string(),
        count.stuck.to_string(),
        count.messages.to_string(),
        count.restarts.to_string(),
    ])
}

/// Whether an actor has work, or had trouble. The others are only counted.
fn is_busy(actor: &Actor) -> bool {
    actor.state != ActorState::Running
        || actor.restarts > 0
        || actor.mailbox.length > 0
        || actor.handling.is_some()
}

fn heading() -> Table {
    Table::new(["ACTOR", "STATE", "QUEUED", "RESTARTS", "MESSAGE", "LAST PANIC"])
}

fn actor(table: Table, actor: &Actor) -> Table {
    let handling = actor.handling.as_ref();
    let handling = handling.map(|handling| {
        format!("{} {}", handling.message, age(Duration::from_millis(handling.elapsed_ms)))
    });
    let state = match actor.state {
        ActorState::Running => actor.state.label().to_owned(),
        bad => style(bad.label()).red().to_string(),
    };
    table.coloured([
        on_one_line(&actor.id),
        state,
        actor.mailbox.length.to_string(),
        actor.restarts.to_string(),
        handling.unwrap_or_else(|| "-".into()),
        actor.last_panic.as_ref().map_or_else(|| "-".into(), |panic| on_one_line(&panic.message)),
    ])
}

/// A time in its largest unit, such as `5m`.
fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use console::{measure_text_width, set_colors_enabled};
    use serde_json::json;

    fn overview() -> Overview {
        let at = "2026-01-01T00:10:00.000Z";
        serde_json::from_value(json!({
            "at": at,
            "readiness": {
                "status": "degraded", "version": "0.1.0", "uptimeMs": 7_200_000,
                "checks": {
                    "store": {"ok": true, "flushMs": 1.0},
                    "actors": {"ok": false, "restarting": 0, "gaveUp": 1},
                    "engine": {"ok": true, "error": null, "since": null, "orphans": 0},
                },
            },
            "store": {"bytes": 5 << 20, "changesWaiting": 0, "eventsWaiting": 2},
            "disk": {"bytes": 100_u64 << 30, "freeBytes": 40_u64 << 30},
            "nodes": [
                {"machine": "one", "answers": true, "status": "ready", "version": "0.1.0",
                    "startedAt": "2026-01-01T00:00:00.000Z", "shards": 128, "copyAge": 0},
                {"machine": "two", "answers": false, "status": "degraded", "version": "0.1.0",
                    "startedAt": "2026-01-01T00:09:30.000Z", "shards": 127, "copyAge": 3},
            ],
            "actors": [{
                "kind": "project", "running": 3, "restarting": 0, "gaveUp": 1, "stuck": 0,
                "messages": 0, "restarts": 6,
            }],
            "attention": [{
                "reason": "actorGaveUp", "subject": "prj_1", "appId": null,
                "detail": "The project panicked.\u{1b}[2J", "since": "2026-01-01T00:05:00.000Z",
                "action": "restartActor",
            }],
        }))
        .unwrap()
    }

    #[test]
    fn what_needs_attention_comes_first_and_fits_a_narrow_terminal() {
        set_colors_enabled(false);
        let overview = overview();
        let text = Sheet { overview: &overview, actors: &[] }.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "svc 0.1.0 is degraded, up 2h, engine reachable, 0 orphans",
                "store 5 MiB, 40 of 100 GiB free, 0 changes and 2 events wait",
                "",
                "Needs attention",
                "Parked actor (5m): The project panicked. [2J; svc call svc_admin_restartActor \
                 --param actorId=prj_1",
                "",
                "NODE           STATE     VERSION  UP   SHARDS  COPY BEHIND",
                "one (answers)  ready     0.1.0    10m  128     0s",
                "two            degraded  0.1.0    30s  127     3s",
                "",
                "KIND     RUNNING  RESTARTING  PARKED  STUCK  QUEUED  RESTARTS",
                "project  3        0           1       0      0       6",
            ]
        );
        let narrow = fit(&text, Some("no answer"), 5, 20);
        let lines: Vec<_> = narrow.lines().collect();
        assert_eq!((lines.len(), lines[4]), (5, "no answer"));
        assert!(lines.iter().all(|line| measure_text_width(line) <= 20), "{narrow}");
    }
}
