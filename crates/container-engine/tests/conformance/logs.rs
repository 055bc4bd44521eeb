//! The output of containers.

use super::{
    bench::{Bench, command},
    programs::{CHATTER, WRITER},
};
use container_engine::{ContainerSpec, LogLine, LogQuery, Stream};
use std::time::Duration;

const ALL: LogQuery = LogQuery { tail: 1000, since: None, stream: None };

/// Starts the program in a container, and waits until it has written so many lines.
async fn written(
    bench: &dyn Bench,
    program: &[&str],
    lines: usize,
) -> (ContainerSpec, Vec<LogLine>) {
    let mut spec = bench.spec("a");
    spec.command = Some(command(program));
    bench.start(&spec).await;
    for _ in 0..100 {
        let log = bench.engine().logs(&spec.name, ALL).await.unwrap();
        if log.len() >= lines {
            return (spec, log);
        }
        bench.pass(Duration::from_millis(100)).await;
    }
    panic!("it did not write");
}

fn texts(lines: &[LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

pub async fn lines_come_with_their_stream_and_in_order(bench: &dyn Bench) {
    let (spec, log) = written(bench, WRITER, 6).await;
    // Within each stream: an engine need not know the order between the streams.
    for (stream, expected) in
        [(Stream::Out, ["out 1", "out 2", "out 3"]), (Stream::Err, ["err 1", "err 2", "err 3"])]
    {
        let lines = log.iter().filter(|line| line.stream == stream);
        assert_eq!(lines.map(|line| line.text.as_str()).collect::<Vec<_>>(), expected);
    }
    assert!(log.is_sorted_by_key(|line| line.at));
    let started_at = bench.see(&spec.name).await.started_at.unwrap();
    assert!(log[0].at.as_millis() + 1000 >= started_at.as_millis());

    let two = bench.engine().logs(&spec.name, LogQuery { tail: 2, ..ALL }).await.unwrap();
    assert_eq!(two.len(), 2);
    assert!(two.iter().all(|line| log[3..].contains(line)), "{two:?}");
    let none = bench.engine().logs(&spec.name, LogQuery { tail: 0, ..ALL }).await.unwrap();
    assert_eq!(none, []);
    // A container that has ended keeps its log.
    bench.kill(&spec.name).await;
    bench.see_until(&spec.name, |container| !container.is_running()).await;
    assert_eq!(bench.engine().logs(&spec.name, ALL).await.unwrap(), log);
}

pub async fn the_last_lines_of_one_stream(bench: &dyn Bench) {
    let (spec, _) = written(bench, CHATTER, 101).await;
    // The line is far behind the last lines of the other stream.
    let query = LogQuery { tail: 1, stream: Some(Stream::Err), ..ALL };
    let found = bench.engine().logs(&spec.name, query).await.unwrap();
    assert_eq!(texts(&found), ["hidden"]);
    let query = LogQuery { tail: 2, stream: Some(Stream::Out), ..ALL };
    let found = bench.engine().logs(&spec.name, query).await.unwrap();
    assert_eq!(texts(&found), ["99", "100"]);
}

pub async fn only_what_came_since(bench: &dyn Bench) {
    let (spec, log) = written(bench, WRITER, 6).await;
    let since = Some(log[3].at);
    let found = bench.engine().logs(&spec.name, LogQuery { since, ..ALL }).await.unwrap();
    let expected: Vec<LogLine> =
        log.iter().filter(|line| Some(line.at) >= since).cloned().collect();
    assert_eq!(found, expected);
    assert!(found.len() <= 3 || log[2].at == log[3].at, "{found:?}");
    let query = LogQuery { since, stream: Some(Stream::Out), ..ALL };
    let found = bench.engine().logs(&spec.name, query).await.unwrap();
    assert!(found.iter().all(|line| line.stream == Stream::Out));
    assert_eq!(found.last().map(|line| line.text.as_str()), Some("out 3"));
}
