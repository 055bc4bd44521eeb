//! Images: built, pushed, and pulled.

use super::bench::Bench;
use bytes::Bytes;
use container_engine::{BuildEvent, BuildSpec, EngineError, Labels, RegistryLogin};
use futures_util::{StreamExt, stream};
use std::{collections::BTreeMap, io};

fn spec(bench: &dyn Bench, what: &str) -> BuildSpec {
    BuildSpec {
        tag: format!("svc-test/{}-{what}:1", bench.run()),
        dockerfile: "Dockerfile".to_owned(),
        args: BTreeMap::from([("WHOM".to_owned(), "the build".to_owned())]),
        labels: bench.labels(),
        memory: 3 << 30,
        isolation: None,
    }
}

/// An archive with one file.
pub fn archive(name: &str, text: &str) -> Vec<u8> {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, field: &str| {
        header[at..at + field.len()].copy_from_slice(field.as_bytes());
    };
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", text.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(text.as_bytes());
    archive.resize(archive.len().div_ceil(512) * 512 + 1024, 0);
    archive
}

/// The output and the result of a build.
pub async fn built(
    bench: &dyn Bench,
    spec: BuildSpec,
    dockerfile: &str,
) -> (Vec<String>, Result<String, EngineError>) {
    let archive = Bytes::from(archive("Dockerfile", dockerfile));
    let context = stream::iter([Ok::<_, io::Error>(archive)]).boxed();
    let mut events = match bench.engine().build(spec, context).await {
        Ok(events) => events,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let (mut lines, mut end) = (Vec::new(), None);
    while let Some(event) = events.next().await {
        assert!(end.is_none(), "something came after the end");
        match event {
            Ok(BuildEvent::Line(line)) => lines.push(line),
            Ok(BuildEvent::Built(built)) => end = Some(Ok(built.image)),
            Err(error) => end = Some(Err(error)),
        }
    }
    (lines, end.expect("an end"))
}

pub async fn a_build_says_what_it_does_and_makes_an_image(bench: &dyn Bench) {
    let spec = spec(bench, "made");
    let from = bench.image_name();
    // A unique step, so that the cache of an earlier run does not apply.
    let run = bench.run();
    let dockerfile = format!("FROM {from}\nARG WHOM\nRUN : {run} && echo hello from $WHOM\n");
    let (lines, end) = built(bench, spec.clone(), &dockerfile).await;
    let id = end.unwrap();
    assert!(id.starts_with("sha256:"), "{id}");
    assert!(lines.iter().any(|line| line == "hello from the build"), "{lines:?}");
    assert!(lines[0].starts_with("Step 1/"), "{lines:?}");
    let image = bench.engine().image(&spec.tag).await.unwrap().unwrap();
    assert_eq!((&image.id, &image.tags), (&id, &vec![spec.tag.clone()]));
    assert_eq!(image.labels, spec.labels);
    assert!(image.size > 0);
    assert_eq!(bench.engine().image(&id).await.unwrap().unwrap().id, id);
    // A container can be created from the image's id.
    let mut container = bench.spec("a");
    container.image = id.clone();
    assert_eq!(bench.make(&container).await.image, id);
}

pub async fn a_build_that_fails_says_why(bench: &dyn Bench) {
    let spec = spec(bench, "failed");
    let (from, run) = (bench.image_name(), bench.run());
    let dockerfile =
        format!("FROM {from}\nARG WHOM\nRUN : {run} && echo hello from $WHOM\nRUN exit 3\n");
    let (lines, end) = built(bench, spec.clone(), &dockerfile).await;
    assert!(lines.iter().any(|line| line == "hello from the build"), "{lines:?}");
    let Err(EngineError::Refused(why)) = end else { panic!("{end:?}") };
    assert!(why.contains("returned a non-zero code: 3"), "{why}");
    assert_eq!(bench.engine().image(&spec.tag).await.unwrap(), None);
    // The builder keeps the successful steps as an image without our label.
    let mut steps = lines.iter().filter_map(|line| line.strip_prefix(" ---> "));
    if let Some(last) = steps.rfind(|step| !step.contains(' ')) {
        bench.engine().remove_image(last).await.unwrap();
    }
}

pub async fn an_image_is_found_by_label_and_removed(bench: &dyn Bench) {
    let (engine, spec) = (bench.engine(), spec(bench, "listed"));
    assert_eq!(engine.images(&spec.labels).await.unwrap(), []);
    let dockerfile = format!("FROM {}\n", bench.image_name());
    let id = built(bench, spec.clone(), &dockerfile).await.1.unwrap();
    let found = engine.images(&spec.labels).await.unwrap();
    assert_eq!(found.iter().map(|image| &image.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(found[0].tags, std::slice::from_ref(&spec.tag));
    let nobody = Labels::from([("svc.test".to_owned(), "nobody".to_owned())]);
    assert_eq!(engine.images(&nobody).await.unwrap(), []);

    let repository = format!("svc-test/{}-other", bench.run());
    engine.tag(&spec.tag, &repository, "2").await.unwrap();
    engine.tag(&spec.tag, &repository, "2").await.unwrap();
    let other = format!("{repository}:2");
    assert_eq!(engine.image(&other).await.unwrap().unwrap().id, id);
    let error = engine.tag("svc-test/none:1", &repository, "2").await.unwrap_err();
    assert!(matches!(error, EngineError::Missing(_)), "{error:?}");

    // The image has another name.
    engine.remove_image(&spec.tag).await.unwrap();
    assert_eq!(engine.image(&spec.tag).await.unwrap(), None);
    let renamed = engine.image(&other).await.unwrap().unwrap();
    assert_eq!(renamed.tags, std::slice::from_ref(&other));
    // A container uses the image.
    let mut container = bench.spec("a");
    container.image = id.clone();
    bench.make(&container).await;
    let error = engine.remove_image(&other).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused(_)), "{error:?}");
    engine.remove_container(&container.name).await.unwrap();
    engine.remove_image(&other).await.unwrap();
    engine.remove_image(&other).await.unwrap();
    assert_eq!(engine.image(&id).await.unwrap(), None);
}

pub async fn a_missing_image_is_said(bench: &dyn Bench) {
    let engine = bench.engine();
    assert_eq!(engine.image("svc-test/none:1").await.unwrap(), None);
    let none = format!("sha256:{}", "0".repeat(64));
    assert_eq!(engine.image(&none).await.unwrap(), None);
    let error = engine.ensure_image(&none, None).await.unwrap_err();
    assert!(matches!(error, EngineError::NoImage { .. }), "{error:?}");
    // The image is on this machine: no registry is asked.
    let here = engine.ensure_image(bench.image_name(), None).await.unwrap();
    assert_eq!(engine.ensure_image(&here.id, None).await.unwrap().id, here.id);
    engine
        .prune_build_caches(&bench.labels(), std::time::Duration::from_secs(365 * 24 * 3600))
        .await
        .unwrap();
}

pub async fn what_is_pushed_can_be_resolved_and_pulled(bench: &dyn Bench) {
    let Some(host) = bench.registry(None).await else { return };
    let (engine, mut spec) = (bench.engine(), spec(bench, "pushed"));
    let repository = format!("{host}/{}/app", bench.run());
    spec.tag = format!("{repository}:1");
    for asked in [engine.resolve(&spec.tag, None).await.err(), {
        engine.ensure_image(&spec.tag, None).await.err()
    }] {
        assert!(matches!(asked, Some(EngineError::NoImage { .. })), "{asked:?}");
    }
    let dockerfile = format!("FROM {}\n", bench.image_name());
    let id = built(bench, spec.clone(), &dockerfile).await.1.unwrap();
    let digest = engine.push(&repository, "1", None).await.unwrap();
    assert!(digest.starts_with("sha256:"), "{digest}");
    assert_eq!(engine.push(&repository, "1", None).await.unwrap(), digest);
    assert_eq!(engine.resolve(&spec.tag, None).await.unwrap(), digest);
    let error = engine.push(&repository, "2", None).await.unwrap_err();
    assert!(matches!(error, EngineError::NoImage { .. }), "{error:?}");

    let by_digest = format!("{repository}@{digest}");
    for reference in [&by_digest, &spec.tag] {
        let there = engine.images(&bench.labels()).await.unwrap();
        for name in there.iter().flat_map(|image| image.tags.iter().chain(&image.digests)) {
            engine.remove_image(name).await.unwrap();
        }
        assert_eq!(engine.image(&id).await.unwrap(), None);
        let pulled = engine.ensure_image(reference, None).await.unwrap();
        assert_eq!(pulled.id, id);
        assert!(pulled.digests.contains(&by_digest), "{pulled:?}");
        assert_eq!(engine.image(&by_digest).await.unwrap().unwrap().id, id);
        // Only the name that was pulled.
        assert_eq!(pulled.tags.is_empty(), reference == &by_digest, "{pulled:?}");
    }
    let mut container = bench.spec("a");
    container.image = by_digest;
    assert_eq!(bench.make(&container).await.image, id);
}

pub async fn a_registry_lets_in_who_has_a_login(bench: &dyn Bench) {
    // A login whose encodings in the two alphabets of base64 differ.
    let login = RegistryLogin { username: "svc".to_owned(), password: "~~~???>>>{}".to_owned() };
    let Some(host) = bench.registry(Some(&login)).await else { return };
    let (engine, mut spec) = (bench.engine(), spec(bench, "private"));
    let repository = format!("{host}/{}/app", bench.run());
    spec.tag = format!("{repository}:1");
    let dockerfile = format!("FROM {}\n", bench.image_name());
    let id = built(bench, spec.clone(), &dockerfile).await.1.unwrap();

    let wrong = RegistryLogin { username: "svc".to_owned(), password: "wrong".to_owned() };
    for nobody in [None, Some(&wrong)] {
        let error = engine.push(&repository, "1", nobody).await.unwrap_err();
        assert!(matches!(error, EngineError::NoImage { .. }), "{error:?}");
    }
    let digest = engine.push(&repository, "1", Some(&login)).await.unwrap();
    let there = engine.image(&id).await.unwrap().unwrap();
    for name in there.tags.iter().chain(&there.digests) {
        engine.remove_image(name).await.unwrap();
    }
    for nobody in [None, Some(&wrong)] {
        let error = engine.resolve(&spec.tag, nobody).await.unwrap_err();
        assert!(matches!(error, EngineError::NoImage { .. }), "{error:?}");
        let error = engine.ensure_image(&spec.tag, nobody).await.unwrap_err();
        assert!(matches!(error, EngineError::NoImage { .. }), "{error:?}");
    }
    assert_eq!(engine.resolve(&spec.tag, Some(&login)).await.unwrap(), digest);
    assert_eq!(engine.ensure_image(&spec.tag, Some(&login)).await.unwrap().id, id);
}
