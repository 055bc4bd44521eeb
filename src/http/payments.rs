//! Receives notices of payment providers, and shows buyers whether their payment arrived.

use super::{
    Edge, functions, html,
    reply::{self, Heading},
};
use actix_http::RequestHead;
use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header::HeaderName},
    web,
};
use actors::functions::commerce::checkouts::{
    checkout_status, notices::payment_notice, verify_checkout,
};
use contract::{
    AppId, Fault,
    checkouts::{CheckoutStatus, NoticeReceived, PaymentProvider, Reference},
};
use dashboard::public::{PaymentPage, messages_of};
use payments::Signature;

const PAYSTACK: HeaderName = HeaderName::from_static("x-paystack-signature");
const STRIPE: HeaderName = HeaderName::from_static("stripe-signature");

/// A refused notice counts against the rate limit of its address, and one that is taken against the limit of
/// its app.
pub(super) async fn receive(
    req: HttpRequest,
    edge: web::Data<Edge>,
    payload: web::Payload,
) -> HttpResponse {
    match received(&req, &edge, payload).await {
        Ok(received) => Heading::uncounted(req.head(), &edge).value(StatusCode::OK, &received),
        Err(fault) => reply::refuse(req.head(), &edge, fault),
    }
}

async fn received(
    req: &HttpRequest,
    edge: &Edge,
    payload: web::Payload,
) -> Result<NoticeReceived, Fault> {
    let part = |name: &str| req.match_info().get(name).unwrap_or_default();
    let app: AppId = part("appId").parse().map_err(|_| Fault::NotFound("app"))?;
    let provider = PaymentProvider::ALL.into_iter().find(|p| p.name() == part("provider"));
    let provider = provider.ok_or(Fault::NotFound("payment provider"))?;
    let signature = signature(req.head(), provider)?;
    let (_permit, body) = functions::read(edge, req.head(), payload).await?;
    payment_notice(&edge.platform.world, app, provider, &signature, &body).await
}

fn signature(head: &RequestHead, provider: PaymentProvider) -> Result<Signature, Fault> {
    let name = match provider {
        PaymentProvider::Paystack => PAYSTACK,
        PaymentProvider::Stripe => STRIPE,
    };
    let value = head.headers.get(&name).and_then(|value| value.to_str().ok());
    value
        .map(|value| Signature(value.to_owned()))
        .ok_or_else(|| Fault::Unauthenticated(format!("the header {name} is missing or not valid")))
}

/// The page to which a provider sends a buyer whose checkout names no other page.
pub(super) async fn page(req: HttpRequest, edge: web::Data<Edge>) -> HttpResponse {
    let reference = req.match_info().get("reference").and_then(|text| text.parse().ok());
    let found = match reference {
        Some(reference) => status(&edge, reference).await,
        None => Err(Fault::NotFound("checkout")),
    };
    match found {
        Ok(status) => html::answer(&PaymentPage::new(messages_of(req.headers()), status)),
        Err(fault) => html::refuse(&req, &edge, &fault),
    }
}

async fn status(edge: &Edge, reference: Reference) -> Result<CheckoutStatus, Fault> {
    let now = edge.platform.world.ports.clock.now();
    match verify_checkout(&edge.platform.world, reference, now).await {
        // The provider does not answer: what is known is shown, and the page is loaded again.
        Err(Fault::Unavailable(_)) => checkout_status(&edge.platform.world, reference, now),
        found => found,
    }
}
