//! Who of the nodes acts.

use super::{node, run, start, until};
use crate::store::items::{Item, item, k};
use std::collections::HashSet;
use store::{Change, Event, Lease, Nodes, Record, Shard, Store, StoreError};

fn shards(store: &Store) -> HashSet<Shard> {
    store.leases().into_iter().map(Lease::shard).collect()
}

/// How many shards the nodes have, the fewest first. No two have the same.
fn held<const N: usize>(nodes: [&Store; N]) -> [usize; N] {
    let all = nodes.map(shards);
    let mut counts = all.each_ref().map(HashSet::len);
    let different: HashSet<_> = all.into_iter().flatten().collect();
    assert_eq!(different.len(), counts.iter().sum::<usize>());
    counts.sort_unstable();
    counts
}

#[test]
fn each_node_acts_for_its_share_and_for_that_of_one_that_ended() {
    let Some(address) = test_support::postgres::new_store("leases") else { return };
    run(async {
        let one = node(&address).store;
        until("the only one has all", || held([&one]) == [256]).await;
        let two = node(&address).store;
        until("two have a half each", || held([&one, &two]) == [128, 128]).await;
        let three = node(&address).store;
        let shares = || held([&one, &two, &three]);
        until("three have a third each", || shares() == [84, 86, 86]).await;
        two.close();
        assert_eq!(two.leases(), []);
        until("two have a half again", || held([&one, &three]) == [128, 128]).await;
        drop(one);
        until("the last one has all", || held([&three]) == [256]).await;
    });
}

/// Each second, nodes tell each other the last text on a topic. One that ended tells nothing any more.
#[test]
fn nodes_tell_each_other() {
    let Some(address) = test_support::postgres::new_store("leases") else { return };
    run(async {
        let (one, two) = (node(&address).store, node(&address).store);
        let heard = |store: &Store| -> Vec<Vec<u8>> {
            store.bulletins("weather").iter().map(|told| told.text.to_vec()).collect()
        };
        for (text, says) in [(b"rain", b"cold"), (b"snow", b"warm")] {
            one.post("weather", text.to_vec());
            two.post("weather", says.to_vec());
            one.post("news", b"none".to_vec());
            let told = || heard(&two) == [text.to_vec()] && heard(&one) == [says.to_vec()];
            until("they heard each other", told).await;
        }
        one.close();
        until("it is forgotten", || heard(&two).is_empty()).await;
    });
}

#[test]
fn who_is_alone_acts_at_once() {
    let Some(address) = test_support::postgres::new_store("leases") else { return };
    let alone = start(&address, Nodes::One).unwrap().store;
    let lease = alone.lease("a").unwrap();
    assert!(alone.has(lease) && !lease.is_shared());
}

/// What is written under a lease that another node took is refused. All else of the same batch is written.
#[test]
fn who_is_late_writes_nothing() {
    let Some(server) = test_support::postgres::shared("leases") else { return };
    let address = test_support::postgres::new_store("leases").unwrap();
    let schema = address.rsplit('=').next().unwrap();
    run(async {
        let store = node(&address).store;
        for round in 0..5 {
            let key = format!("a{round}");
            let made = |lease| Change::new().create::<Item>(&key, item("x", None)).under(lease);
            let lease = loop {
                // On a busy machine it may end first.
                until("it acts", || store.lease("a").is_some()).await;
                let Some(lease) = store.lease("a") else { continue };
                match store.commit(made(lease)).await {
                    Ok(()) => break lease,
                    Err(e) => assert_eq!(e, StoreError::NotHeld),
                }
            };
            let seen = store.get::<Item>(&key).unwrap().unwrap();
            // As if another one had taken the shards and lost them.
            server.sql(&format!("update {schema}.shards set node = 0, epoch = epoch + 1"));
            let late = || {
                Change::new().replace::<Item>(&key, Some(&seen), item("late", None)).under(lease)
            };
            let other = Change::new().create::<Item>(&format!("b{round}"), item("x", None));
            let (refused, other) = tokio::join!(store.commit(late()), store.commit(other));
            assert_eq!((refused, other), (Err(StoreError::NotHeld), Ok(())));
            let again = || store.lease("a").is_some_and(|again| again != lease);
            until("it acts again", again).await;
            assert_eq!(store.commit(late()).await, Err(StoreError::NotHeld));
            store.fence().await.unwrap();
            assert_eq!(store.get::<Item>(&key).unwrap().unwrap().group, "x");
        }
    });
}

/// A node hears of each record that another has written, and of few of its own: of those that it
/// reads before it knows that they are its own.
#[test]
fn a_node_hears_what_others_write() {
    let Some(address) = test_support::postgres::new_store("leases") else { return };
    run(async {
        let (one, two) = (node(&address).store, node(&address).store);
        let both = || one.leases().len() == 128 && two.leases().len() == 128;
        until("both act", both).await;
        let mut heard = one.others();
        let append = |key: String| Change::new().append::<Item>(&k(&key), &item("x", None));
        for round in 0..50 {
            one.commit(append(format!("own{round}"))).await.unwrap();
            two.commit(append(format!("other{round}"))).await.unwrap();
        }
        let of_another: HashSet<_> = (0..50).map(|round| format!("other{round}")).collect();
        let mut told = HashSet::new();
        while !told.is_superset(&of_another) {
            // Whether it has leases is told as well.
            let Event::Record { kind, key } = heard.next().await else { continue };
            assert_eq!(kind, Item::TREE);
            told.insert(key);
        }
        assert!(told.len() < 100, "it hears of all that it writes");
        let changed = two.get::<Item>(&k("other0")).unwrap().unwrap();
        two.commit(Change::new().remove::<Item>(&k("other0"), &changed)).await.unwrap();
        let removed = Event::Record { kind: Item::TREE.into(), key: "other0".into() };
        while heard.next().await != removed {}
    });
}
