//! From the parameters of a checkout to its price.

use super::Price;
use crate::kinds::{
    commerce::commerce_channels,
    delivery::credentials::{self, Credentials},
    world::World,
};
use contract::{
    Fault, FieldProblem, Name,
    checkouts::{CheckoutFlow, CreateCheckout, LineItem, PaymentProvider},
    credentials::Credential,
    money::{Amount, Money},
    text::Currency,
};
use payments::{Line, NotCharged, ProviderKey, RemoteError};
use std::time::Duration;

const MOST_LINES: usize = 100;
const MOST_OF_A_LINE: u32 = 10_000;
/// How long the provider may take to say the currency of an account.
const CURRENCY_WITHIN: Duration = Duration::from_secs(15);

/// The account that gets the money.
pub(crate) struct ProviderAccount {
    pub provider: PaymentProvider,
    pub key: ProviderKey,
    pub credential: Credential,
}

/// The price of a checkout. The provider is asked only for a currency that nothing else names.
pub(crate) async fn price(
    world: &World,
    account: &ProviderAccount,
    p: &CreateCheckout,
) -> Result<Price, Fault> {
    let given = |field: &str, is_given: bool, why: &str| is_given.then(|| wrong(field, why));
    let mut problems = Vec::new();
    if p.flow == CheckoutFlow::Commerce {
        let why = "is not for the flow commerce: the shop says what is to be paid";
        problems.extend(given("amount", p.amount.is_some(), why));
        problems.extend(given("currency", p.currency.is_some(), why));
        let why = "is required for the flow commerce";
        problems.extend(given("storeId", p.store_id.is_none(), why));
        let lines = lines(p.line_items.as_deref().unwrap_or_default(), ordered_line, &mut problems);
        let (Some(store), true) = (&p.store_id, problems.is_empty()) else {
            return Err(Fault::Invalid(problems));
        };
        return Ok(Price::Shop {
            channel: commerce_channels::of_store(world, p.app_id, store)?,
            lines,
            shipping_address: p.shipping_address.clone().map(Box::new),
            shipping_method: p.shipping_method.clone(),
            plan: p.payment_plan_code.clone(),
        });
    }
    let why = "is only for the flow commerce";
    problems.extend(given("shippingAddress", p.shipping_address.is_some(), why));
    problems.extend(given("shippingMethod", p.shipping_method.is_some(), why));
    let why = "is not a currency of ISO 4217 that people pay with";
    let is_unknown = |currency: &Currency| currency.decimals().is_none();
    problems.extend(given("currency", p.currency.as_ref().is_some_and(is_unknown), why));
    let lines = direct_lines(p, &mut problems);
    let sum = lines.iter().try_fold(0_u64, |sum, line| {
        sum.checked_add(line.unit.minor().checked_mul(u64::from(line.quantity))?)
    });
    if sum.is_none_or(|sum| sum > Amount::MOST) {
        problems.push(wrong("lineItems", format!("the sum is more than {}", Amount::MOST)));
    }
    if !problems.is_empty() {
        return Err(Fault::Invalid(problems));
    }
    let sum = sum.and_then(Amount::new);
    if let Some(code) = p.payment_plan_code.clone() {
        return Ok(Price::Plan { code, expected: sum, currency: p.currency.clone() });
    }
    let currency = match &p.currency {
        Some(currency) => currency.clone(),
        None => currency(world, account).await?,
    };
    if let Some(amount) = sum {
        let sum = Money { amount, currency: currency.clone() };
        can_be_charged(account.provider, &sum, p.amount.is_none().then_some(&lines))?;
    }
    Ok(Price::Lines { lines, currency })
}

fn wrong(field: &str, problem: impl Into<String>) -> FieldProblem {
    FieldProblem { field: field.to_owned(), problem: problem.into() }
}

/// The currency of a price that names none.
async fn currency(world: &World, account: &ProviderAccount) -> Result<Currency, Fault> {
    let ProviderAccount { provider, key, credential } = account;
    let known = credential.currency.as_ref().or(credential.account_currency.as_ref());
    if let Some(currency) = known {
        return Ok(currency.clone());
    }
    let Some(client) = world.ports.payments.get(provider) else { return Err(Fault::Internal) };
    let asked = world.ports.clock.limit(CURRENCY_WITHIN, client.currencies(key)).await;
    let currencies = match asked {
        Some(Ok(currencies)) => currencies,
        Some(Err(RemoteError::Refused(why))) => return Err(Fault::Refused(why)),
        Some(Err(RemoteError::Busy { why, .. } | RemoteError::Unclear(why))) => {
            tracing::warn!(app = %credential.app_id, why, "the currency of an account is not known");
            return Err(Fault::Unavailable("the payment provider"));
        }
        None => return Err(Fault::Unavailable("the payment provider")),
    };
    let found = match currencies.as_slice() {
        [] => "the payment provider names none for the account".to_owned(),
        [currency] => {
            keep(world, credential, currency).await;
            return Ok(currency.clone());
        }
        several => {
            let several: Vec<_> = several.iter().map(Currency::to_string).collect();
            format!("the account has {}", several.join(", "))
        }
    };
    Err(Fault::invalid(
        "currency",
        format!(
            "is required: {found}. Give it here, or set the currency of the credential with \
             svc_updateCredential"
        ),
    ))
}

/// Keeps what the provider told, so that it is asked once for each secret.
async fn keep(world: &World, credential: &Credential, currency: &Currency) {
    let told = credentials::Command::AccountCurrency {
        stored_at: credential.updated_at,
        currency: currency.clone(),
    };
    if let Err(fault) = world.to::<Credentials>(credential.id).ask_if_there(told).await {
        tracing::warn!(id = %credential.id, %fault, "the currency of an account was not kept");
    }
}

/// Refuses what the provider does not count. Of lines, Stripe gets each, and Paystack the sum.
fn can_be_charged(
    provider: PaymentProvider,
    sum: &Money,
    lines: Option<&Vec<Line>>,
) -> Result<(), Fault> {
    let check = |amount, field: String| {
        let problem = payments::check_amount(provider, amount, &sum.currency).err()?;
        Some(match problem {
            NotCharged::Currency(why) => wrong("currency", why),
            NotCharged::Amount(why) => wrong(&field, why),
        })
    };
    let mut problems: Vec<_> = match (provider, lines) {
        (_, None) => check(sum.amount, "amount".into()).into_iter().collect(),
        (PaymentProvider::Paystack, Some(_)) => {
            check(sum.amount, "lineItems".into()).into_iter().collect()
        }
        (PaymentProvider::Stripe, Some(lines)) => {
            let at = |at| format!("lineItems[{at}].unitAmount");
            lines.iter().enumerate().filter_map(|(n, line)| check(line.unit, at(n))).collect()
        }
    };
    problems.dedup();
    if problems.is_empty() { Ok(()) } else { Err(Fault::Invalid(problems)) }
}

/// The price that the caller says. None is needed with a plan.
fn direct_lines(p: &CreateCheckout, problems: &mut Vec<FieldProblem>) -> Vec<Line> {
    match (p.amount, &p.line_items) {
        (Some(unit), None) => vec![Line { name: "Payment".into(), unit, quantity: 1 }],
        (None, Some(items)) => lines(items, priced_line, problems),
        (None, None) => {
            if p.payment_plan_code.is_none() {
                let why = "is required for the flow direct, or lineItems, or paymentPlanCode";
                problems.push(wrong("amount", why));
            }
            Vec::new()
        }
        (Some(_), Some(_)) => {
            let why = "cannot be given with amount: the sum of the lines is charged";
            problems.push(wrong("lineItems", why));
            Vec::new()
        }
    }
}

/// Reads the lines; `read` gets each with its path.
fn lines<T>(
    items: &[LineItem],
    read: impl Fn(&LineItem, &str) -> Result<T, FieldProblem>,
    problems: &mut Vec<FieldProblem>,
) -> Vec<T> {
    if items.is_empty() || items.len() > MOST_LINES {
        problems.push(wrong("lineItems", format!("must have 1 to {MOST_LINES} lines")));
        return Vec::new();
    }
    let mut lines = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let at = format!("lineItems[{number}]");
        if !(1..=MOST_OF_A_LINE).contains(&item.quantity) {
            let why = format!("must be 1 to {MOST_OF_A_LINE}");
            problems.push(wrong(&format!("{at}.quantity"), why));
        }
        match read(item, &at) {
            Ok(line) => lines.push(line),
            Err(problem) => problems.push(problem),
        }
    }
    lines
}

fn priced_line(item: &LineItem, at: &str) -> Result<Line, FieldProblem> {
    if item.variant_id.is_some() || item.sku.is_some() {
        return Err(wrong(at, "must have name and unitAmount, not variantId or sku"));
    }
    let missing = |field: &str| wrong(&format!("{at}.{field}"), "is required");
    let name = item.name.as_ref().map(Name::to_string);
    Ok(Line {
        name: name.ok_or_else(|| missing("name"))?,
        unit: item.unit_amount.ok_or_else(|| missing("unitAmount"))?,
        quantity: item.quantity,
    })
}

fn ordered_line(item: &LineItem, at: &str) -> Result<commerce::Line, FieldProblem> {
    if item.unit_amount.is_some() || item.name.is_some() {
        let why = "must not have name or unitAmount: the shop says what is to be paid";
        return Err(wrong(at, why));
    }
    let text = |name: &Name| name.as_str().to_owned();
    let variant = match (&item.variant_id, &item.sku) {
        (Some(id), None) => commerce::Variant::Id(text(id)),
        (None, Some(sku)) => commerce::Variant::Sku(text(sku)),
        _ => return Err(wrong(at, "must have either variantId or sku")),
    };
    Ok(commerce::Line { variant, quantity: item.quantity })
}
