//! Walks protobuf messages in place.
//!
//! A decoder builds a node for every message, and an empty message has two bytes, so a few MiB of
//! input would need gigabytes of memory. This reader holds only its position.
//!
//! Source: protobuf.dev/programming-guides/encoding.

use crate::cursor::Cursor;

/// The fields of a message, one at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a>(Cursor<'a>);

#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: FieldValue<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum FieldValue<'a> {
    Varint(u64),
    /// A string, bytes or a message.
    Bytes(&'a [u8]),
    /// A fixed-width number. No field that this crate reads is one.
    Fixed,
}

impl<'a> Message<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(Cursor::new(bytes))
    }

    /// The next field; `Some(None)` at the end, `None` if the message is malformed.
    #[expect(clippy::option_option, reason = "malformed and ended differ")]
    pub(super) fn next(&mut self) -> Option<Option<Field<'a>>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = varint(&mut self.0)?;
        let value = match tag & 0b111 {
            0 => FieldValue::Varint(varint(&mut self.0)?),
            1 => self.0.take(8).map(|_| FieldValue::Fixed)?,
            2 => {
                let len = usize::try_from(varint(&mut self.0)?).ok()?;
                FieldValue::Bytes(self.0.take(len)?)
            }
            5 => self.0.take(4).map(|_| FieldValue::Fixed)?,
            _ => return None,
        };
        Some(Some(Field { number: tag >> 3, value }))
    }

    /// Hands every field to `visit`. Stops with `None` when `visit` does, or at a malformed field.
    pub(super) fn each(mut self, mut visit: impl FnMut(Field<'a>) -> Option<()>) -> Option<()> {
        while let Some(field) = self.next()? {
            visit(field)?;
        }
        Some(())
    }
}

impl<'a> Field<'a> {
    pub(super) fn message(self) -> Option<Message<'a>> {
        self.bytes().map(Message::new)
    }

    pub(super) fn text(self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }

    /// The low 32 bits of a number, as protobuf reads a `uint32`.
    pub(super) fn uint32(self) -> Option<u32> {
        match self.value {
            FieldValue::Varint(number) => u32::try_from(number & u64::from(u32::MAX)).ok(),
            FieldValue::Bytes(_) | FieldValue::Fixed => None,
        }
    }

    fn bytes(self) -> Option<&'a [u8]> {
        match self.value {
            FieldValue::Bytes(bytes) => Some(bytes),
            FieldValue::Varint(_) | FieldValue::Fixed => None,
        }
    }
}

fn varint(input: &mut Cursor) -> Option<u64> {
    let mut number: u64 = 0;
    for shift in (0..64).step_by(7) {
        let byte = input.u8()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
