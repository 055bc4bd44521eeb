//! What can go wrong is said to the person at the terminal: a sentence is enough.

use std::fmt::Display;

/// A value, or why there is none.
pub type Outcome<T> = Result<T, String>;

/// Says what an error was about.
pub trait Explain<T> {
    /// The error becomes a sentence that begins with `what`.
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
