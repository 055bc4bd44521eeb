//! A store opens again whatever an interrupted process or a power cut left, with every acknowledged
//! change; where that cannot be, it says so and stays as it is.
//!
//! The kills need strace, which kills a process before its nth call of a kind. This test program
//! starts itself as the process that is killed.

use crate::support::{Text, open as try_open};
use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};
use store::{Change, Store, StoreError};

/// What the started process does, and in which folder.
const ROLE: &str = "STORE_TEST_ROLE";
const FOLDER: &str = "STORE_TEST_FOLDER";
/// How many records a store of these tests has at first.
const ROWS: usize = 600;
/// The length of a record that sled keeps in a file of its own.
const LARGE: usize = 300_000;
/// The calls before which a process is killed.
const CALLS: [&str; 12] = [
    "openat",
    "mkdir",
    "flock",
    "write",
    "pwrite64",
    "sync_file_range",
    "fsync",
    "fdatasync",
    "rename",
    "unlink",
    "ftruncate",
    "fchmod",
];

fn open(folder: &Path) -> Store {
    try_open(folder).unwrap()
}

fn put(store: &Store, key: &str, text: String) {
    try_put(store, key, text).unwrap();
}

fn try_put(store: &Store, key: &str, text: String) -> Result<(), StoreError> {
    let key = key.to_owned();
    let before = store.get::<Text>(&key).unwrap();
    let change = Change::new().replace::<Text>(&key, before.as_deref(), Text(text));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.commit(change))
}

fn large(n: usize) -> String {
    format!("{n} ").repeat(LARGE / format!("{n} ").len())
}

/// The process that is killed. It prints the name of each change after it was acknowledged.
#[test]
fn the_process_that_is_killed() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let store = open(Path::new(&std::env::var(FOLDER).unwrap()));
    if role == "write" {
        for n in 0..4 {
            put(&store, &format!("large{n}"), large(n));
            println!("acknowledged large{n} {n}");
            put(&store, "large0", large(n + 10));
            println!("acknowledged large0 {}", n + 10);
            std::io::stdout().flush().unwrap();
        }
    }
    store.close();
}

fn this_program() -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([
        "--exact",
        "starts::the_process_that_is_killed",
        "--nocapture",
        "--test-threads=1",
    ]);
    program
}

/// A process that is being started holds the open files of this one for a moment, locks of stores
/// too. So only one of these tests opens stores at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether strace is there. If not, says what is left out.
fn has_strace(test: &str) -> bool {
    let started = Command::new("strace").arg("-V").stdout(Stdio::null()).status();
    let missing = started.is_err();
    if missing {
        let _ = writeln!(std::io::stderr(), "left out: {test} because strace is missing");
    }
    !missing
}

/// Starts this program in the role, kills it before its nth call of a kind, and returns what it
/// printed; `None` if it ended without so many calls.
fn killed(folder: &Path, role: &str, call: &str, n: usize) -> Option<String> {
    let program = this_program();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    strace.args(["-e", &format!("inject={call}:signal=SIGKILL:when={n}")]);
    strace.arg(program.get_program()).args(program.get_args());
    let ended = strace.env(ROLE, role).env(FOLDER, folder).stderr(Stdio::null()).output().unwrap();
    (!ended.status.success()).then(|| String::from_utf8(ended.stdout).unwrap())
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// A store with records, and one that has also a snapshot of an earlier start.
fn stores(folder: &Path) -> [PathBuf; 2] {
    let (young, aged) = (folder.join("young"), folder.join("aged"));
    let store = open(&young);
    for n in 0..ROWS {
        put(&store, &format!("k{n}"), format!("first {n}"));
    }
    put(&store, "large0", large(0));
    store.close();
    drop(store);
    copy(&young, &aged);
    let store = open(&aged);
    for n in 0..ROWS {
        put(&store, &format!("k{n}"), format!("second {n}"));
    }
    put(&store, "large0", large(1));
    store.close();
    [young, aged]
}

/// Checks that the store opens and has all records of the given round.
fn check(folder: &Path, round: &str, how: &str) {
    let store = try_open(folder).unwrap_or_else(|e| panic!("{how}: {e}"));
    for n in 0..ROWS {
        let found = store.get::<Text>(&format!("k{n}")).unwrap();
        assert_eq!(found.unwrap().0, format!("{round} {n}"), "{how}");
    }
    store.close();
}

/// At every call of a start of a new store, of one without a snapshot and of one with an older one.
#[test]
fn a_store_whose_start_was_killed_starts_again() {
    if !has_strace("a_store_whose_start_was_killed_starts_again") {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let [young, aged] = stores(folder.path());
    let copied = folder.path().join("copy");
    let mut kills = 0;
    for (from, round) in [(Some(&young), "first"), (Some(&aged), "second"), (None, "")] {
        for call in CALLS {
            for n in 1.. {
                let _ = fs::remove_dir_all(&copied);
                if let Some(from) = from {
                    copy(from, &copied);
                }
                if killed(&copied, "start", call, n).is_none() {
                    break;
                }
                kills += 1;
                let how = format!("{round}: killed before {call} {n}");
                match from {
                    Some(_) => check(&copied, round, &how),
                    None => drop(try_open(&copied).unwrap_or_else(|e| panic!("{how}: {e}"))),
                }
            }
        }
    }
    println!("{kills} kills");
    assert!(kills > 100, "{kills} kills");
}

/// At every call of writes of large records, which sled keeps in files of their own.
#[test]
fn what_was_acknowledged_survives_a_kill_at_every_call_of_a_large_write() {
    if !has_strace("what_was_acknowledged_survives_a_kill_at_every_call_of_a_large_write") {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let [_, aged] = stores(folder.path());
    let (copied, after_power_cut) = (folder.path().join("copy"), folder.path().join("cut"));
    for call in
        ["openat", "write", "pwrite64", "sync_file_range", "fsync", "fdatasync", "unlink", "fchmod"]
    {
        for n in 1.. {
            let _ = fs::remove_dir_all(&copied);
            copy(&aged, &copied);
            let Some(printed) = killed(&copied, "write", call, n) else { break };
            let _ = fs::remove_dir_all(&after_power_cut);
            copy(&copied, &after_power_cut);
            // A power cut may also take what was not synced.
            for cut_blobs in [false, true] {
                let how = format!("killed before {call} {n}, blobs cut: {cut_blobs}");
                let copied = if cut_blobs { &after_power_cut } else { &copied };
                if cut_blobs {
                    cut_unsealed_blobs(copied);
                }
                check(copied, "second", &how);
                let store = open(copied);
                let acknowledged =
                    printed.lines().filter_map(|line| Some(line.split_once("acknowledged ")?.1));
                let mut newest = std::collections::BTreeMap::from([("large0", 1)]);
                newest.extend(acknowledged.map(|line| {
                    let (key, n) = line.split_once(' ').unwrap();
                    (key, n.parse().unwrap())
                }));
                for (key, n) in newest {
                    let found = store.get::<Text>(&key.to_owned()).unwrap().unwrap().0.clone();
                    // The change after the last acknowledged one may be there, whole.
                    let next = match n {
                        1 => 0,
                        0 => 10,
                        n => n + 1,
                    };
                    assert!([n, next].iter().any(|n| found == large(*n)), "{how}: {key} {n}");
                }
                store.close();
            }
        }
    }
}

/// The file of the newest large record.
fn blob(store: &Path) -> PathBuf {
    let files = fs::read_dir(store.join("sled/blobs")).unwrap();
    files.map(|file| file.unwrap().path()).max().unwrap()
}

/// Halves the large records that are not yet on the disk.
fn cut_unsealed_blobs(store: &Path) {
    for file in fs::read_dir(store.join("sled/blobs")).unwrap() {
        let file = file.unwrap().path();
        let about = fs::metadata(&file).unwrap();
        if about.permissions().mode() & 0o200 != 0 {
            cut(&file, about.len() / 2);
        }
    }
}

fn snapshot(store: &Path) -> PathBuf {
    let files = fs::read_dir(store.join("sled")).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.to_str().unwrap().contains("/snap.")).max().unwrap()
}

fn cut(file: &Path, length: u64) {
    let mode = fs::metadata(file).unwrap().permissions();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::File::options().write(true).open(file).unwrap().set_len(length).unwrap();
    fs::set_permissions(file, mode).unwrap();
}

/// Nobody can tell then whether a large record is on the disk.
#[test]
fn a_change_fails_while_the_folder_of_large_records_cannot_be_read() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    put(&store, "before", "small".to_owned());
    let blobs = folder.path().join("sled/blobs");
    fs::rename(&blobs, folder.path().join("elsewhere")).unwrap();
    fs::write(&blobs, "no folder").unwrap();
    assert!(matches!(try_put(&store, "after", "small".to_owned()), Err(StoreError::Io(_))));
    assert!(store.last_flush_ms().is_err());
}

/// Each way in which a file can be torn, and whether the store then opens.
#[test]
fn torn_files_are_mended_or_named() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let [_, aged] = stores(folder.path());
    type Tear = fn(&Path);
    let mended: [(&str, Tear); 13] = [
        ("an empty unfinished snapshot", |s| {
            fs::write(s.join("sled/snap.0000000000FFFFFF.generating"), "").unwrap()
        }),
        ("a part of an unfinished snapshot", |s| {
            let bytes = fs::read(snapshot(s)).unwrap();
            fs::write(s.join("sled/snap.0000000000FFFFFF.generating"), &bytes[..bytes.len() / 2])
                .unwrap();
        }),
        ("a whole snapshot that was not renamed", |s| {
            fs::copy(snapshot(s), snapshot(s).with_extension("generating")).unwrap();
        }),
        ("an empty snapshot", |s| cut(&snapshot(s), 0)),
        ("a cut snapshot", |s| cut(&snapshot(s), 100)),
        ("no snapshot", |s| fs::remove_file(snapshot(s)).unwrap()),
        ("a foreign snapshot", |s| fs::write(s.join("sled/snap.z.bak"), "x").unwrap()),
        ("an empty conf", |s| cut(&s.join("sled/conf"), 0)),
        ("a conf without its checksum", |s| cut(&s.join("sled/conf"), 58)),
        ("a conf of zeros", |s| fs::write(s.join("sled/conf"), [0; 62]).unwrap()),
        ("no conf", |s| fs::remove_file(s.join("sled/conf")).unwrap()),
        ("a blob of a write that was not acknowledged", |s| {
            fs::write(s.join("sled/blobs/99999999999"), "torn").unwrap()
        }),
        ("a foreign file beside the blobs", |s| {
            fs::write(s.join("sled/blobs/notes"), "x").unwrap()
        }),
    ];
    let copied = folder.path().join("copy");
    for (how, tear) in mended {
        let _ = fs::remove_dir_all(&copied);
        copy(&aged, &copied);
        tear(&copied);
        check(&copied, "second", how);
        check(&copied, "second", &format!("{how}, once more"));
        assert_eq!(
            open(&copied).get::<Text>(&"large0".to_owned()).unwrap().unwrap().0,
            large(1),
            "{how}"
        );
    }
    let refused: [(&str, Tear); 6] = [
        ("an acknowledged large record of 0 bytes", |s| cut(&blob(s), 0)),
        ("an acknowledged large record without its end", |s| cut(&blob(s), 1000)),
        ("an acknowledged large record with other bytes", |s| {
            let mut bytes = fs::read(blob(s)).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            let (file, mode) = (blob(s), fs::metadata(blob(s)).unwrap().permissions());
            fs::remove_file(&file).unwrap();
            fs::write(&file, bytes).unwrap();
            fs::set_permissions(&file, mode).unwrap();
        }),
        ("no log", |s| fs::remove_file(s.join("sled/db")).unwrap()),
        ("an empty log", |s| cut(&s.join("sled/db"), 0)),
        ("a name that is no text", |s| {
            use std::os::unix::ffi::OsStrExt;
            let name = std::ffi::OsStr::from_bytes(b"\xff");
            fs::write(s.join("sled/blobs").join(name), "x").unwrap();
        }),
    ];
    for (how, tear) in refused {
        let _ = fs::remove_dir_all(&copied);
        copy(&aged, &copied);
        tear(&copied);
        let before = fs::read_dir(copied.join("sled")).unwrap().count();
        let why = match try_open(&copied) {
            Ok(_) => panic!("{how}: opens"),
            Err(e) => e.to_string(),
        };
        assert!(why.contains("is damaged") && why.contains("svc admin restore"), "{how}: {why}");
        assert_eq!(fs::read_dir(copied.join("sled")).unwrap().count(), before, "{how}");
    }
}
