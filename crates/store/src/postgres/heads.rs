//! How far the copy has read each lane of each node.

use super::lane::LastSeq;
use std::collections::BTreeMap;

/// Lanes of one node.
pub(super) const LANES: i16 = 2;

/// The last batch of a lane that is in the copy; its number is 0 before the first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head {
    pub(super) seq: i64,
    pub(super) mark: i64,
}

/// The batches of a lane that were read together.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) node: i32,
    pub(super) lane: i16,
    /// The number of the first of them.
    pub(super) first: i64,
    pub(super) last: Head,
}

/// The heads of all lanes, by node and lane.
#[derive(Debug, Default)]
pub(super) struct Heads {
    pub(super) lanes: BTreeMap<(i32, i16), Head>,
    /// The id of the newest node whose lanes are among them, or were.
    pub(super) newest: i32,
    /// The nodes that were given up at the last look at them.
    given_up: Vec<i32>,
}

/// The heads as columns.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) nodes: Vec<i32>,
    pub(super) lanes: Vec<i16>,
    pub(super) seqs: Vec<i64>,
    pub(super) marks: Vec<i64>,
}

impl Heads {
    /// Knows the lanes of all nodes up to this one.
    pub(super) fn know(&mut self, newest: i32) {
        for node in self.newest + 1..=newest {
            for lane in 0..LANES {
                self.lanes.entry((node, lane)).or_default();
            }
        }
        self.newest = self.newest.max(newest);
    }

    /// Goes on to the last batch that was read. The error names the batches that are missing before the first.
    pub(super) fn advance(&mut self, read: Read) -> Result<(), String> {
        let Read { node, lane, first, last } = read;
        self.know(node);
        let head = self.lanes.entry((node, lane)).or_default();
        let expected = head.seq + 1;
        if first != expected {
            return Err(format!(
                "the changes {expected} to {} of node {node} are missing",
                first - 1
            ));
        }
        *head = last;
        Ok(())
    }

    /// Whether the copy has this batch.
    pub(super) fn has(&self, batch: LastSeq) -> bool {
        self.lanes.get(&(batch.node, batch.lane)).is_some_and(|head| head.seq >= batch.seq)
    }

    /// Forgets the nodes that are not among these, and were not the last time: since then all that they wrote
    /// was read.
    pub(super) fn keep(&mut self, listed: &[i32]) {
        let was_given_up = std::mem::take(&mut self.given_up);
        self.lanes.retain(|(node, _), _| listed.contains(node) || !was_given_up.contains(node));
        let unlisted =
            self.lanes.keys().map(|(node, _)| *node).filter(|node| !listed.contains(node));
        self.given_up = unlisted.collect();
    }

    pub(super) fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        for ((node, lane), head) in &self.lanes {
            columns.nodes.push(*node);
            columns.lanes.push(*lane);
            columns.seqs.push(head.seq);
            columns.marks.push(head.mark);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_noticed_and_nodes_that_were_given_up_are_forgotten_one_look_later() {
        let mut heads = Heads::default();
        heads.know(2);
        let read =
            |node, lane, first, seq| Read { node, lane, first, last: Head { seq, mark: seq } };
        heads.advance(read(1, 0, 1, 3)).unwrap();
        assert!(heads.advance(read(1, 0, 5, 5)).unwrap_err().contains("4 to 4 of node 1"));
        // A node that nobody knew may write before the one that began before it.
        heads.advance(read(4, 1, 1, 2)).unwrap();
        heads.advance(read(3, 0, 1, 1)).unwrap();
        assert!(heads.has(LastSeq { node: 4, lane: 1, seq: 2 }));
        assert!(!heads.has(LastSeq { node: 4, lane: 0, seq: 1 }));
        heads.keep(&[2, 3, 4]);
        heads.advance(read(1, 0, 4, 4)).unwrap();
        heads.keep(&[2, 3, 4]);
        assert_eq!(heads.columns().nodes, [2, 2, 3, 3, 4, 4]);
    }
}
