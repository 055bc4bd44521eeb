//! The icons of the pages: on a grid of 16, with lines of 1.5 and round ends. An icon stands beside a
//! word, or its link or button has a label, so screen readers skip it.

use askama::filters::HtmlSafe;
use std::fmt;

macro_rules! icons {
    ($($name:ident: $lines:literal),+ $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Icon {
            $($name),+
        }

        impl Icon {
            /// The lines, as elements of SVG.
            const fn lines(self) -> &'static str {
                match self {
                    $(Icon::$name => $lines),+
                }
            }
        }
    };
}

/// The mark of the product, in the colours of the text around it.
pub const BRAND: &str = r#"<svg viewBox="0 0 22 22" aria-hidden="true"><rect width="22" height="22" rx="6" fill="currentColor"/><path d="M5 14.5h4.25L13 7.5h4" fill="none" stroke="var(--page)" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round"/><circle cx="5.5" cy="14.5" r="1.9" fill="var(--page)"/><circle cx="16.5" cy="7.5" r="1.9" fill="var(--page)"/></svg>"#;

icons! {
    Alert: r#"<path d="M8 2.25 14.5 13.5h-13zM8 6.5v3M8 11.5h.01"/>"#,
    App: r#"<rect x="4" y="1.75" width="8" height="12.5" rx="1.75"/><path d="M7.25 11.75h1.5"/>"#,
    Arrow: r#"<path d="M2.5 8h11M9.25 3.75 13.5 8l-4.25 4.25"/>"#,
    Back: r#"<path d="M5.5 2.75 2 6.25l3.5 3.5M2.25 6.25h7.5a3.75 3.75 0 0 1 0 7.5H6"/>"#,
    Book: r#"<path d="M8 3.75C6.5 2.6 4.25 2.5 1.75 2.75v9.75c2.5-.25 4.75-.15 6.25 1 1.5-1.15 3.75-1.25 6.25-1V2.75C11.75 2.5 9.5 2.6 8 3.75zm0 0v9.75"/>"#,
    Cart: r#"<path d="M1.5 2.5h2l1.5 8h7.25l1.5-5.75H4.1M6 13.5h.01M11.5 13.5h.01"/>"#,
    Code: r#"<path d="M5.5 4.25 1.75 8l3.75 3.75M10.5 4.25 14.25 8l-3.75 3.75"/>"#,
    Dark: r#"<path d="M13.75 9.5A6 6 0 0 1 6.5 2.25a6 6 0 1 0 7.25 7.25z"/>"#,
    Folder: r#"<path d="M1.75 12.5v-9h4.5L8 5.25h6.25v7.25z"/>"#,
    Gauge: r#"<path d="M2.6 12.5a6.25 6.25 0 1 1 10.8 0M8 9.5l2.75-3.25"/>"#,
    Home: r#"<path d="M2.5 7 8 2.5 13.5 7v6.5h-4V9.75h-3v3.75h-4z"/>"#,
    Layers: r#"<path d="m8 2 6.25 3.25L8 8.5 1.75 5.25zM1.75 8.25 8 11.5l6.25-3.25M1.75 11.25 8 14.5l6.25-3.25"/>"#,
    Light: r#"<circle cx="8" cy="8" r="2.75"/><path d="M8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1.05 1.05M11.55 11.55l1.05 1.05M12.6 3.4l-1.05 1.05M4.45 11.55 3.4 12.6"/>"#,
    Menu: r#"<path d="M2 4.5h12M2 8h12M2 11.5h12"/>"#,
    People: r#"<circle cx="6" cy="5" r="2.5"/><path d="M1.5 13.5c.25-2.75 2-4.25 4.5-4.25s4.25 1.5 4.5 4.25M10.5 2.75a2.4 2.4 0 0 1 0 4.5M12 9.5c1.5.5 2.35 1.9 2.5 4"/>"#,
    Pulse: r#"<path d="M1.5 8.25h3l2-5.5 3.25 10.5 2-5h2.75"/>"#,
    Screen: r#"<rect x="1.75" y="2.5" width="12.5" height="8.5" rx="1.25"/><path d="M5.5 13.75h5"/>"#,
    Search: r#"<circle cx="7" cy="7" r="4.75"/><path d="m10.5 10.5 3.5 3.5"/>"#,
    Server: r#"<rect x="2" y="2.5" width="12" height="4.75" rx="1.25"/><rect x="2" y="8.75" width="12" height="4.75" rx="1.25"/><path d="M4.75 4.9h.01M4.75 11.1h.01"/>"#,
    Sliders: r#"<path d="M2 4.75h7M13 4.75h1M2 11.25h1M7 11.25h7"/><circle cx="11" cy="4.75" r="1.75"/><circle cx="5" cy="11.25" r="1.75"/>"#,
    Upload: r#"<path d="M8 10.5v-8M4.75 5.5 8 2.25l3.25 3.25M2.25 10.5v3h11.5v-3"/>"#,
}

impl fmt::Display for Icon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines();
        write!(f, r#"<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">{lines}</svg>"#)
    }
}

/// Its lines are those of this file.
impl HtmlSafe for Icon {}
