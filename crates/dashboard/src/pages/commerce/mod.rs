//! What an app sells: its checkouts and its subscriptions. [`channels`] has the channels of shops.

mod channels;

use super::{ListQuery, apps::AppTab};
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    response::{Note, PageResult, Refused, done, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Limit,
    apps::App,
    checkouts::{
        Checkout, CheckoutFlow, CheckoutState, CreateCheckout, Customer, GetCheckout, GetCheckouts,
        GetSubscriptions, GetUnsettledCheckouts, Reference, SettleCheckout, Subscription,
    },
    credentials::{Credential, CredentialKind, GetCredentials},
    metadata::Metadata,
};
use messages::Messages;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/checkouts", web::get().to(list))
        .route("/apps/{id}/checkouts", web::post().to(open))
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
    /// The credential with which the app takes payments.
    provider: Option<Credential>,
    form: Form,
}

impl CheckoutsPage {
    /// Whether a checkout moves real money.
    fn is_live(&self) -> bool {
        self.provider.as_ref().is_some_and(|provider| provider.facts.live == Some(true))
    }

    /// The states: the name on the wire, and in words.
    fn states(&self) -> [(String, String); 11] {
        STATES.map(|state| (super::wire(&state), super::name(&self.frame.messages, &state)))
    }
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<CheckoutsQuery>,
) -> PageResult {
    list_with(&visitor, super::id(path, "app")?, &query, Form::default()).await
}

/// Shows the list with the form for a checkout that was refused, or an empty one.
async fn list_with(
    visitor: &Visitor,
    app_id: AppId,
    query: &CheckoutsQuery,
    form: Form,
) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/checkouts").await?;
    let search = Form::search([("state", &query.state), (CURSOR, &query.cursor)]);
    let list = ListPart::read(visitor, &format!("/apps/{app_id}/checkouts"), search, |form| {
        let (state, cursor) = (form.get("state")?, form.get(CURSOR)?);
        Ok(GetCheckouts { app_id, state, limit: Limit::default(), cursor })
    })
    .await?;
    let provider = provider(visitor, app_id).await?;
    let email = visitor.user().await?.email.to_string();
    let form = form.beside(Form::filled([("amount", "100".into()), ("email", email)]));
    let refused = if form.fault().is_some() { &form } else { &list.form }.clone();
    form_page(&refused, &CheckoutsPage { frame, tab, list, provider, form })
}

/// The credential with which an app takes payments: of several, the one that was stored last.
async fn provider(visitor: &Visitor, app_id: AppId) -> Result<Option<Credential>, Refused> {
    let all = GetCredentials { app_id, kind: None, limit: Limit::MOST, cursor: None };
    let takes_payments = |credential: &Credential| {
        matches!(credential.kind, CredentialKind::Paystack | CredentialKind::Stripe)
    };
    let all = visitor.read(&all).await?.items.into_iter().filter(takes_payments);
    Ok(all.max_by_key(|credential| credential.updated_at))
}

/// Opens a checkout, as the app does it for a buyer.
async fn open(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let params = |form: &Form| {
        Ok(CreateCheckout {
            flow: CheckoutFlow::Direct,
            app_id,
            store_id: None,
            amount: Some(form.get("amount")?),
            currency: form.get("currency")?,
            line_items: None,
            customer: Customer { email: form.get("email")?, name: None, phone: None },
            payment_plan_code: None,
            callback_url: None,
            shipping_address: None,
            shipping_method: None,
            metadata: Metadata::default(),
        })
    };
    match visitor.send(&form, params).await {
        Ok(opened) => {
            let note = Note::plain(visitor.say().checkout_is_open());
            done(&format!("/checkouts/{}", opened.reference), note)
        }
        Err(fault) => {
            let form = form.refused_as(fault, &[("customer.email", "email")]);
            list_with(&visitor, app_id, &CheckoutsQuery::default(), form).await
        }
    }
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
    let (frame, tab) = AppTab::open(&visitor, app_id, "/checkouts").await?;
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
    fn price_from(&self) -> String {
        let say = self.frame.messages;
        match self.checkout.flow {
            CheckoutFlow::Commerce => say.the_shop(),
            CheckoutFlow::Direct if self.checkout.payment_plan_code.is_some() => say.the_plan(),
            CheckoutFlow::Direct => say.the_caller(),
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
    let title = checkout.reference.to_string();
    let (frame, app) = Frame::in_app(visitor, |_| title, checkout.app_id).await?;
    let frame = frame.below_page(Messages::checkouts, format!("/apps/{}/checkouts", app.id));
    form_page(&form.clone(), &CheckoutPage { frame, app, checkout, form })
}

async fn settle(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let reference: Reference = super::id(path, "checkout")?;
    let params = |form: &Form| Ok(SettleCheckout { reference, by_hand: form.get("byHand")? });
    match visitor.send(&form, params).await {
        Ok(_) => {
            done(&format!("/checkouts/{reference}"), visitor.say().checkout_is_being_settled())
        }
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
