//! The yardstick of function calls: a web server that reads JSON and answers it. What is left of
//! it when the service takes its place is what the service costs. It is also what the proxies pass
//! requests on to.

use crate::{
    group_commit::{GroupCommit, Rows},
    machine,
    outcome::{Explain, Outcome},
    server::{free_port, listening, local},
};
use actix_web::{App, HttpResponse, HttpServer, web};
use clap::ValueEnum;
use serde_json::Value;
use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command},
    time::Duration,
};

/// Bytes of an answer that is no echo.
const LARGEST: usize = 1 << 20;

/// Serves until it is killed.
pub fn run(port: u16, workers: usize, durable: Option<(&Path, Rows)>) -> Outcome<()> {
    let commit = durable.map(|(at, rows)| GroupCommit::start(at, rows)).transpose()?;
    let commit = web::Data::new(commit);
    let app = move || {
        let app = App::new().app_data(commit.clone()).default_service(web::post().to(echo));
        app.route("/bytes/{count}", web::get().to(bytes))
    };
    let server = HttpServer::new(app).workers(workers).keep_alive(Duration::from_secs(75));
    let server = server.bind(local(port)).or_say("the echo server")?.run();
    actix_web::rt::System::new().block_on(server).or_say("the echo server")
}

async fn echo(body: web::Json<Value>, commit: web::Data<Option<GroupCommit>>) -> HttpResponse {
    match commit.as_ref() {
        Some(commit) if commit.write().await.is_err() => {
            HttpResponse::InternalServerError().finish()
        }
        _ => HttpResponse::Ok().json(body),
    }
}

/// So many bytes, for the proxies.
async fn bytes(count: web::Path<usize>) -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body("x".repeat((*count).min(LARGEST)))
}

/// A running echo server. It is killed when the value is dropped.
pub struct Echo {
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
}

impl Echo {
    /// Starts it with so many workers.
    pub fn start(workers: usize) -> Outcome<Echo> {
        Self::start_with(workers, |_| {})
    }

    /// Starts one that answers once it has written these rows to a new store.
    pub fn start_durable(workers: usize, store: &Path, rows: Rows) -> Outcome<Echo> {
        let rows = rows.to_possible_value().or_say("the rows")?;
        Self::start_with(workers, |command| {
            command.arg(store).arg(rows.get_name());
        })
    }

    fn start_with(workers: usize, more: impl FnOnce(&mut Command)) -> Outcome<Echo> {
        let port = free_port()?;
        let mut command = Command::new(machine::this_program()?);
        command.args(["echo", &port.to_string(), &workers.to_string()]);
        more(&mut command);
        let child = command.spawn().or_say("the echo server")?;
        let echo = Echo { address: local(port), child };
        listening(echo.address, "the echo server").map(|()| echo)
    }

    /// The id of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
