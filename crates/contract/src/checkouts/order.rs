//! What a buyer orders, who pays for it, and where it is sent.

use crate::{Email, Name, money::Amount, text::CountryCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line of a checkout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LineItem {
    /// For `direct`: what the buyer reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// For `direct`: the price of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_amount: Option<Amount>,
    /// For `commerce`: the shop's id of the variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant_id: Option<Name>,
    /// For `commerce`: the stock keeping unit of the variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sku: Option<Name>,
    /// 1 to 10,000.
    pub quantity: u32,
}

/// Who pays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Customer {
    /// The provider sends the receipt to it.
    pub email: Email,
    /// The full name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The phone number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<Name>,
}

/// Where an order is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShippingAddress {
    /// The default is the name of the customer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_name: Option<Name>,
    /// Street and number.
    pub line1: Name,
    /// What else the address needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line2: Option<Name>,
    /// The city, town or village.
    pub city: Name,
    /// The province or state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub province: Option<Name>,
    /// As the country writes it. Some countries have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal_code: Option<Name>,
    /// Two capital letters of ISO 3166, such as `NG`.
    pub country: CountryCode,
    /// The default is the phone number of the customer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<Name>,
}
