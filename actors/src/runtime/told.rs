//! What processes that share a store tell each other in bulletins: the last things of a kind, with their count, so
//! that each is heard once.

use super::store::Store;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, VecDeque};

/// Processes that are remembered, with those that have ended.
const MOST_NODES: usize = 1_000;

/// What a process has told so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Told<T> {
    /// How many things there were.
    count: u64,
    /// The last ones.
    last: VecDeque<T>,
}

impl<T> Default for Told<T> {
    fn default() -> Self {
        Told { count: 0, last: VecDeque::new() }
    }
}

impl<T> Told<T> {
    /// Adds a thing. Of all, the last `most` are told.
    pub fn add(&mut self, thing: T, most: usize) {
        self.count += 1;
        self.last.push_back(thing);
        if self.last.len() > most {
            self.last.pop_front();
        }
    }

    /// The things that are told.
    pub fn last(&self) -> impl Iterator<Item = &T> {
        self.last.iter()
    }
}

/// How many things of each process were heard.
#[derive(Default)]
pub struct Heard(BTreeMap<i32, u64>);

/// The things of a process that were not heard before.
pub struct News<T> {
    /// Whether nothing of this process was heard before.
    pub is_first: bool,
    pub things: Vec<T>,
}

impl Heard {
    /// Hears what processes have told, each with its number.
    pub fn news<T>(&mut self, told: Vec<(i32, Told<T>)>) -> Vec<News<T>> {
        // One that was silent for a while is not heard again. Numbers of processes do not come twice.
        if self.0.len() > MOST_NODES {
            self.0.retain(|node, _| told.iter().any(|(known, _)| known == node));
        }
        told.into_iter().map(|(node, told)| self.news_of(node, told)).collect()
    }

    fn news_of<T>(&mut self, node: i32, Told { count, last }: Told<T>) -> News<T> {
        let heard = self.0.insert(node, count);
        let new = count.saturating_sub(heard.unwrap_or_default());
        let old = last.len().saturating_sub(usize::try_from(new).unwrap_or(usize::MAX));
        News { is_first: heard.is_none(), things: last.into_iter().skip(old).collect() }
    }
}

/// Tells the other processes something on a topic, in place of what was told before.
pub fn tell(store: &Store, topic: &'static str, told: &impl Serialize) {
    match serde_json::to_vec(told) {
        Ok(text) => store.raw().post(topic, text),
        Err(e) => tracing::warn!(topic, error = %e, "other nodes are not told"),
    }
}

/// What each other process told last on a topic, with its number. What one of another version tells may not be
/// readable here.
pub fn told<T: DeserializeOwned>(store: &Store, topic: &str) -> Vec<(i32, T)> {
    let bulletins = store.raw().bulletins(topic).into_iter();
    let read = bulletins.filter_map(|bulletin| {
        let told = serde_json::from_slice(&bulletin.text);
        let told = told.inspect_err(|e| {
            tracing::warn!(topic, node = bulletin.node, error = %e, "what a node tells cannot be read");
        });
        Some((bulletin.node, told.ok()?))
    });
    read.collect()
}
