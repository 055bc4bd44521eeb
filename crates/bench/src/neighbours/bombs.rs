//! Small files that expand to much: zip bombs within the limits for apps, and packs of git with delta bombs.

use super::{
    Tenants, attackers,
    git::{REPOSITORIES, apps, check},
    start,
};
use crate::{
    Pace,
    builds::{Git, git, repository},
    machine,
    outcome::{Explain, Outcome},
    table::Row,
    upload::{Upload, run},
};
use serde_json::json;
use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

const ACCOUNTS: usize = 3;
/// Uploads at a time of each account.
const UPLOADS: usize = 4;
/// The bytes to which an app inflates. It may be 256 MiB whatever the size of the app.
const INFLATED: u64 = 250 << 20;
/// Files of each repository. All but one are deltas of a few bytes.
const DELTAS: u64 = 4;
/// The bytes of each of them.
const EXPANDED: u64 = 100 << 20;
/// The least bytes of a pack with the deltas and what they change.
const WHOLE: usize = 90_000;
/// Addresses of the one repository that is checked.
const ADDRESSES: usize = 2_000;

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    Ok([zip_bombs(pace)?, delta_bombs(pace)?].concat())
}

fn zip_bombs(pace: Pace) -> Outcome<[Row; 2]> {
    let (home, folder) = (machine::scratch()?, machine::scratch()?);
    let bomb = zip_bomb(folder.path())?;
    let hash = run("sha256sum", &[&bomb])?;
    let hash = json!({"sha256": hash.split(' ').next()});
    let server = start(home.path(), pace, &[])?;
    let (attackers, visitor) = attackers(&server, ACCOUNTS)?;
    let beside = visitor.beside(&server, pace, |signal| {
        signal.repeat(ACCOUNTS * UPLOADS, |number, _| {
            let (session, app) = attackers.get(number % ACCOUNTS).or_say("an attacker")?;
            let upload = Upload::open(&server, session, &app.to_string())?;
            upload.put(&server, &bomb)?;
            let finalized = server.client.post(Some(session), &upload.finalize, &hash)?;
            match finalized.status {
                201 => Ok(()),
                status => Err(format!("finalizing was answered {status}: {}", finalized.body)),
            }
        })
    })?;
    Ok(beside.rows(&format!("zip bombs of {ACCOUNTS} accounts")))
}

fn zip_bomb(folder: &Path) -> Outcome<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/support/dense-app.sh");
    let made = Command::new(script).arg(folder).arg(INFLATED.to_string()).output();
    let made = made.or_say("a zip bomb")?;
    match made.status.success() {
        true => Ok(folder.join("dense.apk")),
        false => Err(format!("the zip bomb: {}", String::from_utf8_lossy(&made.stderr))),
    }
}

fn delta_bombs(pace: Pace) -> Outcome<[Row; 2]> {
    let (home, folder) = (machine::scratch()?, machine::scratch()?);
    delta_bomb(&folder.path().join("bomb-0.git"))?;
    // What was read from an address before is not read again.
    for number in 1..ADDRESSES {
        let at = folder.path().join(format!("bomb-{number}.git"));
        std::os::unix::fs::symlink("bomb-0.git", at).or_say("a link to the repository")?;
    }
    // The server sends all of a repository, although only some files are asked for.
    std::fs::write(folder.path().join("whole"), "").or_say("the folder of the server")?;
    let served = thread::scope(|scope| {
        // The server of the attacker inherits the priority.
        let served = scope.spawn(|| {
            machine::work_after_others()?;
            Git::start(folder.path())
        });
        served.join().unwrap_or_else(|_| Err("a thread panicked".into()))
    })?;
    let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", served.port));
    let server = start(home.path(), pace, &[("SVC_GIT_PRIVATE_HOSTS", &hosts.join(","))])?;
    let Tenants { attacker, visitor } = Tenants::register(&server)?;
    let (apps, checks) = (apps(&server, &attacker)?, AtomicUsize::new(0));
    let url = |number: usize| {
        let host = hosts.get(number % hosts.len()).or_say("a host")?;
        let address = checks.fetch_add(1, Relaxed) % ADDRESSES;
        Outcome::Ok(format!("http://{host}/bomb-{address}.git"))
    };
    check(&server, &attacker, apps.first(), &url(0)?)?;
    let sent = std::fs::read_to_string(folder.path().join("sent")).or_say("what was sent")?;
    let sent: usize = sent.parse().or_say("what was sent")?;
    if sent < WHOLE {
        return Err(format!("the server sent only {sent} bytes, so no delta was expanded"));
    }
    let beside = visitor.beside(&server, pace, |signal| {
        signal.repeat(REPOSITORIES, |number, _| {
            // A check may take longer than it has.
            check(&server, &attacker, apps.get(number), &url(number)?)
        })
    })?;
    Ok(beside.rows(&format!("delta bombs in {REPOSITORIES} repositories")))
}

/// Makes a repository whose pack has 110 KB.
fn delta_bomb(folder: &Path) -> Outcome<()> {
    repository(folder)?;
    for number in 0..DELTAS {
        let mut file = File::create(folder.join(number.to_string())).or_say("a file")?;
        file.seek(SeekFrom::Start(EXPANDED - 1)).or_say("a file")?;
        file.write_all(number.to_string().as_bytes()).or_say("a file")?;
    }
    git(folder, &["add", "--all"])?;
    git(folder, &["commit", "--quiet", "--message", "Larger than it looks"])?;
    let as_deltas = ["-c", "core.bigFileThreshold=1g", "repack", "-a", "-d", "-f", "--quiet"];
    git(folder, &as_deltas)
}
