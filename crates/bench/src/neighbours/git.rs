//! Repositories on a server that sends a few bytes a second.

use super::{Tenants, app_of, start};
use crate::{
    Pace, machine,
    outcome::{Explain, Outcome},
    server::Server,
    table::Row,
};
use contract::AppId;
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

/// Repositories that are checked at once.
pub const REPOSITORIES: usize = 16;
/// Faster than a thousand bytes a second, below which git gives a server up.
const PAUSE: Duration = Duration::from_millis(900);

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let trickling = Trickling::start()?;
    let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", trickling.port));
    let server = start(home.path(), pace, &[("SVC_GIT_PRIVATE_HOSTS", &hosts.join(","))])?;
    let Tenants { attacker, visitor } = Tenants::register(&server)?;
    let apps = apps(&server, &attacker)?;
    let beside = visitor.beside(&server, pace, |signal| {
        thread::scope(|scope| {
            scope.spawn(|| {
                signal.wait();
                trickling.is_over.store(true, Relaxed);
            });
            signal.repeat(REPOSITORIES, |number, _| {
                let host = hosts.get(number % hosts.len()).or_say("a host")?;
                // The check fails.
                check(&server, &attacker, apps.get(number), &format!("http://{host}/{number}.git"))
            })
        })
    })?;
    Ok(beside.rows(&format!("{REPOSITORIES} repositories that trickle")).into())
}

/// An app for each repository.
pub fn apps(server: &Server, attacker: &str) -> Outcome<Vec<AppId>> {
    (0..REPOSITORIES).map(|_| app_of(server, attacker)).collect()
}

/// Connects an app to a repository, which checks it. Whatever it finds is good.
pub fn check(server: &Server, attacker: &str, app: Option<&AppId>, url: &str) -> Outcome<()> {
    let params = json!({"appId": app, "url": url});
    let path = "/backend/functions/svc_connectRepository";
    server.client.post(Some(attacker), path, &params).map(drop)
}

/// A git server that answers every request and never comes to an end, until it is over.
struct Trickling {
    port: u16,
    is_over: Arc<AtomicBool>,
}

impl Trickling {
    fn start() -> Outcome<Trickling> {
        let listener = TcpListener::bind("127.0.0.1:0").or_say("a port")?;
        let port = listener.local_addr().or_say("a port")?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let over = over.clone();
                thread::spawn(move || trickle(stream, &over));
            }
        });
        Ok(Trickling { port, is_over })
    }
}

fn trickle(mut stream: TcpStream, is_over: &AtomicBool) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\
                \r\n001e# service=git-upload-pack\n0000";
    let references = format!("003d{} refs/heads/main\n", "1".repeat(40)).repeat(20);
    let mut sent = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(head.as_bytes()));
    while sent.is_ok() && !is_over.load(Relaxed) {
        sent = stream.write_all(references.as_bytes());
        thread::sleep(PAUSE);
    }
}
