//! Responses: pages, redirections, and refusals.

use crate::{
    cookies,
    form::Form,
    visitor::{Visitor, form_token},
};
use actix_web::{
    HttpResponse, ResponseError,
    cookie::Cookie,
    http::{StatusCode, header},
};
use askama::Template;
use contract::{
    Fault, Timestamp,
    announcements::{Announcement, GetAnnouncements},
    authentication::{Role, User},
};
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

/// What the last form did, in a sentence for the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub tone: Tone,
}

/// Whether what a form did is what the person wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It is.
    Good,
    /// It has begun, or it is done in part.
    Plain,
    /// It is not.
    Bad,
}

impl Note {
    /// A note about something whose end the page shows later.
    pub fn plain(text: impl Into<String>) -> Note {
        Note { text: text.into(), tone: Tone::Plain }
    }

    /// A note about something that failed.
    pub fn bad(text: impl Into<String>) -> Note {
        Note { text: text.into(), tone: Tone::Bad }
    }

    /// The class of the note in style.css.
    pub fn class(&self) -> &'static str {
        match self.tone {
            Tone::Good => "note good",
            Tone::Plain => "note",
            Tone::Bad => "fault",
        }
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

/// Pages that belong together.
pub struct Tabs {
    /// What they are about, for screen readers.
    pub label: &'static str,
    /// Their addresses and labels.
    pub all: Vec<(String, &'static str)>,
    /// The address of this page.
    pub here: String,
}

/// What all pages show around their content.
pub struct Frame {
    /// The title in the browser.
    pub title: String,
    /// The way from the start to this page: labels and addresses.
    pub trail: Vec<(String, String)>,
    /// The tabs among which this page is, if it is a tab.
    pub tabs: Option<Tabs>,
    /// The person, if they are signed in.
    pub user: Option<User>,
    /// What the operators tell everybody who is signed in.
    pub announcements: Vec<Announcement>,
    /// What the last form did.
    pub note: Option<Note>,
    pub form_token: String,
    pub now: Timestamp,
    /// Whether the browser will keep a session.
    pub keeps_sessions: bool,
    /// Distinguishes this showing of a form from others.
    pub form_key: String,
}

impl Frame {
    /// The frame for anybody.
    pub fn open(visitor: &Visitor, title: &str) -> Frame {
        Frame {
            title: title.to_owned(),
            trail: Vec::new(),
            tabs: None,
            user: None,
            announcements: Vec::new(),
            note: cookies::note(visitor.request()),
            form_token: visitor.form_token(),
            now: visitor.now(),
            keeps_sessions: visitor.settings().keeps_sessions(),
            form_key: format!("{:032x}", fastrand::u128(..)),
        }
    }

    /// The frame for a person who is signed in.
    pub async fn of(visitor: &Visitor, title: &str) -> Result<Frame, Refused> {
        let frame = Frame::of_user(visitor, title).await?;
        let announcements = visitor.read(&GetAnnouncements {}).await?.items;
        Ok(Frame { announcements, ..frame })
    }

    /// The frame for a person who is signed in, with as few calls as possible.
    pub async fn of_user(visitor: &Visitor, title: &str) -> Result<Frame, Refused> {
        let user = Some(visitor.user().await?);
        Ok(Frame { user, ..Frame::open(visitor, title) })
    }

    /// The frame in which the session of these forms has just begun.
    pub fn for_session(self, session: &str) -> Frame {
        Frame { form_token: form_token(Some(session)), ..self }
    }

    /// Whether the person is a superadmin. The service decides what they may do; this decides what is
    /// shown.
    pub fn is_superadmin(&self) -> bool {
        self.user.as_ref().is_some_and(|user| user.role == Role::Superadmin)
    }

    /// Adds a step to the way to this page.
    pub fn below(mut self, label: impl fmt::Display, address: impl fmt::Display) -> Frame {
        self.trail.push((label.to_string(), address.to_string()));
        self
    }

    /// Shows tabs: the last part of each address after `base`, and its label.
    pub fn with_tabs<'a>(
        self,
        label: &'static str,
        (base, here): (&str, &str),
        all: impl IntoIterator<Item = &'a (&'static str, &'static str)>,
    ) -> Frame {
        let all = all.into_iter().map(|(part, label)| (format!("{base}{part}"), *label)).collect();
        Frame { tabs: Some(Tabs { label, all, here: format!("{base}{here}") }), ..self }
    }
}

/// A page.
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
