//! The container of Android's binary resources: chunks, and the string pool among them.
//!
//! Source: `ResChunk_header` and `ResStringPool_header` in AOSP,
//! frameworks/base/libs/androidfw/include/androidfw/ResourceTypes.h.

use crate::cursor::Cursor;

/// `RES_STRING_POOL_TYPE`.
pub(super) const STRING_POOL: u16 = 0x0001;

const POOL_IS_UTF8: u32 = 1 << 8;

/// A run of bytes that states its type and size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'a> {
    pub(super) kind: u16,
    /// The whole chunk with its header. Offsets in the chunk count from its start.
    pub(super) bytes: &'a [u8],
    pub(super) header_len: usize,
}

impl<'a> Chunk<'a> {
    const HEAD_LEN: usize = 8;

    /// Takes the chunk at the front of `input`.
    pub(super) fn next(input: &mut Cursor<'a>) -> Option<Self> {
        let mut head = *input;
        let kind = head.u16_le()?;
        let header_len = usize::from(head.u16_le()?);
        let size = head.size_le()?;
        (Self::HEAD_LEN <= header_len && header_len <= size).then_some(())?;
        Some(Self { kind, bytes: input.take(size)?, header_len })
    }

    /// The fields of the header after the type and the sizes.
    pub(super) fn header(&self) -> Option<Cursor<'a>> {
        self.bytes.get(Self::HEAD_LEN..self.header_len).map(Cursor::new)
    }

    pub(super) fn body(&self) -> Option<Cursor<'a>> {
        Cursor::at(self.bytes, self.header_len)
    }
}

/// Strings by index. Each is decoded on demand: many attributes may share one long string, and its
/// copies would multiply.
#[derive(Debug, Clone, Copy)]
pub(super) struct StringPool<'a> {
    offsets: &'a [u8],
    strings: &'a [u8],
    is_utf8: bool,
}

impl<'a> StringPool<'a> {
    pub(super) fn parse(chunk: Chunk<'a>) -> Option<Self> {
        let mut header = chunk.header()?;
        let string_count = header.size_le()?;
        header.take(4)?;
        let is_utf8 = header.u32_le()? & POOL_IS_UTF8 != 0;
        let strings_start = header.size_le()?;
        let offsets = chunk.body()?.take(string_count.checked_mul(4)?)?;
        // A pool without strings may have any start offset.
        let strings = if string_count == 0 { &[] } else { chunk.bytes.get(strings_start..)? };
        Some(Self { offsets, strings, is_utf8 })
    }

    pub(super) fn get(&self, index: u32) -> Option<String> {
        let slot = usize::try_from(index).ok()?.checked_mul(4)?;
        let offset = Cursor::at(self.offsets, slot)?.size_le()?;
        let mut string = Cursor::at(self.strings, offset)?;
        if self.is_utf8 {
            length_utf8(&mut string)?; // in UTF-16 units; the next length is in bytes
            let len = length_utf8(&mut string)?;
            return String::from_utf8(string.take(len)?.to_vec()).ok();
        }
        let len = length_utf16(&mut string)?;
        let units = string.take(len.checked_mul(2)?)?;
        let units = units.chunks_exact(2).filter_map(|unit| Cursor::new(unit).u16_le());
        char::decode_utf16(units).collect::<Result<_, _>>().ok()
    }
}

/// One byte, or two with the high bit of the first set.
fn length_utf8(string: &mut Cursor) -> Option<usize> {
    let first = usize::from(string.u8()?);
    if first & 0x80 == 0 {
        return Some(first);
    }
    Some((first & 0x7f) << 8 | usize::from(string.u8()?))
}

/// Two bytes, or four with the high bit of the first two set.
fn length_utf16(string: &mut Cursor) -> Option<usize> {
    let first = usize::from(string.u16_le()?);
    if first & 0x8000 == 0 {
        return Some(first);
    }
    Some((first & 0x7fff) << 16 | usize::from(string.u16_le()?))
}

/// A value of an attribute or a resource (`Res_value`), with the types that this crate reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Integer(u32),
    /// The id of another resource.
    Reference(u32),
    Other,
}

impl Value {
    /// `data_type` and `data` are fields of `Res_value`.
    pub(super) fn new(data_type: u8, data: u32, strings: &StringPool) -> Option<Self> {
        Some(match data_type {
            0x01 | 0x07 => Self::Reference(data), // TYPE_REFERENCE, TYPE_DYNAMIC_REFERENCE
            0x03 => Self::Text(strings.get(data)?),
            0x10 | 0x11 => Self::Integer(data), // TYPE_INT_DEC, TYPE_INT_HEX
            _ => Self::Other,
        })
    }

    /// The text that Android shows for the value. A version name may be compiled to a number.
    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Integer(number) => Some(number.cast_signed().to_string()),
            Self::Reference(_) | Self::Other => None,
        }
    }
}
