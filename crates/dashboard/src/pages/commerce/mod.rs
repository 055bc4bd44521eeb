//! What an app sells: its checkouts and its subscriptions. [`channels`] has the channels of shops.

mod channels;

use super::apps::Tab;
use crate::{
    answer::{Answer, Frame, Refused, done, form_page, page},
    form::{Form, search},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Function, Page,
    apps::{App, GetApp},
    checkouts::{
        Checkout, CheckoutFlow, CheckoutState, GetCheckout, GetCheckouts, GetSubscriptions,
        GetUnsettledCheckouts, Reference, SettleCheckout, Subscription,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/checkouts", web::get().to(list))
        .route("/apps/{id}/subscriptions", web::get().to(subscriptions))
        .route("/checkouts/{reference}", web::get().to(show))
        .route("/checkouts/{reference}/settle", web::post().to(settle))
        .route("/operations/checkouts", web::get().to(unsettled));
    channels::configure(app);
}

/// The states by which a person may look for checkouts.
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

/// What a person looks for. Each list uses its own fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    state: String,
    email: String,
    cursor: String,
}

impl Wanted {
    /// The parameters of a list: what is not empty.
    fn params(&self) -> Map<String, Value> {
        let Wanted { state, email, cursor } = self;
        search([("state", state), ("email", email), ("cursor", cursor)])
    }

    /// Searches a list of an app.
    async fn find<F: Function>(
        &self,
        visitor: &Visitor,
        app_id: AppId,
    ) -> Result<(Option<F::Reply>, Form), Refused> {
        let mut params = self.params();
        params.insert("appId".into(), json!(app_id));
        let form = [("state", self.state.clone()), ("email", self.email.clone())];
        visitor.search::<F>(params, Form::filled(form)).await
    }
}

#[derive(Template)]
#[template(path = "checkouts.html")]
struct List {
    frame: Frame,
    tab: Tab,
    /// `None` if the search was refused.
    checkouts: Option<Page<Checkout>>,
    form: Form,
}

impl List {
    /// The states: the name on the wire, and in words.
    fn states(&self) -> [(String, String); 11] {
        STATES.map(|state| (super::wire(&state), super::name(&state)))
    }
}

async fn list(visitor: Visitor, path: web::Path<String>, wanted: web::Query<Wanted>) -> Answer {
    let app_id = super::id(path, "app")?;
    let (frame, tab) = Tab::open(&visitor, app_id, "/checkouts").await?;
    let (checkouts, form) = wanted.find::<GetCheckouts>(&visitor, app_id).await?;
    form_page(&form.clone(), &List { frame, tab, checkouts, form })
}

#[derive(Template)]
#[template(path = "subscriptions.html")]
struct Subscriptions {
    frame: Frame,
    tab: Tab,
    /// `None` if the search was refused.
    subscriptions: Option<Page<Subscription>>,
    form: Form,
}

async fn subscriptions(
    visitor: Visitor,
    path: web::Path<String>,
    wanted: web::Query<Wanted>,
) -> Answer {
    let app_id = super::id(path, "app")?;
    let (frame, tab) = Tab::open(&visitor, app_id, "/subscriptions").await?;
    let (subscriptions, form) = wanted.find::<GetSubscriptions>(&visitor, app_id).await?;
    form_page(&form.clone(), &Subscriptions { frame, tab, subscriptions, form })
}

#[derive(Template)]
#[template(path = "checkout.html")]
struct Show {
    frame: Frame,
    app: App,
    checkout: Checkout,
    form: Form,
}

impl Show {
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

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, super::id(path, "checkout")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, reference: Reference, form: Form) -> Answer {
    let checkout = visitor.read(&GetCheckout { reference }).await?;
    let app = visitor.read(&GetApp { app_id: checkout.app_id }).await?;
    let frame = Frame::of(visitor, &checkout.reference.to_string()).await?;
    let at = format!("/apps/{}", app.id);
    let frame = frame.below(&app.name, &at).below("Checkouts", format!("{at}/checkouts"));
    form_page(&form.clone(), &Show { frame, app, checkout, form })
}

async fn settle(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let reference: Reference = super::id(path, "checkout")?;
    let mut params = form.params(&["byHand"]);
    params.insert("reference".into(), json!(reference));
    match visitor.send::<SettleCheckout>(&Value::Object(params), form.key()).await {
        Ok(_) => done(&format!("/checkouts/{reference}"), "The checkout is being settled."),
        Err(fault) => show_with(&visitor, reference, form.refused(fault)).await,
    }
}

#[derive(Template)]
#[template(path = "operations_checkouts.html")]
struct Unsettled {
    frame: Frame,
    checkouts: Page<Checkout>,
}

async fn unsettled(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    let params = Value::Object(wanted.params());
    let checkouts = visitor.send::<GetUnsettledCheckouts>(&params, None).await?;
    let frame = super::operations::tab(&visitor, "/checkouts").await?;
    page(&Unsettled { frame, checkouts })
}
