//! Forms, as Stripe takes them: names with brackets.

use std::fmt::Display;
use url::form_urlencoded::Serializer;

/// The fields of a form, in order.
#[derive(Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    pub fn add(&mut self, name: &str, value: impl Display) {
        self.0.push((name.to_owned(), value.to_string()));
    }

    /// The body of the request.
    pub fn encoded(&self) -> String {
        Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}
