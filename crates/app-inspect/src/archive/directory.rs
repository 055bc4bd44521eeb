//! Finds and reads the central directory of a zip archive.
//!
//! Source: PKWARE APPNOTE 6.3.10, sections 4.3.12 to 4.3.16 and 4.5.3.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use crate::cursor::Cursor;
use crate::refusal::{Failure, Refusal};

const END_RECORD: u32 = 0x0605_4b50;
const END_RECORD_LEN: usize = 22;
const ZIP64_LOCATOR: u32 = 0x0706_4b50;
const ZIP64_LOCATOR_LEN: u64 = 20;
const ZIP64_END_RECORD: u32 = 0x0606_4b50;
const ZIP64_END_RECORD_LEN: usize = 56;
const DIRECTORY_HEADER: u32 = 0x0201_4b50;
const DIRECTORY_HEADER_LEN: usize = 46;
const ZIP64_EXTRA: u16 = 0x0001;

/// The place of the central directory in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Directory {
    pub(crate) offset: u64,
    pub(super) size: u64,
    pub(super) count: u64,
    /// The offset of the end record. The signed directory section of an apk ends here.
    pub(crate) end_record: u64,
}

/// One header of the central directory.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) name: Box<[u8]>,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc32: u32,
    pub(super) stored: u64,
    pub(super) inflated: u64,
    pub(super) offset: u64,
}

impl Directory {
    /// Finds the directory of an archive of `len` bytes.
    pub(super) fn locate(file: &File, len: u64) -> Result<Self, Failure> {
        // The end record ends with a comment of up to 65,535 bytes.
        let tail_len = len.min(END_RECORD_LEN as u64 + u64::from(u16::MAX));
        let tail_start = len.saturating_sub(tail_len);
        let tail = read_at(file, tail_start, tail_len)?;
        let index = (0..tail.len())
            .rev()
            .find(|index| is_end_record(&tail, *index))
            .ok_or(Refusal::NotAnArchive)?;
        let end_record = tail_start.saturating_add(index as u64);

        let plain = tail.get(index..).and_then(end_record_fields).ok_or(Refusal::NotAnArchive)?;
        let (fields, directory_end) = match zip64_fields(file, end_record)? {
            Some((zip64, start)) if zip64.agrees_with(&plain) => (zip64, start),
            Some(_) => return Err(Refusal::NotAnArchive.into()),
            None => (plain, end_record),
        };
        // Readers disagree about the place of a directory with other bytes behind it.
        if fields.offset.checked_add(fields.size) != Some(directory_end) {
            return Err(Refusal::NotAnArchive.into());
        }
        Ok(Self { offset: fields.offset, size: fields.size, count: fields.count, end_record })
    }

    /// Reads the headers one after the other and hands each to `visit`.
    pub(super) fn read(
        self,
        file: &File,
        mut visit: impl FnMut(Header) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut file = file;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut input = BufReader::with_capacity(64 << 10, file.take(self.size));
        for _ in 0..self.count {
            visit(read_header(&mut input).map_err(end_of_directory)?)?;
        }
        let mut more = [0; 1];
        if input.read(&mut more)? != 0 {
            return Err(Refusal::NotAnArchive.into());
        }
        Ok(())
    }
}

/// The fields of both kinds of end record.
struct EndRecord {
    count: u64,
    size: u64,
    offset: u64,
}

impl EndRecord {
    /// Whether this zip64 record has the values of the plain record. A field of the plain record
    /// that is too small for its value holds all ones.
    fn agrees_with(&self, plain: &Self) -> bool {
        let agree = |zip64, plain, no_room| plain == zip64 || plain == no_room;
        agree(self.count, plain.count, u16::MAX.into())
            && agree(self.size, plain.size, u32::MAX.into())
            && agree(self.offset, plain.offset, u32::MAX.into())
    }
}

fn is_end_record(tail: &[u8], index: usize) -> bool {
    let comment = || {
        let mut fields = Cursor::at(tail, index)?;
        (fields.u32_le()? == END_RECORD).then_some(())?;
        fields.take(16)?;
        let comment_len = usize::from(fields.u16_le()?);
        (fields.rest().len() == comment_len).then_some(())
    };
    comment().is_some()
}

fn end_record_fields(record: &[u8]) -> Option<EndRecord> {
    let mut fields = Cursor::at(record, 4)?;
    let disks = (fields.u16_le()?, fields.u16_le()?);
    let counts = (fields.u16_le()?, fields.u16_le()?);
    (disks == (0, 0) && counts.0 == counts.1).then_some(())?;
    Some(EndRecord {
        count: counts.0.into(),
        size: fields.u32_le()?.into(),
        offset: fields.u32_le()?.into(),
    })
}

/// The zip64 end record and its offset, if the archive has one.
fn zip64_fields(file: &File, end_record: u64) -> Result<Option<(EndRecord, u64)>, Failure> {
    let Some(locator) = end_record.checked_sub(ZIP64_LOCATOR_LEN) else { return Ok(None) };
    let bytes = read_at(file, locator, ZIP64_LOCATOR_LEN)?;
    let mut fields = Cursor::new(&bytes);
    if fields.u32_le() != Some(ZIP64_LOCATOR) {
        return Ok(None);
    }
    let start = (|| {
        fields.u32_le()?;
        fields.u64_le()
    })();
    let start = start.filter(|start| {
        start.checked_add(ZIP64_END_RECORD_LEN as u64).is_some_and(|end| end <= locator)
    });
    let start = start.ok_or(Refusal::NotAnArchive)?;
    let record = read_at(file, start, ZIP64_END_RECORD_LEN as u64)?;
    let fields = zip64_end_record_fields(&record).ok_or(Refusal::NotAnArchive)?;
    Ok(Some((fields, start)))
}

fn zip64_end_record_fields(record: &[u8]) -> Option<EndRecord> {
    let mut fields = Cursor::new(record);
    (fields.u32_le()? == ZIP64_END_RECORD).then_some(())?;
    fields.take(12)?;
    let disks = (fields.u32_le()?, fields.u32_le()?);
    let counts = (fields.u64_le()?, fields.u64_le()?);
    (disks == (0, 0) && counts.0 == counts.1).then_some(())?;
    Some(EndRecord { count: counts.0, size: fields.u64_le()?, offset: fields.u64_le()? })
}

fn read_header(input: &mut impl Read) -> io::Result<Header> {
    let mut fixed = [0; DIRECTORY_HEADER_LEN];
    input.read_exact(&mut fixed)?;
    let mut header = fixed_fields(&fixed).ok_or(io::ErrorKind::UnexpectedEof)?;
    header.header.name = read_boxed(input, header.name_len)?;
    let extra = read_boxed(input, header.extra_len)?;
    read_boxed(input, header.comment_len)?;
    apply_zip64_extra(&mut header.header, &extra).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(header.header)
}

struct FixedFields {
    header: Header,
    name_len: u16,
    extra_len: u16,
    comment_len: u16,
}

fn fixed_fields(bytes: &[u8]) -> Option<FixedFields> {
    let mut fields = Cursor::new(bytes);
    (fields.u32_le()? == DIRECTORY_HEADER).then_some(())?;
    fields.take(4)?;
    let (flags, method) = (fields.u16_le()?, fields.u16_le()?);
    fields.take(4)?;
    let (crc32, stored, inflated) = (fields.u32_le()?, fields.u32_le()?, fields.u32_le()?);
    let (name_len, extra_len, comment_len) = (fields.u16_le()?, fields.u16_le()?, fields.u16_le()?);
    fields.take(8)?;
    let offset = fields.u32_le()?;
    let header = Header {
        name: Box::default(),
        flags,
        method,
        crc32,
        stored: stored.into(),
        inflated: inflated.into(),
        offset: offset.into(),
    };
    Some(FixedFields { header, name_len, extra_len, comment_len })
}

/// Sets the sizes and the offset that do not fit into 32 bits. `None` if they are missing.
fn apply_zip64_extra(header: &mut Header, extra: &[u8]) -> Option<()> {
    let mut extra = Cursor::new(extra);
    let mut zip64 = None;
    // Some tools pad the extra field with fewer bytes than the head of a record: ignored.
    while let (Some(id), Some(len)) = (extra.u16_le(), extra.u16_le()) {
        let Some(body) = extra.take(len.into()) else { break };
        if id == ZIP64_EXTRA && zip64.replace(Cursor::new(body)).is_some() {
            return None;
        }
    }
    for field in [&mut header.inflated, &mut header.stored, &mut header.offset] {
        if *field == u64::from(u32::MAX) {
            *field = zip64.as_mut()?.u64_le()?;
        }
    }
    Some(())
}

fn read_boxed(input: &mut impl Read, len: u16) -> io::Result<Box<[u8]>> {
    let mut bytes = vec![0; len.into()];
    input.read_exact(&mut bytes)?;
    Ok(bytes.into())
}

/// The file is known to hold the whole directory, so an early end means that the archive states a
/// wrong count.
fn end_of_directory(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Refusal::NotAnArchive.into(),
        _ => error.into(),
    }
}

/// Reads `len` bytes from `offset`. The caller bounds `len`.
pub(super) fn read_at(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
