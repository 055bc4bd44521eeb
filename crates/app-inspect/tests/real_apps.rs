//! Compares the verdicts on real apps, sound and hostile, from public packages with the verdicts of
//! `apksigner`, which is Android's own verifier.
//!
//! `real_apps.tsv` has a row for each app: the verdict of apksigner 31.0.2 (of Debian 12), which is
//! the SHA-256 of the signer's certificate or `refused`; the verdict of this crate, which is the
//! same, or `unsigned`, or the name of a [`Refusal`]; and the reason for a difference.
//!
//! The test fetches the packages, 42 MB, with npm and pip and keeps them under the target folder.
//! It names the packages that it cannot fetch. `SVC_REAL_APPS=all` adds the large ones.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use app_inspect::{Failure, Kind, Limits, inspect};
use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::HEXLOWER;

const TABLE: &str = include_str!("real_apps.tsv");

/// Packages of 15 to 77 MB each. The other packages have 42 MB together.
const LARGE: [(&str, &str); 2] = [("airtest", "1.4.3"), ("appium-uiautomator2-server", "9.0.0")];

struct Row {
    package: Package,
    file: &'static str,
    sha256: &'static str,
    apksigner: &'static str,
    expected: &'static str,
    reason: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    source: &'static str,
    name: &'static str,
    version: &'static str,
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.map(|line| {
        let fields: Vec<_> = line.split('\t').collect();
        let [source, name, version, file, sha256, apksigner, expected, reason] = fields[..] else {
            panic!("{line}")
        };
        let package = Package { source, name, version };
        Row { package, file, sha256, apksigner, expected, reason }
    });
    rows.collect()
}

impl Package {
    /// The folder with the files of the package. The error says why it cannot be fetched.
    fn folder(self) -> Result<PathBuf, String> {
        let Self { source, name, version } = self;
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("real-apps");
        let folder = cache.join(format!("{name}-{version}"));
        if folder.is_dir() {
            return Ok(folder);
        }
        std::fs::create_dir_all(&cache).map_err(|error| error.to_string())?;
        let work = tempfile::tempdir_in(&cache).map_err(|error| error.to_string())?;
        let files = work.path().join("files");
        std::fs::create_dir(&files).map_err(|error| error.to_string())?;
        let mut fetch = match source {
            "npm" => {
                let mut npm = Command::new("npm");
                npm.args(["pack", "--silent", "--fetch-retries=0", "--fetch-timeout=60000"]);
                npm.arg(format!("{name}@{version}"));
                npm
            }
            _ => {
                let mut pip = Command::new("pip3");
                pip.args(["download", "--quiet", "--no-deps", "--retries=0", "--timeout=60"]);
                let unwanted =
                    if source == "sdist" { "--no-binary=:all:" } else { "--only-binary=:all:" };
                pip.args([unwanted, &format!("{name}=={version}")]);
                pip
            }
        };
        run(fetch.current_dir(work.path()))?;
        let fetched = std::fs::read_dir(work.path()).map_err(|error| error.to_string())?;
        let archive = fetched
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.is_file())
            .ok_or("nothing was fetched")?;
        if source == "wheel" {
            run(Command::new("python3").args(["-m", "zipfile", "-e"]).args([&archive, &files]))?;
        } else {
            run(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(&files))?;
        }
        std::fs::rename(&files, &folder).map_err(|error| error.to_string())?;
        Ok(folder)
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim().lines().last().unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(format!("{program} failed: {last}")) }
}

/// The verdict of this crate on a file, as in the table.
fn verdict(file: &Path) -> String {
    match inspect(file, Kind::Apk, &Limits::default()) {
        Ok(report) => report.signer.map_or("unsigned".into(), |signer| signer.sha256),
        Err(Failure::Refused(refusal)) => {
            let name = format!("{refusal:?}");
            name.split([' ', '(']).next().unwrap_or_default().to_owned()
        }
        Err(Failure::Io(error)) => panic!("{}: {error}", file.display()),
    }
}

#[test]
fn real_apps_are_judged_as_by_apksigner_or_for_a_written_reason() {
    let all = std::env::var("SVC_REAL_APPS").is_ok_and(|value| value == "all");
    let rows = rows();
    let packages: BTreeSet<_> = rows.iter().map(|row| row.package).collect();
    let mut wrong = Vec::new();
    for package in packages {
        if !all && LARGE.contains(&(package.name, package.version)) {
            continue;
        }
        let folder = match package.folder() {
            Ok(folder) => folder,
            Err(why) => {
                let Package { name, version, .. } = package;
                // The test harness would show this only for failed tests.
                let _ = writeln!(std::io::stderr(), "left out: {name} {version} because {why}");
                continue;
            }
        };
        for row in rows.iter().filter(|row| row.package == package) {
            let path = folder.join(row.file);
            let sha256 = HEXLOWER.encode(digest(&SHA256, &std::fs::read(&path).unwrap()).as_ref());
            assert_eq!(sha256, row.sha256, "{}", row.file);
            let verdict = verdict(&path);
            if verdict != row.expected {
                wrong.push(format!("{}: {verdict}, not {}", row.file, row.expected));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Needs no network: checks only the table.
#[test]
fn what_differs_from_apksigner_has_a_reason_and_is_never_more_lenient() {
    let rows = rows();
    assert!(rows.len() > 50);
    for Row { file, apksigner, expected, reason, .. } in rows {
        match apksigner {
            // Reporting a refused app as unsigned is allowed: callers decide about unsigned apps.
            "refused" => assert!(expected.len() != 64, "{file}: accepted as signed"),
            signer => assert!(expected == signer || !reason.is_empty(), "{file}: no reason"),
        }
    }
}
