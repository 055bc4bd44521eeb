//! Paystack, as far as a checkout needs it until the buyer pays.

use crate::{
    outcome::{Explain, Outcome},
    server::local,
};
use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Value, json};

/// Serves until the process ends.
pub fn run(port: u16) -> Outcome<()> {
    let app = || App::new().route("/transaction/initialize", web::post().to(initialize));
    let server = HttpServer::new(app).workers(1).bind(local(port)).or_say("the port")?;
    actix_rt::System::new().block_on(server.run()).or_say("the payment provider")
}

async fn initialize(order: web::Json<Value>) -> HttpResponse {
    let page =
        format!("https://checkout.example.com/{}", order["reference"].as_str().unwrap_or(""));
    HttpResponse::Ok().json(json!({
        "status": true,
        "message": "Authorization URL created",
        "data": {
            "authorization_url": page, "access_code": "0peioxfhpn", "reference": order["reference"],
        },
    }))
}
