//! What an app sells: its checkouts and its subscriptions. [`channels`] has the channels of shops.

mod channels;

use super::{ListQuery, apps::AppTab};
use crate::{
    form::Form,
    list::{CURSOR, ListPart},
    response::{Frame, PageResult, done, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Limit,
    apps::{App, GetApp},
    checkouts::{
        Checkout, CheckoutFlow, CheckoutState, GetCheckout, GetCheckouts, GetSubscriptions,
        GetUnsettledCheckouts, Reference, SettleCheckout, Subscription,
    },
};
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/checkouts", web::get().to(list))
        .route("/apps/{id}/subscriptions", web::get().to(subscriptions))
        .route("/checkouts/{reference}", web::get().to(show))
        .route("/checkouts/{reference}/settle", web::post().to(settle))
        .route("/operations/checkouts", web::get().to(unsettled));
    channels::configure(app);
}

/// The states by which a person may filter checkouts.
const STATES: [CheckoutState; 11] = [
    CheckoutState::Created,
    CheckoutState::OrderBuilding,
    CheckoutState::Initialized,
    CheckoutState::AwaitingPayment,
    CheckoutState::Paid,
    CheckoutState::Settling,
    CheckoutState::Settled,
    CheckoutState::Failed,
    CheckoutState::Abandoned,
    CheckoutState::Expired,
    CheckoutState::AmountMismatch,
];

/// The checkouts that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CheckoutsQuery {
    state: String,
    cursor: String,
}

/// The subscriptions that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SubscriptionsQuery {
    email: String,
    cursor: String,
}

#[derive(Template)]
#[template(path = "checkouts.html")]
struct CheckoutsPage {
    frame: Frame,
    tab: AppTab,
    list: ListPart<Checkout>,
}

impl CheckoutsPage {
    /// The states: the name on the wire, and in words.
    fn states(&self) -> [(String, String); 11] {
        STATES.map(|state| (super::wire(&state), super::name(&state)))
    }
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<CheckoutsQuery>,
) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let (frame, tab) = AppTab::open(&visitor, app_id, "/checkouts").await?;
    let search = Form::search([("state", &query.state), (CURSOR, &query.cursor)]);
    let list = ListPart::read(&visitor, &format!("/apps/{app_id}/checkouts"), search, |form| {
        let (state, cursor) = (form.get("state")?, form.get(CURSOR)?);
        Ok(GetCheckouts { app_id, state, limit: Limit::default(), cursor })
    })
    .await?;
    form_page(&list.form.clone(), &CheckoutsPage { frame, tab, list })
}

#[derive(Template)]
#[template(path = "subscriptions.html")]
struct SubscriptionsPage {
    frame: Frame,
    tab: AppTab,
    list: ListPart<Subscription>,
}

async fn subscriptions(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<SubscriptionsQuery>,
) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let (frame, tab) = AppTab::open(&visitor, app_id, "/subscriptions").await?;
    let search = Form::search([("email", &query.email), (CURSOR, &query.cursor)]);
    let list = ListPart::read(&visitor, &format!("/apps/{app_id}/subscriptions"), search, |form| {
        let (email, cursor) = (form.get("email")?, form.get(CURSOR)?);
        Ok(GetSubscriptions { app_id, email, limit: Limit::default(), cursor })
    })
    .await?;
    form_page(&list.form.clone(), &SubscriptionsPage { frame, tab, list })
}

#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage {
    frame: Frame,
    app: App,
    checkout: Checkout,
    form: Form,
}

impl CheckoutPage {
    /// Whether a person may try to settle it.
    fn may_be_settled(&self) -> bool {
        use CheckoutState::{AmountMismatch, Paid, Settling};
        matches!(self.checkout.state, Paid | Settling | AmountMismatch)
    }

    /// Who names the sum that is to be paid.
    fn price_from(&self) -> &'static str {
        match self.checkout.flow {
            CheckoutFlow::Commerce => "the shop",
            CheckoutFlow::Direct if self.checkout.payment_plan_code.is_some() => "the plan",
            CheckoutFlow::Direct => "the caller",
        }
    }

    /// What the provider gave back, in the currency of the checkout.
    fn refunded(&self) -> Option<String> {
        let amount = contract::money::Amount::new(self.checkout.refunded_amount)?;
        let currency = self.checkout.paid.as_ref()?.currency.clone();
        Some(contract::money::Money { amount, currency }.to_string())
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with(&visitor, super::id(path, "checkout")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, reference: Reference, form: Form) -> PageResult {
    let checkout = visitor.read(&GetCheckout { reference }).await?;
    let app = visitor.read(&GetApp { app_id: checkout.app_id }).await?;
    let frame = Frame::of(visitor, &checkout.reference.to_string()).await?;
    let at = format!("/apps/{}", app.id);
    let frame = frame.below(&app.name, &at).below("Checkouts", format!("{at}/checkouts"));
    form_page(&form.clone(), &CheckoutPage { frame, app, checkout, form })
}

async fn settle(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let reference: Reference = super::id(path, "checkout")?;
    let params = |form: &Form| Ok(SettleCheckout { reference, by_hand: form.get("byHand")? });
    match visitor.send(&form, params).await {
        Ok(_) => done(&format!("/checkouts/{reference}"), "The checkout is being settled."),
        Err(fault) => show_with(&visitor, reference, form.refused(fault)).await,
    }
}

#[derive(Template)]
#[template(path = "operations_checkouts.html")]
struct UnsettledCheckoutsPage {
    frame: Frame,
    list: ListPart<Checkout>,
}

async fn unsettled(visitor: Visitor, query: web::Query<ListQuery>) -> PageResult {
    let list = ListPart::read(&visitor, "/operations/checkouts", query.form(), |form| {
        Ok(GetUnsettledCheckouts { limit: Limit::default(), cursor: form.get(CURSOR)? })
    })
    .await?;
    let frame = super::operations::tab(&visitor, "/checkouts").await?;
    page(&UnsettledCheckoutsPage { frame, list })
}
