//! The chapters, as `SUMMARY.md` lists them in the form of mdBook.

/// Chapters that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Empty for the chapters before all others.
    pub title: String,
    /// In the order of the list.
    pub chapters: Vec<Chapter>,
}

/// A chapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chapter {
    /// As the list calls it.
    pub title: String,
    /// Its path below `docs`.
    pub file: String,
    /// Whether it belongs to the chapter before it.
    pub is_inner: bool,
}

impl Chapter {
    /// Its path without `.md`, by which [`page`](crate::page) finds it.
    pub fn path(&self) -> &str {
        self.file.strip_suffix(".md").unwrap_or(&self.file)
    }
}

pub(crate) fn read(summary: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for line in summary.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix("# "), chapter(line)) {
            // The first heading is that of the list.
            (Some(_), _) if parts.is_empty() => {
                parts.push(Part { title: String::new(), chapters: Vec::new() });
            }
            (Some(title), _) => parts.push(Part { title: title.into(), chapters: Vec::new() }),
            (None, Some(chapter)) => {
                if let Some(part) = parts.last_mut() {
                    part.chapters.push(chapter);
                }
            }
            (None, None) => {}
        }
    }
    parts
}

/// The chapter of a line such as `- [Title](file.md)`.
fn chapter(line: &str) -> Option<Chapter> {
    let (before, rest) = line.split_once('[')?;
    let (title, rest) = rest.split_once("](")?;
    let (file, _) = rest.split_once(')')?;
    Some(Chapter { title: title.into(), file: file.into(), is_inner: before.starts_with(' ') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_their_chapters_are_read() {
        let parts =
            read("# Summary\n\n[Words](words.md)\n\n# Run\n\n- [A](a.md)\n  - [B](b/c.md)\n");
        let chapter = |title: &str, file: &str, is_inner| Chapter {
            title: title.into(),
            file: file.into(),
            is_inner,
        };
        assert_eq!(
            parts,
            [
                Part { title: String::new(), chapters: vec![chapter("Words", "words.md", false)] },
                Part {
                    title: "Run".into(),
                    chapters: vec![chapter("A", "a.md", false), chapter("B", "b/c.md", true)],
                },
            ]
        );
        assert_eq!(parts[1].chapters[1].path(), "b/c");
    }
}
