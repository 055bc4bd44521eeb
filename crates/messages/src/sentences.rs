//! A method for each sentence of the English files.

use crate::Language;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};
use std::sync::LazyLock;

type Bundle = FluentBundle<FluentResource>;

/// The sentences of each language, in the order of [`Language::ALL`].
static BUNDLES: LazyLock<[Bundle; Language::ALL.len()]> =
    LazyLock::new(|| Language::ALL.map(bundle));

fn bundle(language: Language) -> Bundle {
    let mut bundle = FluentBundle::new_concurrent(vec![language.identifier()]);
    // Pages isolate what may run in another direction themselves, with `bdi`.
    bundle.set_use_isolating(false);
    // What cannot be read of a file is left out. The build reads all of them.
    let resource = FluentResource::try_new(language.source().to_owned());
    let resource = resource.unwrap_or_else(|(readable, _)| readable);
    bundle.add_resource_overriding(resource);
    bundle
}

/// Stands for a value that a page shows as more than text, such as a link: the page puts it where the
/// sentence has this character.
pub const HOLE: char = '\u{FFFC}';

/// The sentences of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Messages {
    /// The language of the sentences.
    pub language: Language,
}

/// A sentence without values, for any language.
pub type Sentence = fn(Messages) -> String;

impl Messages {
    /// The sentences of the language that fits a header `Accept-Language` best.
    pub fn accepted(header: &str) -> Messages {
        Messages { language: Language::accepted(header) }
    }

    fn get<'a, const N: usize>(
        self,
        name: &str,
        values: [(&'a str, FluentValue<'a>); N],
    ) -> String {
        let values: FluentArgs = values.into_iter().collect();
        let bundle_of = |wanted| {
            let mut bundles = Language::ALL.into_iter().zip(BUNDLES.iter());
            bundles.find(|(language, _)| *language == wanted).map(|(_, bundle)| bundle)
        };
        let languages = [self.language, Language::English];
        let found = languages
            .into_iter()
            .filter_map(bundle_of)
            .find_map(|bundle| bundle.get_message(name)?.value().map(|pattern| (bundle, pattern)));
        let Some((bundle, pattern)) = found else { return name.to_owned() };
        bundle.format_pattern(pattern, Some(&values), &mut Vec::new()).into_owned()
    }
}

include!(concat!(env!("OUT_DIR"), "/sentences.rs"));

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn strangers_read_every_language() {
        let said = Language::ALL.map(|language| Messages { language }.has_account());
        assert_eq!(BTreeSet::from(said).len(), Language::ALL.len());
    }

    #[test]
    fn a_sentence_has_its_values_and_the_form_of_their_number() {
        let german = Messages { language: Language::German };
        assert_eq!(german.paid_text("12,50 EUR"), "Ihre Zahlung von 12,50 EUR ist angekommen.");
        assert!(german.only_these_devices(1, "1").ends_with("1 registrierten Gerät installieren"));
        assert!(german.only_these_devices(2, "2").contains("2 registrierten Geräten"));
        // A value that looks like a placeholder is a value.
        assert!(Messages::default().reference("{ $total }").ends_with("{ $total }"));
    }
}
