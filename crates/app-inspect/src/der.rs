//! Values in the Distinguished Encoding Rules (X.690), read in place.

use crate::cursor::Cursor;

/// The tag of an `INTEGER`.
pub const INTEGER: u8 = 0x02;
/// The tag of an `OCTET STRING`.
pub const OCTET_STRING: u8 = 0x04;
/// The tag of an `OBJECT IDENTIFIER`.
pub const OID: u8 = 0x06;
/// The tag of a `SEQUENCE`.
pub const SEQUENCE: u8 = 0x30;
/// The tag of a `SET`.
pub const SET: u8 = 0x31;
/// The tag of a constructed value that the surrounding type numbers 0.
pub const CONTEXT_0: u8 = 0xa0;

/// One value in DER.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    /// The first byte. Tags of several bytes are not read.
    pub tag: u8,
    /// The bytes after the length.
    pub content: &'a [u8],
    /// The value with its tag and length.
    pub whole: &'a [u8],
}

/// A run of values in DER. It ends at the first bytes that are no value.
#[derive(Debug, Clone, Copy)]
pub struct Der<'a>(Cursor<'a>);

impl<'a> Der<'a> {
    /// The values in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Cursor::new(bytes))
    }

    /// The next value, if it has this tag.
    pub fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        self.next().filter(|element| element.tag == tag)
    }

    /// The values in the next value, if it has this tag.
    pub fn enter(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(|element| Self::new(element.content))
    }
}

impl<'a> Iterator for Der<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let all = self.0.rest();
        let mut input = self.0;
        let tag = input.u8().filter(|tag| tag & 0x1f != 0x1f)?;
        let len = match input.u8()? {
            short @ 0..=0x7f => usize::from(short),
            long @ 0x81..=0x84 => {
                let digits = input.take(usize::from(long & 0x0f))?;
                digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit))
            }
            _ => return None,
        };
        let content = input.take(len)?;
        let whole = all.get(..all.len().checked_sub(input.rest().len())?)?;
        self.0 = input;
        Some(Element { tag, content, whole })
    }
}
