//! The units in which providers count money.
//!
//! Our amounts are in the minor unit of ISO 4217. A provider counts most currencies in the same
//! unit, and some in another one: a factor of a hundred between the two is a buyer who pays a
//! hundred times the price. So the tables here are complete: a currency for which it is not certain
//! how the provider counts it is refused.

#[cfg(any(feature = "clients", test))]
use contract::money::Money;
use contract::{checkouts::PaymentProvider, money::Amount, text::Currency};

/// Why a provider is not asked for an amount, as a sentence that says what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCharged {
    /// The provider does not take the currency.
    Currency(String),
    /// The provider has no unit that is small enough.
    Amount(String),
}

/// Checks whether a provider counts a currency. What only the account knows, such as the currencies
/// that are enabled for it, is left to the provider. The error is a sentence.
pub fn check_currency(provider: PaymentProvider, currency: &Currency) -> Result<(), String> {
    Amounts::of(provider).units(currency).map(drop)
}

/// Checks whether a provider counts an amount of a currency.
pub fn check_amount(
    provider: PaymentProvider,
    amount: Amount,
    currency: &Currency,
) -> Result<(), NotCharged> {
    check_currency(provider, currency).map_err(NotCharged::Currency)?;
    Amounts::of(provider).given(amount, currency).map_err(NotCharged::Amount).map(drop)
}

/// How a provider counts a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit {
    /// How many decimals the provider's amounts have.
    decimals: u8,
    /// The provider takes only multiples of this.
    step: u64,
}

/// The tables of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amounts {
    Paystack,
    Stripe,
}

/// Source: "Supported currencies" of Stripe's documentation, sections "Zero-decimal currencies",
/// "Three-decimal currencies" and "Special cases". Ariaries have two decimals in ISO 4217, and none
/// at Stripe.
const STRIPE_ZERO: [&str; 15] = [
    "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF",
    "XOF", "XPF",
];
/// The last digit must be 0.
const STRIPE_THREE: [&str; 5] = ["BHD", "JOD", "KWD", "OMR", "TND"];
/// Whole units that are counted with two decimals, which must be 00.
const STRIPE_WHOLE: [&str; 2] = ["ISK", "UGX"];

/// Source: "Supported currency" in the introduction of Paystack's API reference, and Paystack's own
/// payment forms for WordPress, which offer these currencies and multiply each by a hundred.
const PAYSTACK_TWO: [&str; 6] = ["EGP", "GHS", "KES", "NGN", "USD", "ZAR"];
/// Without a minor unit, and nevertheless multiplied by a hundred.
const PAYSTACK_WHOLE: [&str; 2] = ["RWF", "XOF"];

impl Amounts {
    fn of(provider: PaymentProvider) -> Amounts {
        match provider {
            PaymentProvider::Paystack => Amounts::Paystack,
            PaymentProvider::Stripe => Amounts::Stripe,
        }
    }

    fn provider(self) -> &'static str {
        match self {
            Amounts::Paystack => "Paystack",
            Amounts::Stripe => "Stripe",
        }
    }

    fn unit(self, currency: &Currency, decimals: u8) -> Option<Unit> {
        let code = currency.as_str();
        let (decimals, step) = match self {
            Amounts::Paystack if PAYSTACK_TWO.contains(&code) => (2, 1),
            Amounts::Paystack if PAYSTACK_WHOLE.contains(&code) => (2, 100),
            Amounts::Paystack => return None,
            Amounts::Stripe if STRIPE_ZERO.contains(&code) => (0, 1),
            Amounts::Stripe if STRIPE_THREE.contains(&code) => (3, 10),
            Amounts::Stripe if STRIPE_WHOLE.contains(&code) => (2, 100),
            // Whether Stripe takes the currency is known to Stripe.
            Amounts::Stripe if decimals == 2 => (2, 1),
            Amounts::Stripe => return None,
        };
        Some(Unit { decimals, step })
    }

    fn units(self, currency: &Currency) -> Result<(u8, Unit), String> {
        let decimals = currency.decimals();
        decimals.and_then(|ours| Some((ours, self.unit(currency, ours)?))).ok_or_else(|| {
            let provider = self.provider();
            match self {
                Amounts::Paystack => format!(
                    "{provider} takes no {currency}. It takes only {}.",
                    [&PAYSTACK_TWO[..], &PAYSTACK_WHOLE[..]].concat().join(", ")
                ),
                Amounts::Stripe => format!("{provider} takes no {currency}. Use another currency."),
            }
        })
    }

    /// The number that the provider gets for an amount. The error is a sentence.
    pub(crate) fn given(self, amount: Amount, currency: &Currency) -> Result<u64, String> {
        let (ours, unit) = self.units(currency)?;
        let wrong = || {
            let smallest = smallest(unit, ours);
            format!(
                "{} takes no amount of {currency} with so many decimals: it must be a multiple of \
                 {smallest} in the minor unit.",
                self.provider()
            )
        };
        let number = rescaled(amount.minor(), ours, unit.decimals).ok_or_else(wrong)?;
        if number.is_multiple_of(unit.step) { Ok(number) } else { Err(wrong()) }
    }

    /// The minor units of a number that the provider says. The error is a sentence.
    #[cfg(any(feature = "clients", test))]
    pub(crate) fn read(self, number: u64, currency: &Currency) -> Result<u64, String> {
        let (ours, unit) = self.units(currency)?;
        rescaled(number, unit.decimals, ours).ok_or_else(|| {
            format!("{} says {number} of {currency}, which is no whole amount.", self.provider())
        })
    }

    /// The money of a number that the provider says. Capital letters in `currency` are equal to
    /// small ones. `None` for nothing. The error is a sentence.
    #[cfg(any(feature = "clients", test))]
    pub(crate) fn money(self, number: u64, currency: &str) -> Result<Option<Money>, String> {
        let currency: Currency = currency.to_uppercase().parse().map_err(|e| {
            format!("{} says a currency that cannot be read: it {e}.", self.provider())
        })?;
        let minor = self.read(number, &currency)?;
        Ok(Amount::new(minor).map(|amount| Money { amount, currency }))
    }
}

/// The smallest amount that can be given, in our minor unit.
fn smallest(unit: Unit, ours: u8) -> u64 {
    (1..=1000)
        .find(|&minor| {
            rescaled(minor, ours, unit.decimals)
                .is_some_and(|number| number.is_multiple_of(unit.step))
        })
        .unwrap_or(1)
}

/// The same amount with another number of decimals. `None` if it is not a whole number then, or too
/// large.
fn rescaled(number: u64, from: u8, to: u8) -> Option<u64> {
    let factor = |decimals: u8| 10_u64.checked_pow(decimals.into());
    match to.checked_sub(from) {
        Some(more) => number.checked_mul(factor(more)?),
        None => {
            let factor = factor(from.saturating_sub(to))?;
            number.is_multiple_of(factor).then_some(number / factor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All codes of ISO 4217: no other text of three letters has decimals.
    fn all() -> Vec<Currency> {
        let letters = || 'A'..='Z';
        let codes = letters().flat_map(|a| {
            letters().flat_map(move |b| letters().map(move |c| format!("{a}{b}{c}")))
        });
        codes.filter_map(|code| code.parse().ok()).collect()
    }

    #[test]
    fn every_currency_is_counted_as_the_provider_counts_it_or_refused() {
        let mut with_own_unit = [Vec::new(), Vec::new()];
        let mut taken = [0, 0];
        for currency in all() {
            for (at, amounts) in [Amounts::Paystack, Amounts::Stripe].into_iter().enumerate() {
                let amount = Amount::new(1_000_000).unwrap();
                let Ok(number) = amounts.given(amount, &currency) else {
                    assert!(amounts.read(1_000_000, &currency).is_err(), "{currency}");
                    continue;
                };
                taken[at] += 1;
                assert_eq!(amounts.read(number, &currency).unwrap(), 1_000_000, "{currency}");
                if number != 1_000_000 {
                    with_own_unit[at].push((currency.to_string(), number));
                }
            }
        }
        let own = |code: &str, number| (code.to_owned(), number);
        assert_eq!(with_own_unit[0], [own("RWF", 100_000_000), own("XOF", 100_000_000)]);
        assert_eq!(
            with_own_unit[1],
            [own("ISK", 100_000_000), own("MGA", 10_000), own("UGX", 100_000_000)]
        );
        assert_eq!(taken[0], 8);
        for refused in ["IQD", "LYD", "CLF", "UYI", "XAU", "QQQ"] {
            let currency = refused.parse().unwrap();
            assert!(
                Amounts::Stripe.given(Amount::new(1000).unwrap(), &currency).is_err(),
                "{refused}"
            );
        }
        assert!(taken[1] > 130, "Stripe names more than 135 currencies: {}", taken[1]);
    }

    #[test]
    fn amounts_that_the_provider_cannot_count_are_refused() {
        let stripe = |minor, code: &str| {
            Amounts::Stripe.given(Amount::new(minor).unwrap(), &code.parse().unwrap())
        };
        assert_eq!(stripe(1250, "EUR"), Ok(1250));
        assert_eq!(stripe(1250, "JPY"), Ok(1250));
        assert_eq!(stripe(5120, "KWD"), Ok(5120));
        assert!(stripe(5124, "KWD").unwrap_err().contains("a multiple of 10 "));
        assert_eq!(stripe(500, "MGA"), Ok(5));
        assert!(stripe(550, "MGA").unwrap_err().contains("a multiple of 100 "));
        assert_eq!(stripe(5, "ISK"), Ok(500));
        assert!(Amounts::Stripe.read(1050, &"UGX".parse().unwrap()).is_err());
        assert_eq!(Amounts::Stripe.money(0, "usd"), Ok(None));
        assert!(Amounts::Stripe.money(1, "dollars").is_err());
    }
}
