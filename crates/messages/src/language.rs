//! The languages, and which one a browser asks for.

use fluent_langneg::{NegotiationStrategy, accepted_languages, negotiate_languages};
use unic_langid::LanguageIdentifier;

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// Also for those who ask for none of the others.
    #[default]
    English,
    /// `fr`
    French,
    /// `de`
    German,
    /// `es`
    Spanish,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 4] =
        [Language::English, Language::French, Language::German, Language::Spanish];

    /// The language that fits a header `Accept-Language` best, by its order: browsers send their
    /// languages in the order of their quality.
    pub fn accepted(header: &str) -> Language {
        let wanted = accepted_languages::parse(header);
        let known = Language::ALL.map(Language::identifier);
        let found =
            negotiate_languages(&wanted, &known, Some(&known[0]), NegotiationStrategy::Lookup);
        let best = found.first().copied();
        let mut pairs = Language::ALL.into_iter().zip(&known);
        pairs.find(|(_, known)| Some(*known) == best).map_or(Language::English, |(known, _)| known)
    }

    /// Its tag of BCP 47, for the attribute `lang`.
    pub fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::French => "fr",
            Language::German => "de",
            Language::Spanish => "es",
        }
    }

    /// The text of its files.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Language::English => include_str!(concat!(env!("OUT_DIR"), "/en.ftl")),
            Language::French => include_str!(concat!(env!("OUT_DIR"), "/fr.ftl")),
            Language::German => include_str!(concat!(env!("OUT_DIR"), "/de.ftl")),
            Language::Spanish => include_str!(concat!(env!("OUT_DIR"), "/es.ftl")),
        }
    }

    pub(crate) fn identifier(self) -> LanguageIdentifier {
        // The tags are fixed, and a test reads each. The default is no language.
        self.tag().parse().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_the_first_of_its_languages_that_there_is() {
        for (header, language) in [
            ("de-CH,de;q=0.9,en;q=0.8", Language::German),
            ("pt-BR,pt;q=0.9,es-419;q=0.5,en;q=0.2", Language::Spanish),
            ("fr", Language::French),
            ("en-GB,fr;q=0.9", Language::English),
            ("zh-Hant-TW", Language::English),
            ("*", Language::English),
            ("", Language::English),
            (";;,q=\u{1F600}", Language::English),
        ] {
            assert_eq!(Language::accepted(header), language, "{header}");
        }
        for language in Language::ALL {
            assert_eq!(language.identifier().to_string(), language.tag());
        }
    }
}
