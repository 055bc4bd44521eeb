//! Looks up values in the `resources.arsc` of an apk.
//!
//! Source: `ResTable_package`, `ResTable_type`, `ResTable_entry` in AOSP, ResourceTypes.h.

use super::chunk::{Chunk, STRING_POOL, StringPool, Value};
use crate::cursor::Cursor;

const TABLE: u16 = 0x0002;
const PACKAGE: u16 = 0x0200;
const TYPE: u16 = 0x0201;

const TYPE_IS_SPARSE: u8 = 0x01;
const TYPE_HAS_SHORT_OFFSETS: u8 = 0x02;
const ENTRY_IS_COMPLEX: u16 = 0x0001;
const ENTRY_IS_COMPACT: u16 = 0x0008;

/// Most references in a chain, as on Android. The limit ends a cycle.
const MAX_REFERENCES: usize = 20;

pub(super) struct ResourceTable<'a> {
    strings: StringPool<'a>,
    packages: Cursor<'a>,
}

impl<'a> ResourceTable<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let table = Chunk::next(&mut Cursor::new(bytes)).filter(|chunk| chunk.kind == TABLE)?;
        let mut packages = table.body()?;
        let pool = Chunk::next(&mut packages).filter(|chunk| chunk.kind == STRING_POOL)?;
        Some(Self { strings: StringPool::parse(pool)?, packages })
    }

    /// Follows references to another kind of value. `None` if there is none.
    pub(super) fn resolve(&self, mut value: Value) -> Option<Value> {
        for _ in 0..MAX_REFERENCES {
            let Value::Reference(id) = value else { return Some(value) };
            value = self.find(id)?;
        }
        None
    }

    /// The value of a resource in the default configuration, else in the first with a value.
    fn find(&self, id: u32) -> Option<Value> {
        let [package_id, type_id, entry_high, entry_low] = id.to_be_bytes();
        let index = usize::from(u16::from_be_bytes([entry_high, entry_low]));
        let mut fallback = None;
        let mut packages = self.packages;
        while let Some(package) = Chunk::next(&mut packages) {
            if package.kind != PACKAGE || package.header()?.u32_le()? != u32::from(package_id) {
                continue;
            }
            let mut types = package.body()?;
            while let Some(chunk) = Chunk::next(&mut types) {
                if chunk.kind != TYPE || chunk.header()?.u8()? != type_id {
                    continue;
                }
                let Some(value) = self.value_in(chunk, index) else { continue };
                if is_default_configuration(chunk)? {
                    return Some(value);
                }
                fallback.get_or_insert(value);
            }
        }
        fallback
    }

    fn value_in(&self, chunk: Chunk, index: usize) -> Option<Value> {
        let mut header = chunk.header()?;
        header.take(1)?;
        let flags = header.u8()?;
        header.take(2)?;
        let count = header.size_le()?;
        let entries_start = header.size_le()?;
        let offset = entry_offset(chunk.body()?, flags, count, index)?;
        let mut entry = Cursor::at(chunk.bytes, entries_start.checked_add(offset)?)?;

        let size_or_key = entry.u16_le()?;
        let flags = entry.u16_le()?;
        if flags & ENTRY_IS_COMPACT != 0 {
            let [data_type, _] = flags.to_be_bytes();
            return Value::new(data_type, entry.u32_le()?, &self.strings);
        }
        if flags & ENTRY_IS_COMPLEX != 0 {
            return None;
        }
        // The size includes the four bytes read above.
        entry.take(usize::from(size_or_key).checked_sub(4)?)?;
        entry.take(3)?;
        let data_type = entry.u8()?;
        Value::new(data_type, entry.u32_le()?, &self.strings)
    }
}

/// The offset of an entry from the first entry. `None` if the type chunk has no such entry.
fn entry_offset(mut offsets: Cursor, flags: u8, count: usize, index: usize) -> Option<usize> {
    if flags & TYPE_IS_SPARSE != 0 {
        for _ in 0..count {
            let (at, offset) = (offsets.u16_le()?, offsets.u16_le()?);
            if usize::from(at) == index {
                return usize::from(offset).checked_mul(4);
            }
        }
        return None;
    }
    (index < count).then_some(())?;
    if flags & TYPE_HAS_SHORT_OFFSETS != 0 {
        offsets.take(index.checked_mul(2)?)?;
        let offset = offsets.u16_le().filter(|offset| *offset != u16::MAX)?;
        return usize::from(offset).checked_mul(4);
    }
    offsets.take(index.checked_mul(4)?)?;
    let offset = offsets.u32_le().filter(|offset| *offset != u32::MAX)?;
    usize::try_from(offset).ok()
}

/// Whether the values of a type chunk apply to every language, screen and other condition.
fn is_default_configuration(chunk: Chunk) -> Option<bool> {
    let mut header = chunk.header()?;
    header.take(12)?;
    let size = header.size_le()?;
    let conditions = header.take(size.checked_sub(4)?)?;
    Some(conditions.iter().all(|byte| *byte == 0))
}
