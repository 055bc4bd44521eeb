//! Charts of measurements over time, drawn as SVG on the server.

use crate::{frame::View, text::ago};
use contract::Timestamp;
use std::{fmt::Write, time::Duration};

/// The size of a chart, in units of its own. A page stretches it.
pub const WIDTH: u32 = 600;
pub const HEIGHT: u32 = 120;

/// The columns of a chart. Of the samples in one column, it shows the highest.
const COLUMNS: usize = 240;

/// The parts of the time for which a chart names the highest value.
const PARTS: usize = 24;

/// A part of the time of a chart, with its highest value.
pub struct Part {
    /// Where it begins, in units of the chart.
    pub x: u32,
    /// When it begins, such as `7 hours ago`.
    pub when: String,
    /// The value, as people read it.
    pub value: String,
}

/// One line over a time that ends now.
pub struct Chart {
    /// What is measured.
    pub label: String,
    /// The highest value, as people read it.
    pub highest: String,
    /// The last value, as people read it.
    pub last: String,
    /// The value at the top edge, as people read it.
    pub top: String,
    /// The path of the line: one piece for each time without gaps.
    pub path: String,
    /// The parts of the time that have a value, the oldest first.
    pub parts: Vec<Part>,
}

/// The width of a part, in units of the chart.
pub const PART: u32 = WIDTH / PARTS as u32;

impl Chart {
    /// Draws samples. `most` is the value at the top edge, unless a sample is higher. `None` without
    /// samples.
    pub fn draw(
        label: String,
        samples: impl IntoIterator<Item = (Timestamp, f64)>,
        (view, over): (View, Duration),
        most: f64,
        words: impl Fn(f64) -> String,
    ) -> Option<Chart> {
        let (now, mut columns) = (view.now, [None; COLUMNS]);
        let mut last = None;
        for (at, value) in samples {
            let age = now.since(at);
            let left = over.checked_sub(age).map(|left| left.as_secs_f64() / over.as_secs_f64());
            let Some(left) = left else { continue };
            let place = ((left * COLUMNS as f64) as usize).min(COLUMNS - 1);
            if let Some(column) = columns.get_mut(place) {
                *column = Some(column.map_or(value, |known: f64| known.max(value)));
            }
            last = Some(value);
        }
        let highest = columns.iter().flatten().copied().reduce(f64::max)?;
        let top = highest.max(most).max(f64::MIN_POSITIVE);
        let (mut path, mut is_drawing) = (String::new(), false);
        for (place, column) in columns.iter().enumerate() {
            if let Some(value) = column {
                let x = place as f64 * f64::from(WIDTH) / (COLUMNS - 1) as f64;
                let y = f64::from(HEIGHT) * (1.0 - value / top);
                // A string takes all that is written.
                let _ = write!(path, "{}{x:.1} {y:.1}", if is_drawing { "L" } else { "M" });
                if !is_drawing {
                    // A line of one sample is seen as a dot.
                    path.push_str("h.1");
                }
            }
            is_drawing = column.is_some();
        }
        let parts = columns.chunks(COLUMNS / PARTS).enumerate().filter_map(|(n, columns)| {
            let value = columns.iter().flatten().copied().reduce(f64::max)?;
            let begun = over.mul_f64(1.0 - n as f64 / PARTS as f64);
            let (x, when) = (PART * n as u32, ago(&view.messages, now - begun, now));
            Some(Part { x, when, value: words(value) })
        });
        let parts = parts.collect();
        let (highest, last, top) = (words(highest), words(last?), words(top));
        Some(Chart { label, highest, last, top, path, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(samples: &[(u64, f64)], most: f64) -> Option<Chart> {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let before = |seconds: &u64| now - Duration::from_secs(*seconds);
        let samples: Vec<_> = samples.iter().map(|(age, value)| (before(age), *value)).collect();
        let view = View { messages: messages::Messages::default(), now };
        Chart::draw("CPU".to_owned(), samples, (view, Duration::from_secs(240)), most, |v| {
            format!("{v} %")
        })
    }

    #[test]
    fn a_chart_is_a_line_with_gaps() {
        assert!(drawn(&[], 100.0).is_none());
        assert!(drawn(&[(500, 1.0)], 100.0).is_none());
        let chart = drawn(&[(240, 50.0), (239, 100.0), (1, 25.0)], 0.0).unwrap();
        assert_eq!(chart.path, "M0.0 60.0h.1L2.5 0.0M600.0 90.0h.1");
        assert_eq!((chart.highest.as_str(), chart.last.as_str()), ("100 %", "25 %"));
        let parts: Vec<_> = chart.parts.iter().map(|part| (part.x, part.value.as_str())).collect();
        assert_eq!(parts, [(0, "100 %"), (575, "25 %")]);
        // The highest of one column, below the edge that the call gave.
        let chart = drawn(&[(0, 10.0), (0, 30.0), (0, 20.0)], 60.0).unwrap();
        assert_eq!(chart.path, "M600.0 60.0h.1");
        assert_eq!(drawn(&[(0, 0.0)], 0.0).unwrap().path, "M600.0 120.0h.1");
    }
}
