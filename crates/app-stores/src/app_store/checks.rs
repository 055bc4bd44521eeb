//! What is checked before anything is sent to the App Store. Pure.
//!
//! Source: `AppVersionState` of Apple's description.

use crate::app_store_connect::{documents::Localization, upload};

/// A version of the app in App Store Connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownVersion {
    pub id: String,
    pub version: String,
    pub state: String,
}

/// What may become of the version that is to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ground {
    /// The version that can be edited, which is taken over. Apple allows one.
    pub editable: Option<KnownVersion>,
    /// No version of the app was released before.
    pub is_first: bool,
}

/// Checks a version against those that App Store Connect has. The error says what is in the way.
pub(super) fn ground(versions: &[KnownVersion], wanted: &str) -> Result<Ground, String> {
    let number = upload::numbers(wanted);
    let released = |known: &&KnownVersion| {
        matches!(known.state.as_str(), "READY_FOR_DISTRIBUTION" | "REPLACED_WITH_NEW_VERSION")
    };
    let highest =
        versions.iter().filter(released).max_by_key(|known| upload::numbers(&known.version));
    if let Some(known) = highest.filter(|known| number <= upload::numbers(&known.version)) {
        return Err(format!(
            "The App Store has version {} already, and {wanted} is not higher. Raise \
             CFBundleShortVersionString and build again.",
            known.version
        ));
    }
    let is_editable = |known: &&KnownVersion| {
        matches!(
            known.state.as_str(),
            "PREPARE_FOR_SUBMISSION"
                | "DEVELOPER_REJECTED"
                | "REJECTED"
                | "METADATA_REJECTED"
                | "INVALID_BINARY"
                | "READY_FOR_REVIEW"
        )
    };
    let in_the_way = |known: &&KnownVersion| !released(known) && !is_editable(known);
    if let Some(known) = versions.iter().find(in_the_way) {
        return Err(format!(
            "Version {} of the app is not finished: its state is {}. Wait for it, or remove it from \
             review in App Store Connect.",
            known.version, known.state
        ));
    }
    Ok(Ground { editable: versions.iter().find(is_editable).cloned(), is_first: highest.is_none() })
}

/// Checks that a version says in every language what Apple demands. The error names what is missing.
pub(super) fn complete(localizations: &[Localization]) -> Result<(), String> {
    let is_empty = |text: &Option<String>| text.as_deref().is_none_or(|t| t.trim().is_empty());
    let lacks = |one: &Localization| -> Vec<&str> {
        let needed = [
            (&one.description, "a description"),
            (&one.keywords, "keywords"),
            (&one.support_url, "a support URL"),
        ];
        needed.into_iter().filter(|(text, _)| is_empty(text)).map(|(_, name)| name).collect()
    };
    let sentences: Vec<_> = localizations
        .iter()
        .map(|one| (one.locale.as_str(), lacks(one).join(" and ")))
        .filter(|(_, lacking)| !lacking.is_empty())
        .map(|(language, lacking)| format!("{language} needs {lacking}"))
        .collect();
    if sentences.is_empty() {
        return Ok(());
    }
    Err(format!("Complete the version in App Store Connect: {}.", sentences.join("; ")))
}

/// Whether a version has release notes in every language.
pub(super) fn tells_news(localizations: &[Localization]) -> bool {
    let tells = |one: &Localization| one.whats_new.as_deref().is_some_and(|t| !t.trim().is_empty());
    !localizations.is_empty() && localizations.iter().all(tells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known(version: &str, state: &str) -> KnownVersion {
        KnownVersion { id: "v".into(), version: version.into(), state: state.into() }
    }

    #[test]
    fn a_version_must_be_higher_and_alone() {
        let live = known("1.4.1", "READY_FOR_DISTRIBUTION");
        let draft = known("1.5", "PREPARE_FOR_SUBMISSION");
        let grounds = |versions: &[KnownVersion]| ground(versions, "1.4.2").unwrap();
        assert!(grounds(&[]).is_first);
        assert!(grounds(std::slice::from_ref(&draft)).is_first);
        let found = grounds(&[draft.clone(), live.clone()]);
        assert_eq!((found.is_first, found.editable), (false, Some(draft)));
        for (wrong, word) in [
            (known("1.4.2", "READY_FOR_DISTRIBUTION"), "already"),
            (known("1.10", "READY_FOR_DISTRIBUTION"), "not higher"),
            (known("1.4.2", "REPLACED_WITH_NEW_VERSION"), "not higher"),
            (known("1.4.2", "WAITING_FOR_REVIEW"), "WAITING_FOR_REVIEW"),
            (known("1.4.1.1", "IN_REVIEW"), "1.4.1.1"),
            (known("1.3", "PENDING_DEVELOPER_RELEASE"), "PENDING_DEVELOPER_RELEASE"),
        ] {
            let why = ground(&[live.clone(), wrong.clone()], "1.4.2").unwrap_err();
            assert!(why.contains(word), "{wrong:?}: {why}");
        }
    }

    #[test]
    fn what_a_version_lacks_is_named_by_language() {
        let localization = |locale: &str, description: &str, keywords: Option<&str>| {
            let url = "https://example.com";
            serde_json::from_value::<Localization>(json!({"locale": locale, "supportUrl": url,
                "description": description, "keywords": keywords}))
            .unwrap()
        };
        let good = localization("en-US", "An app", Some("app"));
        let bad = localization("de-DE", " ", None);
        assert_eq!(complete(std::slice::from_ref(&good)), Ok(()));
        assert_eq!(
            complete(&[good, bad]).unwrap_err(),
            "Complete the version in App Store Connect: de-DE needs a description and keywords."
        );
    }
}
