//! Records that an earlier version of the program wrote while an effect was pending, which it stored in
//! the record. This version reads the same task from the state.

use actors::{
    records::{self, RecordVisitor},
    runtime::{
        resource::{Kept, Resource, Task},
        side_record::SideRecord,
    },
};
use serde_json::Value;
use std::{collections::BTreeMap, convert::Infallible};

/// A line of the file: `{"tree": …, "schema": …, "record": …}`.
struct Lines {
    unread: BTreeMap<String, Vec<(u16, Value)>>,
    /// The effects that were pending.
    pending: usize,
    /// The records of which this version reads another task.
    others: Vec<String>,
}

impl Lines {
    fn read() -> Lines {
        let text = include_str!("../../data/stores/records.jsonl");
        let mut unread = BTreeMap::<_, Vec<_>>::new();
        for line in text.lines() {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let tree = line["tree"].as_str().unwrap().to_owned();
            let schema = line["schema"].as_u64().unwrap().try_into().unwrap();
            unread.entry(tree).or_default().push((schema, line["record"].take()));
        }
        Lines { unread, pending: 0, others: Vec::new() }
    }

    fn take<R: store::Record>(&mut self) -> Vec<(Value, R::Content)> {
        let lines = self.unread.remove(R::TREE).unwrap_or_default();
        let read = |(schema, record): (u16, Value)| {
            let content = match schema == R::SCHEMA {
                true => serde_json::from_value(record.clone()).map_err(|e| e.to_string()),
                false => R::upgrade(schema, record.clone()).map_err(|e| e.to_string()),
            };
            (record.clone(), content.unwrap_or_else(|e| panic!("{} {record}: {e}", R::TREE)))
        };
        lines.into_iter().map(read).collect()
    }
}

impl RecordVisitor for Lines {
    type Error = Infallible;

    fn resource<R: Resource>(&mut self) -> Result<(), Infallible> {
        for (earlier, kept) in self.take::<R>() {
            let intent = &earlier["intent"];
            self.pending += usize::from(!intent.is_null());
            let is = task_of(&kept);
            if !is_meant(intent, is.as_deref()) || kept.awake == intent.is_null() {
                self.others.push(format!("{} {is:?} {earlier}", R::TREE));
            }
        }
        Ok(())
    }

    fn side_record<R: SideRecord>(&mut self) -> Result<(), Infallible> {
        self.take::<R>();
        Ok(())
    }
}

/// The name of the task that a record asks for, without what belongs to it.
fn task_of<R: Resource>(kept: &Kept<R>) -> Option<String> {
    let task = match kept.task()? {
        Task::Perform(effect) => format!("{effect:?}"),
        Task::Empty => "Empty".to_owned(),
    };
    Some(task.split(['(', ' ']).next().unwrap().to_owned())
}

/// Whether this task is what an earlier version meant by the effect that it stored.
fn is_meant(intent: &Value, task: Option<&str>) -> bool {
    let name = match intent {
        Value::Null => return task.is_none(),
        Value::String(name) => name,
        variant => variant.as_object().unwrap().keys().next().unwrap(),
    };
    match (name.as_str(), task) {
        ("RemoveContents" | "RemoveApps" | "RemoveDeliveries", Some("Empty")) => true,
        ("Empty", Some("FindProjects")) => intent["Empty"]["cascade"] == false,
        // What was asked for before this process began is looked for, and not asked for again.
        ("Find", Some("Dispatch")) => true,
        // The release hears of the last step before the next one.
        ("Advance", Some("Report")) => true,
        (name, task) => task == Some(name),
    }
}

#[test]
fn a_pending_effect_of_an_earlier_version_goes_on() {
    let mut lines = Lines::read();
    let Ok(()) = records::visit(&mut lines);
    assert!(lines.unread.is_empty(), "no record has these names: {:?}", lines.unread.keys());
    assert_eq!(lines.others, Vec::<String>::new());
    assert!(lines.pending > 0);
}
