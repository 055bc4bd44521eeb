//! What the adapter does while the daemon comes and goes. A proxy between them can be cut.

use super::{
    bench::{Ran, exec},
    real::{Real, on_docker},
};
use container_engine::{Engine, EngineError, Happening, docker::Docker};
use futures_util::StreamExt;
use std::{env, fs, path::PathBuf, time::Duration};
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{UnixListener, UnixStream},
    task::{JoinHandle, JoinSet},
};

struct Proxy {
    folder: TempDir,
    listening: Option<JoinHandle<()>>,
}

impl Proxy {
    fn new() -> Proxy {
        Proxy { folder: tempfile::tempdir().unwrap(), listening: None }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    fn open(&mut self) {
        let host = env::var("DOCKER_HOST").unwrap_or_default();
        let daemon = host.strip_prefix("unix://").unwrap_or("/var/run/docker.sock").to_owned();
        let listener = UnixListener::bind(self.path()).unwrap();
        self.listening = Some(tokio::spawn(async move {
            // All connections end together with the task.
            let mut connections = JoinSet::new();
            while let Ok((mut ours, _)) = listener.accept().await {
                let daemon = daemon.clone();
                connections.spawn(async move {
                    let mut theirs = UnixStream::connect(daemon).await.unwrap();
                    let _ = copy_bidirectional(&mut ours, &mut theirs).await;
                });
            }
        }));
    }

    async fn cut(&mut self) {
        let listening = self.listening.take().unwrap();
        listening.abort();
        let _ = listening.await;
        fs::remove_file(self.path()).unwrap();
    }
}

fn is_unreachable<T>(answer: Result<T, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Unreachable(_)))
}

#[test]
fn the_daemon_may_come_later_and_go_and_come_again() {
    on_docker("connection::the_daemon_may_come_later_and_go_and_come_again", |real| {
        Box::pin(comes_and_goes(real))
    });
}

async fn comes_and_goes(real: &Real) {
    let mut proxy = Proxy::new();
    let docker = Docker::connect(Some(proxy.path().to_str().unwrap())).unwrap();
    let labels = real.bench().labels();
    for _ in 0..2 {
        assert!(is_unreachable(docker.about().await));
        assert!(is_unreachable(docker.inventory(&labels).await));
        assert!(is_unreachable(docker.ensure_container(&real.bench().spec("a")).await));
        proxy.open();
        assert_eq!(docker.about().await.unwrap(), real.docker().about().await.unwrap());
        docker.inventory(&labels).await.unwrap();
        proxy.cut().await;
    }
    let since = real.docker().inventory(&labels).await.unwrap().at;
    assert!(is_unreachable(docker.events(&labels, since).await));
}

#[test]
fn what_is_cut_in_the_middle_ends_with_an_error() {
    on_docker("connection::what_is_cut_in_the_middle_ends_with_an_error", |real| {
        Box::pin(cut_in_the_middle(real))
    });
}

async fn cut_in_the_middle(real: &Real) {
    let (bench, mut proxy) = (real.bench(), Proxy::new());
    proxy.open();
    let docker = Docker::connect(Some(proxy.path().to_str().unwrap())).unwrap();
    let spec = bench.spec("a");
    let since = docker.inventory(&bench.labels()).await.unwrap().at;
    bench.start(&spec).await;
    let mut events = docker.events(&bench.labels(), since).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().what, Happening::Started);
    // One program that keeps writing, one that is about to exit with 0, and one that is silent.
    let mut cut = Vec::new();
    for script in ["seq 1000000000", "echo begun; sleep 2; echo ended", "echo begun; sleep 4242"] {
        let mut output = docker.exec(&spec.name, exec(&["sh", "-c", script]), None).await.unwrap();
        output.next().await.unwrap().unwrap();
        cut.push(output);
    }
    proxy.cut().await;
    for output in cut {
        let ran = Ran::of(output).await;
        assert_eq!(ran.exit, None, "{:?}", ran.error);
        assert!(matches!(ran.error, Some(EngineError::Unreachable(_))), "{:?}", ran.error);
    }
    assert!(is_unreachable(events.next().await.unwrap()));
    assert_eq!(events.next().await, None);

    // A program that was cut off is ended once the daemon is reachable.
    proxy.open();
    let output = docker.exec(&spec.name, exec(&["sleep", "4343"]), None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(output);
    bench.see_program_end(&spec.name, "4343").await;
    proxy.cut().await;
}

#[test]
fn an_address_that_is_not_understood_is_refused() {
    for address in ["ssh://somewhere", "docker.sock", "https://127.0.0.1:2376"] {
        let error = Docker::connect(Some(address)).err().unwrap();
        assert!(matches!(error, EngineError::Refused(_)), "{error:?}");
    }
}

#[test]
fn a_daemon_that_does_not_answer_is_away() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // The listener accepts the connection and never answers.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let docker = Docker::connect(Some(&address)).unwrap();
        assert!(is_unreachable(docker.about().await));
    });
}
