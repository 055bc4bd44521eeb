//! The sentences of the pages, in the languages that svc speaks.
//!
//! The sentences of each language are in the [Fluent] files of its folder below `locales`. The English files
//! are complete: each of their messages is a method of [`Messages`], so a sentence that no file has does not
//! compile into a page. Pages for people whose language the service does not choose (who installs an app,
//! pays, is invited, or is about to sign in) are in every language. What a language does not have is
//! English. Numbers and dates are written as the language writes them, by the data of Unicode.
//!
//! [Fluent]: https://projectfluent.org

#![warn(missing_docs)]

mod format;
mod language;
mod sentences;

pub use language::Language;
pub use sentences::{HOLE, Messages, Sentence};
