//! The cookies of the pages: the session of the person, a note for the next page, and the theme.
//!
//! The prefix `__Host-` makes browsers keep the cookies to this very host, over https only; browsers
//! treat this machine itself like https.

use crate::{response::Note, theme::Theme, tone::Tone};
use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite, time::Duration},
    http::header,
};
use data_encoding::BASE64URL_NOPAD;

/// The session token of the person.
const SESSION: &str = "__Host-svc-session";
/// What the last form did, for the next page.
const NOTE: &str = "__Host-svc-note";
/// The theme that the person chose.
const THEME: &str = "__Host-svc-theme";
/// The most characters of a note: a browser keeps cookies of 4 KiB.
const LONGEST_NOTE: usize = 600;
/// The last character of a note in its cookie tells its tone.
const GOOD: char = '+';
const BUSY: char = '.';
const BAD: char = '-';
/// How long a browser keeps a session, in days. The service ends sessions earlier or later itself.
const KEPT_FOR: i64 = 90;
/// How long a browser keeps a theme, in days.
const THEME_KEPT_FOR: i64 = 365;

fn cookie(name: &'static str, value: String, kept_for: Duration) -> Cookie<'static> {
    Cookie::build(name, value)
        .path("/")
        .secure(true)
        .http_only(true)
        .same_site(SameSite::Lax)
        .max_age(kept_for)
        .finish()
}

/// What a request has under this very name. Names are compared byte for byte, as browsers do for the
/// prefix: others, such as `%5F%5FHost-…`, may be set by any page of the same domain.
fn value(req: &HttpRequest, name: &str) -> Option<String> {
    let pairs = req.headers().get_all(header::COOKIE);
    let pairs = pairs.flat_map(|header| header.as_bytes().split(|byte| *byte == b';'));
    let own = pairs.map(|pair| pair.strip_prefix(b" ").unwrap_or(pair)).find(|pair| {
        pair.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    })?;
    let cookie = Cookie::parse_encoded(str::from_utf8(own).ok()?).ok()?;
    Some(cookie.value().to_owned()).filter(|value| !value.is_empty())
}

/// The session token of a request.
pub fn session(req: &HttpRequest) -> Option<String> {
    value(req, SESSION)
}

/// Keeps a session.
pub fn signed_in(token: String) -> Cookie<'static> {
    cookie(SESSION, token, Duration::days(KEPT_FOR))
}

/// Forgets the session.
pub fn signed_out() -> Cookie<'static> {
    cookie(SESSION, String::new(), Duration::ZERO)
}

/// The note of a request. It is text of this site, and shown as text.
pub fn note(req: &HttpRequest) -> Option<Note> {
    let note = BASE64URL_NOPAD.decode(value(req, NOTE)?.as_bytes()).ok()?;
    let mut note = String::from_utf8(note).ok()?;
    let tone = match note.pop()? {
        GOOD => Tone::Good,
        BAD => Tone::Bad,
        _ => Tone::Busy,
    };
    Some(Note { text: note, tone })
}

/// Shows a note on the next page.
pub fn noted(note: &Note) -> Cookie<'static> {
    let mut text: String = note.text.chars().take(LONGEST_NOTE).collect();
    text.push(match note.tone {
        Tone::Good => GOOD,
        Tone::Busy | Tone::Warn | Tone::Idle => BUSY,
        Tone::Bad => BAD,
    });
    cookie(NOTE, BASE64URL_NOPAD.encode(text.as_bytes()), Duration::minutes(1))
}

/// Forgets the note, which was shown.
pub fn shown() -> Cookie<'static> {
    cookie(NOTE, String::new(), Duration::ZERO)
}

/// The theme that the person chose.
pub fn theme(req: &HttpRequest) -> Theme {
    value(req, THEME).and_then(|name| Theme::named(&name)).unwrap_or_default()
}

/// Keeps a theme.
pub fn themed(theme: Theme) -> Cookie<'static> {
    cookie(THEME, theme.name().to_owned(), Duration::days(THEME_KEPT_FOR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn only_the_very_name_is_a_session() {
        let read = |header: &[u8]| {
            let value = header::HeaderValue::from_bytes(header).unwrap();
            session(
                &TestRequest::default().insert_header((header::COOKIE, value)).to_http_request(),
            )
        };
        let own = Some("r:1".to_owned());
        assert_eq!(read(b"__Host-svc-session=r%3A1"), own);
        assert_eq!(read(b"%5F%5FHost-svc-session=evil; __Host-svc-session=r%3A1"), own);
        assert_eq!(
            read(b"a=\xff; \xe2\x80\x80__Host-svc-session=evil; __Host-svc-session=r:1"),
            own
        );
        for other in [
            &b"%5F%5FHost-svc-session=evil"[..],
            b"__host-svc-session=evil",
            b"=__Host-svc-session=evil",
            b"\xe2\x80\x80__Host-svc-session=evil",
            b"__Host-svc-session=",
        ] {
            assert_eq!(read(other), None);
        }
    }
}
