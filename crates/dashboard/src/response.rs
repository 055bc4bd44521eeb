//! Responses: pages, redirections, and refusals.

use crate::{cookies, form::Form, tone::Tone};
use actix_web::{
    HttpResponse, ResponseError,
    cookie::Cookie,
    http::{StatusCode, header},
};
use askama::Template;
use contract::Fault;
use futures_util::future::LocalBoxFuture;
use std::fmt;

/// What a handler gives.
pub type PageResult = Result<HttpResponse, Refused>;

/// What a handler gives later that is made by a function.
pub type PageFuture = LocalBoxFuture<'static, PageResult>;

/// A call was refused. The guard makes a page of it.
#[derive(Debug)]
pub struct Refused(pub Fault);

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Refused(fault)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for Refused {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// What the last form did, in a sentence for the next page. Its tone says whether that is what the person
/// wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub tone: Tone,
}

impl Note {
    /// A note about something that has begun, or is done in part: the page shows its end later.
    pub fn plain(text: impl Into<String>) -> Note {
        Note { text: text.into(), tone: Tone::Busy }
    }

    /// A note about something that failed.
    pub fn bad(text: impl Into<String>) -> Note {
        Note { text: text.into(), tone: Tone::Bad }
    }

    /// How a screen reader tells it.
    pub fn role(&self) -> &'static str {
        if self.tone == Tone::Bad { "alert" } else { "status" }
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Note {
        Note { text: text.to_owned(), tone: Tone::Good }
    }
}

impl From<&String> for Note {
    fn from(text: &String) -> Note {
        text.as_str().into()
    }
}

impl From<String> for Note {
    fn from(text: String) -> Note {
        Note { text, tone: Tone::Good }
    }
}

/// A page, with the status 200.
pub fn page(content: &impl Template) -> PageResult {
    page_with(StatusCode::OK, content)
}

/// A page with a form, with the status that the service gave what was entered.
pub fn form_page(form: &Form, content: &impl Template) -> PageResult {
    page_with(StatusCode::from_u16(form.status()).unwrap_or(StatusCode::BAD_REQUEST), content)
}

pub fn page_with(status: StatusCode, content: &impl Template) -> PageResult {
    let html = content.render().map_err(|_| Refused(Fault::Internal))?;
    let mut response = HttpResponse::build(status);
    response.content_type("text/html; charset=utf-8");
    Ok(response.body(html))
}

/// Leads to another page after a form, and says there what the form did.
pub fn done(to: &str, note: impl Into<Note>) -> PageResult {
    Ok(leads_to(to, note))
}

/// See [`done`].
pub fn leads_to(to: &str, note: impl Into<Note>) -> HttpResponse {
    see(to).cookie(cookies::noted(&note.into())).finish()
}

/// Leads to another page with a new session, or without one.
pub fn with_session(to: &str, session: Cookie<'static>) -> PageResult {
    Ok(see(to).cookie(session).finish())
}

fn see(to: &str) -> actix_web::HttpResponseBuilder {
    let mut response = HttpResponse::SeeOther();
    response.insert_header((header::LOCATION, to.to_owned()));
    response
}

/// An address of this site. Anything else leads to the start.
pub fn own_address(to: &str) -> String {
    // Browsers leave out tabs and line ends, and take a backslash for a slash.
    let is_plain = to.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    let is_own = is_plain && to.starts_with('/') && !to.starts_with("//");
    if is_own && !to.starts_with("/sign-") { to.to_owned() } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::own_address;

    #[test]
    fn only_addresses_of_this_site_are_followed() {
        assert_eq!(own_address("/projects/p_1?a=b"), "/projects/p_1?a=b");
        for other in [
            "",
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "javascript:a",
            "/sign-out",
        ] {
            assert_eq!(own_address(other), "/", "{other}");
        }
    }
}
