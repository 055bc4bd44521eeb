//! The promises of the store. Whatever keeps its rows must keep all of them.

mod cache;
pub mod items;

use data_encoding::HEXLOWER;
use items::{Item, Sum, group, item, k, name};
use proptest::prelude::*;
use std::{collections::BTreeMap, io::BufReader, ops::Deref, path::Path, sync::Arc};
use store::{Change, Memory, Nodes, Postgres, Record, Store, StoreError};
use tempfile::TempDir;

const KINDS: [&str; 2] = [Item::TREE, Sum::TREE];

/// The bytes of decoded records that stores keep here.
const BUDGET: u64 = 64 << 10;

fn open(path: &Path) -> Store {
    Store::open(path, &KINDS, Memory { pages: 8 << 20, records: BUDGET }).unwrap()
}

/// A new store, and its folder if it has one.
struct Opened(Store, #[allow(dead_code, reason = "it is removed in the end")] Option<TempDir>);

impl Deref for Opened {
    type Target = Store;
    fn deref(&self) -> &Store {
        &self.0
    }
}

fn on_sled() -> Opened {
    let folder = tempfile::tempdir().unwrap();
    Opened(open(folder.path()), Some(folder))
}

fn in_memory() -> Opened {
    Opened(Store::in_memory(&KINDS).unwrap(), None)
}

fn on_postgres() -> Opened {
    let address = test_support::postgres::new_store("the store").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory { pages: 8 << 20, records: BUDGET };
    let address = Postgres::parse(&address).unwrap();
    Opened(
        Store::connect(&address, Nodes::One, folder.path(), &KINDS, memory).unwrap(),
        Some(folder),
    )
}

/// Makes a test of each promise for each engine of rows.
macro_rules! promises {
    ($($promise:ident),+ $(,)?) => {
        mod sled {
            $(#[test]
            fn $promise() {
                super::$promise(super::on_sled);
            })+
        }

        mod memory {
            $(#[test]
            fn $promise() {
                super::$promise(super::in_memory);
            })+
        }

        mod postgres {
            $(#[test]
            fn $promise() {
                if test_support::postgres::shared(stringify!($promise)).is_some() {
                    super::$promise(super::on_postgres);
                }
            })+
        }
    };
}

promises! {
    a_change_happens_whole_or_not_at_all,
    many_writers_share_a_record_without_reading_it,
    of_writers_in_one_batch_one_wins,
    readers_never_go_back_in_time,
    older_records_are_upgraded_and_newer_ones_refused,
    a_dump_is_read_back_whole_or_not_at_all,
    a_long_list_is_whole_while_others_write,
    the_store_is_a_map_with_an_index,
}

/// Runs a test on four threads.
fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(4).build().unwrap().block_on(test);
}

/// The keys of the items of a group, last first.
fn of_group(store: &Store, name: &str) -> Vec<String> {
    store.newest::<Item>(&group(name), None).keys().map(Result::unwrap).collect()
}

fn a_change_happens_whole_or_not_at_all(opened: fn() -> Opened) {
    run(async {
        let store = opened();
        store.commit(Change::new().create::<Item>(&k("a"), item("x", Some("one")))).await.unwrap();
        let a = store.get::<Item>(&k("a")).unwrap().unwrap();
        assert_eq!((a.version(), &**a), (1, &item("x", Some("one"))));

        let taken = Change::new()
            .replace::<Item>(&k("a"), Some(&a), item("y", Some("one")))
            .create::<Item>(&k("b"), item("y", Some("one")));
        assert_eq!(store.commit(taken).await, Err(StoreError::Taken { claim: "name/one".into() }));
        assert_eq!(store.get::<Item>(&k("a")).unwrap().unwrap().group, "x");
        assert_eq!(of_group(&store, "y"), Vec::<String>::new());

        store
            .commit(Change::new().replace::<Item>(&k("a"), Some(&a), item("y", Some("two"))))
            .await
            .unwrap();
        let stale = Change::new().replace::<Item>(&k("a"), Some(&a), item("z", None));
        assert_eq!(
            store.commit(stale).await,
            Err(StoreError::Stale { tree: "item", key: "a".into() })
        );
        assert_eq!(of_group(&store, "x"), Vec::<String>::new());
        assert_eq!(of_group(&store, "y"), ["a"]);
        assert_eq!(store.holder::<Item>(&name("one")).unwrap(), None, "a value given up is free");
        assert_eq!(store.holder::<Item>(&name("two")).unwrap().as_deref(), Some("a"));

        let now = store.get::<Item>(&k("a")).unwrap().unwrap();
        let needs_old = Change::new()
            .require::<Item>(&k("a"), a.as_ref())
            .create::<Item>(&k("c"), item("c", None));
        assert!(matches!(store.commit(needs_old).await, Err(StoreError::Stale { .. })));
        store
            .commit(
                Change::new()
                    .require::<Item>(&k("a"), now.as_ref())
                    .create::<Item>(&k("c"), item("c", None)),
            )
            .await
            .unwrap();
        assert!(matches!(
            store.commit(Change::new().require_absent::<Item>(&k("c"))).await,
            Err(StoreError::Stale { .. })
        ));

        store.commit(Change::new().remove::<Item>(&k("a"), now.as_ref())).await.unwrap();
        assert!(store.get::<Item>(&k("a")).unwrap().is_none());
        assert_eq!(store.holder::<Item>(&name("two")).unwrap(), None);
        assert_eq!(store.check::<Item>(|_, _, _| {}).unwrap(), (1, vec![]));
    });
}

fn many_writers_share_a_record_without_reading_it(opened: fn() -> Opened) {
    run(async {
        let store = opened();
        let writers = (1..=100_i64).map(|n| {
            let store = Store::clone(&store);
            tokio::spawn(async move { store.commit(Change::new().merge::<Sum>(&k("s"), n)).await })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap().unwrap();
        }
        assert_eq!(store.get::<Sum>(&k("s")).unwrap().unwrap().0, 5050);
        store.commit(Change::new().merge::<Sum>(&k("s"), -5050)).await.unwrap();
        assert!(store.get::<Sum>(&k("s")).unwrap().is_none());
    });
}

fn of_writers_in_one_batch_one_wins(opened: fn() -> Opened) {
    run(async {
        let store = opened();
        store.commit(Change::new().create::<Item>(&k("a"), item("x", None))).await.unwrap();
        let seen = store.get::<Item>(&k("a")).unwrap().unwrap();
        let changes = |n: i32| {
            let named = item("y", Some("same"));
            [
                Change::new().create::<Item>(&format!("b{n}"), named.clone()),
                Change::new().replace::<Item>(&k("a"), Some(&seen), item(&format!("z{n}"), None)),
                // The second write is stale, so the first one must not stay.
                Change::new()
                    .create::<Item>(&format!("c{n}"), item("w", None))
                    .create::<Item>(&k("a"), named.clone()),
            ]
        };
        // All are submitted before any is awaited, so most share a batch.
        let all =
            futures_util::future::join_all((0..40).flat_map(changes).map(|c| store.commit(c)));
        let mut won = [0; 3];
        for (n, done) in all.await.into_iter().enumerate() {
            won[n % 3] += usize::from(done.is_ok());
        }
        assert_eq!(won, [1, 1, 0]);
        assert_eq!(store.count::<Item>(&group("y")).unwrap(), 1);
        assert_eq!(store.count::<Item>(&group("w")).unwrap(), 0);
        assert_eq!(store.get::<Item>(&k("a")).unwrap().unwrap().version(), 2);
        assert_eq!(store.check::<Item>(|_, _, _| {}).unwrap(), (2, vec![]));
    });
}

fn readers_never_go_back_in_time(opened: fn() -> Opened) {
    run(async {
        let store = opened();
        store.commit(Change::new().create::<Item>(&k("a"), item("0", None))).await.unwrap();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (store, stop) = (Store::clone(&store), stop.clone());
                std::thread::spawn(move || {
                    let mut last = 0;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        let version = store.get::<Item>(&k("a")).unwrap().unwrap().version();
                        assert!(version >= last, "{version} after {last}");
                        last = version;
                    }
                })
            })
            .collect();
        for n in 1..500 {
            let seen = store.get::<Item>(&k("a")).unwrap().unwrap();
            assert_eq!(seen.version(), n, "a reader sees what was acknowledged");
            store
                .commit(Change::new().replace::<Item>(
                    &k("a"),
                    Some(&seen),
                    item(&n.to_string(), None),
                ))
                .await
                .unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[tokio::test]
async fn a_directory_belongs_to_one_and_outlives_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(Change::new().create::<Item>(&k("a"), item("x", None))).await.unwrap();
    let refused =
        Store::open(dir.path(), &["item", "sum"], Memory::default()).err().unwrap().to_string();
    assert!(
        refused.contains("in use") && refused.contains(&std::process::id().to_string()),
        "{refused}"
    );
    store.close();
    drop(store);
    assert_eq!(
        open(dir.path()).get::<Item>(&k("a")).unwrap().unwrap().group,
        item("x", None).group
    );
}

fn older_records_are_upgraded_and_newer_ones_refused(opened: fn() -> Opened) {
    run(async {
        let row = |key: &str, schema: u16, json: &str| {
            let value = [&schema.to_be_bytes()[..], &7_u64.to_be_bytes(), json.as_bytes()].concat();
            format!("{} {}\n", HEXLOWER.encode(key.as_bytes()), HEXLOWER.encode(&value))
        };
        let rows = [
            "svc-store 2\n",
            &row("item/old", 1, r#"{"team":"x"}"#),
            &row("item/new", 3, "{}"),
            &format!("{} 00\n", HEXLOWER.encode(b"item/cut")),
            "end 3\n",
        ];
        let store = opened();
        store.load(&mut rows.concat().as_bytes()).unwrap();
        let old = store.get::<Item>(&k("old")).unwrap().unwrap();
        assert_eq!((old.version(), &**old), (7, &item("x", None)));
        let refused = store.get::<Item>(&k("new")).unwrap_err().to_string();
        assert!(refused.contains("schema 3") && refused.contains("newer version"), "{refused}");
        assert!(store.get::<Item>(&k("cut")).is_err());
        let listed: Vec<_> = store.whole::<Item>(None).map(|found| found.is_ok()).collect();
        assert_eq!(listed, [true, false, false], "a list goes on after what cannot be read");
        // The index entries that the older version did not write.
        assert!(of_group(&store, "x").is_empty());
        store.commit(Change::new().index_again::<Item>(&k("old"), &old)).await.unwrap();
        assert_eq!(of_group(&store, "x"), [k("old")]);
    });
}

fn a_dump_is_read_back_whole_or_not_at_all(opened: fn() -> Opened) {
    run(async {
        let store = opened();
        for n in 0..50 {
            store
                .commit(
                    Change::new()
                        .create::<Item>(&format!("k{n:02}"), item("x", Some(&n.to_string()))),
                )
                .await
                .unwrap();
        }
        let mut dump = Vec::new();
        store.dump(&mut dump).unwrap();
        let copy = opened();
        for cut in [10, dump.len() / 2, dump.len() - 3] {
            assert!(opened().load(&mut BufReader::new(&dump[..cut])).is_err(), "cut at {cut}");
        }
        copy.load(&mut BufReader::new(&dump[..])).unwrap();
        assert_eq!(of_group(&copy, "x"), of_group(&store, "x"));
        assert_eq!(copy.check::<Item>(|_, _, _| {}).unwrap(), (50, vec![]));
        assert!(copy.load(&mut BufReader::new(&dump[..])).is_err(), "the store is not empty");
    });
}

fn a_long_list_is_whole_while_others_write(opened: fn() -> Opened) {
    run(async {
        let store = opened();
        assert!(store.whole::<Item>(None).next().is_none());
        let mut expected: Vec<_> = (0..1_100).map(|n| format!("k{n:04}")).collect();
        let all = |change: Change, key| change.create::<Item>(key, item("x", None));
        store.commit(expected.iter().fold(Change::new(), all)).await.unwrap();

        let newest_first: Vec<_> = expected.iter().rev().cloned().collect();
        let keys =
            |list: store::List<'_, Item>| list.map(|found| found.unwrap().0).collect::<Vec<_>>();
        assert_eq!(keys(store.oldest(&group("x"), None)), expected);
        assert_eq!(keys(store.newest(&group("x"), None)), newest_first);
        assert_eq!(keys(store.whole(None)), newest_first);
        assert_eq!(keys(store.oldest(&group("x"), Some(&k("k0900")))), expected[901..]);
        assert_eq!(keys(store.whole(Some(&k("k0900")))), newest_first[200..]);

        let mut list = store.oldest::<Item>(&group("x"), None);
        assert_eq!(list.next().unwrap().unwrap().0, "k0000");
        let gone = store.get::<Item>(&k("k0001")).unwrap().unwrap();
        let change = Change::new()
            .remove::<Item>(&k("k0001"), &gone)
            .create::<Item>(&k("k9999"), item("x", None));
        store.commit(change).await.unwrap();
        expected.drain(..2);
        expected.push(k("k9999"));
        assert_eq!(keys(list), expected);
    });
}

/// A write to one of a few keys.
#[derive(Debug, Clone)]
enum Act {
    Put(u8, u8, Option<u8>),
    Remove(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..8_u8, 0..3_u8, proptest::option::of(0..6_u8)).prop_map(|(k, g, n)| Act::Put(k, g, n)),
        1 => (0..8_u8).prop_map(Act::Remove),
    ]
}

/// Records, claims, index entries and lists agree with a map after any writes.
fn the_store_is_a_map_with_an_index(opened: fn() -> Opened) {
    let some = proptest::collection::vec(act(), 1..60);
    proptest!(ProptestConfig::with_cases(24), |(acts in some)| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = opened();
        let mut model: BTreeMap<String, Item> = BTreeMap::new();
        for act in acts {
            match act {
                Act::Put(k, g, n) => {
                    let (key, new) = (format!("k{k}"), item(&format!("g{g}"), n.map(|n| format!("n{n}")).as_deref()));
                    let before = store.get::<Item>(&key).unwrap();
                    let done = runtime.block_on(store.commit(Change::new().replace::<Item>(&key, before.as_deref(), new.clone())));
                    let taken = model.iter().any(|(k, i)| *k != key && i.name.is_some() && i.name == new.name);
                    prop_assert_eq!(done.is_err(), taken);
                    if !taken {
                        model.insert(key, new);
                    }
                }
                Act::Remove(k) => {
                    let key = format!("k{k}");
                    if let Some(before) = store.get::<Item>(&key).unwrap() {
                        runtime.block_on(store.commit(Change::new().remove::<Item>(&key, &before))).unwrap();
                    }
                    model.remove(&key);
                }
            }
        }
        for g in 0..3 {
            let entry = group(&format!("g{g}"));
            let expected: Vec<_> = model.iter().rev().filter(|(_, i)| i.group == format!("g{g}")).map(|(k, _)| k.clone()).collect();
            prop_assert_eq!(store.count::<Item>(&entry).unwrap(), expected.len() as u64);
            for read in 0..=expected.len() {
                let after = read.checked_sub(1).map(|last| &expected[last]);
                let rest: Vec<_> = store.newest::<Item>(&entry, after).map(Result::unwrap).collect();
                let keys: Vec<_> = rest.iter().map(|(key, _)| key.clone()).collect();
                prop_assert_eq!(&keys, &expected[read..]);
                prop_assert!(rest.iter().all(|(key, item)| ***item == model[key]));
            }
        }
        for (key, expected) in &model {
            prop_assert_eq!(&**store.get::<Item>(key).unwrap().unwrap(), expected);
        }
        prop_assert_eq!(store.check::<Item>(|_, _, _| {}).unwrap(), (model.len() as u64, vec![]));
    });
}
