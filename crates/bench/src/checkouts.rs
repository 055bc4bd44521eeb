//! Checkouts: gates that ask about payments, and pages that are opened.

use crate::{
    Pace,
    builds::{now, own, rate},
    calls::Function,
    client::Client,
    echo,
    helper::Helper,
    machine,
    outcome::{Explain, Outcome},
    seed,
    server::Server,
    table::Row,
};
use actors::{
    kinds::commerce::{
        checkouts::{self, Checkouts, Ordered, Price},
        subscriptions::{self, Subscriptions},
    },
    ports::random::Random,
};
use contract::{
    AppId, CheckoutId, SubscriptionId,
    checkouts::{CheckoutState, Customer, PaymentProvider, Reference},
    metadata::Metadata,
    money::{Amount, Money},
};
use data_encoding::BASE64;
use payments::{Line, Payment, PaymentPage, PaymentStatus, Subscription, SubscriptionStatus};
use serde_json::json;
use std::time::Duration;
use store::Change;

pub const METHOD: &str = "`svc_subscriptions_check` and `svc_checkout_verify` are asked as the \
    functions of `calls` are, about a subscription and a settled payment that were put into the \
    store. Pages are opened by sixteen callers at once, with a provider in another process that \
    answers at once; each writes at least twice, durably. The yardstick is sixteen clients that send \
    the same order to that provider, and write nothing.";

const EMAIL: &str = "ada@example.com";
const CALLERS: usize = 16;
const AIM: f64 = 0.8;
const BINDS: &str = "processor time; see `calls`.";
const AIM_OF_OPENED: f64 = 0.25;
const BINDS_OPENED: &str = "two durable changes for each checkout.";

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let mut rows = asked(pace)?;
    rows.push(opened(pace)?);
    Ok(rows)
}

/// Gates that ask about what is settled.
fn asked(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let store = seed::open(home.path())?;
    let reference = actix_rt::System::new().block_on(async {
        let app = seed::release(&store).await?;
        settled(&store, app).await.map(|reference| (app, reference))
    });
    let (app, reference) = reference?;
    store.close();
    drop(store);

    let workers = pace.http_workers();
    let server = Server::start(home.path(), workers)?;
    let echo = echo::start(workers)?;
    let check = json!({"email": EMAIL, "appId": app});
    let check = Function::new(&server.client, "svc_subscriptions_check", &[], &check)?;
    let verify = json!({"reference": reference});
    let verify = Function::new(&server.client, "svc_checkout_verify", &[], &verify)?;
    let mut rows = Vec::new();
    for function in [check, verify] {
        let measured = function.measure(home.path(), &server, &echo, pace)?;
        rows.extend(measured.map(|row| row.at_least(AIM, BINDS)).into_iter().take(1));
    }
    Ok(rows)
}

/// Writes a settled checkout and an active subscription to the store.
async fn settled(store: &store::Store, app_id: AppId) -> Outcome<Reference> {
    let random = Random::default();
    let (id, subscription): (CheckoutId, SubscriptionId) = (random.id(now()), random.id(now()));
    let checkout = settled_checkout(app_id, Reference(id), subscription)?;
    let change = seed::put::<Checkouts>(Change::new(), id, checkout);
    let active = active_subscription(app_id)?;
    seed::commit(store, seed::put::<Subscriptions>(change, subscription, active)).await?;
    Ok(Reference(id))
}

/// A checkout whose payment arrived and was settled.
fn settled_checkout(
    app_id: AppId,
    reference: Reference,
    subscription: SubscriptionId,
) -> Outcome<checkouts::State> {
    let amount = Amount::new(1250).or_say("the amount")?;
    let total = Money { amount, currency: seed::text("EUR")? };
    let lines = vec![Line { name: "Tea".into(), unit: amount, quantity: 1 }];
    Ok(checkouts::State {
        app_id,
        provider: PaymentProvider::Paystack,
        ordered: Ordered {
            price: Price::Lines { lines: lines.clone(), currency: total.currency.clone() },
            store_id: None,
            customer: Customer { email: seed::text(EMAIL)?, name: None, phone: None },
            return_to: seed::text("https://shop.example.com/thanks")?,
            metadata: Metadata::default(),
        },
        request: None,
        state: CheckoutState::Settled,
        total: Some(total.clone()),
        lines,
        building: Default::default(),
        order: None,
        order_paid: false,
        opened: Some(PaymentPage {
            session: None,
            url: Some(seed::text("https://checkout.example.com/1")?),
            access_code: None,
            expires_at: None,
        }),
        payment: Some(paid(reference, total)),
        looked_at: Some(now()),
        looking: false,
        attempt: None,
        by_hand: None,
        look_owed: false,
        subscription: Some(subscription),
        problem: None,
        attempts: 0,
        begun_at: now(),
        due: None,
        alarmed: false,
        alarming: false,
        deleting: false,
        settled_at: Some(now()),
        created_at: now(),
        expires_at: now(),
    })
}

fn paid(reference: Reference, amount: Money) -> Payment {
    Payment {
        reference: Some(reference.to_string()),
        status: PaymentStatus::Paid,
        amount: Some(amount),
        paid_at: Some(now()),
        id: Some("4099260516".into()),
        customer: Some("CUS_1".into()),
        plan: None,
        subscription: None,
        refunded: 0,
        dispute: None,
    }
}

fn active_subscription(app_id: AppId) -> Outcome<subscriptions::State> {
    let seen = Subscription {
        id: "SUB_1".into(),
        plan: seed::text("PLN_1")?,
        email: seed::text(EMAIL)?,
        status: SubscriptionStatus::Active,
        period_end: Some(now() + Duration::from_secs(30 * 24 * 3600)),
        said: "active".into(),
        renewal_failure: None,
    };
    Ok(subscriptions::State {
        app_id,
        provider: PaymentProvider::Paystack,
        provider_id: seen.id.clone(),
        seen: Some(seen),
        checked_at: Some(now()),
        problem: None,
        attempts: 0,
        looking: false,
        look_owed: false,
        told: Some(seed::text(EMAIL)?),
        untold: false,
        due: None,
        created_at: now(),
    })
}

/// Pages that are opened.
fn opened(pace: Pace) -> Outcome<Row> {
    let home = machine::scratch()?;
    let provider = Helper::start("payment-provider", [])?;
    let address = format!("http://{}", provider.address);
    let settings =
        [("SVC_PAYSTACK_URL", address.as_str()), ("SVC_DOCKER_HOST", "unix:///nonexistent")];
    let server = Server::start_with(home.path(), pace.http_workers(), &settings)?;
    let owned = own(&server)?;
    let key = BASE64.encode(b"sk_test_0123456789abcdef0123456789abcdef01234567");
    let key = json!({"appId": owned.app, "kind": "paystack", "name": "main", "data": key});
    server.client.call(Some(&owned.session), "svc_setCredential", &key)?;
    let order = json!({
        "flow": "direct", "appId": owned.app, "amount": 1250, "currency": "NGN",
        "customer": {"email": EMAIL},
    });
    let ours = rate(CALLERS, pace.seconds, |_, _| {
        server.client.call(None, "svc_checkout_create", &order).map(drop)
    })?;
    let bare = Client::to(provider.address);
    let initialize = |caller: usize, round: u64| {
        let order = json!({
            "email": EMAIL, "amount": 1250, "currency": "NGN", "reference": format!("{caller}-{round}"),
        });
        bare.post(None, "/transaction/initialize", &order).map(drop)
    };
    let direct = rate(CALLERS, pace.seconds, initialize)?;
    let text = |rate: f64, who: &str| (rate, format!("{rate:.0}/s{who}"));
    Ok(Row::new("checkouts opened", text(ours, ""), text(direct, ", the provider alone"))
        .at_least(AIM_OF_OPENED, BINDS_OPENED))
}
