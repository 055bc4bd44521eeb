//! Who knows whom: the rooms of this crate import each other one way, and no kind imports another in a
//! circle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Each room may import those before it.
const ROOMS: [&str; 9] = [
    "runtime",
    "ports",
    "installation",
    "kinds",
    "call",
    "records",
    "functions",
    "background",
    "failpoints",
];

#[test]
fn rooms_import_those_below_them() {
    let mut seen = BTreeSet::new();
    for (file, imports) in sources() {
        let room = first(&file);
        let Some(level) = ROOMS.iter().position(|known| *known == room) else {
            assert_eq!(room, "lib", "{file} is in no room: give {room} its place in ROOMS");
            continue;
        };
        seen.insert(room.to_owned());
        for import in imports {
            let other = first(&import);
            let is_below = ROOMS.iter().take(level + 1).any(|known| *known == other);
            assert!(is_below, "{file} imports {import}, which is not below {room}");
        }
    }
    assert_eq!(seen.len(), ROOMS.len(), "{seen:?}");
}

#[test]
fn no_kind_imports_another_in_a_circle() {
    let sources = sources();
    let folder = |file: &str| file.strip_suffix("::rules").map(str::to_owned);
    let kinds: BTreeSet<String> =
        sources.keys().filter(|file| first(file) == "kinds").filter_map(|f| folder(f)).collect();
    assert!(kinds.len() > 20, "{kinds:?}");
    // What lies beside the folders of kinds stands for itself.
    let beside = sources.keys().filter(|file| file.matches("::").count() == 2).cloned();
    let kinds: BTreeSet<String> =
        kinds.into_iter().chain(beside.filter(|file| first(file) == "kinds")).collect();
    let kind_of = |path: &str| {
        let is_in = |kind: &&String| path == **kind || path.starts_with(&format!("{kind}::"));
        kinds.iter().find(is_in).cloned()
    };
    let mut left: BTreeMap<String, BTreeSet<String>> =
        kinds.iter().map(|kind| (kind.clone(), BTreeSet::new())).collect();
    for (file, imports) in &sources {
        let Some(kind) = kind_of(file) else { continue };
        let others = imports.iter().filter_map(|import| kind_of(import));
        let others: BTreeSet<String> = others.filter(|other| *other != kind).collect();
        left.get_mut(&kind).unwrap().extend(others);
    }
    assert!(left.values().any(|imports| !imports.is_empty()), "{left:?}");
    // What imports only kinds that are taken away is taken away. A circle stays.
    loop {
        let free = |(kind, imports): (&String, &BTreeSet<String>)| {
            imports.iter().all(|other| !left.contains_key(other)).then(|| kind.clone())
        };
        let free: Vec<String> = left.iter().filter_map(free).collect();
        if free.is_empty() {
            break;
        }
        left.retain(|kind, _| !free.contains(kind));
    }
    assert!(
        left.is_empty(),
        "these kinds import each other in a circle, or such a circle: {left:?}"
    );
}

/// The name of the room of a file or an import.
fn first(path: &str) -> &str {
    path.split("::").next().unwrap()
}

/// The modules of this crate, such as `kinds::people::apps::rules`, with the paths of it that they import.
fn sources() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_stem().is_some_and(|name| name != "tests") {
                let name = path.strip_prefix(&root).unwrap().with_extension("");
                let name = name.to_str().unwrap().replace('/', "::");
                let name = name.strip_suffix("::mod").unwrap_or(&name).to_owned();
                let source = fs::read_to_string(&path).unwrap();
                found.insert(name.clone(), imports(&name, &source));
            }
        }
    }
    found
}

/// The paths of this crate in the source of a module, without those of its tests. Of a group in braces, each
/// path.
fn imports(module: &str, source: &str) -> BTreeSet<String> {
    let code = source.split("\n#[cfg(test)]\n").next().unwrap();
    let code: String =
        code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for root in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(root) {
            let before = code.get(..at).unwrap();
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            if before.ends_with(is_part) {
                continue;
            }
            let mut rest = code.get(at..).unwrap();
            let mut base: Vec<&str> = module.split("::").collect();
            if let Some(after) = rest.strip_prefix("crate::") {
                (base, rest) = (Vec::new(), after);
            }
            rest = rest.strip_prefix("self::").unwrap_or(rest);
            while let Some(after) = rest.strip_prefix("super::") {
                base.pop();
                rest = after;
            }
            let base: String = base.iter().map(|part| format!("{part}::")).collect();
            expand(&base, rest, &mut found);
        }
    }
    found
}

/// Adds the paths at the beginning of `rest`. Returns what follows them.
fn expand<'a>(before: &str, rest: &'a str, found: &mut BTreeSet<String>) -> &'a str {
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let (path, mut rest) = rest.split_at(end.unwrap_or(rest.len()));
    let path = format!("{before}{path}");
    let Some(mut group) =
        rest.strip_prefix('{').filter(|_| path.ends_with("::") || path.is_empty())
    else {
        found.insert(path.trim_end_matches(':').to_owned());
        return rest;
    };
    loop {
        group = group.trim_start();
        if let Some(after) = group.strip_prefix('}') {
            return after;
        }
        rest = expand(&path, group, found);
        // A name after `as`, and the comma.
        let next = rest.find([',', '}']).unwrap_or(rest.len());
        group = rest.get(next..).unwrap();
        group = group.strip_prefix(',').unwrap_or(group);
        if group.is_empty() {
            return group;
        }
    }
}
