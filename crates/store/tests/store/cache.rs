//! What a store keeps decoded in memory.

use super::{
    BUDGET,
    items::{Item, item},
    on_sled, run,
};
use std::sync::{Arc, Weak};
use store::Change;

/// Records that are large, or many, take no more memory than the budget says.
#[test]
fn decoded_records_in_memory_are_bounded_by_their_bytes() {
    run(async {
        let store = on_sled();
        let all = |of: &str| (0..500).map(|n| format!("{of}{n}")).collect::<Vec<_>>();
        for (of, group) in [("small", "x".to_owned()), ("large", "x".repeat(4 << 10))] {
            let items = all(of).into_iter();
            let change = items
                .fold(Change::new(), |change, key| change.create::<Item>(&key, item(&group, None)));
            store.commit(change).await.unwrap();
        }
        let read = |of: &str| {
            let keys = all(of).into_iter();
            keys.map(|key| Arc::downgrade(&store.get::<Item>(&key).unwrap().unwrap()))
                .collect::<Vec<_>>()
        };
        let (small, large) = (read("small"), read("large"));
        let kept = |read: &[Weak<_>]| read.iter().filter(|one| one.strong_count() > 0).count();
        assert!((1..=BUDGET / 512).contains(&(kept(&small) as u64)), "{} of 500", kept(&small));
        assert_eq!(kept(&large), 0, "one of them would drive out many");
    });
}
