//! A host of repositories where nothing changes. Counts the looks at its runs.

use crate::{
    outcome::{Explain, Outcome},
    server::local,
};
use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Serves until the process ends.
pub fn run(port: u16) -> Outcome<()> {
    let looks = Arc::new(AtomicU64::new(0));
    let app = move || {
        let (looked, told) = (looks.clone(), looks.clone());
        let token = || async { HttpResponse::Created().json(json!({"token": "a-token"})) };
        let installation = || async { HttpResponse::Ok().json(json!({"id": 1})) };
        let run = move || {
            looked.fetch_add(1, Relaxed);
            async { HttpResponse::NotModified().finish() }
        };
        let count = move || {
            let looks = told.load(Relaxed);
            async move { HttpResponse::Ok().json(looks) }
        };
        App::new()
            .route("/looks", web::get().to(count))
            .route("/repos/acme/app/installation", web::get().to(installation))
            .route("/app/installations/1/access_tokens", web::post().to(token))
            .route("/repos/acme/app/actions/runs/{run}", web::get().to(run))
    };
    let server = HttpServer::new(app).workers(1).bind(local(port)).or_say("the port")?;
    actix_rt::System::new().block_on(server.run()).or_say("the host of repositories")
}
