//! A container engine that only lists given containers, all running. It answers the requests of the
//! service for instances at rest, so a machine can measure thousands of instances that it could not
//! run.

use crate::{
    client::Client,
    helper::Helper,
    outcome::{Explain, Outcome},
    server::local,
};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use futures_util::stream;
use serde_json::{Value, json};
use std::{
    io,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// The list of containers, and how often it was requested.
struct Said {
    containers: String,
    rounds: AtomicU64,
}

/// Serves the listing part of Docker Engine's API 1.41 until the process is killed. The file has
/// the answer to `/containers/json`.
pub fn run(port: u16, containers: &Path) -> Outcome<()> {
    let containers = std::fs::read_to_string(containers).or_say("the containers")?;
    let said = web::Data::new(Said { containers, rounds: AtomicU64::new(0) });
    let app = move || App::new().app_data(said.clone()).default_service(web::to(answer));
    let server = HttpServer::new(app).workers(1).bind(local(port)).or_say("the engine")?.run();
    actix_web::rt::System::new().block_on(server).or_say("the engine")
}

async fn answer(request: HttpRequest, said: web::Data<Said>) -> HttpResponse {
    let path = request.path();
    let asked = path.split_once("/v1.").and_then(|(_, rest)| rest.split_once('/'));
    match asked.map_or(path.trim_start_matches('/'), |(_, rest)| rest) {
        "version" => HttpResponse::Ok().json(json!({"Version": "0", "ApiVersion": "1.41"})),
        "info" => HttpResponse::Ok().json(json!({"SystemTime": "2026-01-31T12:00:00Z"})),
        "containers/json" => {
            said.rounds.fetch_add(1, Ordering::Relaxed);
            let json = said.containers.clone();
            HttpResponse::Ok().content_type("application/json").body(json)
        }
        "networks" => HttpResponse::Ok().json(json!([])),
        "volumes" => HttpResponse::Ok().json(json!({"Volumes": []})),
        "events" => {
            HttpResponse::Ok().streaming(stream::pending::<Result<web::Bytes, io::Error>>())
        }
        "rounds" => HttpResponse::Ok().json(json!({"rounds": said.rounds.load(Ordering::Relaxed)})),
        _ => HttpResponse::NotFound().json(json!({"message": "this engine only lists"})),
    }
}

pub struct ListingEngine(Helper);

impl ListingEngine {
    /// Starts an engine with these containers, in the form of `/containers/json`.
    pub fn start(scratch: &Path, containers: &[Value]) -> Outcome<ListingEngine> {
        let file = scratch.join("containers.json");
        std::fs::write(&file, Value::from(containers).to_string()).or_say("the containers")?;
        Helper::start("engine", [file.into()]).map(ListingEngine)
    }

    /// The value of `SVC_DOCKER_HOST` for this engine.
    pub fn host(&self) -> String {
        format!("tcp://{}", self.0.address)
    }

    /// How often the containers were listed.
    pub fn rounds(&self) -> Outcome<u64> {
        let client = Client::to(self.0.address);
        let answer = client.get("/rounds").or_say("the engine's answer")?;
        answer.body.pointer("/rounds").and_then(Value::as_u64).or_say("the engine's rounds")
    }
}
