//! Detects the end of a program's output.
//!
//! The daemon's report is not enough. When a program ends, the daemon waits two seconds for its
//! output to be read, discards the rest, and reports the exit code 0; a connection that is cut
//! looks like an end as well. So a shell in the container runs the program, marks the end of both
//! streams with a secret and the exit code, and lives until it learns that the marks have arrived.
//! A stream without a mark was cut off.

use bytes::{Bytes, BytesMut};
use memchr::memmem;

/// Runs a program without input: the end of the shell's input then tells that the marks have
/// arrived. Arguments: the secret, seconds, the program.
pub(super) const WITHOUT_INPUT: &str = r#"secret=$1 within=$2; shift 2
timeout -k 10 "$within" "$@" </dev/null
code=$?
printf '\000%s:%s\n' "$secret" "$code" >&2
printf '\000%s:%s\n' "$secret" "$code"
read -r _
exit "$code""#;

/// Runs a program with input, which ends before the output does: the shell waits to be killed, at
/// most ten minutes.
pub(super) const WITH_INPUT: &str = r#"secret=$1 within=$2; shift 2
timeout -k 10 "$within" "$@"
code=$?
printf '\000%s:%s\n' "$secret" "$code" >&2
printf '\000%s:%s\n' "$secret" "$code"
exec sleep 600 </dev/null >/dev/null 2>&1"#;

/// An exit code of up to three digits, and a line feed.
const CODE_LENGTH: usize = 4;

/// One of a program's two streams, searched for its mark.
pub(super) struct Marked {
    mark: Vec<u8>,
    /// Bytes that may be the beginning of the mark.
    held: Bytes,
    code: Option<i64>,
}

impl Marked {
    pub fn new(secret: &str) -> Marked {
        let mark = [b"\0", secret.as_bytes(), b":"].concat();
        Marked { mark, held: Bytes::new(), code: None }
    }

    /// The exit code, once the mark was found.
    pub fn code(&self) -> Option<i64> {
        self.code
    }

    /// Takes received bytes, and returns those that are certainly output.
    pub fn feed(&mut self, came: Bytes) -> Bytes {
        if self.code.is_some() {
            // Child processes that the program left behind wrote this.
            return Bytes::new();
        }
        let mut came = if self.held.is_empty() {
            came
        } else {
            let mut joined = BytesMut::from(self.held.as_ref());
            joined.extend_from_slice(&came);
            joined.freeze()
        };
        let mut from = 0;
        while let Some(at) = came.get(from..).and_then(|rest| memmem::find(rest, &self.mark)) {
            let start = from + at;
            let after = came.get(start + self.mark.len()..).unwrap_or_default();
            match Code::of(after) {
                Code::Is(code) => {
                    self.code = Some(code);
                    self.held = Bytes::new();
                    return came.slice(..start);
                }
                Code::Begins => {
                    self.held = came.split_off(start);
                    return came;
                }
                Code::Not => from = start + 1,
            }
        }
        let held = self.begins_in(&came);
        self.held = came.split_off(came.len() - held);
        came
    }

    /// The held bytes, if no mark came.
    pub fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
    }

    /// How many of the last bytes may be the beginning of the mark.
    fn begins_in(&self, bytes: &[u8]) -> usize {
        let longest = bytes.len().min(self.mark.len() - 1);
        (1..=longest)
            .rev()
            .find(|length| {
                let last = bytes.len() - length;
                bytes.get(last..).is_some_and(|end| self.mark.starts_with(end))
            })
            .unwrap_or(0)
    }
}

enum Code {
    Is(i64),
    Begins,
    Not,
}

impl Code {
    fn of(after: &[u8]) -> Code {
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let code = after.get(..digits).and_then(|digits| str::from_utf8(digits).ok());
        match (after.get(digits), code.and_then(|code| code.parse().ok())) {
            (Some(b'\n'), Some(code)) if digits < CODE_LENGTH => Code::Is(code),
            (None, _) if digits < CODE_LENGTH => Code::Begins,
            _ => Code::Not,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the bytes in pieces of this size.
    fn fed(bytes: &[u8], size: usize) -> (Vec<u8>, Option<i64>, Vec<u8>) {
        let mut stream = Marked::new("5ec4e7");
        let mut out = Vec::new();
        for piece in bytes.chunks(size) {
            out.extend_from_slice(&stream.feed(Bytes::copy_from_slice(piece)));
        }
        (out, stream.code(), stream.rest().to_vec())
    }

    #[test]
    fn the_mark_is_found_however_it_is_cut() {
        for output in [&b""[..], b"text\n", b"\0\0\0\0", b"\x005ec4e", b"\x005ec4e7:x\n\x005ec4e7"]
        {
            let bytes = [output, b"\x005ec4e7:137\n"].concat();
            for size in 1..=bytes.len() {
                assert_eq!(fed(&bytes, size), (output.to_vec(), Some(137), vec![]), "{size}");
            }
        }
    }

    #[test]
    fn what_lacks_a_mark_is_given_whole() {
        for bytes in [&b"text"[..], b"\0", b"\x005ec4e7:13", b"\x005ec4e7:1375\n", b"\x005ec4e7:\n"]
        {
            for size in 1..=bytes.len() {
                let (mut out, code, rest) = fed(bytes, size);
                out.extend(rest);
                assert_eq!((out.as_slice(), code), (bytes, None), "{size}");
            }
        }
    }

    #[test]
    fn what_comes_after_the_mark_is_not_of_the_program() {
        let (out, code, rest) = fed(b"a\x005ec4e7:0\nlate", 1);
        assert_eq!((out.as_slice(), code, rest.as_slice()), (&b"a"[..], Some(0), &b""[..]));
    }
}
