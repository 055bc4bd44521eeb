use super::*;
use crate::Labels;
use serde_json::{Value, json};
use tar::EntryType;

type File<'a> = (&'a str, &'a [u8]);
type Files<'a> = &'a [File<'a>];

fn archive(files: Files) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, text) in files {
        append(&mut archive, name, text).unwrap();
    }
    archive.into_inner().unwrap()
}

/// A layer with one file, and its digest.
fn layer() -> (Vec<u8>, String) {
    let layer = archive(&[("etc/hostname", b"a layer")]);
    let digest = HEXLOWER.encode(&Sha256::digest(&layer));
    (layer, digest)
}

fn expected() -> Expected {
    let labels = Labels::from([("svc.app".to_owned(), "mine".to_owned())]);
    Expected { tag: "svc/mine:1".to_owned(), labels, most: 1 << 20, now: NOW }
}

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// What the daemon gets.
fn passed(archive: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut output = Vec::new();
    let checked = expected().check(archive, &mut output, || Ok(()));
    let mut found = BTreeMap::new();
    for entry in tar::Archive::new(output.as_slice()).entries().unwrap() {
        let Ok(mut entry) = entry else { break };
        let mut text = Vec::new();
        if entry.read_to_end(&mut text).is_ok() {
            found.insert(entry.path().unwrap().to_str().unwrap().to_owned(), text);
        }
    }
    assert_eq!(checked.is_ok(), found.contains_key(CONTENTS), "{checked:?}");
    checked.map(|()| found).map_err(|e| e.to_string())
}

/// A configuration that claims labels and fields of the service in all spellings.
fn config(digest: &str) -> Vec<u8> {
    let layers = json!({"type": "layers", "diff_ids": [format!("sha256:{digest}")]});
    let ours = json!({"svc.app": "another", "svc.role": "server", "maintainer": "me"});
    let containers = json!({
        "Cmd": ["a"], "Labels": ours, "labels": {"svc.app": "another"}, "LABELS": null,
    });
    let image = json!({
        "os": "linux", "created": "2999-01-01T00:00:00Z", "rootfs": layers,
        "config": containers, "Config": {"Labels": ours}, "Rootfs": layers, "parent": "x",
    });
    image.to_string().into_bytes()
}

fn contents(config: &str, layers: &[&str]) -> Vec<u8> {
    let tags = ["svc/another:1"];
    json!([{"Config": config, "Layers": layers, "RepoTags": tags}]).to_string().into_bytes()
}

#[test]
fn an_image_gets_its_name_and_the_labels_of_the_service_from_the_service_only() {
    let (layer, digest) = layer();
    let (name, config) = (format!("{digest}.tar"), config(&digest));
    let list = contents("c.json", &[&name]);
    let files: Files = &[
        ("c.json", &config),
        (&name, &layer),
        ("repositories", br#"{"svc/another": {"1": "aa"}}"#),
        ("etc/passwd", b"x"),
        (CONTENTS, &list),
    ];
    let found = passed(&archive(files)).unwrap();
    let made: Value = serde_json::from_slice(&found[CONTENTS]).unwrap();
    let config = made[0]["Config"].as_str().unwrap().to_owned();
    let is = json!([{"Config": config, "Layers": [name], "RepoTags": ["svc/mine:1"]}]);
    assert_eq!(made, is);
    assert_eq!(found.len(), 3, "{:?}", found.keys());
    assert_eq!(found[&name], layer);
    assert_eq!(config, format!("{}.json", HEXLOWER.encode(&Sha256::digest(&found[&config]))));
    let config: Value = serde_json::from_slice(&found[&config]).unwrap();
    let labels = json!({"maintainer": "me", "svc.app": "mine"});
    let is = json!({
        "os": "linux", "created": NOW.to_string(),
        "config": {"Cmd": ["a"], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    });
    assert_eq!(config, is);
}

#[test]
fn what_is_no_image_does_not_pass() {
    let (layer, digest) = layer();
    let (name, config) = (format!("{digest}.tar"), config(&digest));
    let list = contents("c.json", &[&name]);
    let two = [b"[", &list[1..list.len() - 1], b",", &list[1..]].concat();
    let linked = contents("../c.json", &[&name]);
    let elsewhere = contents("c.json", &["../../x.tar"]);
    let twice = contents("c.json", &[&name, &name]);
    let large = vec![b'x'; LARGEST_DOCUMENT as usize + 1];
    let other = format!("{}.tar", "a".repeat(64));
    let (config, layer): (File, File) = (("c.json", &config), (&name, &layer));
    let of_another = self::config(&"a".repeat(64));
    let cases: [(Files, &str); 11] = [
        (&[], "no manifest.json"),
        (&[config, (CONTENTS, &list)], "is missing"),
        (&[layer, (CONTENTS, &list)], "no c.json"),
        (&[config, layer, (CONTENTS, &two)], "not one image"),
        (&[config, layer, (CONTENTS, &linked)], "no ../c.json"),
        (&[config, layer, (CONTENTS, &elsewhere)], "is missing"),
        (&[config, layer, (CONTENTS, &twice)], "not those of its configuration"),
        (&[config, layer, layer, (CONTENTS, &list)], "twice"),
        (&[config, config, layer, (CONTENTS, &list)], "twice"),
        (&[("c.json", &large), layer, (CONTENTS, &list)], "too large"),
        // The digest of somebody else's layer, which the daemon may have.
        (&[("c.json", &of_another), layer, (CONTENTS, &list)], "not those of its configuration"),
    ];
    for (files, why) in cases {
        let said = passed(&archive(files)).unwrap_err();
        assert!(said.contains(why), "{why}: {said}");
    }
    let another: File = (&other, layer.1);
    let said = passed(&archive(&[config, another, (CONTENTS, &list)])).unwrap_err();
    assert!(said.contains("another digest"), "{said}");
    let whole = archive(&[config, layer, (CONTENTS, &list)]);
    for cut in [0, 100, 700, 1100, 2600] {
        passed(&whole[..cut]).unwrap_err();
    }
}

/// Why an image with this layer does not pass.
fn refused(layer: &[u8], repeated: usize) -> String {
    let digest = HEXLOWER.encode(&Sha256::digest(layer));
    let name = format!("{digest}.tar");
    let mut config: Value = serde_json::from_slice(&config(&digest)).unwrap();
    config["rootfs"]["diff_ids"] = json!(vec![format!("sha256:{digest}"); repeated]);
    let list = contents("c.json", &vec![name.as_str(); repeated]);
    let config = config.to_string().into_bytes();
    passed(&archive(&[("c.json", &config), (&name, layer), (CONTENTS, &list)])).unwrap_err()
}

#[test]
fn a_layer_unpacks_to_no_more_than_it_is() {
    let entry = |kind: EntryType, size: u64, body: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_path("a").unwrap();
        header.set_size(size);
        header.set_entry_type(kind);
        header.set_cksum();
        let mut layer = [header.as_bytes().as_slice(), body].concat();
        layer.resize(layer.len().next_multiple_of(512), 0);
        layer
    };
    let pax = |field: &[u8]| entry(EntryType::XHeader, field.len() as u64, field);
    refused(&[0x1f, 0x8b, 8, 0, 0, 0], 1);
    for layer in [
        entry(EntryType::GNUSparse, 0, b""),
        pax(b"22 GNU.sparse.major=1\n"),
        pax(b"10 size=0\n"),
        pax(&[b' '; 2 << 20]),
        // A reader that ignores the size of a link reads the body as entries.
        entry(EntryType::Symlink, 512, &entry(EntryType::GNUSparse, 0, b"")),
    ] {
        let said = refused(&layer, 1);
        assert!(said.contains("a layer has"), "{said}");
    }
    let mut large = entry(EntryType::Regular, 8, b"12345678");
    large[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8]);
    refused(&large, 1);
    let file = vec![1; 300 << 10];
    let said = refused(&archive(&[("a", &file)]), 4);
    assert!(said.contains("unpacks to more"), "{said}");
    // A long name that is never read.
    let name = entry(EntryType::GNULongName, 1 << 40, b"");
    passed(&name).unwrap_err();
}

#[test]
fn an_archive_of_a_program_that_failed_does_not_pass() {
    let (layer, digest) = layer();
    let name = format!("{digest}.tar");
    let list = contents("c.json", &[&name]);
    let files: Files = &[("c.json", &config(&digest)), (&name, &layer), (CONTENTS, &list)];
    let mut output = Vec::new();
    let failed = || Err(EngineError::Refused("it broke".to_owned()));
    let checked = expected().check(archive(files).as_slice(), &mut output, failed);
    assert_eq!(meant(checked.unwrap_err()), EngineError::Refused("it broke".to_owned()));
    let written = String::from_utf8_lossy(&output);
    assert!(!written.contains(CONTENTS), "{written}");
}
