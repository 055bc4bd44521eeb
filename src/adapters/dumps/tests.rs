use super::*;

/// The dumps of one process, or of nodes that share a folder in place of a bucket.
async fn are_as_they_were(shared: Option<&std::path::Path>) {
    let folder = tempfile::tempdir().unwrap();
    let objects = shared.map(|folder| Objects::folder(folder).unwrap());
    let dumps = DumpFolder::open(folder.path().into(), objects).unwrap();
    let id: BackupId = "bak_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
    let pieces = |last: io::Result<Bytes>| {
        let whole = (0..100_u8).map(|n| Ok(Bytes::from(vec![n; 1000])));
        stream::iter(whole.chain([last]).collect::<Vec<_>>()).boxed()
    };
    let end = || pieces(Ok(Bytes::from_static(b"end")));
    let written = dumps.write(id, 1 << 20, end()).await.unwrap();
    let path =
        shared.map_or_else(|| dumps.path(id), |shared| shared.join(object(id, &written.sha256)));
    assert!(!path.exists(), "not before it is kept");
    assert!(written.tail.ends_with(b"end") && written.head.starts_with(&[0, 0]));
    dumps.keep(id, &written.sha256).await.unwrap();
    dumps.keep(id, &written.sha256).await.unwrap();
    let read = dumps.read(id, &written.sha256).await.unwrap();
    let read: Vec<Bytes> = read.map(Result::unwrap).collect().await;
    assert_eq!(read.concat().len(), 100_003);
    let bytes = std::fs::read(&path).unwrap();
    let part = dumps.part(id, &written.sha256, 10..30).await.unwrap();
    let part: Vec<Bytes> = part.map(Result::unwrap).collect().await;
    assert_eq!(part.concat(), bytes[10..30]);
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let damaged = dumps.read(id, &written.sha256).await.err().unwrap();
    assert!(damaged.to_string().contains("damaged"), "{damaged}");
    dumps.discard(id).await.unwrap();
    assert!(!path.exists());

    let broken = dumps.write(id, 1 << 20, pieces(Err(io::Error::other("it was killed")))).await;
    assert_eq!(broken, Err(DumpError::Source("it was killed".into())));
    let large = dumps.write(id, 100, pieces(Ok(Bytes::new()))).await;
    assert_eq!(large, Err(DumpError::TooLarge));
    if shared.is_some() {
        // The node loses its lease before it keeps the dump.
        let working_copy = dumps.working_copy(id);
        dumps.write(id, 1 << 20, end()).await.unwrap();
        drop(working_copy);
        std::fs::remove_dir(folder.path().join(PARTIAL)).unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

#[tokio::test]
async fn a_dump_is_there_once_it_is_kept_and_read_back_as_it_was() {
    are_as_they_were(None).await;
    are_as_they_were(Some(tempfile::tempdir().unwrap().path())).await;
}
