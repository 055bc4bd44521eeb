//! Checks that the bytes between the entries of an archive are padding.
//!
//! Phones find entries through the central directory. Other programs read one local header after
//! the other. Both see the same files only if the bytes that belong to no entry hold no file. Real
//! tools write three things there:
//!
//! * a data descriptor, which repeats the sizes and the checksum of the entry before it;
//! * zeros, at which a sequential reader stops;
//! * "virtual entries", with which the Android Gradle Plugin (zipflinger) fills gaps, also before
//!   the first entry: a local header without a name, without content and without a header in the
//!   directory, whose extra field is zeros. A sequential reader skips it, or sees a file without
//!   name and content.
//!
//! Everything else is refused. The file itself must begin with a local header: an old Android runs
//! code that precedes an archive, without reading the archive ("Janus", CVE-2017-13156).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::directory::{Header, read_at};
use super::{LOCAL_HEADER, LOCAL_HEADER_LEN};
use crate::cursor::Cursor;

const DATA_DESCRIPTOR: u32 = 0x0807_4b50;
/// Bytes of a descriptor with a signature and with sizes of 64 bits.
const LONGEST_DESCRIPTOR: u64 = 24;
const BUFFER_LEN: u64 = 64 << 10;

/// The length of the data descriptor of `entry` at the start of `range`; 0 if there is none.
pub(super) fn descriptor_len(file: &File, range: Range<u64>, entry: &Header) -> io::Result<u64> {
    let room = range.end.saturating_sub(range.start).min(LONGEST_DESCRIPTOR);
    let bytes = read_at(file, range.start, room)?;
    // The longest form first: if two fit, the shorter one would leave bytes over.
    let forms = [(true, true), (true, false), (false, true), (false, false)];
    let fits = forms.into_iter().find_map(|(signed, wide)| {
        let mut fields = Cursor::new(&bytes);
        let before = fields.rest().len();
        if signed {
            (fields.u32_le()? == DATA_DESCRIPTOR).then_some(())?;
        }
        let crc32 = fields.u32_le()?;
        let mut size = || if wide { fields.u64_le() } else { fields.u32_le().map(u64::from) };
        let (stored, inflated) = (size()?, size()?);
        let same = (crc32, stored, inflated) == (entry.crc32, entry.stored, entry.inflated);
        same.then_some(before.saturating_sub(fields.rest().len()) as u64)
    });
    Ok(fits.unwrap_or(0))
}

/// Whether all of `range` is zeros and virtual entries. Reads each byte once.
pub(super) fn is_padding(file: &File, range: Range<u64>) -> io::Result<bool> {
    let buffer = range.end.saturating_sub(range.start).min(BUFFER_LEN);
    let section = Section { file, range };
    let mut input =
        BufReader::with_capacity(usize::try_from(buffer).unwrap_or(usize::MAX), section);
    loop {
        skip_zeros(&mut input, u64::MAX)?;
        if input.fill_buf()?.is_empty() {
            return Ok(true);
        }
        let mut header = [0; LOCAL_HEADER_LEN as usize];
        let extra_len = match input.read_exact(&mut header) {
            Ok(()) => virtual_entry(&header),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error),
        };
        let Some(extra_len) = extra_len.map(u64::from) else { return Ok(false) };
        if skip_zeros(&mut input, extra_len)? < extra_len {
            return Ok(false);
        }
    }
}

/// The length of the extra field of a virtual entry.
fn virtual_entry(header: &[u8]) -> Option<u16> {
    let mut fields = Cursor::new(header);
    (fields.u32_le()? == LOCAL_HEADER).then_some(())?;
    fields.take(2)?; // version
    let (flags, method) = (fields.u16_le()?, fields.u16_le()?);
    fields.take(4)?; // time
    let (crc32, stored, inflated) = (fields.u32_le()?, fields.u32_le()?, fields.u32_le()?);
    let (name_len, extra_len) = (fields.u16_le()?, fields.u16_le()?);
    let is_empty = (flags, method, crc32, stored, inflated, name_len) == (0, 0, 0, 0, 0, 0);
    is_empty.then_some(extra_len)
}

/// Skips at most `most` zeros and returns how many there were.
fn skip_zeros(input: &mut impl BufRead, most: u64) -> io::Result<u64> {
    let mut count: u64 = 0;
    loop {
        let left = usize::try_from(most.saturating_sub(count)).unwrap_or(usize::MAX);
        let zeros = input.fill_buf()?.iter().take(left).take_while(|byte| **byte == 0).count();
        if zeros == 0 {
            return Ok(count);
        }
        input.consume(zeros);
        count = count.saturating_add(zeros as u64);
    }
}

/// Reads a range of a file.
struct Section<'f> {
    file: &'f File,
    range: Range<u64>,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.range.end.saturating_sub(self.range.start);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count =
            self.file.read_at(buffer.get_mut(..len).unwrap_or_default(), self.range.start)?;
        self.range.start = self.range.start.saturating_add(count as u64);
        Ok(count)
    }
}
