//! What all pages show around their content: the menu, the way to the page, and what the last form did.

use crate::{
    cookies,
    response::{Note, Refused},
    side::Side,
    theme::Theme,
    visitor::{Visitor, form_token},
};
use contract::{
    AppId, ProjectId, Timestamp,
    announcements::{Announcement, GetAnnouncements},
    apps::{App, GetApp},
    authentication::{Role, User},
    projects::{GetProject, Project},
};
use messages::{Language, Messages, Sentence};
use std::fmt::Display;

/// Pages that belong together.
pub struct Tabs {
    /// What they are about, for screen readers.
    pub label: String,
    /// Their addresses and labels.
    pub all: Vec<(String, String)>,
    /// The address of this page.
    pub here: String,
}

/// The last part of the address of a tab, and its label.
pub type Tab = (&'static str, Sentence);

/// The sentences for those who are signed in. Only the frame of their pages is translated, and a page in two
/// languages would help nobody.
pub const SIGNED_IN: Messages = Messages { language: Language::English };

/// What a part of a page knows of the page around it. Its template reads it as that of a page reads its
/// [`Frame`].
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub messages: Messages,
    pub now: Timestamp,
}

pub struct Frame {
    /// The title in the browser.
    pub title: String,
    /// The way from the start to this page: labels and addresses.
    pub trail: Vec<(String, String)>,
    /// The tabs among which this page is, if it is a tab.
    pub tabs: Option<Tabs>,
    /// The person, if they are signed in.
    pub user: Option<User>,
    /// The menu of the person.
    pub side: Option<Side>,
    pub theme: Theme,
    /// The sentences of the page. Only those for people who are not signed in are in other languages than
    /// English.
    pub messages: Messages,
    /// The address of this page, with its query. That of a refused form leads to its page.
    pub address: String,
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
    pub fn open(visitor: &Visitor, title: impl FnOnce(Messages) -> String) -> Frame {
        Frame::new(visitor, visitor.messages(), title)
    }

    fn new(visitor: &Visitor, messages: Messages, title: impl FnOnce(Messages) -> String) -> Frame {
        let req = visitor.request();
        Frame {
            title: title(messages),
            trail: Vec::new(),
            tabs: None,
            user: None,
            side: None,
            theme: cookies::theme(req),
            messages,
            address: req.uri().to_string(),
            announcements: Vec::new(),
            note: cookies::note(req),
            form_token: visitor.form_token(),
            now: visitor.now(),
            keeps_sessions: visitor.settings().keeps_sessions,
            form_key: format!("{:032x}", fastrand::u128(..)),
        }
    }

    /// The frame for a person who is signed in.
    pub async fn of(
        visitor: &Visitor,
        title: impl FnOnce(Messages) -> String,
    ) -> Result<Frame, Refused> {
        let user = visitor.user().await?;
        let side = Side::of_user(&user).with_projects(visitor).await?;
        Frame::of_user(visitor, title).await?.announced(visitor, side).await
    }

    /// The frame for a person who is signed in, with as few calls as possible.
    pub async fn of_user(
        visitor: &Visitor,
        title: impl FnOnce(Messages) -> String,
    ) -> Result<Frame, Refused> {
        let user = visitor.user().await?;
        let side = Some(Side::of_user(&user));
        Ok(Frame { user: Some(user), side, ..Frame::new(visitor, visitor.say(), title) })
    }

    /// The frame of the page of a project.
    pub async fn of_project(
        visitor: &Visitor,
        project_id: ProjectId,
    ) -> Result<(Frame, Project), Refused> {
        let user = visitor.user().await?;
        let project = visitor.read(&GetProject { project_id }).await?;
        let side = Side::of_user(&user).with_project(visitor, &project).await?;
        let frame = Frame::of_user(visitor, |_| project.name.to_string()).await?;
        let frame = frame.announced(visitor, side).await?;
        Ok((frame.below_page(Messages::menu_projects, "/projects"), project))
    }

    /// The frame of a page below that of a project.
    pub async fn in_project(
        visitor: &Visitor,
        title: impl FnOnce(Messages) -> String,
        project_id: ProjectId,
    ) -> Result<(Frame, Project), Refused> {
        let (frame, project) = Frame::of_project(visitor, project_id).await?;
        let frame = frame.below(&project.name, format!("/projects/{project_id}"));
        Ok((Frame { title: title(frame.messages), ..frame }, project))
    }

    /// The frame of a page below that of an app.
    pub async fn in_app(
        visitor: &Visitor,
        title: impl FnOnce(Messages) -> String,
        app_id: AppId,
    ) -> Result<(Frame, App), Refused> {
        let app = visitor.read(&GetApp { app_id }).await?;
        let (frame, _) = Frame::in_project(visitor, title, app.project_id).await?;
        Ok((frame.below(&app.name, format!("/apps/{app_id}")), app))
    }

    /// What the parts of the page know of it.
    pub fn view(&self) -> View {
        View { messages: self.messages, now: self.now }
    }

    async fn announced(self, visitor: &Visitor, side: Side) -> Result<Frame, Refused> {
        let announcements = visitor.read(&GetAnnouncements {}).await?.items;
        Ok(Frame { announcements, side: Some(side), ..self })
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
    pub fn below(mut self, label: impl Display, address: impl Display) -> Frame {
        self.trail.push((label.to_string(), address.to_string()));
        self
    }

    /// Adds a page with a name of its own to the way to this page.
    pub fn below_page(self, label: Sentence, address: impl Display) -> Frame {
        let label = label(self.messages);
        self.below(label, address)
    }

    /// Shows tabs: the last part of each address after `base`, and its label.
    pub fn with_tabs<'a>(
        self,
        label: Sentence,
        (base, here): (&str, &str),
        all: impl IntoIterator<Item = &'a Tab>,
    ) -> Frame {
        let tab = |(part, label): &Tab| (format!("{base}{part}"), label(self.messages));
        let all = all.into_iter().map(tab).collect();
        let label = label(self.messages);
        Frame { tabs: Some(Tabs { label, all, here: format!("{base}{here}") }), ..self }
    }

    /// Whose menu the page shows, if they are signed in.
    pub fn menu(&self) -> Option<(&User, &Side)> {
        self.user.as_ref().zip(self.side.as_ref())
    }

    /// Whether the page belongs to the entry of the menu with this address, more than to others.
    pub fn is_in(&self, address: &str) -> bool {
        let path = self.address.split('?').next();
        let tabs = self.tabs.iter().flat_map(|tabs| tabs.all.first());
        let above = self.trail.iter().rev().map(|(_, address)| address.as_str());
        let ways = path.into_iter().chain(tabs.map(|(first, _)| first.as_str())).chain(above);
        self.side.as_ref().and_then(|side| side.nearest(ways)) == Some(address)
    }
}
