//! A receiver of webhooks that accepts everything. Counts the requests.

use crate::{
    outcome::{Explain, Outcome},
    server::local,
};
use actix_web::{App, HttpResponse, HttpServer, web};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Serves until the process ends.
pub fn run(port: u16) -> Outcome<()> {
    let received = Arc::new(AtomicU64::new(0));
    let app = move || {
        let (counted, told) = (received.clone(), received.clone());
        let receive = move |_: web::Bytes| {
            counted.fetch_add(1, Relaxed);
            async { HttpResponse::NoContent().finish() }
        };
        let count = move || {
            let received = told.load(Relaxed);
            async move { HttpResponse::Ok().json(received) }
        };
        App::new()
            .route("/received", web::get().to(count))
            .route("/hooks/{webhook}", web::post().to(receive))
    };
    let server = HttpServer::new(app).workers(1).bind(local(port)).or_say("the port")?;
    actix_rt::System::new().block_on(server.run()).or_say("the receiver")
}
