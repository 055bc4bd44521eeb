//! Codes of money, countries and plans.

texts! {
    /// A currency code of ISO 4217.
    Currency,
    schema: {"type": "string", "pattern": "^[A-Z]{3}$"},
    rule: |text| {
        if text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase()) { Ok(text.to_owned()) } else { Err("must be a currency such as EUR".into()) }
    };

    /// A country code of ISO 3166.
    CountryCode,
    schema: {"type": "string", "pattern": "^[A-Z]{2}$"},
    rule: |text| {
        if text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase()) { Ok(text.to_owned()) } else { Err("must be a country such as NG".into()) }
    };

    /// A plan code of a payment provider.
    PlanCode,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if good && (1..=100).contains(&text.len()) { Ok(text.to_owned()) } else { Err("must be a plan code of letters, digits, _ and -".into()) }
    };
}
