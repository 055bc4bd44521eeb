//! What an order costs, in the units of payment providers.

use super::documents::ShopOrder;
use crate::{Built, BuiltLine};
use contract::{
    money::{Amount, Money},
    text::Currency,
};

/// The amounts of a shop: numbers with some decimals, which are the same for every currency.
pub(super) struct Scale {
    currency: Currency,
    /// The power of ten that an amount of the shop is multiplied with to be one of ISO 4217.
    shift: i32,
}

impl Scale {
    /// `precision`: the decimals of the shop's amounts. The error is a sentence.
    pub fn of(currency: &str, precision: u8) -> Result<Scale, String> {
        let wrong = || format!("The shop sells in {currency}, which no payment can be made in.");
        let currency: Currency = currency.parse().map_err(|_| wrong())?;
        let decimals = currency.decimals().ok_or_else(wrong)?;
        Ok(Scale { currency, shift: i32::from(decimals) - i32::from(precision) })
    }

    /// The nearest amount in the minor unit.
    fn nearest(&self, amount: i64) -> i64 {
        let factor = 10_i64.saturating_pow(self.shift.unsigned_abs());
        if self.shift >= 0 {
            return amount.saturating_mul(factor);
        }
        let half = factor / 2 * amount.signum();
        amount.saturating_add(half) / factor
    }

    /// The same amount in the minor unit. The error is a sentence.
    pub fn exactly(&self, amount: i64) -> Result<Money, String> {
        if amount <= 0 {
            return Err("The order costs nothing, so there is nothing to pay.".into());
        }
        let most = i64::try_from(Amount::MOST).unwrap_or(i64::MAX);
        // Larger numbers would not fit when they are multiplied.
        let minor = (amount <= most).then(|| self.nearest(amount));
        let minor = minor.and_then(|minor| Amount::new(u64::try_from(minor).ok()?));
        let currency = self.currency.clone();
        if self.shift < 0 && amount % 10_i64.saturating_pow(self.shift.unsigned_abs()) != 0 {
            return Err(format!(
                "The order costs a part of the smallest unit of {currency}, so it cannot be paid."
            ));
        }
        let amount = minor.ok_or("The order costs more than can be paid at once.")?;
        Ok(Money { amount, currency })
    }
}

/// What the order is when it can be paid. The sum of its lines is its total. The error is a sentence.
pub(super) fn built(order: &ShopOrder, precision: u8) -> Result<Built, String> {
    let scale = Scale::of(&order.currency_code, precision)?;
    let total = scale.exactly(order.total_with_tax)?;
    let line = |name: &str, quantity, amount| BuiltLine {
        name: name.to_owned(),
        quantity,
        total: scale.nearest(amount),
    };
    let named = |name: &str, usual: &str| if name.is_empty() { usual } else { name }.to_owned();
    let products = order.lines.iter().filter(|it| it.quantity > 0);
    let mut summary: Vec<_> = products
        .map(|it| line(&it.product_variant.name, it.quantity, it.line_price_with_tax))
        .collect();
    let others = order
        .surcharges
        .iter()
        .map(|it| line(&named(&it.description, "Surcharge"), 1, it.price_with_tax))
        .chain(
            order
                .shipping_lines
                .iter()
                .map(|it| line(&named(&it.shipping_method.name, "Shipping"), 1, it.price_with_tax)),
        )
        .chain(
            order
                .discounts
                .iter()
                .map(|it| line(&named(&it.description, "Discount"), 1, it.amount_with_tax)),
        );
    summary.extend(others.filter(|it| it.total != 0));
    // Shops round taxes for each line, or for the sum.
    let sum = summary.iter().fold(0_i64, |sum, it| sum.saturating_add(it.total));
    let rest = scale.nearest(order.total_with_tax).saturating_sub(sum);
    if rest != 0 {
        summary.push(BuiltLine { name: "Rounding".into(), quantity: 1, total: rest });
    }
    Ok(Built { id: order.id.clone(), code: order.code.clone(), total, summary })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_shops_become_amounts_of_payments_exactly_or_not_at_all() {
        let exactly = |amount, precision, currency| {
            Scale::of(currency, precision).and_then(|scale| scale.exactly(amount))
        };
        for (amount, precision, currency, shown) in [
            (1999, 2, "EUR", "19.99 EUR"),
            (125_000, 2, "JPY", "1250 JPY"),
            (1250, 2, "KWD", "12.500 KWD"),
            (19_990, 3, "EUR", "19.99 EUR"),
            (20, 0, "EUR", "20.00 EUR"),
        ] {
            assert_eq!(exactly(amount, precision, currency).unwrap().to_string(), shown);
        }
        for (amount, precision, currency, why) in [
            (125_050, 2, "JPY", "a part of the smallest unit"),
            (19_995, 3, "EUR", "a part of the smallest unit"),
            (0, 2, "EUR", "nothing to pay"),
            (-5, 2, "EUR", "nothing to pay"),
            (1 << 60, 2, "EUR", "more than can be paid"),
            (i64::MAX, 0, "KWD", "more than can be paid"),
            (100, 2, "XAU", "no payment can be made"),
            (100, 2, "€", "no payment can be made"),
        ] {
            let refused = exactly(amount, precision, currency).unwrap_err();
            assert!(refused.contains(why), "{amount} {currency}: {refused}");
        }
        let yen = Scale::of("JPY", 2).unwrap();
        assert_eq!([149, 150, -149, -150].map(|it| yen.nearest(it)), [1, 2, -1, -2]);
    }
}
