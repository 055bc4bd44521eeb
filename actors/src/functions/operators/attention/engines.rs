//! What is wrong with the container engines.

use super::entry;
use contract::{
    Timestamp,
    operators::{Attention, AttentionAction as Act, AttentionReason as Why},
};

/// A container engine.
#[derive(Debug, Default)]
pub struct EngineFacts {
    /// The id and the name of an engine that was added.
    pub added: Option<(String, String)>,
    /// Since when it does not answer.
    pub away: Option<Timestamp>,
    /// Whether its instances would reach what they may not.
    pub egress_open: bool,
    /// Containers that belong to no instance.
    pub orphans: u64,
}

pub(super) fn of_engine(engine: &EngineFacts) -> Vec<Attention> {
    let subject = engine.added.as_ref().map(|(id, _)| id.clone());
    let about = |reason, detail: String, act| {
        let entry = entry(reason, detail, act);
        Attention { subject: subject.clone(), ..entry }
    };
    let (called, there) = match &engine.added {
        Some((_, name)) => {
            (format!("The container engine {name}"), format!(" of the engine {name}"))
        }
        None => ("The container engine".to_owned(), String::new()),
    };
    let mut list = Vec::new();
    if let Some(since) = engine.away {
        let detail = format!("{called} does not answer; the log says why.");
        let away = about(Why::EngineUnreachable, detail, Act::CheckMachine);
        list.push(Attention { since: Some(since), ..away });
    }
    if engine.egress_open {
        let detail = format!(
            "What instances{there} reach is not restricted, so none is started; the log says why."
        );
        list.push(about(Why::EgressOpen, detail, Act::CheckMachine));
    }
    if engine.orphans > 0 {
        let detail = format!(
            "{} containers{there} belong to no instance. They are removed after a day.",
            engine.orphans
        );
        list.push(about(Why::Orphans, detail, Act::Wait));
    }
    list
}
