//! Hardened, read-only access to a zip archive on disk.
//!
//! This is not a library, because a general reader merges duplicate names, tolerates overlaps and
//! loads a directory of any size. The signature checks and the manifest readers share one strict
//! reading, so the report is about the verified bytes.

mod directory;
mod inflate;
mod padding;

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use aws_lc_rs::digest::Context;

use crate::Limits;
use crate::certificate::Hash;
use crate::cursor::Cursor;
use crate::refusal::{Failure, Refusal};

pub(crate) use directory::Directory;
use directory::{Header, read_at};

const LOCAL_HEADER: u32 = 0x0403_4b50;
const LOCAL_HEADER_LEN: u64 = 30;

/// General purpose flags, APPNOTE 4.4.4.
const FLAG_ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const FLAG_SIZES_FOLLOW_DATA: u16 = 1 << 3;

/// An archive with a sound directory.
pub(crate) struct Archive<'l> {
    file: File,
    len: u64,
    limits: &'l Limits,
    directory: Directory,
    /// Sorted by name.
    entries: Vec<Entry>,
}

/// One file in an archive.
#[derive(Debug)]
pub(crate) struct Entry {
    header: Header,
    /// The offset of the next entry or of the central directory.
    end: u64,
}

impl Entry {
    /// The path in the archive, in any encoding.
    pub(crate) fn name(&self) -> &[u8] {
        &self.header.name
    }

    /// Bytes of the content, as the directory states. Reading fails if the size is wrong.
    pub(crate) fn len(&self) -> u64 {
        self.header.inflated
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.name().ends_with(b"/")
    }

    pub(crate) fn quoted(&self) -> String {
        Refusal::quote(self.name())
    }

    fn damaged(&self) -> Refusal {
        Refusal::DamagedEntry { name: self.quoted() }
    }
}

impl<'l> Archive<'l> {
    /// Reads and checks the directory of the archive at `path`.
    pub(crate) fn open(path: &Path, limits: &'l Limits) -> Result<Self, Failure> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let directory = Directory::locate(&file, len)?;
        let (count, limit) = (directory.count, limits.max_entries);
        if count > limit {
            return Err(Refusal::TooManyEntries { count, limit }.into());
        }
        let (size, limit) = (directory.size, limits.max_directory_bytes);
        if size > limit {
            return Err(Refusal::DirectoryTooLarge { size, limit }.into());
        }

        let mut entries = Vec::new();
        let mut total: u64 = 0;
        directory.read(&file, |header| {
            check_header(&header)?;
            total = total.saturating_add(header.inflated);
            entries.push(Entry { header, end: 0 });
            Ok(())
        })?;
        let (size, limit) = (total, limits.max_total_bytes);
        if size > limit {
            return Err(Refusal::ArchiveTooLarge { size, limit }.into());
        }
        let limit = limits.max_total_ratio;
        if size > limits.total_free_of_ratio.max(len.saturating_mul(limit)) {
            return Err(Refusal::ArchiveTooDense { size, limit }.into());
        }
        lay_out(&mut entries, directory.offset)?;
        // Every archive begins with an entry, or with padding in the form of an entry.
        if !entries.is_empty() && read_at(&file, 0, 4)? != LOCAL_HEADER.to_le_bytes() {
            return Err(Refusal::StrayBytes { offset: 0 }.into());
        }
        entries.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        if let Some([twice, _]) = entries.array_windows().find(|[a, b]| a.name() == b.name()) {
            return Err(Refusal::DuplicateName { name: twice.quoted() }.into());
        }
        Ok(Self { file, len, limits, directory, entries })
    }

    pub(crate) fn limits(&self) -> &'l Limits {
        self.limits
    }

    pub(crate) fn directory(&self) -> Directory {
        self.directory
    }

    /// All entries, sorted by name.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries whose names begin with `folder`.
    pub(crate) fn entries_under(&self, folder: &[u8]) -> impl Iterator<Item = &Entry> {
        let start = self.entries.partition_point(|entry| entry.name() < folder);
        let under = self.entries.get(start..).unwrap_or_default();
        under.iter().take_while(move |entry| entry.name().starts_with(folder))
    }

    /// The index of the entry with this name in [`Archive::entries`].
    pub(crate) fn position(&self, name: &[u8]) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.name().cmp(name)).ok()
    }

    pub(crate) fn find(&self, name: impl AsRef<[u8]>) -> Option<&Entry> {
        self.position(name.as_ref()).and_then(|position| self.entries.get(position))
    }

    /// Reads bytes of the archive file. The caller bounds `len`.
    pub(crate) fn raw(&self, offset: u64, len: u64) -> Result<Vec<u8>, Failure> {
        Ok(read_at(&self.file, offset, len)?)
    }

    /// The end record with its comment, up to the end of the file.
    pub(crate) fn end_record(&self) -> Result<Vec<u8>, Failure> {
        self.raw(self.directory.end_record, self.len.saturating_sub(self.directory.end_record))
    }

    /// Reads a manifest, property list or certificate.
    pub(crate) fn read_manifest(&self, entry: &Entry) -> Result<Vec<u8>, Failure> {
        self.read(entry, self.limits.max_manifest_bytes)
    }

    /// Reads a resource table or a list of signed files.
    pub(crate) fn read_table(&self, entry: &Entry) -> Result<Vec<u8>, Failure> {
        self.read(entry, self.limits.max_table_bytes)
    }

    fn read(&self, entry: &Entry, limit: u64) -> Result<Vec<u8>, Failure> {
        if entry.header.inflated > limit {
            let (name, size) = (entry.quoted(), entry.header.inflated);
            return Err(Refusal::EntryTooLarge { name, size, limit }.into());
        }
        let limit = self.limits.max_ratio;
        if entry.header.inflated > entry.header.stored.saturating_mul(limit) {
            return Err(Refusal::RatioTooHigh { name: entry.quoted(), limit }.into());
        }
        // Grows with the bytes that are read. The declared size may be a lie.
        let mut bytes = Vec::new();
        self.stream(entry, |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes)
    }

    /// Reads up to `len` inflated bytes from `offset`, fewer if the entry ends before. The caller
    /// bounds `len`, and with it the memory.
    pub(crate) fn read_range(
        &self,
        entry: &Entry,
        offset: u64,
        len: u64,
    ) -> Result<Vec<u8>, Failure> {
        let mut skip = offset;
        let mut wanted = usize::try_from(len).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        self.stream(entry, |piece| {
            let from = usize::try_from(skip).unwrap_or(usize::MAX).min(piece.len());
            skip = skip.saturating_sub(from as u64);
            let rest = piece.get(from..).unwrap_or_default();
            let taken = rest.get(..wanted).unwrap_or(rest);
            bytes.extend_from_slice(taken);
            wanted = wanted.saturating_sub(taken.len());
        })?;
        Ok(bytes)
    }

    pub(crate) fn digest(&self, entry: &Entry, hash: Hash) -> Result<Vec<u8>, Failure> {
        let mut context = Context::new(hash.algorithm());
        self.stream(entry, |piece| context.update(piece))?;
        Ok(context.finish().as_ref().to_vec())
    }

    /// Inflates an entry, hands its pieces to `sink`, then checks its size and checksum.
    pub(crate) fn stream(&self, entry: &Entry, sink: impl FnMut(&[u8])) -> Result<(), Failure> {
        let data = self.data_offset(entry)?;
        inflate::stream(&self.file, entry, data, sink)
    }

    /// Refuses an archive with bytes before `end`, the end of its entries, that belong to no entry
    /// and that a program could read as one. Reads all local headers, and those bytes.
    pub(crate) fn refuse_stray_bytes(&self, end: u64) -> Result<(), Failure> {
        let mut in_order: Vec<&Entry> = self.entries.iter().collect();
        in_order.sort_unstable_by_key(|entry| entry.header.offset);
        let mut free = 0;
        for entry in in_order {
            self.refuse_unless_padding(free..entry.header.offset)?;
            let data_end = self.data_offset(entry)?.saturating_add(entry.header.stored);
            let rest = data_end..entry.end.min(end);
            if rest.is_empty() && data_end > end {
                return Err(Refusal::OverlappingEntries { name: entry.quoted() }.into());
            }
            free =
                data_end.saturating_add(padding::descriptor_len(&self.file, rest, &entry.header)?);
        }
        self.refuse_unless_padding(free..end)
    }

    fn refuse_unless_padding(&self, range: Range<u64>) -> Result<(), Failure> {
        let offset = range.start;
        if range.is_empty() || padding::is_padding(&self.file, range)? {
            return Ok(());
        }
        Err(Refusal::StrayBytes { offset }.into())
    }

    /// The offset of the data of an entry. The local header must agree with the directory.
    fn data_offset(&self, entry: &Entry) -> Result<u64, Failure> {
        let header = &entry.header;
        let head_len = LOCAL_HEADER_LEN.saturating_add(header.name.len() as u64);
        let head = read_at(&self.file, header.offset, head_len)?;
        let extra_len = local_extra_len(&head, header).ok_or_else(|| entry.damaged())?;
        let data = header.offset.saturating_add(head_len).saturating_add(extra_len.into());
        if data.saturating_add(header.stored) > entry.end {
            return Err(Refusal::OverlappingEntries { name: entry.quoted() }.into());
        }
        Ok(data)
    }
}

fn check_header(header: &Header) -> Result<(), Refusal> {
    let name = &header.name;
    let relative =
        || !name.starts_with(b"/") && name.split(|b| *b == b'/').all(|part| part != b"..");
    if name.is_empty() || name.iter().any(|b| matches!(b, 0 | b'\\')) || !relative() {
        return Err(Refusal::UnsafeName { name: Refusal::quote(name) });
    }
    if header.flags & FLAG_ENCRYPTED != 0 {
        return Err(Refusal::Encrypted { name: Refusal::quote(name) });
    }
    Ok(())
}

/// Sets the end of each entry to the start of the next one, and refuses entries that do not fit.
///
/// The length of the extra field in the local header is unknown here, so an entry may still be too
/// long; [`Archive::data_offset`] checks the entries that are read.
fn lay_out(entries: &mut [Entry], data_end: u64) -> Result<(), Refusal> {
    entries.sort_unstable_by_key(|entry| entry.header.offset);
    let mut end = data_end;
    for entry in entries.iter_mut().rev() {
        let header = &entry.header;
        let least =
            LOCAL_HEADER_LEN.saturating_add(header.name.len() as u64).saturating_add(header.stored);
        if header.offset.saturating_add(least) > end {
            return Err(Refusal::OverlappingEntries { name: entry.quoted() });
        }
        entry.end = end;
        end = entry.header.offset;
    }
    Ok(())
}

/// The length of the extra field of a local header, if it agrees with the directory's header.
fn local_extra_len(local: &[u8], header: &Header) -> Option<u16> {
    let mut fields = Cursor::new(local);
    (fields.u32_le()? == LOCAL_HEADER).then_some(())?;
    fields.take(2)?;
    let (flags, method) = (fields.u16_le()?, fields.u16_le()?);
    fields.take(4)?;
    let (crc32, stored, inflated) = (fields.u32_le()?, fields.u32_le()?, fields.u32_le()?);
    let (name_len, extra_len) = (fields.u16_le()?, fields.u16_le()?);
    let agrees = |local: u32, size: u64| local == u32::MAX || u64::from(local) == size;
    let sizes_agree = flags & FLAG_SIZES_FOLLOW_DATA != 0
        || crc32 == header.crc32
            && agrees(stored, header.stored)
            && agrees(inflated, header.inflated);
    let same = flags & FLAG_ENCRYPTED == 0
        && method == header.method
        && usize::from(name_len) == header.name.len()
        && *fields.rest() == *header.name
        && sizes_agree;
    same.then_some(extra_len)
}
