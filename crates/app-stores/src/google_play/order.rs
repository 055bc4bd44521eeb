//! What an order asks of Google Play, checked as far as that needs no answer of Google. Pure.

use super::{change::Ours, progress::Wish};
use crate::{PublicationOrder, RemoteError};
use contract::{
    Notes,
    artifacts::ArtifactKind,
    publishing::{GooglePlayOptions, Language},
};

/// The longest release notes of one language, in characters.
const LONGEST_NOTES: usize = 500;
const HIGHEST_PRIORITY: u8 = 5;

/// What an order asks.
pub(super) struct PlayOrder<'a> {
    pub order: &'a PublicationOrder<GooglePlayOptions>,
    /// The version code.
    pub code: u64,
    pub track: &'a str,
    pub wish: Wish,
}

impl<'a> PlayOrder<'a> {
    pub fn of(
        order: &'a PublicationOrder<GooglePlayOptions>,
    ) -> Result<PlayOrder<'a>, RemoteError> {
        let refused = |why: String| Err(RemoteError::Refused(why));
        let options = &order.options;
        let Some(track) = &options.track else {
            return refused("The publication names no track of Google Play.".into());
        };
        if order.file.kind == ArtifactKind::Ipa {
            return refused("Google Play takes files for Android: .aab and .apk.".into());
        }
        let Ok(code) = order.file.build_number.parse() else {
            return refused(format!(
                "The version code of the file is {:?}, which is not a number.",
                order.file.build_number
            ));
        };
        if options.in_app_update_priority.is_some_and(|it| it > HIGHEST_PRIORITY) {
            return refused("`inAppUpdatePriority` is 0 to 5.".into());
        }
        let notes = order.notes.iter().map(|(language, text)| (language.as_str(), text));
        let default = order.default_notes.iter().map(|text| ("the default language", text));
        for (language, text) in notes.chain(default) {
            let length = text.as_str().chars().count();
            if length > LONGEST_NOTES {
                return refused(format!(
                    "The release notes in {language} have {length} characters, and Google Play takes \
                     {LONGEST_NOTES}. Shorten them."
                ));
            }
        }
        let wish = Wish { wanted: order.wanted, draft: options.draft };
        Ok(PlayOrder { order, code, track: track.as_str(), wish })
    }

    /// The release, in an app with this default language.
    pub fn ours(&self, language: Option<&str>) -> Ours {
        let mut notes = self.order.notes.clone();
        let default: Option<(Language, &Notes)> =
            language.and_then(|it| it.parse().ok()).zip(self.order.default_notes.as_ref());
        if let Some((language, text)) = default {
            notes.entry(language).or_insert_with(|| text.clone());
        }
        Ours {
            code: self.code,
            name: self.order.file.version.clone(),
            notes: notes.into_iter().collect(),
            priority: self.order.options.in_app_update_priority,
        }
    }

    /// The page for users or testers.
    pub fn url(&self) -> Option<String> {
        let app = &self.order.app;
        match self.track {
            "production" => Some(format!("https://play.google.com/store/apps/details?id={app}")),
            // The address for internal testers has a number that only the console shows.
            "internal" => None,
            _ => Some(format!("https://play.google.com/apps/testing/{app}")),
        }
    }
}
