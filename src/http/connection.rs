//! A connection, with a body for what the HTTP library refuses by itself.
//!
//! Headers that are too large or come too slowly, and bytes that are no HTTP, never reach the app:
//! the library answers them with an empty body and closes. Here they get the body that all
//! refusals have. The connection follows where answers begin and end and leaves all others as they
//! are; where it cannot follow any more, it leaves everything as it is. An answer that was replaced
//! is the last one of its connection.

use super::Shared;
use contract::{Fault, fault::Failure};
use memchr::memmem;
use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest head of an answer that is followed, and the most header fields of it.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_FIELDS: usize = 64;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A connection.
pub struct Connection<T> {
    io: T,
    shared: Arc<Shared>,
    outgoing: Outgoing,
    instead: Option<Instead>,
    /// Bytes of `HEAD` that the last read ended with.
    head_begun: usize,
}

/// What is written in place of an answer of the library.
struct Instead {
    bytes: Vec<u8>,
    written: usize,
    /// How long that answer was.
    stands_for: usize,
}

/// How far the answers have been written.
enum Outgoing {
    /// An answer begins, and this much of its head is written.
    Head(Vec<u8>),
    /// So many bytes of a body are to come.
    Body(u64),
    /// Nobody knows.
    Unknown,
    /// None may come any more.
    Over,
}

impl<T> Connection<T> {
    /// A connection that was just accepted.
    pub fn new(io: T, shared: Arc<Shared>) -> Self {
        Connection {
            io,
            shared,
            outgoing: Outgoing::Head(Vec::new()),
            instead: None,
            head_begun: 0,
        }
    }

    /// What it is made of.
    pub fn io(&self) -> &T {
        &self.io
    }

    /// The refusal in place of this answer of the library.
    fn refusal(&self, answer: &[u8]) -> Instead {
        let status = Head::read(answer).ok().flatten().map(|head| head.status);
        let fault = match status {
            Some(408) => Fault::RequestTimeout,
            Some(431) => Fault::HeadersTooLarge,
            Some(400) => Fault::Malformed("this is not a request that HTTP allows".into()),
            _ => Fault::Internal,
        };
        let id = self.shared.new_request_id();
        // A `Failure` always serializes: text, numbers and lists of text.
        let body = serde_json::to_string(&Failure::new(&fault, &id)).unwrap_or_default();
        let origin =
            if self.shared.origins.is_empty() { "access-control-allow-origin: *\r\n" } else { "" };
        let fields = format!(
            "\r\ncontent-length: {}\r\ncontent-type: application/json\r\nx-request-id: {id}\r\n\
             vary: Origin\r\n{origin}",
            body.len()
        );
        let head = String::from_utf8_lossy(answer).replacen(EMPTY, &fields, 1);
        tracing::info!(request_id = %id, code = fault.code(), error = %fault, "refused");
        self.shared.figures.called(None, std::time::Duration::ZERO, Some(&fault));
        let bytes = [head.into_bytes(), body.into_bytes()].concat();
        Instead { bytes, written: 0, stands_for: answer.len() }
    }
}

const EMPTY: &str = "\r\ncontent-length: 0\r\n";

/// What the head of an answer says of its body.
struct Head {
    /// Bytes of the head.
    bytes: usize,
    status: u16,
    content_length: Option<u64>,
    transfer_encoding: bool,
    /// It is the answer of an instance, and passed on as it is.
    passed_on: bool,
}

impl Head {
    /// The head that begins here, where it is whole. An error: these are no bytes of a head.
    fn read(bytes: &[u8]) -> Result<Option<Head>, httparse::Error> {
        let mut fields = [MaybeUninit::uninit(); MOST_FIELDS];
        let mut answer = httparse::Response::new(&mut []);
        let read = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut answer,
            bytes,
            &mut fields,
        );
        let httparse::Status::Complete(bytes) = read? else { return Ok(None) };
        let status = answer.code.unwrap_or_default();
        let mut head = Head {
            bytes,
            status,
            content_length: None,
            transfer_encoding: false,
            passed_on: false,
        };
        for field in answer.headers.iter() {
            if field.name.eq_ignore_ascii_case("content-length") {
                let text = std::str::from_utf8(field.value).ok();
                head.content_length = text.and_then(|text| text.parse().ok());
            } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
                head.transfer_encoding = true;
            } else if field.name.eq_ignore_ascii_case("via") {
                head.passed_on = true;
            }
        }
        Ok(Some(head))
    }

    /// Whether this is an answer that the library made by itself: the app never refuses with an
    /// empty body.
    fn is_of_the_library(&self) -> bool {
        let of_its_kind = matches!(self.status, 400 | 408 | 431 | 500);
        of_its_kind && self.content_length == Some(0) && !self.passed_on
    }

    /// What comes after it.
    fn next(&self) -> Outgoing {
        match (self.status, self.content_length) {
            (101, _) => Outgoing::Unknown,
            (100..=199 | 204 | 304, _) => Outgoing::Head(Vec::new()),
            _ if self.transfer_encoding => Outgoing::Unknown,
            (_, Some(0)) => Outgoing::Head(Vec::new()),
            (_, Some(length)) => Outgoing::Body(length),
            (_, None) => Outgoing::Unknown,
        }
    }
}

impl Outgoing {
    /// These bytes were written. Gives the part of them that is left once an answer has ended.
    fn step<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        match self {
            Outgoing::Unknown | Outgoing::Over => &[],
            Outgoing::Body(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left = left.saturating_sub(taken as u64);
                if *left == 0 {
                    *self = Outgoing::Head(Vec::new());
                }
                bytes.get(taken..).unwrap_or_default()
            }
            Outgoing::Head(begun) => {
                let known = begun.len();
                let head = if known == 0 {
                    Head::read(bytes)
                } else {
                    begun.extend_from_slice(bytes);
                    Head::read(begun)
                };
                match head {
                    Ok(Some(head)) => {
                        *self = head.next();
                        bytes.get(head.bytes.saturating_sub(known)..).unwrap_or_default()
                    }
                    Ok(None) if known + bytes.len() < LONGEST_HEAD => {
                        if known == 0 {
                            begun.extend_from_slice(bytes);
                        }
                        &[]
                    }
                    Ok(None) | Err(_) => {
                        *self = Outgoing::Unknown;
                        &[]
                    }
                }
            }
        }
    }

    fn written(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = self.step(bytes);
        }
    }

    /// Where in these bytes, which are to be written next, an answer of the library begins. It is
    /// the last one: the library closes after it.
    fn of_the_library(&self, bytes: &[u8]) -> Option<usize> {
        if !bytes.ends_with(HEAD_END) {
            return None;
        }
        let mut ahead = match self {
            Outgoing::Head(begun) if begun.is_empty() => Outgoing::Head(Vec::new()),
            Outgoing::Body(left) => Outgoing::Body(*left),
            _ => return None,
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            if matches!(&ahead, Outgoing::Head(_))
                && let Ok(Some(head)) = Head::read(rest)
                && head.bytes == rest.len()
                && head.is_of_the_library()
            {
                return Some(bytes.len() - rest.len());
            }
            rest = ahead.step(rest);
        }
        None
    }
}

/// Whether these bytes, or the last ones before them with these, hold a word. `begun` says how much
/// of the word the bytes so far end with. No letter of the word may stand in it twice.
fn has_word(word: &[u8], begun: &mut usize, bytes: &[u8]) -> bool {
    let rest = word.get(*begun..).unwrap_or_default();
    if *begun > 0 && rest.starts_with(bytes) && bytes.len() < rest.len() {
        *begun += bytes.len();
        return false;
    }
    let found = *begun > 0 && bytes.starts_with(rest) || memmem::find(bytes, word).is_some();
    let parts = (1..word.len()).rev().filter_map(|n| word.get(..n));
    *begun = parts.filter(|part| bytes.ends_with(part)).map(<[u8]>::len).next().unwrap_or(0);
    found
}

impl<T: AsyncRead + Unpin> AsyncRead for Connection<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, into))?;
        let read = into.filled().get(before..).unwrap_or_default();
        // The answer to HEAD has the length of a body that does not come. Where a request begins is
        // not known here, so the word counts wherever it stands.
        let follows = !matches!(self.outgoing, Outgoing::Unknown | Outgoing::Over);
        if follows && has_word(b"HEAD", &mut self.head_begun, read) {
            self.outgoing = Outgoing::Unknown;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if matches!(this.outgoing, Outgoing::Over) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let mut next = bytes;
        if this.instead.is_none()
            && let Some(at) = this.outgoing.of_the_library(bytes)
        {
            match bytes.get(..at) {
                Some(before) if at > 0 => next = before,
                _ => this.instead = Some(this.refusal(bytes)),
            }
        }
        if let Some(instead) = &mut this.instead {
            while let Some(rest) = instead.bytes.get(instead.written..).filter(|r| !r.is_empty()) {
                let written = ready!(Pin::new(&mut this.io).poll_write(cx, rest))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                instead.written += written;
            }
            let stood_for = instead.stands_for;
            (this.instead, this.outgoing) = (None, Outgoing::Over);
            return Poll::Ready(Ok(stood_for));
        }
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, next))?;
        this.outgoing.written(next.get(..written).unwrap_or_default());
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LIBRARY: &[u8] =
        b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

    #[test]
    fn an_answer_of_the_library_is_found_only_where_an_answer_begins() {
        let mut outgoing = Outgoing::Head(Vec::new());
        assert_eq!(outgoing.of_the_library(LIBRARY), Some(0));
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let both = [&whole[..], LIBRARY].concat();
        assert_eq!(outgoing.of_the_library(&both), Some(whole.len()));
        for part in whole.chunks(7) {
            outgoing.written(part);
        }
        assert_eq!(outgoing.of_the_library(LIBRARY), Some(0));

        // The same bytes inside a body are a body.
        let body = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", LIBRARY.len());
        let in_a_body = [body.as_bytes(), LIBRARY].concat();
        assert_eq!(outgoing.of_the_library(&in_a_body), None);
        outgoing.written(body.as_bytes());
        assert_eq!(outgoing.of_the_library(LIBRARY), None);
        outgoing.written(LIBRARY);
        assert_eq!(outgoing.of_the_library(LIBRARY), Some(0));

        // A body of unknown length is not followed.
        outgoing.written(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        assert_eq!(outgoing.of_the_library(LIBRARY), None);
    }

    #[test]
    fn a_word_is_found_wherever_it_stands_and_however_it_is_cut() {
        let text = b"POST / HTTP/1.1\r\nHE: HHEADER\r\n\r\n";
        for size in 1..text.len() {
            let mut begun = 0;
            let found = text.chunks(size).filter(|part| has_word(b"HEAD", &mut begun, part));
            assert_eq!(found.count(), 1, "{size}");
            let (mut begun, other) = (0, b"GET / HEA D HE ADHEA");
            assert!(!other.chunks(size).any(|part| has_word(b"HEAD", &mut begun, part)), "{size}");
        }
    }

    #[tokio::test]
    async fn nothing_comes_after_an_answer_that_was_replaced_and_nothing_is_after_head() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let shared = Arc::new(Shared::new(Default::default(), Default::default()).unwrap());
        let (mut client, server) = tokio::io::duplex(64 << 10);
        let mut connection = Connection::new(server, shared.clone());
        connection.write_all(LIBRARY).await.unwrap();
        assert!(connection.write_all(b"HTTP/1.1 200 OK\r\n").await.is_err());
        let mut answer = vec![0; 4096];
        let n = client.read(&mut answer).await.unwrap();
        assert!(answer[..n].ends_with(b"}"));

        // The length in an answer to HEAD is not of bytes to come.
        let (mut client, server) = tokio::io::duplex(64 << 10);
        let mut connection = Connection::new(server, shared);
        client.write_all(b"GET / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\n").await.unwrap();
        assert!(connection.read(&mut [0; 4096]).await.unwrap() > 0);
        connection.write_all(LIBRARY).await.unwrap();
        let n = client.read(&mut answer).await.unwrap();
        assert_eq!(&answer[..n], LIBRARY);
    }
}
