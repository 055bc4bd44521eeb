//! Turns the stored bytes of an entry into its content.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::Entry;
use crate::refusal::{Failure, Refusal};

const METHOD_STORED: u16 = 0;
const METHOD_DEFLATED: u16 = 8;
const BUFFER_LEN: usize = 64 << 10;

/// See [`super::Archive::stream`]. The entry's data starts at `offset` of the file.
///
/// Calls the inflater directly and not through a `Read`, which has one error for a damaged entry
/// and for a failing disk.
pub(super) fn stream(
    file: &File,
    entry: &Entry,
    offset: u64,
    mut sink: impl FnMut(&[u8]),
) -> Result<(), Failure> {
    let header = &entry.header;
    let mut input =
        Input { file, offset, left: header.stored, buffer: vec![0; BUFFER_LEN], at: 0..0 };
    let mut crc = Crc::new();
    let mut written: u64 = 0;
    let mut output = |piece: &[u8]| {
        written = written.saturating_add(piece.len() as u64);
        // The reader must not get more bytes than the entry declares.
        if written > header.inflated {
            return Err(entry.damaged());
        }
        crc.update(piece);
        sink(piece);
        // A small file may inflate to much, and its thread would keep short requests waiting for a processor.
        thread::yield_now();
        Ok(())
    };
    match header.method {
        METHOD_STORED => copy(&mut input, &mut output)?,
        METHOD_DEFLATED => inflate(&mut input, &mut output, entry)?,
        _ => return Err(Refusal::UnknownCompression { name: entry.quoted() }.into()),
    }
    if written != header.inflated || crc.sum() != header.crc32 {
        return Err(entry.damaged().into());
    }
    Ok(())
}

fn copy(
    input: &mut Input,
    output: &mut impl FnMut(&[u8]) -> Result<(), Refusal>,
) -> Result<(), Failure> {
    while !input.fill()? {
        output(input.piece())?;
        input.consume(BUFFER_LEN);
    }
    Ok(())
}

fn inflate(
    input: &mut Input,
    output: &mut impl FnMut(&[u8]) -> Result<(), Refusal>,
    entry: &Entry,
) -> Result<(), Failure> {
    let mut inflater = Decompress::new(false);
    let mut window = vec![0; BUFFER_LEN];
    loop {
        let at_end = input.fill()?;
        let (consumed_before, produced_before) = (inflater.total_in(), inflater.total_out());
        let status = inflater
            .decompress(input.piece(), &mut window, FlushDecompress::None)
            .map_err(|_| entry.damaged())?;
        let consumed = inflater.total_in().saturating_sub(consumed_before);
        let produced = inflater.total_out().saturating_sub(produced_before);
        input.consume(usize::try_from(consumed).unwrap_or(BUFFER_LEN));
        let produced = usize::try_from(produced).unwrap_or(BUFFER_LEN);
        output(window.get(..produced).unwrap_or_default())?;
        if status == Status::StreamEnd {
            // Bytes after the end would be signed, and no reader would see them.
            return if input.fill()? { Ok(()) } else { Err(entry.damaged().into()) };
        }
        let stalled = consumed == 0 && produced == 0;
        if stalled && at_end {
            return Err(entry.damaged().into());
        }
    }
}

/// Reads the stored bytes of one entry through a buffer.
struct Input<'f> {
    file: &'f File,
    offset: u64,
    left: u64,
    buffer: Vec<u8>,
    /// The part of the buffer that has not been consumed.
    at: std::ops::Range<usize>,
}

impl Input<'_> {
    /// Refills an empty buffer. Returns whether the input has ended.
    fn fill(&mut self) -> Result<bool, Failure> {
        if self.at.is_empty() {
            let len = usize::try_from(self.left).unwrap_or(BUFFER_LEN).min(BUFFER_LEN);
            let piece = self.buffer.get_mut(..len).unwrap_or_default();
            self.file.read_exact_at(piece, self.offset)?;
            self.offset = self.offset.saturating_add(len as u64);
            self.left = self.left.saturating_sub(len as u64);
            self.at = 0..len;
        }
        Ok(self.at.is_empty())
    }

    fn piece(&self) -> &[u8] {
        self.buffer.get(self.at.clone()).unwrap_or_default()
    }

    fn consume(&mut self, count: usize) {
        self.at.start = self.at.start.saturating_add(count).min(self.at.end);
    }
}
