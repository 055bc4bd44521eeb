//! Writes the whole store as a stream of lines, and reads such a stream.
//!
//! The first line names the format. Each further line is one row, key and value in hex. The last
//! line counts the rows, so a truncated stream is noticed.

use crate::{
    Store, StoreError, io, keys,
    open::{FORMAT, SAME_ROWS},
    rows::{Order, Writes},
};
use data_encoding::HEXLOWER;
use std::io::{BufRead, Write};

const HEADER: &str = "svc-store";

/// Bytes of a backup that are written together. One row may be larger.
const AT_A_TIME: usize = 1 << 20;

impl Store {
    /// Writes every row and returns their number. Nobody may write to the store meanwhile.
    pub fn dump(&self, out: &mut impl Write) -> Result<u64, StoreError> {
        writeln!(out, "{HEADER} {FORMAT}").map_err(io)?;
        let mut count = 0;
        self.inner.rows()?.range(keys::all(), Order::FirstKeyFirst, &mut |key, value| {
            writeln!(out, "{} {}", HEXLOWER.encode(key), HEXLOWER.encode(value)).map_err(io)?;
            count += 1;
            Ok(true)
        })?;
        writeln!(out, "end {count}").map_err(io)?;
        Ok(count)
    }

    /// Fills an empty store with the rows of a [`dump`](Store::dump) and returns their number.
    pub fn load(&self, input: &mut (impl BufRead + Send)) -> Result<u64, StoreError> {
        if !self.is_empty()? {
            return Err(StoreError::Unwritable(
                "the store is not empty: restore into a new data directory".into(),
            ));
        }
        let mut rows = Rows::begin(input)?;
        self.writer.load(&self.inner, &mut rows)?;
        Ok(rows.count)
    }
}

/// The rows of a dump, some at a time. An error is the last item.
struct Rows<'a, I> {
    input: &'a mut I,
    count: u64,
    has_ended: bool,
}

fn damaged(why: &str) -> StoreError {
    StoreError::Unreadable(format!("the backup is damaged: {why}"))
}

impl<'a, I: BufRead> Rows<'a, I> {
    fn begin(input: &'a mut I) -> Result<Self, StoreError> {
        let mut line = String::new();
        input.read_line(&mut line).map_err(io)?;
        if ![FORMAT, SAME_ROWS].iter().any(|known| line.trim_end() == format!("{HEADER} {known}")) {
            return Err(StoreError::Unreadable(format!(
                "not a backup of format {FORMAT}: it begins with {:?}",
                line.trim_end()
            )));
        }
        Ok(Rows { input, count: 0, has_ended: false })
    }

    /// Reads rows until there are enough, or until the end.
    fn read(&mut self) -> Result<Writes, StoreError> {
        let (mut rows, mut bytes, mut line) = (Writes::new(), 0, String::new());
        while bytes < AT_A_TIME {
            line.clear();
            if self.input.read_line(&mut line).map_err(io)? == 0 {
                return Err(damaged("its end is missing"));
            }
            let mut parts = line.split_ascii_whitespace();
            match (parts.next(), parts.next()) {
                (Some("end"), Some(n)) if n == self.count.to_string() => {
                    self.has_ended = true;
                    break;
                }
                (Some("end"), _) => return Err(damaged("rows are missing")),
                (Some(key), value) => {
                    let read = |text: &str| {
                        HEXLOWER.decode(text.as_bytes()).map_err(|_| damaged("a row is not hex"))
                    };
                    let (key, value) = (read(key)?, read(value.unwrap_or_default())?);
                    bytes += key.len() + value.len();
                    rows.insert(key, Some(value));
                    self.count += 1;
                }
                _ => return Err(damaged("a line is empty")),
            }
        }
        Ok(rows)
    }
}

impl<I: BufRead> Iterator for Rows<'_, I> {
    type Item = Result<Writes, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.read();
        self.has_ended |= read.is_err();
        Some(read)
    }
}
