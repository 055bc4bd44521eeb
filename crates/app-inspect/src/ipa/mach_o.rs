//! Finds the code signature in a Mach-O executable.
//!
//! Source: Apple XNU, EXTERNAL_HEADERS/mach-o/loader.h and fat.h.

use crate::cursor::Cursor;

const FAT: u32 = 0xcafe_babe;
/// The magic numbers of single executables, read as little-endian.
const MACH_O_64: u32 = 0xfeed_facf;
const MACH_O_32: u32 = 0xfeed_face;
/// Most kinds of processors in one file. Each is verified on its own, with all files of the app.
const MAX_SLICES: u32 = 4;
const LC_CODE_SIGNATURE: u32 = 0x1d;

/// Bytes at the start of an executable that hold the header and the load commands.
pub(super) const HEAD_LEN: u64 = 64 << 10;

/// A range of a file: offset and length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Range {
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

/// The executables in a file of `len` bytes that begins with `head`: the file itself, or one for
/// each kind of processor in a universal file. `None` if one exceeds the file.
pub(super) fn slices(head: &[u8], len: u64) -> Option<Vec<Range>> {
    let mut fields = Cursor::new(head);
    if fields.u32_be() != Some(FAT) {
        return Some(vec![Range { offset: 0, len }]);
    }
    let count = fields.u32_be().filter(|count| (1..=MAX_SLICES).contains(count))?;
    let mut slices = Vec::new();
    for _ in 0..count {
        fields.take(8)?; // kind of processor
        let slice = Range { offset: fields.u32_be()?.into(), len: fields.u32_be()?.into() };
        fields.take(4)?; // alignment
        (slice.end() <= len).then_some(())?;
        slices.push(slice);
    }
    Some(slices)
}

/// The place of the code signature in the slice that begins with `head`.
pub(super) fn code_signature(head: &[u8]) -> Option<Range> {
    let mut fields = Cursor::new(head);
    let rest_of_header = match fields.u32_le()? {
        MACH_O_64 => 12, // size of the commands, flags, reserved
        MACH_O_32 => 8,
        _ => return None,
    };
    fields.take(12)?; // cpu type, cpu subtype, file type
    let count = fields.u32_le()?;
    fields.take(rest_of_header)?;
    for _ in 0..count {
        let mut command = fields;
        let kind = command.u32_le()?;
        let len = command.size_le().filter(|len| *len >= 8)?;
        if kind == LC_CODE_SIGNATURE {
            return Some(Range { offset: command.u32_le()?.into(), len: command.u32_le()?.into() });
        }
        fields.take(len)?;
    }
    None
}
