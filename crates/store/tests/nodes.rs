//! The promises of stores that share one database, also when it breaks.

use crate::store::items::{Item, Sum, group, item, k};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};
use store::{Change, Memory, Nodes, Postgres, Record, Store, StoreError};
use tempfile::TempDir;
use test_support::postgres::Server;

/// How long something may take on a busy machine.
const LONGEST: Duration = Duration::from_secs(120);

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

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(4).enable_all().build().unwrap().block_on(test);
}

/// Asks until the database answers: a fence fails at once where a connection has just ended.
async fn fenced(store: &Store) {
    let begun = Instant::now();
    while let Err(e) = store.fence().await {
        assert!(begun.elapsed() < LONGEST, "{e}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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

/// Writers whose connections are ended at random lose nothing that was acknowledged, and write nothing twice.
#[test]
fn connections_that_end_lose_nothing_and_write_nothing_twice() {
    if test_support::postgres::shared("nodes").is_none() {
        return;
    }
    let server = Server::start();
    let address = server.address("svc");
    run(async {
        let nodes = [node(&address).store, node(&address).store];
        let begun = Instant::now();
        let ending = tokio::task::spawn_blocking(move || {
            while begun.elapsed() < Duration::from_secs(6) {
                std::thread::sleep(Duration::from_millis(150));
                server.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'svc' order by random() limit 2");
            }
            server
        });
        let acknowledged =
            write_while(&nodes, move || begun.elapsed() < Duration::from_secs(6)).await;
        let _server = ending.await.unwrap();
        assert_whole(&nodes, &acknowledged).await;
    });
}

/// A database that is killed and starts again has all that was acknowledged.
#[test]
fn a_database_that_is_killed_loses_nothing() {
    if test_support::postgres::shared("nodes").is_none() {
        return;
    }
    let mut server = Server::start();
    let address = server.address("svc");
    run(async {
        let nodes = [node(&address).store, node(&address).store];
        let killing = tokio::task::spawn_blocking(move || {
            for _ in 0..3 {
                std::thread::sleep(Duration::from_secs(1));
                server.kill();
                server.start_again();
            }
            server
        });
        let acknowledged = write_while(&nodes, || !killing.is_finished()).await;
        let _server = killing.await.unwrap();
        assert_whole(&nodes, &acknowledged).await;
    });
}

/// A standby that takes over has all that was acknowledged, if the first server waited for it. If it did not, and
/// changes are missing, the nodes that have them know that their copies are of no use.
#[test]
fn a_failover_loses_nothing_or_is_noticed() {
    if test_support::postgres::shared("nodes").is_none() {
        return;
    }
    let mut first = Server::start();
    let second = first.standby(true);
    let address = test_support::postgres::address(&[&first, &second], "svc");
    run(async {
        let nodes = [node(&address).store, node(&address).store];
        let begun = Instant::now();
        let failing_over = tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_secs(2));
            first.kill();
            std::thread::sleep(Duration::from_secs(1));
            second.promote();
            (first, second)
        });
        let acknowledged = write_while(&nodes, || begun.elapsed() < Duration::from_secs(6)).await;
        let (_first, mut second) = failing_over.await.unwrap();
        assert_whole(&nodes, &acknowledged).await;

        let third = second.standby(false);
        let address = test_support::postgres::address(&[&second, &third], "svc");
        let node = node(&address).store;
        node.commit(Change::new().create::<Item>(&k("lost"), item("y", None))).await.unwrap();
        second.kill();
        // The last change has arrived, and it is as if it had not: a batch of its number was written later.
        third.promote();
        third.sql("update svc.feed f set mark = mark + 1 where f.node = (select max(n.id) from svc.nodes n)");
        let begun = Instant::now();
        while !node.would_open_again() {
            assert!(begun.elapsed() < LONGEST, "{:?}", node.last_flush_ms());
            let _ = node.fence().await;
        }
        let why = node.last_flush_ms().unwrap_err();
        assert!(why.contains("lost changes"), "{why}");
    });
}

/// What writers know of their changes.
#[derive(Default)]
struct Acknowledged {
    /// The records that were created.
    created: HashSet<String>,
    /// The records of which nobody knows whether they were created.
    uncertain: HashSet<String>,
    sum: i64,
    /// By how much the sum may be larger.
    sum_uncertain: i64,
}

/// Writes on both nodes, and reads behind a fence, while it should go on.
async fn write_while(nodes: &[Store; 2], goes_on: impl Fn() -> bool) -> Acknowledged {
    let mut all = Acknowledged::default();
    let mut round = 0;
    while goes_on() {
        round += 1;
        let changes = nodes.iter().enumerate().flat_map(|(n, store)| {
            (0..16).map(move |m| async move {
                let name = format!("{round}-{n}-{m}");
                let change =
                    Change::new().create::<Item>(&name, item("x", None)).merge::<Sum>(&k("s"), 1);
                let done = store.commit(change).await;
                (name, done)
            })
        });
        for (name, done) in futures_util::future::join_all(changes).await {
            match done {
                Ok(()) => {
                    all.created.insert(name);
                    all.sum += 1;
                }
                Err(StoreError::Io(_)) => {
                    all.uncertain.insert(name);
                    all.sum_uncertain += 1;
                }
                Err(StoreError::Unreachable(_) | StoreError::Busy(_)) => {}
                Err(e) => panic!("{name}: {e}"),
            }
        }
    }
    assert!(all.created.len() > 100, "only {} changes were acknowledged", all.created.len());
    all
}

async fn assert_whole(nodes: &[Store; 2], all: &Acknowledged) {
    for store in nodes {
        fenced(store).await;
        let found: HashSet<_> =
            store.newest::<Item>(&group("x"), None).keys().map(Result::unwrap).collect();
        let missing: Vec<_> = all.created.difference(&found).collect();
        assert_eq!(missing, Vec::<&String>::new(), "acknowledged and missing");
        let others: Vec<_> = found
            .iter()
            .filter(|name| !all.created.contains(*name) && !all.uncertain.contains(*name))
            .collect();
        assert_eq!(others, Vec::<&String>::new(), "refused and there");
        let sum = store.get::<Sum>(&k("s")).unwrap().map_or(0, |sum| sum.0);
        assert!((all.sum..=all.sum + all.sum_uncertain).contains(&sum), "{sum} of {}", all.sum);
        assert_eq!(sum, i64::try_from(found.len()).unwrap(), "a sum without its record");
        assert_eq!(store.check::<Item>(|_, _, _| {}).unwrap().1, vec![]);
    }
    println!("{} acknowledged, {} uncertain", all.created.len(), all.uncertain.len());
}

/// A node that was silent for so long that others have removed what it has not read knows that its copy is of
/// no use.
#[test]
fn a_node_that_was_given_up_needs_a_new_copy() {
    let Some(server) = test_support::postgres::shared("nodes") else { return };
    let address = test_support::postgres::new_store("nodes").unwrap();
    let schema = address.rsplit('=').next().unwrap();
    run(async {
        let (one, two) = (node(&address).store, node(&address).store);
        one.commit(Change::new().create::<Item>(&k("a"), item("x", None))).await.unwrap();
        server.sql(&format!("update {schema}.nodes set token = null where id = 2"));
        one.commit(Change::new().create::<Item>(&k("b"), item("x", None))).await.unwrap();
        let behind = two.fence().await.unwrap_err().to_string();
        assert!(behind.contains("given up this node"), "{behind}");
        assert!(two.get::<Item>(&k("a")).is_err());
        let refused = two.commit(Change::new().create::<Item>(&k("c"), item("x", None))).await;
        assert!(matches!(refused, Err(StoreError::Busy(_))), "{refused:?}");
        assert!(two.would_open_again() && !one.would_open_again());
        one.fence().await.unwrap();
        assert_eq!(one.count::<Item>(&group("x")).unwrap(), 2);
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
    // One that was closed is gone at once.
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
