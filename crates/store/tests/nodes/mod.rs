//! The promises of stores that share one database.

mod faults;
mod leases;

use crate::store::items::{Item, Sum, group, item, k};
use std::time::{Duration, Instant};
use store::{Change, Memory, Nodes, Postgres, Record, Store, StoreError};
use tempfile::TempDir;

/// A store that shares its rows, and the folder of its copy.
struct Node {
    store: Store,
    _folder: TempDir,
}

fn node(address: &str) -> Node {
    start(address, Nodes::Several).unwrap()
}

fn start(address: &str, nodes: Nodes) -> Result<Node, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    let address = Postgres::parse(address).unwrap();
    let kinds = [Item::TREE, Sum::TREE];
    let store = Store::connect(&address, nodes, folder.path(), &kinds, Memory::default())?;
    Ok(Node { store, _folder: folder })
}

/// Waits until something is so, as long as a busy machine may take.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(4).enable_all().build().unwrap().block_on(test);
}

#[test]
fn what_one_node_has_acknowledged_the_other_sees_behind_a_fence() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    run(async {
        let (one, two) = (node(&address).store, node(&address).store);
        for n in 0..50 {
            let (writer, reader) = if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
            writer.fence().await.unwrap();
            let before = writer.get::<Item>(&k("a")).unwrap();
            let next = item(&n.to_string(), Some("a"));
            let change = Change::new().replace::<Item>(&k("a"), before.as_deref(), next);
            writer.commit(change).await.unwrap();
            reader.fence().await.unwrap();
            let seen = reader.get::<Item>(&k("a")).unwrap().unwrap();
            assert_eq!((seen.version(), seen.group.clone()), (n + 1, n.to_string()));
        }
        let last = one.get::<Item>(&k("a")).unwrap();
        two.fence().await.unwrap();
        one.commit(Change::new().remove::<Item>(&k("a"), &last.unwrap())).await.unwrap();
        two.fence().await.unwrap();
        assert!(two.get::<Item>(&k("a")).unwrap().is_none());
        assert_eq!(two.check::<Item>(|_, _, _| {}).unwrap(), (0, vec![]));
        // A third one begins with what is there.
        two.commit(Change::new().create::<Item>(&k("b"), item("x", None))).await.unwrap();
        assert_eq!(node(&address).store.count::<Item>(&group("x")).unwrap(), 1);
    });
}

#[test]
fn of_writers_on_two_nodes_one_wins_and_sums_are_whole() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    run(async {
        let nodes = [node(&address).store, node(&address).store];
        nodes[0].commit(Change::new().create::<Item>(&k("a"), item("x", None))).await.unwrap();
        for store in &nodes {
            store.fence().await.unwrap();
        }
        let changes = nodes.iter().enumerate().flat_map(|(n, store)| {
            let seen = store.get::<Item>(&k("a")).unwrap().unwrap();
            (0..40).flat_map(move |m| {
                let name = format!("{n}-{m}");
                [
                    Change::new().create::<Item>(&name, item("y", Some("same"))),
                    Change::new().replace::<Item>(&k("a"), Some(&seen), item(&name, None)),
                    Change::new().merge::<Sum>(&k("s"), 1),
                ]
                .map(|change| store.commit(change))
            })
        });
        let done = futures_util::future::join_all(changes).await;
        let mut won = [0; 3];
        for (n, done) in done.into_iter().enumerate() {
            match done {
                Ok(()) => won[n % 3] += 1,
                Err(StoreError::Stale { .. } | StoreError::Taken { .. }) => {}
                Err(e) => panic!("{e}"),
            }
        }
        assert_eq!(won, [1, 1, 80]);
        for store in &nodes {
            store.fence().await.unwrap();
            assert_eq!(store.get::<Sum>(&k("s")).unwrap().unwrap().0, 80);
            assert_eq!(store.count::<Item>(&group("y")).unwrap(), 1);
            assert_eq!(store.check::<Item>(|_, _, _| {}).unwrap(), (2, vec![]));
        }
    });
}

/// Whoever loses sees what the winner wrote, and a record that was removed and made anew is another one.
#[test]
fn a_record_is_what_the_winner_wrote() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    run(async {
        let nodes = [node(&address).store, node(&address).store];
        nodes[0].commit(Change::new().create::<Item>(&k("a"), item("x", None))).await.unwrap();
        for round in 0..40 {
            let mut changes = Vec::new();
            for (n, store) in nodes.iter().enumerate() {
                store.fence().await.unwrap();
                let seen = store.get::<Item>(&k("a")).unwrap().unwrap();
                let next = item(&format!("{round}-{n}"), None);
                changes.push(store.commit(Change::new().replace::<Item>(
                    &k("a"),
                    Some(&seen),
                    next,
                )));
            }
            let done = futures_util::future::join_all(changes).await;
            let winner = done.iter().position(Result::is_ok).unwrap();
            for store in &nodes {
                store.fence().await.unwrap();
                let seen = store.get::<Item>(&k("a")).unwrap().unwrap();
                assert_eq!(seen.group, format!("{round}-{winner}"));
            }
        }
        // The copy of one node is behind when it adds to a sum that the other has removed and begun anew.
        for _ in 0..20 {
            let add = async |node: &Store, n| {
                node.commit(Change::new().merge::<Sum>(&k("s"), n)).await.unwrap();
            };
            add(&nodes[0], 1).await;
            nodes[1].fence().await.unwrap();
            add(&nodes[0], -1).await;
            add(&nodes[0], 5).await;
            add(&nodes[1], 1).await;
            nodes[0].fence().await.unwrap();
            assert_eq!(nodes[0].get::<Sum>(&k("s")).unwrap().unwrap().0, 6);
            add(&nodes[0], -6).await;
            nodes[1].fence().await.unwrap();
        }
    });
}

/// One node adds a use of a thing that it requires, and the other removes the thing if it has no use.
#[test]
fn what_is_required_does_not_go_meanwhile() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    run(async {
        let (one, two) = (node(&address).store, node(&address).store);
        let mut both = [0, 0];
        for n in 0..60 {
            let (thing, usage) = (format!("t{n}"), format!("u{n}"));
            one.commit(Change::new().create::<Item>(&thing, item("x", None))).await.unwrap();
            two.fence().await.unwrap();
            let (seen, same) = (one.get::<Item>(&thing).unwrap(), two.get::<Item>(&thing).unwrap());
            let (seen, same) = (seen.unwrap(), same.unwrap());
            let used = Change::new()
                .require::<Item>(&thing, &seen)
                .create::<Item>(&usage, item("use", None));
            let removed =
                Change::new().require_absent::<Item>(&usage).remove::<Item>(&thing, &same);
            let (used, removed) = tokio::join!(one.commit(used), two.commit(removed));
            assert!(used.is_ok() != removed.is_ok(), "{used:?} {removed:?}");
            both[usize::from(used.is_ok())] += 1;
        }
        println!("removed and used: {both:?}");
    });
}

/// Who must be alone waits for another that ends, and refuses to begin beside one that lives. One that was
/// silent can write no more once another has begun.
#[test]
fn one_node_is_alone() {
    let Some(server) = test_support::postgres::shared("nodes") else { return };
    let address = test_support::postgres::new_store("nodes").unwrap();
    let schema = address.rsplit('=').next().unwrap();
    let one = start(&address, Nodes::One).unwrap().store;
    let refused = start(&address, Nodes::One).err().unwrap().to_string();
    assert!(refused.contains("in use by another svc, which is node 1 on"), "{refused}");
    let silence =
        format!("update {schema}.nodes set until = now() - interval '1 second' where id = 1");
    let two = std::thread::scope(|scope| {
        let starting = scope.spawn(|| start(&address, Nodes::One).unwrap().store);
        while !starting.is_finished() {
            server.sql(&silence);
        }
        starting.join().unwrap()
    });
    run(async {
        let late = one.commit(Change::new().create::<Item>(&k("a"), item("x", None))).await;
        assert!(late.is_err());
        two.commit(Change::new().create::<Item>(&k("a"), item("x", None))).await.unwrap();
    });
    // Nobody begins beside one that is alone, and one that was closed is gone at once.
    assert!(matches!(start(&address, Nodes::Several), Err(StoreError::InUse(_))));
    two.close();
    start(&address, Nodes::One).unwrap();
}

/// A folder with a store is not taken for a copy, which would be thrown away.
#[test]
fn a_store_is_not_overwritten_by_a_copy() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(folder.path(), &[Item::TREE], Memory::default());
    open().unwrap().close();
    let address = Postgres::parse(&address).unwrap();
    let connect =
        || Store::connect(&address, Nodes::One, folder.path(), &[Item::TREE], Memory::default());
    assert!(matches!(connect().err().unwrap(), StoreError::InUse(_)));
    open().unwrap().close();
}

#[test]
fn an_address_that_cannot_be_used_says_why() {
    let refused = |address: &str| Postgres::parse(address).err().unwrap().to_string();
    assert!(refused("postgres://host/db?schema=a;drop").contains("schema"));
    assert!(refused("postgres://host/db?sslmode=maybe").contains("sslmode"));
    assert!(refused("postgres://host/db?sslrootcert=/nonexistent").contains("/nonexistent"));
    let secret = refused("postgres://me:hunter2@host/db?nonsense=1");
    assert!(!secret.contains("hunter2"), "{secret}");
    let folder = tempfile::tempdir().unwrap();
    let address = Postgres::parse("postgres://svc@127.0.0.1:1/svc").unwrap();
    let away =
        Store::connect(&address, Nodes::One, folder.path(), &[Item::TREE], Memory::default());
    assert!(matches!(away.err().unwrap(), StoreError::Unreachable(_)));
}
