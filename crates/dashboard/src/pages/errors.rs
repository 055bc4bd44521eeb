//! The page of a refusal.

use crate::{
    frame::Frame,
    response::{PageResult, page_with},
    visitor::Visitor,
};
use actix_web::http::StatusCode;
use askama::Template;
use contract::Fault;
use messages::Messages;

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    fault: String,
}

pub async fn page_of(visitor: &Visitor, fault: &Fault) -> PageResult {
    let title = |say: Messages| match fault {
        Fault::NotFound(_) => say.not_found(),
        Fault::Forbidden(_) => say.not_allowed(),
        fault if fault.status() >= 500 => say.went_wrong(),
        _ => say.not_done(),
    };
    let frame = match fault {
        // While a request of a flood is refused, what it sent stays in memory.
        Fault::Busy | Fault::RateLimited { .. } => Frame::of_user(visitor, title).await,
        _ => Frame::of(visitor, title).await,
    };
    let frame = frame.unwrap_or_else(|_| Frame::open(visitor, title));
    let status = StatusCode::from_u16(fault.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    page_with(status, &ErrorPage { frame, fault: fault.to_string() })
}
