//! Light or dark: what a person chose, or what their system prefers.

use crate::{
    cookies,
    form::Form,
    icon::Icon,
    response::{PageResult, own_address},
};
use actix_web::{HttpResponse, http::header, web};
use messages::Messages;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    Light,
    #[default]
    System,
    Dark,
}

impl Theme {
    pub const ALL: [Theme; 3] = [Theme::Light, Theme::System, Theme::Dark];

    /// The name in the cookie, in the form and in style.css.
    pub const fn name(self) -> &'static str {
        match self {
            Theme::Light => "light",
            Theme::System => "system",
            Theme::Dark => "dark",
        }
    }

    pub fn named(name: &str) -> Option<Theme> {
        Theme::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// What the button is called.
    pub fn label(self, say: &Messages) -> String {
        let say = *say;
        match self {
            Theme::Light => say.colours_light(),
            Theme::System => say.colours_system(),
            Theme::Dark => say.colours_dark(),
        }
    }

    pub const fn icon(self) -> Icon {
        match self {
            Theme::Light => Icon::Light,
            Theme::System => Icon::Screen,
            Theme::Dark => Icon::Dark,
        }
    }
}

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/theme", web::post().to(choose));
}

/// Keeps the theme, and leads back to the page on which it was chosen.
async fn choose(form: Form) -> PageResult {
    let theme = Theme::named(form.value("theme")).unwrap_or_default();
    let to = own_address(form.value("to"));
    let mut response = HttpResponse::SeeOther();
    Ok(response.insert_header((header::LOCATION, to)).cookie(cookies::themed(theme)).finish())
}
