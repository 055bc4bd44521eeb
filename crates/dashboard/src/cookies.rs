//! The cookies of the pages: the session of the person, and a note for the next page.
//!
//! The prefix `__Host-` makes browsers keep the cookies to this very host, over https only; browsers
//! treat this machine itself like https.

use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite, time::Duration},
};
use data_encoding::BASE64URL_NOPAD;

/// The session token of the person.
const SESSION: &str = "__Host-svc-session";
/// What the last form did, for the next page.
const NOTE: &str = "__Host-svc-note";
/// How long a browser keeps a session, in days. The service ends sessions earlier or later itself.
const KEPT_FOR: i64 = 90;

fn cookie(name: &'static str, value: String, kept_for: Duration) -> Cookie<'static> {
    Cookie::build(name, value)
        .path("/")
        .secure(true)
        .http_only(true)
        .same_site(SameSite::Lax)
        .max_age(kept_for)
        .finish()
}

/// The session token of a request.
pub fn session(req: &HttpRequest) -> Option<String> {
    req.cookie(SESSION).map(|cookie| cookie.value().to_owned()).filter(|value| !value.is_empty())
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
pub fn note(req: &HttpRequest) -> Option<String> {
    let cookie = req.cookie(NOTE)?;
    let note = BASE64URL_NOPAD.decode(cookie.value().as_bytes()).ok()?;
    let note = String::from_utf8(note).ok()?;
    (!note.is_empty()).then_some(note)
}

/// Shows a note on the next page.
pub fn noted(text: &str) -> Cookie<'static> {
    cookie(NOTE, BASE64URL_NOPAD.encode(text.as_bytes()), Duration::minutes(1))
}

/// Forgets the note, which was shown.
pub fn shown() -> Cookie<'static> {
    cookie(NOTE, String::new(), Duration::ZERO)
}
