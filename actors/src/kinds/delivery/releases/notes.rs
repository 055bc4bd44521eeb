//! The size of the notes of a release. Pure.

use contract::{
    Fault, Notes,
    publishing::{MOST_NOTES, StoreOptions},
};

/// Refuses notes that have more than [`MOST_NOTES`] bytes together with the names of their languages. Each
/// publication of the release holds a copy.
pub(super) fn check_size(notes: Option<&Notes>, options: &StoreOptions) -> Result<(), Fault> {
    let by_language = options.notes.iter();
    let by_language =
        by_language.map(|(language, notes)| language.as_str().len() + notes.as_str().len());
    let size = notes.map_or(0, |notes| notes.as_str().len()) + by_language.sum::<usize>();
    if size <= MOST_NOTES {
        return Ok(());
    }
    let why = format!(
        "the notes of this release have {size} bytes in all languages together; at most {MOST_NOTES} are allowed"
    );
    Err(Fault::invalid("notes", why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn options(languages: usize, notes: usize) -> StoreOptions {
        let language = |n: usize| format!("de-{n:03}");
        let notes = (0..languages).map(|n| (language(n), "ß".repeat(notes)));
        let notes: std::collections::BTreeMap<_, _> = notes.collect();
        serde_json::from_value(json!({"notes": notes})).unwrap()
    }

    #[test]
    fn the_notes_of_all_languages_have_at_most_64_kib_together() {
        // Each of the three languages has 6 bytes of its name and 20,000 bytes of notes.
        let fits: Notes = "a".repeat(MOST_NOTES - 3 * 20_006).parse().unwrap();
        let over: Notes = "a".repeat(MOST_NOTES - 3 * 20_006 + 1).parse().unwrap();
        let options = options(3, 10_000);
        assert_eq!(check_size(Some(&fits), &options), Ok(()));
        let refused = check_size(Some(&over), &options);
        assert!(matches!(&refused, Err(Fault::Invalid(_))), "{refused:?}");
    }
}
