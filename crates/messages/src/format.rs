//! Numbers, amounts and dates, as each language writes them.

use crate::Messages;
use contract::{Timestamp, money::Money};
use icu_calendar::{Date, Gregorian};
use icu_datetime::{DateTimeFormatterPreferences, FixedCalendarDateTimeFormatter, fieldsets::YMD};
use icu_decimal::{DecimalFormatter, DecimalFormatterPreferences, input::Decimal};
use icu_locale_core::Locale;
use std::borrow::Borrow;

const KIBIBYTE: u64 = 1 << 10;
const MEBIBYTE: u64 = 1 << 20;

impl Messages {
    fn locale(self) -> Locale {
        // The tags are fixed, and a test writes with each.
        self.language.tag().parse().unwrap_or(Locale::UNKNOWN)
    }

    /// A whole number, with the separators of the language.
    pub fn number(self, number: u64) -> String {
        self.decimal(number, 0)
    }

    /// A number of which `decimals` digits stand behind the separator.
    fn decimal(self, digits: u64, decimals: u8) -> String {
        let mut decimal = Decimal::from(digits);
        decimal.multiply_pow10(-i16::from(decimals));
        let preferences = DecimalFormatterPreferences::from(&self.locale());
        match DecimalFormatter::try_new(preferences, Default::default()) {
            Ok(formatter) => formatter.format(&decimal).to_string(),
            Err(_) => decimal.to_string(),
        }
    }

    /// An amount with the code of its currency, such as `1,250.00 EUR`.
    pub fn money(self, money: &Money) -> String {
        let decimals = money.currency.decimals().unwrap_or(0);
        // The parts of an amount are never on two lines.
        format!("{}\u{a0}{}", self.decimal(money.amount.minor(), decimals), money.currency)
    }

    /// A size in bytes, in the unit that fits.
    pub fn size(self, bytes: u64) -> String {
        match bytes {
            ..MEBIBYTE => self.kibibytes(self.number(bytes.div_ceil(KIBIBYTE))),
            _ => self.mebibytes(self.decimal(bytes.saturating_mul(10) / MEBIBYTE, 1)),
        }
    }

    /// The day of a time, by UTC, such as `January 31, 2026`.
    pub fn date(self, at: impl Borrow<Timestamp>) -> String {
        let at = at.borrow();
        let Ok(date) = Date::try_from_str(&at.day(), Gregorian) else { return at.day() };
        let preferences = DateTimeFormatterPreferences::from(&self.locale());
        let formatter =
            FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new(preferences, YMD::long());
        match formatter {
            Ok(formatter) => formatter.format(&date).to_string(),
            Err(_) => at.day(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Language;

    #[test]
    fn each_language_writes_its_numbers_and_dates() {
        let money = Money {
            amount: contract::money::Amount::new(125_000).unwrap(),
            currency: "EUR".parse().unwrap(),
        };
        let at = Timestamp::from_millis(1_769_860_800_000);
        for (language, amount, size, day) in [
            (Language::English, "1,250.00 EUR", "1.5 MiB", "January 31, 2026"),
            (Language::French, "1 250,00 EUR", "1,5 Mio", "31 janvier 2026"),
            (Language::German, "1.250,00 EUR", "1,5 MiB", "31. Januar 2026"),
            (Language::Spanish, "1250,00 EUR", "1,5 MiB", "31 de enero de 2026"),
        ] {
            let messages = Messages { language };
            let plain = |text: String| text.replace(['\u{a0}', '\u{202f}'], " ");
            assert_eq!(plain(messages.money(&money)), amount);
            assert_eq!(messages.size(3 << 19), size);
            assert_eq!(plain(messages.date(at)), day);
        }
        assert_eq!(Messages::default().size(1), "1 KiB");
    }
}
