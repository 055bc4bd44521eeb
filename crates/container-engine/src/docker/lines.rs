//! Assembles the output of a build into lines.

use anstream::adapter::strip_str;

/// Bytes of a line that are passed on.
pub(super) const LONGEST: usize = 16 << 10;

/// One stream of output. A line longer than [`LONGEST`] is cut off at once: a step may print a line
/// that never ends.
#[derive(Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    /// The line was cut off, and goes on.
    is_cut: bool,
}

impl Lines {
    /// Takes a piece of output, and returns the lines that end in it. Empty lines are left out.
    pub fn take(&mut self, output: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in output.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_end) = piece.strip_suffix(b"\n").map_or((piece, false), |t| (t, true));
            lines.extend(self.add(text));
            if is_end {
                lines.extend(self.rest());
                self.is_cut = false;
            }
        }
        lines
    }

    /// Adds a piece of a line. Returns the line if it is cut off here.
    fn add(&mut self, text: &[u8]) -> Option<String> {
        if self.is_cut {
            return None;
        }
        let room = LONGEST - self.begun.len();
        self.begun.extend_from_slice(text.get(..room).unwrap_or(text));
        self.is_cut = text.len() > room;
        if !self.is_cut {
            return None;
        }
        // Half a character at the end is no character.
        if let Some(part) =
            self.begun.utf8_chunks().last().filter(|part| !part.invalid().is_empty())
        {
            let whole = self.begun.len() - part.invalid().len();
            self.begun.truncate(whole);
        }
        self.rest()
    }

    /// The line that has begun, if there is one.
    pub fn rest(&mut self) -> Option<String> {
        let begun = std::mem::take(&mut self.begun);
        let text = String::from_utf8_lossy(&begun);
        Some(plain(text.trim_end_matches('\r'))).filter(|line| !line.is_empty())
    }
}

/// Removes colours, cursor movements and links: a log is plain text.
fn plain(line: &str) -> String {
    strip_str(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_lines() {
        let mut lines = Lines::default();
        assert!(lines.take(b"Step 1/2 : FROM x").is_empty());
        assert_eq!(lines.take(b"\n ---> 1\r\n\nla"), ["Step 1/2 : FROM x", " ---> 1"]);
        assert_eq!(lines.rest().as_deref(), Some("la"));
        assert_eq!(lines.rest(), None);
        assert_eq!(lines.take(b"\x1b[91mwarning\n\x1b[0m3\n"), ["warning", "3"]);
        let link = b"\x1b[2K\x1b[1Gsee \x1b]8;;https://example.com\x07notes\x1b]8;;\x07\n";
        assert_eq!(lines.take(link), ["see notes"]);
        assert!(lines.take(b"caf\xc3").is_empty());
        assert_eq!(lines.take(b"\xa9 \xff\n"), ["café \u{fffd}"], "a character in two pieces");
    }

    #[test]
    fn a_line_that_never_ends_is_cut_off_and_takes_no_memory() {
        let mut lines = Lines::default();
        // Characters of three bytes, which do not divide the limit.
        let endless = "\u{20ac}".repeat(10_000);
        let mut found = Vec::new();
        for _ in 0..1_000 {
            found.extend(lines.take(endless.as_bytes()));
            assert!(lines.begun.len() <= LONGEST, "{}", lines.begun.len());
        }
        assert_eq!(found, ["\u{20ac}".repeat(LONGEST / 3)]);
        assert_eq!(lines.take(b"the end of it\nthe next\n"), ["the next"]);
        let whole = "x".repeat(LONGEST);
        assert_eq!(lines.take(format!("{whole}\n").as_bytes()), [whole]);
    }
}
