//! The GraphQL texts, and the data that they ask for.
//!
//! Each mutation names its result `result`.

use super::api::ApiError;
use contract::{checkouts::ShippingAddress, text::Name};
use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! with_order {
    ($text:literal) => {
        concat!(
            $text,
            " fragment ShopOrder on Order {
                id code state currencyCode totalWithTax
                customer { emailAddress }
                shippingAddress { ...ShopAddress } billingAddress { ...ShopAddress }
                lines { id quantity linePriceWithTax productVariant { id sku name } }
                shippingLines { priceWithTax shippingMethod { code name } }
                surcharges { description priceWithTax }
                discounts { description amountWithTax }
                payments { state amount transactionId }
                history(options: {filter: {type: {eq: \"ORDER_NOTE\"}}}) { items { data } }
            }
            fragment ShopAddress on OrderAddress {
                fullName streetLine1 streetLine2 city province postalCode countryCode phoneNumber
            }"
        )
    };
}

/// What a step looks at. Without an order, `isThere` is false and `id` is any.
pub const LOOK: &str = with_order!(
    "query Look($id: ID!, $isThere: Boolean!, $variants: ProductVariantListOptions!) {
        order(id: $id) @include(if: $isThere) { ...ShopOrder }
        productVariants(options: $variants) {
            items { id sku name enabled product { enabled } }
        }
        activeChannel { token }
        globalSettings { serverConfig { moneyStrategyPrecision } }
    }"
);
pub const LOOK_AT_ORDER: &str = with_order!(
    "query LookAtOrder($id: ID!) {
        order(id: $id) { ...ShopOrder }
        activeChannel { token }
        globalSettings { serverConfig { moneyStrategyPrecision } }
    }"
);
pub const CREATE: &str = "mutation Create { result: createDraftOrder { id } }";
pub const MARK: &str = "mutation Mark($order: ID!, $note: String!) {
    result: addNoteToOrder(input: {id: $order, note: $note, isPublic: false}) { id }
}";
pub const ADD: &str = "mutation Add($order: ID!, $variant: ID!, $quantity: Int!) {
    result: addItemToDraftOrder(
        orderId: $order, input: {productVariantId: $variant, quantity: $quantity}
    ) {
        ... on ErrorResult { errorCode message }
        ... on InsufficientStockError { quantityAvailable }
    }
}";
pub const ADJUST: &str = "mutation Adjust($order: ID!, $line: ID!, $quantity: Int!) {
    result: adjustDraftOrderLine(
        orderId: $order, input: {orderLineId: $line, quantity: $quantity}
    ) {
        ... on ErrorResult { errorCode message }
        ... on InsufficientStockError { quantityAvailable }
    }
}";
pub const REMOVE: &str = "mutation Remove($order: ID!, $line: ID!) {
    result: removeDraftOrderLine(orderId: $order, orderLineId: $line) {
        ... on ErrorResult { errorCode message }
    }
}";
pub const FIND_CUSTOMER: &str = "query FindCustomer($email: String!) {
    customers(options: {filter: {emailAddress: {eq: $email}}}) { items { id user { id } } }
}";
pub const SET_CUSTOMER: &str =
    "mutation SetCustomer($order: ID!, $customer: ID, $input: CreateCustomerInput) {
        result: setCustomerForDraftOrder(orderId: $order, customerId: $customer, input: $input) {
            ... on ErrorResult { errorCode message }
        }
    }";
pub const SET_SHIPPING_ADDRESS: &str =
    "mutation SetShippingAddress($order: ID!, $address: CreateAddressInput!) {
        result: setDraftOrderShippingAddress(orderId: $order, input: $address) { id }
    }";
pub const SET_BILLING_ADDRESS: &str =
    "mutation SetBillingAddress($order: ID!, $address: CreateAddressInput!) {
        result: setDraftOrderBillingAddress(orderId: $order, input: $address) { id }
    }";
pub const SHIPPING_METHODS: &str = "query ShippingMethods($order: ID!) {
    eligibleShippingMethodsForDraftOrder(orderId: $order) { id code priceWithTax }
}";
pub const SET_SHIPPING_METHOD: &str = "mutation SetShippingMethod($order: ID!, $method: ID!) {
    result: setDraftOrderShippingMethod(orderId: $order, shippingMethodId: $method) {
        ... on ErrorResult { errorCode message }
    }
}";
pub const TRANSITION: &str = "mutation Transition($order: ID!, $state: String!) {
    result: transitionOrderToState(id: $order, state: $state) {
        ... on ErrorResult { errorCode message }
        ... on OrderStateTransitionError { transitionError }
    }
}";
pub const PAY: &str = with_order!(
    "mutation Pay($payment: ManualPaymentInput!) {
        result: addManualPaymentToOrder(input: $payment) {
            ... on ErrorResult { errorCode message }
            ...ShopOrder
        }
    }"
);
pub const DELETE_DRAFT: &str = "mutation DeleteDraft($order: ID!) {
    result: deleteDraftOrder(orderId: $order) { result message }
}";
pub const CANCEL: &str = "mutation Cancel($order: ID!, $reason: String!) {
    result: cancelOrder(input: {orderId: $order, reason: $reason}) {
        ... on ErrorResult { errorCode message }
        ... on OrderStateTransitionError { transitionError }
    }
}";
pub const CHANNEL: &str = "query Channel { activeChannel { code token defaultCurrencyCode } }";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderReply {
    pub order: Option<ShopOrder>,
    #[serde(default)]
    pub product_variants: Items<ShopVariant>,
    pub active_channel: ActiveChannel,
    pub global_settings: GlobalSettings,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShopOrder {
    pub id: String,
    pub code: String,
    /// Such as `Draft` or `ArrangingPayment`. A shop may have states of its own.
    pub state: String,
    pub currency_code: String,
    pub total_with_tax: i64,
    pub customer: Option<Contact>,
    pub shipping_address: Option<Address>,
    pub billing_address: Option<Address>,
    pub lines: Vec<OrderLine>,
    pub shipping_lines: Vec<ShippingLine>,
    pub surcharges: Vec<Surcharge>,
    pub discounts: Vec<Discount>,
    pub payments: Option<Vec<Payment>>,
    history: Items<HistoryEntry>,
}

impl ShopOrder {
    /// Whether one of its notes says this.
    pub fn has_note(&self, note: &str) -> bool {
        let text = |entry: &HistoryEntry| entry.data.get("note")?.as_str().map(|it| it == note);
        self.history.items.iter().any(|entry| text(entry) == Some(true))
    }

    pub fn payments(&self) -> &[Payment] {
        self.payments.as_deref().unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    pub email_address: String,
}

/// An address, as it is sent and as the shop has it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    full_name: Option<String>,
    street_line1: Option<String>,
    street_line2: Option<String>,
    city: Option<String>,
    province: Option<String>,
    postal_code: Option<String>,
    country_code: Option<String>,
    phone_number: Option<String>,
}

impl Address {
    pub fn of(address: &ShippingAddress, name: Option<&Name>, phone: Option<&Name>) -> Address {
        let text = |it: Option<&Name>| it.map(|it| it.as_str().to_owned());
        Address {
            full_name: text(address.full_name.as_ref().or(name)),
            street_line1: text(Some(&address.line1)),
            street_line2: text(address.line2.as_ref()),
            city: text(Some(&address.city)),
            province: text(address.province.as_ref()),
            postal_code: text(address.postal_code.as_ref()),
            country_code: Some(address.country.as_str().to_owned()),
            phone_number: text(address.phone.as_ref().or(phone)),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderLine {
    pub id: String,
    pub quantity: u32,
    /// Without discounts.
    pub line_price_with_tax: i64,
    pub product_variant: LineVariant,
}

#[derive(Deserialize)]
pub struct LineVariant {
    pub id: String,
    pub name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShippingLine {
    /// Without discounts.
    pub price_with_tax: i64,
    pub shipping_method: ShippingMethod,
}

#[derive(Deserialize)]
pub struct ShippingMethod {
    pub code: String,
    pub name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Surcharge {
    pub description: String,
    pub price_with_tax: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Discount {
    pub description: String,
    pub amount_with_tax: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    /// Such as `Settled` or `Cancelled`.
    pub state: String,
    pub amount: i64,
    pub transaction_id: Option<String>,
}

#[derive(Deserialize)]
struct HistoryEntry {
    data: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ShopVariant {
    pub id: String,
    pub sku: String,
    pub name: String,
    pub enabled: bool,
    pub product: Product,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Product {
    pub enabled: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveChannel {
    pub token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GlobalSettings {
    server_config: ServerConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerConfig {
    money_strategy_precision: u8,
}

impl GlobalSettings {
    /// How many decimals the shop's amounts have, in every currency.
    pub fn precision(&self) -> u8 {
        self.server_config.money_strategy_precision
    }
}

#[derive(Deserialize)]
pub struct Items<T> {
    pub items: Vec<T>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Items { items: Vec::new() }
    }
}

/// The field of a mutation, which each document names `result`.
#[derive(Deserialize)]
pub struct MutationResult<T> {
    pub result: T,
}

#[derive(Deserialize)]
pub struct Created {
    pub id: String,
}

/// Whether a change was made. The fields are those of errors.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeResult {
    error_code: Option<String>,
    message: Option<String>,
    /// Says more than the message.
    transition_error: Option<String>,
    /// How many of a product could be ordered.
    pub quantity_available: Option<u32>,
}

impl ChangeResult {
    /// The error, if it is one.
    pub fn error(&self) -> Option<ApiError> {
        let code = self.error_code.clone()?;
        let message = self.transition_error.as_ref().or(self.message.as_ref());
        Some(ApiError { code, message: message.cloned().unwrap_or_default() })
    }
}

/// What came of [`PAY`].
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Paid {
    Order(Box<ShopOrder>),
    Error(ChangeResult),
}

#[derive(Deserialize)]
pub struct Deleted {
    /// `DELETED` or `NOT_DELETED`.
    pub result: String,
    pub message: Option<String>,
}

#[derive(Deserialize)]
pub struct Customers {
    pub customers: Items<ShopCustomer>,
}

#[derive(Deserialize)]
pub struct ShopCustomer {
    pub id: String,
    /// Customers who have registered.
    pub user: Option<Value>,
}

/// What the shop writes down of a customer who has not registered.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Guest<'a> {
    pub email_address: &'a str,
    pub first_name: &'a str,
    pub last_name: &'a str,
    /// `null` would delete a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quotes {
    pub eligible_shipping_methods_for_draft_order: Vec<Quote>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quote {
    pub id: String,
    pub code: String,
    pub price_with_tax: i64,
}
