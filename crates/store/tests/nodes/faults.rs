//! What holds when connections end, a database is killed or fails over, and a node was silent for long.

use super::{node, run, until};
use crate::store::items::{Item, Sum, group, item, k};
use std::{
    collections::HashSet,
    os::unix::net::UnixListener,
    time::{Duration, Instant},
};
use store::{Change, Store, StoreError};
use test_support::postgres::{Pooler, Server};

/// How long something may take on a busy machine.
const LONGEST: Duration = Duration::from_secs(120);

/// Asks until the database answers: a fence fails at once where a connection has just ended.
async fn fenced(store: &Store) {
    let begun = Instant::now();
    while let Err(e) = store.fence().await {
        assert!(begun.elapsed() < LONGEST, "{e}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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

/// Between nodes and the database is a PgBouncer, which gives each transaction any of its connections. Some of them end.
#[test]
fn a_pooler_of_transactions_loses_nothing_and_lets_a_node_act() {
    if test_support::postgres::shared("nodes").is_none() {
        return;
    }
    let server = Server::start();
    let Some(pooler) = Pooler::before(&server, "a_pooler_of_transactions") else { return };
    let address = pooler.address("svc");
    run(async {
        let nodes = [node(&address).store, node(&address).store];
        until("both act", || {
            let acts = nodes.each_ref().map(|store| {
                (0..64).filter(|n| store.lease(&format!("shard {n}")).is_some()).count()
            });
            acts.iter().all(|count| *count > 0) && acts.iter().sum::<usize>() == 64
        })
        .await;
        let begun = Instant::now();
        let ending = tokio::task::spawn_blocking(move || {
            let mut ended = 0;
            while begun.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(150));
                let those = server.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'svc' and pid <> pg_backend_pid() order by random() limit 2");
                ended += those.lines().count();
            }
            assert!(ended > 10, "only {ended} connections were ended");
            server
        });
        let acknowledged =
            write_while(&nodes, move || begun.elapsed() < Duration::from_secs(5)).await;
        let _server = ending.await.unwrap();
        assert_whole(&nodes, &acknowledged).await;
    });
}

/// A host that takes connections and says nothing, as a server does whose disk hangs, keeps nobody from the next
/// one.
#[test]
fn a_silent_host_is_passed_over() {
    let Some(address) = test_support::postgres::new_store("nodes") else { return };
    let folder = tempfile::tempdir().unwrap();
    let _silent = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let silent = folder.path().display().to_string().replace('/', "%2F");
    let node = node(&address.replace('@', &format!("@{silent},")));
    run(async {
        node.store.commit(Change::new().create::<Item>(&k("a"), item("x", None))).await.unwrap();
        fenced(&node.store).await;
    });
}

/// While the database has no room, changes are refused and operators see it. It is over with the first that is
/// written.
#[test]
fn a_full_disk_of_the_database_is_seen_until_there_is_room() {
    let Some(server) = test_support::postgres::shared("nodes") else { return };
    let address = test_support::postgres::new_store("nodes").unwrap();
    let schema = address.rsplit('=').next().unwrap();
    let node = node(&address);
    let create = |key: &str| Change::new().create::<Item>(&k(key), item("x", None));
    run(async {
        node.store.commit(create("a")).await.unwrap();
        server.sql(&format!(
            "create function {schema}.refuse() returns trigger language plpgsql as $$
            begin raise exception 'could not extend file' using errcode = '53100'; end $$;
            create trigger full_disk before insert on {schema}.rows execute function {schema}.refuse()"
        ));
        assert_eq!(node.store.commit(create("b")).await, Err(StoreError::NoRoom));
        assert_eq!(node.store.last_flush_ms(), Err(StoreError::NoRoom.to_string()));
        server.sql(&format!("drop trigger full_disk on {schema}.rows"));
        node.store.commit(create("b")).await.unwrap();
        assert!(node.store.last_flush_ms().is_ok());
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

/// A node acts no more once the database has been silent for some seconds: another one may act then. It goes on
/// when the database answers.
#[test]
fn a_node_acts_no_more_while_its_database_is_silent() {
    if test_support::postgres::shared("nodes").is_none() {
        return;
    }
    let mut server = Server::start();
    let node = node(&server.address("svc"));
    run(async {
        let acts = || node.store.lease("a").is_some();
        until("it acts", acts).await;
        server.kill();
        until("it stops", || !acts()).await;
        let late = Change::new().create::<Item>(&k("a"), item("x", None));
        assert!(node.store.commit(late).await.is_err());
        server.start_again();
        until("it acts again", acts).await;
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
