//! A store that reviews every version for ever. Counts the looks at them.

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
        let version = move |id: web::Path<String>| {
            looked.fetch_add(1, Relaxed);
            let attributes = json!({"appVersionState": super::publications::WORDS, "releaseType": "AFTER_APPROVAL"});
            let version = json!({"type": "appStoreVersions", "id": *id, "attributes": attributes});
            async move { HttpResponse::Ok().json(json!({"data": version})) }
        };
        let count = move || {
            let looks = told.load(Relaxed);
            async move { HttpResponse::Ok().json(looks) }
        };
        App::new()
            .route("/looks", web::get().to(count))
            .route("/v1/appStoreVersions/{id}", web::get().to(version))
    };
    let server = HttpServer::new(app).workers(1).bind(local(port)).or_say("the port")?;
    actix_rt::System::new().block_on(server.run()).or_say("the store")
}
