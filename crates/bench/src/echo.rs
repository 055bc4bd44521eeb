//! The yardstick of function calls: a web server that reads JSON and answers it. What is left of
//! it when the service takes its place is what the service costs. It is also what the proxies pass
//! requests on to.

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

/// Starts one in a process of its own, with so many workers.
pub fn start(workers: usize) -> Outcome<Helper> {
    Helper::start("echo", [workers.to_string().into()])
}

/// Starts one that answers once it has written these rows to a new store.
pub fn start_durable(workers: usize, store: &Path, rows: Rows) -> Outcome<Helper> {
    let rows = rows.to_possible_value().or_say("the rows")?;
    Helper::start("echo", [workers.to_string().into(), store.into(), rows.get_name().into()])
}
