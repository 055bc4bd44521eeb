//! What the steps of both stores have in common.

use crate::{NextStep, PublicationOrder, RemoteError};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// The pause between two looks at a review. Apple's take hours.
pub(crate) const FOLLOW_REVIEW: Duration = Duration::from_secs(5 * 60);
/// The longest release notes that Apple takes, in characters.
const LONGEST_NOTES: usize = 4000;

/// What a step has done besides the change of the progress.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StepReport {
    pub log: Vec<String>,
    /// The pause before the next step. `None`: at once.
    pub pause: Option<Duration>,
    /// Nothing is left to do.
    pub is_done: bool,
}

impl StepReport {
    /// Nothing that anybody wants to read.
    pub fn silently() -> StepReport {
        StepReport::default()
    }

    pub fn saying(sentence: impl Into<String>) -> StepReport {
        StepReport { log: vec![sentence.into()], ..StepReport::default() }
    }

    pub fn after(pause: Duration) -> StepReport {
        StepReport { pause: Some(pause), ..StepReport::default() }
    }

    pub fn done() -> StepReport {
        StepReport { is_done: true, ..StepReport::default() }
    }

    pub fn and_say(mut self, sentence: impl Into<String>) -> StepReport {
        self.log.push(sentence.into());
        self
    }

    pub fn next(&self) -> NextStep {
        match (self.is_done, self.pause) {
            (true, _) => NextStep::Done,
            (false, Some(pause)) => NextStep::After(pause),
            (false, None) => NextStep::Now,
        }
    }
}

/// The release notes by language; those without one are for the language of the app. The error says
/// which are too long.
pub(crate) fn checked_notes<'a, O>(
    order: &'a PublicationOrder<O>,
    language_of_app: &'a str,
) -> Result<BTreeMap<&'a str, &'a str>, RemoteError> {
    let mut notes: BTreeMap<&str, &str> = BTreeMap::new();
    if let Some(text) = &order.default_notes {
        notes.insert(language_of_app, text.as_str());
    }
    notes.extend(order.notes.iter().map(|(language, text)| (language.as_str(), text.as_str())));
    let length = |text: &&str| text.chars().count();
    match notes.iter().find(|(_, text)| length(text) > LONGEST_NOTES) {
        Some((language, text)) => Err(RemoteError::Refused(format!(
            "The release notes for {language} have {} characters. Apple takes at most \
             {LONGEST_NOTES}.",
            length(text)
        ))),
        None => Ok(notes),
    }
}

/// The body of a request that creates a resource (`id: None`) or changes one.
pub(crate) fn resource(kind: &str, id: Option<&str>, attributes: Value) -> Value {
    let mut data = json!({"type": kind, "attributes": attributes});
    if let (Some(id), Some(data)) = (id, data.as_object_mut()) {
        data.insert("id".into(), json!(id));
    }
    json!({"data": data})
}

/// The body of a request that creates a resource with relationships: `(name, kind, id)` each.
pub(crate) fn linked(kind: &str, attributes: Value, to: &[(&str, &str, &str)]) -> Value {
    let link = |(name, kind, id): &(&str, &str, &str)| {
        ((*name).to_owned(), json!({"data": {"type": kind, "id": id}}))
    };
    let relationships: serde_json::Map<String, Value> = to.iter().map(link).collect();
    let mut data = json!({"type": kind, "relationships": relationships});
    if let (false, Some(data)) = (attributes.is_null(), data.as_object_mut()) {
        data.insert("attributes".into(), attributes);
    }
    json!({"data": data})
}
