//! Lists that are longer than a page: what a person searches for, and the way to the next part.

use crate::{form::Form, response::Refused, visitor::Visitor};
use contract::{Fault, Function, Page};
use messages::Messages;

/// The name of the field that says which part of a list is shown.
pub const CURSOR: &str = "cursor";
/// A list with fewer items has no filter box before somebody filters it.
const FILTERED_FROM: usize = 10;

/// A part of a list, as a page shows it.
pub struct ListPart<T> {
    pub items: Vec<T>,
    pub rest: Rest,
    /// What the person searches for. If the service refuses it, the reason.
    pub form: Form,
}

/// How much of a list a page shows, and the ways to its other parts.
pub struct Rest {
    shown: usize,
    total: Option<u32>,
    /// Whether the person searches for something.
    is_filtered: bool,
    /// The address of the first part, if this is a later one.
    pub first: Option<String>,
    /// The address of the next part, if there is one.
    pub next: Option<String>,
}

impl Rest {
    /// What remains beside a page of the list at an address. The form says what the person searches
    /// for, and which part.
    pub fn of<T>(page: &Page<T>, at: &str, form: &Form) -> Rest {
        let filters = || form.fields().filter(|(name, _)| *name != CURSOR);
        let next = page.next_cursor.as_ref().map(|cursor| cursor.encode());
        Rest {
            shown: page.items.len(),
            total: page.total,
            is_filtered: filters().any(|(_, value)| !value.is_empty()),
            first: (!form.value(CURSOR).is_empty()).then(|| address(at, filters())),
            next: next.as_ref().map(|next| address(at, filters().chain([(CURSOR, next.as_str())]))),
        }
    }

    /// Whether the page shows only a part of the list.
    pub fn is_part(&self) -> bool {
        self.first.is_some() || self.next.is_some()
    }

    /// Whether the list has a filter box.
    pub fn has_filter(&self) -> bool {
        self.is_part() || self.is_filtered || self.shown > FILTERED_FROM
    }

    /// Whether nothing is there at all: not only nothing that a search finds, or on this part.
    pub fn is_empty(&self) -> bool {
        self.shown == 0 && !self.is_part() && !self.is_filtered
    }

    /// How much of the list is shown, such as `50 of 500`.
    pub fn words(&self, say: &Messages) -> String {
        match self.total {
            Some(all) if all >= Page::<()>::MOST_COUNTED => say.shown_of_many(self.shown),
            Some(all) => say.part_of(self.shown, all),
            None if self.shown == 0 => say.nothing_in_this_part(),
            None => say.shown_in_this_part(self.shown),
        }
    }
}

impl<T> ListPart<T> {
    /// Reads the part of the list at an address that a form names. `params` reads the parameters from
    /// the form.
    pub async fn read<F>(
        visitor: &Visitor,
        at: &str,
        form: Form,
        params: impl FnOnce(&Form) -> Result<F, Fault>,
    ) -> Result<ListPart<T>, Refused>
    where
        F: Function<Reply = Page<T>>,
    {
        let (found, form) = visitor.search(form, params).await?;
        let page = found.unwrap_or_else(|| Page::new(Vec::new(), None));
        let rest = Rest::of(&page, at, &form);
        Ok(ListPart { items: page.items, rest, form })
    }
}

/// An address with the fields that have a value.
pub fn address<'a>(path: &str, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Cursor;

    #[test]
    fn an_address_keeps_what_is_searched_for() {
        assert_eq!(address("/operations", [("query", "")]), "/operations");
        assert_eq!(
            address("/operations", [("query", "a&b=<c>"), ("kind", "app")]),
            "/operations?query=a%26b%3D%3Cc%3E&kind=app"
        );
    }

    #[test]
    fn a_part_of_a_list_says_how_much_it_is_and_leads_to_the_others() {
        let part = |total, next: Option<&str>, fields: &[(&str, &str)]| {
            let page = Page { items: vec![(); 50], next_cursor: next.map(Cursor::after), total };
            let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned()));
            Rest::of(&page, "/", &Form::filled(fields))
        };
        let first = part(Some(500), Some("k"), &[("query", ""), (CURSOR, "")]);
        assert_eq!(
            (first.words(&Messages::default()).as_str(), first.first.is_some()),
            ("50 of 500", false)
        );
        assert_eq!(first.next.as_deref(), Some("/?cursor=6b"));
        assert_eq!(
            part(Some(1_000), Some("k"), &[]).words(&Messages::default()),
            "50 of 1,000 or more"
        );
        let later = part(None, None, &[("query", "a b"), (CURSOR, "6b")]);
        assert_eq!(later.first.as_deref(), Some("/?query=a+b"));
        assert_eq!(
            (later.words(&Messages::default()).as_str(), later.next),
            ("50 in this part", None)
        );
        assert!(!part(Some(50), None, &[]).is_part());
    }
}
