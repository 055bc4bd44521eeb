//! Finds the code signature in a Mach-O executable.
//!
//! Source: Apple XNU, EXTERNAL_HEADERS/mach-o/loader.h and fat.h.

use crate::cursor::Cursor;

const FAT: u32 = 0xcafe_babe;
/// 64-bit, read as little-endian.
const MACH_O_64: u32 = 0xfeed_facf;
const CPU_TYPE_ARM64: u32 = 0x0100_000c;
const LC_CODE_SIGNATURE: u32 = 0x1d;

/// Bytes at the start of an executable that hold its header and its load commands.
pub(super) const HEAD_LEN: u64 = 64 << 10;

/// A range of a file: offset and length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// Where the executable for 64-bit ARM starts: at 0, or inside of a universal file.
pub(super) fn slice_offset(head: &[u8]) -> Option<u64> {
    let mut fields = Cursor::new(head);
    if fields.u32_be()? != FAT {
        return Some(0);
    }
    let count = fields.u32_be()?;
    for _ in 0..count {
        let cpu_type = fields.u32_be()?;
        fields.take(4)?; // cpu subtype
        let offset = fields.u32_be()?;
        fields.take(8)?; // size and alignment
        if cpu_type == CPU_TYPE_ARM64 {
            return Some(offset.into());
        }
    }
    None
}

/// Where the code signature lies, counted from the start of the slice that `head` begins.
pub(super) fn code_signature(head: &[u8]) -> Option<Range> {
    let mut fields = Cursor::new(head);
    (fields.u32_le()? == MACH_O_64).then_some(())?;
    fields.take(12)?; // cpu type, cpu subtype, file type
    let count = fields.u32_le()?;
    fields.take(12)?; // size of the commands, flags, reserved
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
