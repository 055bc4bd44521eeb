//! Paystack, as far as a checkout needs it until the buyer pays.

use crate::{
    outcome::{Explain, Outcome},
    server::local,
};
use actix_web::{App, HttpResponse, HttpServer, web};
use serde::Deserialize;
use serde_json::json;

/// Serves until the process ends.
pub fn run(port: u16) -> Outcome<()> {
    let app = || App::new().route("/transaction/initialize", web::post().to(initialize));
    let server = HttpServer::new(app).workers(1).bind(local(port)).or_say("the port")?;
    actix_rt::System::new().block_on(server.run()).or_say("the payment provider")
}

#[derive(Deserialize)]
struct Order {
    reference: String,
}

async fn initialize(order: web::Json<Order>) -> HttpResponse {
    let Order { reference } = order.into_inner();
    HttpResponse::Ok().json(json!({
        "status": true,
        "message": "Authorization URL created",
        "data": {
            "authorization_url": format!("https://checkout.example.com/{reference}"),
            "access_code": "0peioxfhpn",
            "reference": reference,
        },
    }))
}
