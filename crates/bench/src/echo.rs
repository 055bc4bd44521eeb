//! The yardstick of function calls: a web server that reads JSON and echoes it. The difference
//! between both is the cost of the service. The server is also the upstream of the proxies.

use crate::{
    group_commit::{GroupCommit, Rows},
    helper::Helper,
    outcome::{Explain, Outcome},
    server::local,
};
use actix_web::{App, HttpResponse, HttpServer, web};
use clap::ValueEnum;
use serde_json::Value;
use std::{path::Path, time::Duration};

/// Most bytes of an answer for the proxies.
const LARGEST: usize = 1 << 20;

/// Serves until the process is killed.
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

/// Answers `count` bytes, for the proxies.
async fn bytes(count: web::Path<usize>) -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body("x".repeat((*count).min(LARGEST)))
}

/// Starts the server in its own process.
pub fn start(workers: usize) -> Outcome<Helper> {
    Helper::start("echo", [workers.to_string().into()])
}

/// Starts a server that writes these rows to a new store before it answers.
pub fn start_durable(workers: usize, store: &Path, rows: Rows) -> Outcome<Helper> {
    let rows = rows.to_possible_value().or_say("the rows")?;
    Helper::start("echo", [workers.to_string().into(), store.into(), rows.get_name().into()])
}
