//! Programs in containers.

use super::{
    bench::{Bench, Ran, exec, pieces},
    programs::{BOTH, EXIT_3, FIRST_LINE, MISSING, MUCH, SECRET, SLOW, TOO_LONG, much},
};
use container_engine::{EngineError, Output};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use std::time::Duration;

pub async fn an_exit_code_comes_last(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let ran = bench.run_in(&spec.name, &["true"]).await;
    assert_eq!((ran.exit, ran.error, ran.out.len()), (Some(0), None, 0));
    assert_eq!(bench.run_in(&spec.name, EXIT_3).await.exit, Some(3));
    let ran = bench.run_in(&spec.name, &["echo", "one", "two"]).await;
    assert_eq!((ran.text().as_str(), ran.exit), ("one two\n", Some(0)));
}

pub async fn what_cannot_be_run_fails(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let ran = bench.run_in(&spec.name, MISSING).await;
    assert!(matches!(ran.exit, Some(126 | 127)) || ran.error.is_some(), "{ran:?}");
    assert!(ran.out.is_empty(), "{ran:?}");
}

pub async fn streams_are_told_apart(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let ran = bench.run_in(&spec.name, BOTH).await;
    assert_eq!(ran.text(), "out\nout again\n");
    assert_eq!(String::from_utf8_lossy(&ran.err), "err\n");
    assert_eq!(ran.exit, Some(0));
}

pub async fn it_gets_its_environment(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let mut program = exec(SECRET);
    program.env.insert("SECRET".to_owned(), "a 'b' \"c\" $d\n=e".to_owned());
    let output = bench.engine().exec(&spec.name, program, None).await.unwrap();
    assert_eq!(Ran::of(output).await.text(), "a 'b' \"c\" $d\n=e");
}

pub async fn much_output_arrives_whole(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let ran = bench.run_in(&spec.name, MUCH).await;
    let expected = much();
    assert!(expected.len() > 10 << 20);
    assert_eq!((ran.exit, ran.out.len()), (Some(0), expected.len()));
    assert_eq!(Sha256::digest(&ran.out), Sha256::digest(&expected));
}

pub async fn input_goes_through_byte_for_byte(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    // All bytes, and some that look like frames or marks.
    let mut bytes: Vec<u8> = (0..=255).cycle().take(12 << 20).collect();
    bytes.extend_from_slice(b"\0\0\0\0\x01\0\0\0\0\0\0\x05\r\n\x04\x1a\0");
    for input in [Vec::new(), b"x".to_vec(), bytes] {
        let given = pieces(input.clone(), 100_000);
        let output = bench.engine().exec(&spec.name, exec(&["cat"]), Some(given)).await.unwrap();
        let ran = Ran::of(output).await;
        assert_eq!((ran.exit, ran.out.len()), (Some(0), input.len()), "{:?}", ran.error);
        assert!(ran.out == input, "it is not what was given");
    }
}

pub async fn input_may_be_left_unread(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let mut input = b"first\n".to_vec();
    input.resize(4 << 20, b'x');
    let given = pieces(input, 100_000);
    let output = bench.engine().exec(&spec.name, exec(FIRST_LINE), Some(given)).await.unwrap();
    let ran = Ran::of(output).await;
    assert_eq!((ran.text().as_str(), ran.exit), ("first\n", Some(0)), "{ran:?}");
}

pub async fn a_container_that_ends_cuts_it_off(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let mut output = bench.engine().exec(&spec.name, exec(SLOW), None).await.unwrap();
    let first = output.next().await.unwrap().unwrap();
    assert_eq!(first, Output::Out("begun\n".into()));
    bench.kill(&spec.name).await;
    let rest = Ran::of(output).await;
    assert_eq!(rest.exit, None, "{rest:?}");
    assert!(matches!(rest.error, Some(EngineError::Unreachable(_))), "{rest:?}");
}

pub async fn its_time_is_limited(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let mut program = exec(TOO_LONG);
    program.within = Duration::from_secs(1);
    let ran = Ran::of(bench.engine().exec(&spec.name, program, None).await.unwrap()).await;
    assert_eq!((ran.text().as_str(), ran.exit), ("begun\n", Some(124)), "{ran:?}");
    bench.see_program_end(&spec.name, "4343").await;
}

pub async fn dropping_it_ends_it(bench: &dyn Bench) {
    let spec = bench.spec("a");
    bench.start(&spec).await;
    let with_input = futures_util::stream::pending().boxed();
    for input in [None, Some(with_input)] {
        let mut output = bench.engine().exec(&spec.name, exec(SLOW), input).await.unwrap();
        output.next().await.unwrap().unwrap();
        assert!(bench.has_program(&spec.name, "4242").await);
        drop(output);
        bench.see_program_end(&spec.name, "4242").await;
    }
    assert!(bench.see(&spec.name).await.is_running());
}
