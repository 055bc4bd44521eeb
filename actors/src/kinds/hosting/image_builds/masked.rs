//! What no log of a build shows.

use container_engine::Secrets;
use contract::text::MASK;

/// The lines of secrets, the longest first: one may contain another.
pub struct Masked(Vec<String>);

impl Masked {
    /// In bytes. A shorter text would mask parts of other words.
    const SHORTEST: usize = 4;

    pub fn of(secrets: &Secrets) -> Masked {
        let lines = secrets.0.values().flat_map(|secret| secret.lines().map(str::trim));
        let lines = lines.filter(|line| line.len() >= Self::SHORTEST);
        let mut lines: Vec<_> = lines.map(str::to_owned).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
        Masked(lines)
    }

    /// The text with a mask in place of each of them.
    pub fn masks(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| text.replace(secret, MASK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_secret_is_masked_and_short_ones_are_not() {
        let secrets = [("A", "token-12\n  second line \n"), ("B", "token"), ("C", "no")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let masked = Masked::of(&Secrets(secrets.into()));
        let shown = |text: &str| masked.masks(text.to_owned());
        assert_eq!(shown("a token-12, token and no"), format!("a {MASK}, {MASK} and no"));
        assert_eq!(shown("the second line of it"), format!("the {MASK} of it"));
    }
}
