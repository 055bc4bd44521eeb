//! Checkouts: payments of buyers, with the orders that they pay for.

use crate::{
    AppId, CheckoutId, CommerceChannelId, Email, Name, Page, SubscriptionId, Timestamp,
    metadata::Metadata,
    money::{Amount, Money},
    page::*,
    text::{AccessToken, Currency, Description, PlanCode, WebUrl},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod order;
mod reference;
mod states;

pub use order::*;
pub use reference::Reference;
pub use states::*;

functions! {
    group "Checkout and payments";

    /// Open the page on which a buyer pays.
    ///
    /// The payment provider is the one whose credential the app has, `paystack` or `stripe`; of
    /// several, the one that was stored last. Send the buyer to `checkoutUrl`. Afterwards the
    /// provider sends the buyer to `callbackUrl` with the query parameter `reference`; call
    /// `svc_checkout_verify` there.
    ///
    /// `direct` charges `amount`, the sum of `lineItems`, or the price of a plan. `commerce` builds
    /// an order in the shop of the registered channel, and charges the total of the shop. With
    /// `paymentPlanCode`, the amount, the sum or the total must be the price of the plan; the first
    /// payment settles the order, and renewals make no order. The same request id gets the same
    /// checkout.
    "svc_checkout_create": CreateCheckout {
        /// `direct` if the caller or a plan gives the price, `commerce` if an order in a shop does.
        flow: CheckoutFlow,
        app_id: AppId,
        /// For `commerce`, the store of a registered channel. For `direct`, kept with the checkout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        store_id: Option<Name>,
        /// For `direct`: the sum in the minor unit of the currency, such as cents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amount: Option<Amount>,
        /// For `direct`: the currency of `amount`, or of the prices of `lineItems`. The default is that
        /// of the plan, else the `currency` of the credential, else that of the account at the
        /// provider: of the balance of Paystack, or the default currency of Stripe.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        currency: Option<Currency>,
        /// 1 to 100 lines: for `direct` with `name`, `unitAmount` and `quantity`, for `commerce`
        /// with `variantId` or `sku`, and `quantity`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line_items: Option<Vec<LineItem>>,
        /// Who pays. The provider sends the receipt to the e-mail.
        customer: Customer,
        /// The plan to which the buyer subscribes. Its price is charged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payment_plan_code: Option<PlanCode>,
        /// The page to which the provider sends the buyer. The default is a page of this service
        /// that says whether the payment arrived.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        callback_url: Option<WebUrl>,
        /// For `commerce`: where the order is sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shipping_address: Option<ShippingAddress>,
        /// For `commerce`: the code of a shipping method. The default is the cheapest one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shipping_method: Option<Name>,
        /// Given to the provider, and shown with the checkout.
        #[serde(default, skip_serializing_if = "Metadata::is_empty")]
        metadata: Metadata,
    } -> CheckoutSession { who: Public of (app_id), effect: Change, errors: [
        NotNow "the app has no credential of a payment provider, or no channel is registered for the store",
        Unavailable "the provider or the shop cannot be reached",
        Refused "the provider or the shop refuses; the message has its own words",
    ] }

    /// Find out whether a payment arrived.
    ///
    /// The service asks the provider, and counts a payment only if its amount, its currency and
    /// its reference are those of the checkout. An order of a shop is then marked as paid, once.
    /// Safe to repeat. The provider's signed webhook has the same effect, so a buyer who closes the
    /// page loses nothing.
    "svc_checkout_verify": VerifyCheckout { reference: Reference } -> CheckoutStatus
    { who: Public, effect: Read, errors: [NotFound "there is no such checkout"] }

    /// Check whether an e-mail address has an active subscription to a plan of the app.
    ///
    /// The answer comes from the service's own records, which follow the provider. It is cheap
    /// enough for every request of a gate.
    "svc_subscriptions_check": CheckSubscription {
        /// The e-mail address with which the buyer pays. Capital letters make no difference.
        email: Email,
        app_id: AppId,
    } -> SubscriptionCheck
    { who: Public of (app_id), effect: Read }

    /// List the checkouts of an app.
    "svc_getCheckouts": GetCheckouts {
        app_id: AppId,
        /// Return only checkouts in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<CheckoutState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Checkout> { who: Member of (app_id), effect: Read }

    /// Read a checkout.
    "svc_getCheckout": GetCheckout { reference: Reference } -> Checkout
    { who: Member of (reference), effect: Read }

    /// Settle a paid checkout now, after what prevented it was mended.
    ///
    /// The service tries by itself too, with growing pauses of up to an hour, for as long as it
    /// takes. What only a person can settle, such as a payment of another sum, is settled with
    /// `byHand`.
    "svc_settleCheckout": SettleCheckout {
        reference: Reference,
        /// What a person did instead, such as `sent by post, invoice 17`. The checkout then counts as
        /// settled: it is not tried again, and the shop hears nothing of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_hand: Option<Description>,
    } -> Checkout
    { who: Member of (reference), effect: Change, errors: [
        NotNow "the checkout is not paid, or is settled, or is being settled",
    ] }

    /// List the subscriptions of an app.
    "svc_getSubscriptions": GetSubscriptions {
        app_id: AppId,
        /// Return only subscriptions of the buyer with this e-mail address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        email: Option<Email>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Subscription> { who: Member of (app_id), effect: Read }

    /// List the checkouts of all apps whose money arrived, and which are not settled or do not
    /// match.
    "svc_admin_getUnsettledCheckouts": GetUnsettledCheckouts {
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Checkout> { who: SuperAdmin, effect: Read }

    /// Register a channel of a shop for checkouts.
    ///
    /// The service checks with the token that the channel opens. A shop that refuses the token is
    /// refused; one that does not answer is registered with `check: failed`. The same channel token
    /// again changes the registration: the shop is asked again if the address or the admin token
    /// changes, or if the last check failed. The admin token is encrypted, and never shown again.
    "svc_admin_registerCommerceChannel": RegisterCommerceChannel {
        /// The token that names the channel in the shop.
        channel_token: Name,
        app_id: AppId,
        /// Names the channel in `svc_checkout_create`.
        store_id: Name,
        /// The address of the shop's admin API, which ends with `/admin-api`. It must be on the
        /// public internet, or belong to a market server of the app, unless the operator allows its
        /// host.
        admin_api_url: WebUrl,
        /// A session token or an API key of an administrator of the channel.
        admin_token: AccessToken,
        /// What operators call the channel. It need not be unique.
        label: Name,
    } -> CommerceChannel { who: Master of (app_id), effect: Change, errors: [
        Exists "another channel of the app has this store id, or another app has this channel",
    ] }

    /// List the registered channels of shops.
    "svc_admin_getCommerceChannels": GetCommerceChannels {
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<CommerceChannel> { who: Master, effect: Read }

    /// Forget a channel of a shop. Checkouts that were paid are settled first: while there are such
    /// checkouts, the channel stays.
    "svc_admin_deleteCommerceChannel": DeleteCommerceChannel {
        /// The token that names the channel in the shop, from `svc_admin_getCommerceChannels`.
        channel_token: Name,
    } -> DeletedCommerceChannel { who: Master, effect: Change, errors: [
        NotNow "a checkout of the channel may still be paid, or is not settled",
    ] }
}

records! {
    /// The page on which a buyer pays.
    pub struct CheckoutSession {
        reference: Reference,
        /// The page of the provider to which the buyer is sent.
        checkout_url: WebUrl,
        /// Opens the page inside of an app. Null if the provider cannot.
        access_code: Option<String>,
        /// When the page closes. Null if it does not.
        expires_at: Option<Timestamp>,
        /// What is to be paid, in the minor unit of the currency, such as cents.
        amount: Amount,
        /// The currency of `amount`, such as `EUR`.
        currency: Currency,
    }

    /// Whether a payment arrived.
    pub struct CheckoutStatus {
        reference: Reference,
        /// What is known of the payment.
        status: PaymentStatus,
        /// What is to be paid, in the minor unit of the currency, such as cents.
        amount: Amount,
        /// The currency of `amount`, such as `EUR`.
        currency: Currency,
        /// When the money was paid, as the provider says. Null before that.
        paid_at: Option<Timestamp>,
        /// The code of the order in the shop.
        order_code: Option<String>,
        /// The subscription that the payment began.
        subscription: Option<SubscriptionCheck>,
    }

    /// Whether somebody has a subscription.
    pub struct SubscriptionCheck {
        /// Whether the buyer may use what was paid for. A renewal may be late by up to three days.
        active: bool,
        /// The provider's code of the plan. Null if there is no subscription, or it is not known
        /// yet.
        plan_code: Option<PlanCode>,
        /// Where the subscription stands. Null if there is none.
        status: Option<SubscriptionStatus>,
        /// Until when it is paid.
        current_period_end: Option<Timestamp>,
    }

    /// A payment of a buyer: for a sum, for a plan, or for an order in a shop.
    pub struct Checkout {
        id: CheckoutId,
        reference: Reference,
        app_id: AppId,
        /// Where the price comes from: the caller or a plan, or a shop.
        flow: CheckoutFlow,
        /// The store that the caller named. Null if it named none.
        store_id: Option<Name>,
        provider: PaymentProvider,
        /// Where the checkout stands, from its creation to the settled payment.
        state: CheckoutState,
        /// What is to be paid. Null until the shop or the provider said it.
        total: Option<Money>,
        /// The page on which the buyer pays. Null before it is open, and once nobody can pay there.
        #[serde(default)]
        checkout_url: Option<WebUrl>,
        /// Who pays, as the caller said.
        customer: Customer,
        /// The provider's code of the plan to which the buyer subscribes. Null if there is none.
        payment_plan_code: Option<PlanCode>,
        /// What the caller attached to the checkout.
        metadata: Metadata,
        /// What the provider says was paid. It differs from `total` in the state `amountMismatch`.
        paid: Option<Money>,
        /// When the money was paid, as the provider says. Null before that.
        paid_at: Option<Timestamp>,
        /// How much the provider gave back, in the minor unit.
        refunded_amount: u64,
        /// Where the dispute about the payment stands. Null if there is none.
        dispute: Option<DisputeState>,
        /// How the provider names the payment. Null until it knows of one.
        provider_payment_id: Option<String>,
        /// The code of the order in the shop.
        order_code: Option<String>,
        /// The id of the subscription that the payment began. Null if it began none.
        subscription_id: Option<SubscriptionId>,
        /// Why it failed, or why it is not settled.
        problem: Option<String>,
        /// What a person did, if one settled it.
        settled_by_hand: Option<Description>,
        /// When the service next asks the provider or the shop.
        next_attempt_at: Option<Timestamp>,
        /// When everything was done, by the service or by hand. Null before that.
        settled_at: Option<Timestamp>,
        created_at: Timestamp,
        /// When the service stops to wait for the payment. One that arrives later still counts.
        expires_at: Timestamp,
    }

    /// A subscription of a buyer.
    pub struct Subscription {
        id: SubscriptionId,
        app_id: AppId,
        provider: PaymentProvider,
        /// `SUB_…` at Paystack, `sub_…` at Stripe.
        provider_id: String,
        /// Null until the provider was asked.
        email: Option<Email>,
        /// The provider's code of the plan. Null until the provider was asked.
        plan_code: Option<PlanCode>,
        /// Where the subscription stands.
        status: SubscriptionStatus,
        /// The provider's own word for the status.
        provider_status: Option<String>,
        /// Until when it is paid. Null until the provider was asked, or if it does not say.
        current_period_end: Option<Timestamp>,
        /// Why the last renewal failed, in the provider's words.
        renewal_failure: Option<String>,
        /// When the provider last told it.
        checked_at: Option<Timestamp>,
        /// Why the last check failed.
        problem: Option<String>,
        created_at: Timestamp,
    }

    /// A channel of a shop. The admin token is masked.
    pub struct CommerceChannel {
        id: CommerceChannelId,
        /// The token that names the channel in the shop.
        channel_token: Name,
        app_id: AppId,
        /// Names the channel in `svc_checkout_create`. It is unique in the app.
        store_id: Name,
        /// The address of the shop's admin API, which ends with `/admin-api`.
        admin_api_url: WebUrl,
        /// Always masked.
        admin_token: String,
        /// What operators call the channel.
        label: Name,
        /// Whether the channel opened when it was registered.
        check: ChannelCheck,
        /// What the check found, as one sentence.
        check_message: String,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// The answer to a notice of a payment provider.
    pub struct NoticeReceived {
        /// Always true.
        received: bool,
    }

    /// The channel that is no longer registered.
    pub struct DeletedCommerceChannel { deleted: CommerceChannelId }
}

/// Where the price of a checkout comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckoutFlow {
    /// The caller, or a plan of the provider.
    Direct,
    /// The shop in which the order is built.
    Commerce,
}

/// A payment provider.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum PaymentProvider {
    /// The buyer pays through Paystack.
    Paystack,
    /// The buyer pays through Stripe.
    Stripe,
}

impl PaymentProvider {
    /// Every provider once.
    pub const ALL: [PaymentProvider; 2] = [PaymentProvider::Paystack, PaymentProvider::Stripe];

    /// The provider's name on the wire, which is also that of the kind of its credentials.
    pub const fn name(self) -> &'static str {
        match self {
            PaymentProvider::Paystack => "paystack",
            PaymentProvider::Stripe => "stripe",
        }
    }
}
