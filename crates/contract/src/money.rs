//! Money.

use crate::text::Currency;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::{borrow::Cow, fmt};

/// An amount above zero in the minor unit of a currency: cents of euros, whole yen, fils of Kuwaiti
/// dinars. At most [`Amount::MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Amount(u64);

impl Amount {
    /// The largest amount. Numbers up to it are exact in every JSON parser.
    pub const MOST: u64 = 1 << 50;

    /// `None` for zero and for more than [`Amount::MOST`].
    pub fn new(minor: u64) -> Option<Amount> {
        (1..=Amount::MOST).contains(&minor).then_some(Amount(minor))
    }

    /// The number of minor units.
    pub fn minor(self) -> u64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let wrong = || D::Error::custom("must be a whole number above 0, in the minor unit");
        Amount::new(u64::deserialize(d).map_err(|_| wrong())?).ok_or_else(wrong)
    }
}

impl JsonSchema for Amount {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": Amount::MOST})
    }
}

/// An amount of a currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Money {
    /// In the minor unit of the currency.
    pub amount: Amount,
    /// ISO 4217.
    pub currency: Currency,
}

impl fmt::Display for Money {
    /// As people write it, such as `12.50 EUR`, `1250 JPY` or `1.250 KWD`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = usize::from(self.currency.decimals().unwrap_or(0));
        let digits = format!("{:0>width$}", self.amount.0, width = decimals + 1);
        let (whole, part) = digits.split_at(digits.len() - decimals);
        let point = if decimals > 0 { "." } else { "" };
        write!(f, "{whole}{point}{part} {}", self.currency)
    }
}

impl Currency {
    /// How many decimals the minor unit has by ISO 4217: 2 for euros, 0 for yen, 3 for Kuwaiti
    /// dinars. `None` if nobody pays with it, or ISO 4217 does not know it.
    pub fn decimals(&self) -> Option<u8> {
        let known = iso_currency::Currency::from_code(self.as_str())?;
        known.exponent().and_then(|decimals| u8::try_from(decimals).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_the_decimals_of_its_currency() {
        let shown = |amount, currency: &str| {
            let (amount, currency) = (Amount::new(amount).unwrap(), currency.parse().unwrap());
            Money { amount, currency }.to_string()
        };
        assert_eq!(shown(1250, "EUR"), "12.50 EUR");
        assert_eq!(shown(5, "NGN"), "0.05 NGN");
        assert_eq!(shown(1250, "JPY"), "1250 JPY");
        assert_eq!(shown(1250, "KWD"), "1.250 KWD");
        assert_eq!("XAU".parse::<Currency>().unwrap().decimals(), None, "gold has no minor unit");
        assert_eq!("QQQ".parse::<Currency>().unwrap().decimals(), None);
    }
}
