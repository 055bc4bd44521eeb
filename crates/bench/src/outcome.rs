//! Errors are sentences, because a person at the terminal reads them.

use std::fmt::Display;

/// A value, or a sentence that says why there is none.
pub type Outcome<T> = Result<T, String>;

/// Names the subject of an error.
pub trait Explain<T> {
    /// Makes the error a sentence that begins with `what`.
    fn or_say(self, what: impl Display) -> Outcome<T>;
}

impl<T, E: Display> Explain<T> for Result<T, E> {
    fn or_say(self, what: impl Display) -> Outcome<T> {
        self.map_err(|e| format!("{what}: {e}"))
    }
}

impl<T> Explain<T> for Option<T> {
    fn or_say(self, what: impl Display) -> Outcome<T> {
        self.ok_or_else(|| format!("{what} is missing"))
    }
}
