//! Turns BER into DER, for the files of Windows, Firefox and Apple's `security`.
//!
//! Values of indefinite length get a length, and octet strings in several pieces become one piece.
//! Source: X.690, sections 8.1.3, 8.1.5 and 8.7.3.

use app_inspect::der::{Der, OCTET_STRING};

/// Most levels of values. Files have about a dozen.
const MAX_DEPTH: usize = 64;
/// In a tag: the value consists of other values.
const CONSTRUCTED: u8 = 0x20;
const END_OF_CONTENTS: &[u8] = &[0, 0];

/// The first value in `bytes` in DER. `None` if it is no value, or is cut off.
///
/// A value that was in DER before keeps its bytes, so signatures over it stay valid.
pub(crate) fn to_der(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut der = Vec::with_capacity(bytes.len());
    copy_value(bytes, &mut der, 0)?;
    Some(der)
}

/// Appends the first value of `input` to `der`. Returns the bytes after the value.
fn copy_value<'a>(input: &'a [u8], der: &mut Vec<u8>, depth: usize) -> Option<&'a [u8]> {
    (depth < MAX_DEPTH).then_some(())?;
    let (&tag, rest) = input.split_first()?;
    (tag & 0x1f != 0x1f).then_some(())?;
    let (length, rest) = read_length(rest)?;
    if tag & CONSTRUCTED == 0 {
        let (content, after) = rest.split_at_checked(length?)?;
        append(der, tag, content);
        return Some(after);
    }
    let mut values = Vec::new();
    let after = match length {
        Some(length) => {
            let (mut content, after) = rest.split_at_checked(length)?;
            while !content.is_empty() {
                content = copy_value(content, &mut values, depth + 1)?;
            }
            after
        }
        None => {
            let mut input = rest;
            while !input.starts_with(END_OF_CONTENTS) {
                input = copy_value(input, &mut values, depth + 1)?;
            }
            input.get(END_OF_CONTENTS.len()..)?
        }
    };
    if tag == OCTET_STRING | CONSTRUCTED {
        append(der, OCTET_STRING, &join(&values)?);
    } else {
        append(der, tag, &values);
    }
    Some(after)
}

/// The content of an octet string in pieces, each of which is an octet string.
pub(crate) fn join(pieces: &[u8]) -> Option<Vec<u8>> {
    let mut joined = Vec::with_capacity(pieces.len());
    for piece in Der::new(pieces) {
        (piece.tag == OCTET_STRING).then_some(())?;
        joined.extend_from_slice(piece.content);
    }
    Some(joined)
}

/// A length, which is `None` if it is indefinite, and the bytes after it.
fn read_length(input: &[u8]) -> Option<(Option<usize>, &[u8])> {
    let (&first, rest) = input.split_first()?;
    match first {
        0..=0x7f => Some((Some(usize::from(first)), rest)),
        0x80 => Some((None, rest)),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x0f))?;
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            Some((Some(length), rest))
        }
        _ => None,
    }
}

/// Appends one value to `der`.
pub(crate) fn append(der: &mut Vec<u8>, tag: u8, content: &[u8]) {
    der.push(tag);
    let length = content.len();
    if length < 0x80 {
        der.extend(u8::try_from(length));
    } else {
        let digits: Vec<u8> =
            length.to_be_bytes().into_iter().skip_while(|digit| *digit == 0).collect();
        der.extend(u8::try_from(digits.len()).map(|count| 0x80 | count));
        der.extend(digits);
    }
    der.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indefinite_lengths_and_pieces_become_der() {
        let ber = b"\x30\x80\x24\x80\x04\x02ab\x04\x01c\x00\x00\x02\x01\x05\x00\x00trailing";
        assert_eq!(to_der(ber).unwrap(), b"\x30\x08\x04\x03abc\x02\x01\x05");
    }

    #[test]
    fn der_stays_as_it_is() {
        let long = [&[0x30, 0x82, 0x01, 0x04, 0x04, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
        assert_eq!(to_der(&long).unwrap(), long);
    }

    #[test]
    fn what_is_cut_off_or_too_deep_is_no_value() {
        let whole = b"\x30\x80\x24\x80\x04\x02ab\x00\x00\x00\x00";
        for length in 0..whole.len() {
            assert_eq!(to_der(&whole[..length]), None, "{length}");
        }
        assert_eq!(to_der(&[0x30, 0x80].repeat(100_000)), None);
        assert_eq!(to_der(b"\x04\x80\x00\x00"), None);
    }
}
