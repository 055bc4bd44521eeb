//! Passwords of PKCS#12 files, and the keys that are derived from them.

use std::fmt;
use std::num::NonZeroU32;

use aws_lc_rs::digest::{self, digest};
use zeroize::Zeroizing;

use super::{Budget, Problem};

/// A password in both forms in which PKCS#12 uses it.
pub(super) struct Password<'a> {
    text: &'a str,
    /// UTF-16, big endian, with a zero at its end. Some programs leave out the zero of an empty one.
    utf16: Zeroizing<Vec<u8>>,
}

/// What a derived key is for: the `ID` of RFC 7292, appendix B.3.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Key = 1,
    Vector = 2,
    Mac = 3,
}

impl<'a> Password<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let units = text.encode_utf16().chain([0]);
        Self { text, utf16: Zeroizing::new(units.flat_map(u16::to_be_bytes).collect()) }
    }

    /// The empty password as programs write it that leave out its zero.
    pub(super) fn none() -> Self {
        Self { text: "", utf16: Zeroizing::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn utf8(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Fills `output` with a key. Source: RFC 7292, appendix B.2, whose letters the names follow.
    pub(super) fn derive(
        &self,
        digest_of: &'static digest::Algorithm,
        purpose: Purpose,
        salt: &[u8],
        rounds: NonZeroU32,
        output: &mut [u8],
        budget: &mut Budget,
    ) -> Result<(), Problem> {
        let (u, v) = (digest_of.output_len(), digest_of.block_len());
        budget.spend(rounds, output.len().div_ceil(u))?;
        let d = vec![purpose as u8; v];
        let mut i = Zeroizing::new(repeat_to_blocks(salt, v));
        i.extend(repeat_to_blocks(&self.utf16, v));
        for part in output.chunks_mut(u) {
            let start = Zeroizing::new([d.as_slice(), i.as_slice()].concat());
            let mut a = digest(digest_of, &start);
            for _ in 1..rounds.get() {
                a = digest(digest_of, a.as_ref());
            }
            for (to, from) in part.iter_mut().zip(a.as_ref()) {
                *to = *from;
            }
            let b: Zeroizing<Vec<u8>> =
                Zeroizing::new(a.as_ref().iter().copied().cycle().take(v).collect());
            for block in i.chunks_mut(v) {
                add_one_more(block, &b);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Password<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// `bytes` again and again, up to a whole number of blocks. Nothing stays nothing.
fn repeat_to_blocks(bytes: &[u8], block: usize) -> Vec<u8> {
    let length = bytes.len().div_ceil(block) * block;
    bytes.iter().copied().cycle().take(length).collect()
}

/// Adds `other` and one to `block`. Both are big-endian numbers; what overflows is dropped.
fn add_one_more(block: &mut [u8], other: &[u8]) {
    let mut carry = 1;
    for (digit, added) in block.iter_mut().zip(other).rev() {
        let sum = u16::from(*digit) + u16::from(*added) + carry;
        *digit = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
}
