//! What people are called, write and look for.

texts! {
    /// An e-mail address. Addresses that differ only in case belong to the same account; see
    /// [`Email::key`].
    Email,
    schema: {"type": "string", "format": "email", "maxLength": 254},
    rule: |text| {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@').unwrap_or_default();
        let plain = |b: u8| b.is_ascii_graphic() && !b"()<>[]:;,\\\"@".contains(&b) || b >= 0x80;
        let labels = domain.split('.').all(|l| !l.is_empty() && !l.starts_with('-') && !l.ends_with('-'));
        let domain_is_plain = domain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b >= 0x80);
        let good = !local.is_empty() && local.len() <= 64 && local.bytes().all(plain) && labels && domain_is_plain;
        if good && text.len() <= 254 { Ok(text.to_owned()) } else { Err("must be an e-mail address such as ada@example.com".into()) }
    };

    /// A name, 1 to 120 characters on one line.
    Name,
    schema: {"type": "string", "minLength": 1, "maxLength": 120},
    rule: |text| {
        let text = text.trim();
        match text.chars().count() {
            1..=120 if !text.chars().any(char::is_control) => Ok(text.to_owned()),
            _ => Err("must have 1 to 120 characters on one line".into()),
        }
    };

    /// A name that is given now: a [`Name`] in which every character shows. Names that were given earlier
    /// may hide some.
    NewName,
    schema: {"type": "string", "minLength": 1, "maxLength": 120},
    rule: |text| {
        let name: Name = text.parse()?;
        match hidden(name.as_str()) {
            None => Ok(name.into()),
            Some(c) => Err(format!("must not have characters that do not show, such as U+{:04X}", u32::from(c))),
        }
    };

    /// A description, at most 2,000 characters.
    Description,
    schema: {"type": "string", "maxLength": 2000},
    rule: |text| if text.chars().count() <= 2_000 { Ok(text.to_owned()) } else { Err("must have at most 2000 characters".into()) };

    /// Search words, 1 to 100 characters.
    Query,
    schema: {"type": "string", "minLength": 1, "maxLength": 100},
    rule: |text| match text.trim().chars().count() {
        1..=100 => Ok(text.trim().to_owned()),
        _ => Err("must have 1 to 100 characters".into()),
    };

    /// A reason in words, 1 to 500 characters.
    Reason,
    schema: {"type": "string", "minLength": 1, "maxLength": 500},
    rule: |text| match text.trim().chars().count() {
        1..=500 => Ok(text.trim().to_owned()),
        _ => Err("must have 1 to 500 characters".into()),
    };

    /// A web address to show to users. The service never opens it.
    WebUrl,
    schema: {"type": "string", "format": "uri", "maxLength": 2048},
    rule: |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let good = rest.is_some_and(|r| !r.is_empty() && !r.starts_with('/')) && text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b));
        if good && text.len() <= 2048 { Ok(text.to_owned()) } else { Err("must be a web address that starts with https:// or http://".into()) }
    };
}

impl Email {
    /// The form in which the store compares addresses.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

impl From<NewName> for Name {
    fn from(name: NewName) -> Name {
        Name(name.0)
    }
}

/// The first character of a text that does not show, and so makes the text look like another one or
/// turns the direction of what stands behind it. Joiners show by what they join, in scripts that have
/// them and between emoji.
///
/// These are the characters with the property `Default_Ignorable_Code_Point` of Unicode 17, without the
/// selectors of variants, and the separators of lines and paragraphs.
fn hidden(text: &str) -> Option<char> {
    let mut before = None;
    text.chars().find(|c| {
        let joins = before.replace(*c).is_some_and(|before: char| !before.is_ascii());
        match c {
            '\u{200C}' | '\u{200D}' => !joins,
            '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'
            | '\u{200E}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E00FF}'
            | '\u{E01F0}'..='\u{E0FFF}' => true,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_hides_nothing() {
        for name in
            ["Café Zürich", "日本語", "می\u{200C}خواهم", "👩\u{200D}💻 Lab", "❤\u{FE0F}", "a b"]
        {
            assert!(name.parse::<NewName>().is_ok(), "{name:?}");
        }
        for name in [
            "Shop\u{200B}",
            "\u{202E}pohS",
            "\u{2066}Shop\u{2069}",
            "Sh\u{200D}op",
            "\u{200C}Shop",
            "\u{FEFF}Shop",
            "Shop\u{E0041}",
            "\u{3164}",
            "a\u{2028}b",
        ] {
            let refused = name.parse::<NewName>().unwrap_err();
            assert!(refused.contains("do not show, such as U+"), "{name:?}: {refused}");
            assert!(name.parse::<Name>().is_ok(), "a stored name is read: {name:?}");
        }
    }
}
