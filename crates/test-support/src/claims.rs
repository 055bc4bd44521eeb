//! Numbers of things of this machine that test programs must not share, such as ports.

use std::fs::File;

/// The first of these numbers that no other test program has, and the file that keeps it: as long as it is open.
pub fn claim(what: &str, mut numbers: impl Iterator<Item = u16>) -> Option<(u16, File)> {
    let folder = std::env::temp_dir().join(format!("svc-test-{what}"));
    std::fs::create_dir_all(&folder).unwrap();
    numbers.find_map(|number| {
        let file = File::options().create(true).append(true).open(folder.join(number.to_string()));
        let file = file.ok()?;
        file.try_lock().is_ok().then_some((number, file))
    })
}
