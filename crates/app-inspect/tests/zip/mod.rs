//! Writes zip archives, sound and malformed.

#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{Read, Write};

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// One entry. Tests may falsify the `pub` fields before they build the archive.
#[derive(Clone)]
pub struct Entry {
    pub name: Vec<u8>,
    /// The name in the local header.
    pub local_name: Vec<u8>,
    pub flags: u16,
    method: u16,
    data: Vec<u8>,
    crc32: u32,
    /// The inflated size, in both headers.
    pub inflated: u32,
    /// The false offset that the directory states for the entry.
    pub offset: Option<u32>,
}

impl Entry {
    /// The data descriptor of the entry, which repeats its sizes.
    pub fn descriptor(&self) -> Vec<u8> {
        let sizes = [self.crc32, self.data.len() as u32, self.inflated];
        [b"PK\x07\x08".to_vec(), sizes.into_iter().flat_map(u32::to_le_bytes).collect()].concat()
    }

    /// The entry without a header in the directory, which only a sequential reader sees.
    pub fn unlisted(&self) -> Vec<u8> {
        self.local()
    }
}

pub fn stored(name: &str, content: &[u8]) -> Entry {
    entry(name, 0, content.to_vec(), content)
}

pub fn deflated(name: &str, content: &[u8]) -> Entry {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    entry(name, 8, encoder.finish().unwrap(), content)
}

fn entry(name: &str, method: u16, data: Vec<u8>, content: &[u8]) -> Entry {
    let mut crc = Crc::new();
    crc.update(content);
    Entry {
        name: name.into(),
        local_name: name.into(),
        flags: 0,
        method,
        data,
        crc32: crc.sum(),
        inflated: content.len() as u32,
        offset: None,
    }
}

impl Entry {
    /// The fields that local and directory headers have in common.
    fn common(&self, name: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [20, self.flags, self.method, 0, 0] {
            bytes.extend_from_slice(&u16::to_le_bytes(field));
        }
        for field in [self.crc32, self.data.len() as u32, self.inflated] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes
    }

    fn local(&self) -> Vec<u8> {
        [b"PK\x03\x04", &*self.common(&self.local_name), &self.local_name, &self.data].concat()
    }

    fn directory(&self, offset: u32) -> Vec<u8> {
        let offset = self.offset.unwrap_or(offset).to_le_bytes();
        let head = [b"PK\x01\x02\x14\x00".as_slice(), &self.common(&self.name)].concat();
        [&*head, &[0; 10], &offset, &self.name].concat()
    }
}

/// The names and contents of a sound archive without data descriptors.
pub fn contents(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let number = |at: usize, len: usize| {
        archive[at..at + len].iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte))
    };
    let mut at = number(archive.len() - 6, 4);
    let mut contents = Vec::new();
    while archive[at..].starts_with(b"PK\x01\x02") {
        let (name_len, extra_len, comment_len) =
            (number(at + 28, 2), number(at + 30, 2), number(at + 32, 2));
        let name = String::from_utf8(archive[at + 46..at + 46 + name_len].to_vec()).unwrap();
        let local = number(at + 42, 4);
        let data = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        let data = &archive[data..data + number(at + 20, 4)];
        let mut content = Vec::new();
        match number(at + 10, 2) {
            0 => content.extend_from_slice(data),
            _ => drop(DeflateDecoder::new(data).read_to_end(&mut content).unwrap()),
        }
        contents.push((name, content));
        at += 46 + name_len + extra_len + comment_len;
    }
    contents
}

/// The names of the files that a sequential reader sees. Such a reader reads one local header after
/// the other, and stops at bytes that are neither a local header nor a data descriptor.
pub fn names_in_sequence(archive: &[u8]) -> Vec<Vec<u8>> {
    let (mut at, mut names) = (0, Vec::new());
    loop {
        let rest = &archive[at..];
        if rest.starts_with(b"PK\x07\x08") && rest.len() >= 16 {
            at += 16;
            continue;
        }
        if !rest.starts_with(b"PK\x03\x04") || rest.len() < 30 {
            return names;
        }
        let short = |at: usize| usize::from(u16::from_le_bytes([rest[at], rest[at + 1]]));
        let stored = short(18) + (short(20) << 16);
        let end = 30 + short(26) + short(28) + stored;
        if end > rest.len() {
            return names;
        }
        if short(26) > 0 {
            names.push(rest[30..30 + short(26)].to_vec());
        }
        at += end;
    }
}

pub fn archive(entries: &[Entry]) -> Vec<u8> {
    let (body, directory) = body_and_directory(entries);
    assemble(entries, body, directory)
}

/// An archive with bytes that belong to no entry, before the first entry and between the others.
pub fn archive_with_gaps(entries: &[Entry], gaps: &[&[u8]]) -> Vec<u8> {
    let (mut body, mut directory) = (Vec::new(), Vec::new());
    for (at, entry) in entries.iter().enumerate() {
        body.extend_from_slice(gaps.get(at).copied().unwrap_or_default());
        directory.extend(entry.directory(body.len() as u32));
        body.extend(entry.local());
    }
    body.extend_from_slice(gaps.get(entries.len()).copied().unwrap_or_default());
    assemble(entries, body, directory)
}

/// A local header without name and content, with which the Android Gradle Plugin fills gaps.
pub fn virtual_entry(extra: &[u8]) -> Vec<u8> {
    let mut bytes = b"PK\x03\x04".to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0x21, 8, 0x21, 2]);
    bytes.extend_from_slice(&[0; 14]);
    bytes.extend_from_slice(&(extra.len() as u16).to_le_bytes());
    bytes.extend_from_slice(extra);
    bytes
}

fn assemble(entries: &[Entry], body: Vec<u8>, directory: Vec<u8>) -> Vec<u8> {
    let end = end_record(entries.len() as u16, directory.len() as u32, body.len() as u32);
    [body, directory, end].concat()
}

/// The same archive with zip64 end records, as large archives have them.
pub fn zip64_archive(entries: &[Entry]) -> Vec<u8> {
    let (body, directory) = body_and_directory(entries);
    let (count, size, offset) = (entries.len() as u64, directory.len() as u64, body.len() as u64);
    let mut record = b"PK\x06\x06".to_vec();
    record.extend_from_slice(&44_u64.to_le_bytes());
    record.extend_from_slice(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for field in [count, count, size, offset] {
        record.extend_from_slice(&field.to_le_bytes());
    }
    let mut locator = b"PK\x06\x07\0\0\0\0".to_vec();
    locator.extend_from_slice(&(offset + size).to_le_bytes());
    locator.extend_from_slice(&1_u32.to_le_bytes());
    let end = end_record(u16::MAX, u32::MAX, u32::MAX);
    [body, directory, record, locator, end].concat()
}

fn body_and_directory(entries: &[Entry]) -> (Vec<u8>, Vec<u8>) {
    let (mut body, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        directory.extend(entry.directory(body.len() as u32));
        body.extend(entry.local());
    }
    (body, directory)
}

fn end_record(count: u16, size: u32, offset: u32) -> Vec<u8> {
    let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
    end.extend_from_slice(&count.to_le_bytes());
    end.extend_from_slice(&count.to_le_bytes());
    end.extend_from_slice(&size.to_le_bytes());
    end.extend_from_slice(&offset.to_le_bytes());
    end.extend_from_slice(&[0, 0]);
    end
}

/// Adds an entry to an archive that ends without a comment.
pub fn append(archive: &[u8], entry: &Entry) -> Vec<u8> {
    let (rest, end) = archive.split_at(archive.len() - 22);
    let offset = u32::from_le_bytes(end[16..20].try_into().unwrap());
    let count = u16::from_le_bytes(end[10..12].try_into().unwrap()) + 1;
    let (body, directory) = rest.split_at(offset as usize);
    let body = [body, &entry.local()].concat();
    let directory = [directory, &entry.directory(offset)].concat();
    let end = end_record(count, directory.len() as u32, body.len() as u32);
    [body, directory, end].concat()
}

/// Replaces the bytes between the last entry and the directory: the APK Signing Block.
pub fn replace_signing_block(archive: &[u8], edit: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (rest, end) = archive.split_at(archive.len() - 22);
    let directory_offset = u32::from_le_bytes(end[16..20].try_into().unwrap()) as usize;
    let size = &rest[directory_offset - 24..directory_offset - 16];
    let size = u64::from_le_bytes(size.try_into().unwrap()) as usize + 8;
    let (body, directory) = rest.split_at(directory_offset);
    let (entries, block) = body.split_at(directory_offset - size);
    let body = [entries, &edit(block)].concat();
    let count = u16::from_le_bytes(end[10..12].try_into().unwrap());
    let end = end_record(count, directory.len() as u32, body.len() as u32);
    [&*body, directory, &end].concat()
}
