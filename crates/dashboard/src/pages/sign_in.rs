//! Signing in and out, new accounts, and forgotten passwords.

use crate::{
    cookies,
    form::Form,
    response::{Frame, Note, PageResult, Refused, done, form_page, page, page_with, with_session},
    visitor::Visitor,
};
use actix_web::{
    http::{Method, StatusCode},
    web,
};
use askama::Template;
use contract::{
    Fault,
    authentication::{
        CreateFirstAdministrator, LoginWithEmail, Logout, RegisterUser, RequestPasswordReset,
        ResetPassword, SignedIn,
    },
    service::Registration,
};
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/first-start", web::get().to(show_first))
        .route("/first-start", web::post().to(first))
        .route("/sign-in", web::get().to(show))
        .route("/sign-in", web::post().to(sign_in))
        .route("/sign-out", web::post().to(sign_out))
        .route("/register", web::get().to(show_register))
        .route("/register", web::post().to(register))
        .route("/forgot-password", web::get().to(show_forgot))
        .route("/forgot-password", web::post().to(forgot))
        .route("/reset-password", web::get().to(show_reset))
        .route("/reset-password", web::post().to(reset));
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    form: Form,
    /// Whether the person was signed in before.
    again: bool,
    registration: Registration,
}

#[derive(Template)]
#[template(path = "go_on.html")]
struct GoOnPage {
    frame: Frame,
    to: String,
    kept: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "register.html")]
struct RegisterPage {
    frame: Frame,
    form: Form,
    registration: Registration,
}

#[derive(Template)]
#[template(path = "first_start.html")]
struct FirstStartPage {
    frame: Frame,
    form: Form,
}

#[derive(Template)]
#[template(path = "forgot_password.html")]
struct ForgotPasswordPage {
    frame: Frame,
    form: Form,
    sends_mail: bool,
}

#[derive(Template)]
#[template(path = "reset_password.html")]
struct ResetPasswordPage {
    frame: Frame,
    form: Form,
}

/// Where a person goes after they signed in.
#[derive(Deserialize)]
struct DestinationQuery {
    #[serde(default)]
    to: String,
}

async fn show(visitor: Visitor, query: web::Query<DestinationQuery>) -> PageResult {
    let form = Form::filled([("to", own_address(&query.to))]);
    let registration = visitor.settings().registration;
    page(&SignInPage { frame: Frame::open(&visitor, "Sign in"), form, again: false, registration })
}

/// Asks a person to sign in whose session is missing or over. What they entered is kept, and can be
/// sent again.
pub fn again(visitor: &Visitor, sent: Option<Form>) -> PageResult {
    let req = visitor.request();
    let to = req.uri().path_and_query().map_or("/", |path| path.as_str());
    let mut fields = vec![("to".to_owned(), to.to_owned())];
    if req.method() == Method::POST {
        fields.push(("sent".to_owned(), "yes".to_owned()));
    }
    if let Some(sent) = sent {
        let kept =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(sent.kept()).finish();
        fields.push(("kept".to_owned(), kept));
    }
    let content = SignInPage {
        frame: Frame::open(visitor, "Sign in"),
        form: Form::new(fields),
        again: visitor.is_signed_in(),
        registration: visitor.settings().registration,
    };
    page_with(StatusCode::UNAUTHORIZED, &content)
}

async fn signed_in(visitor: &Visitor, form: &Form) -> Result<SignedIn, Fault> {
    let params = LoginWithEmail { email: form.get("email")?, password: form.get("password")? };
    visitor.call(&params, None).await
}

async fn sign_in(visitor: Visitor, form: Form) -> PageResult {
    match signed_in(&visitor, &form).await {
        Ok(signed_in) => {
            let session = signed_in.session_token;
            let to = own_address(form.value("to"));
            if !form.has("sent", "yes") {
                return with_session(&to, cookies::signed_in(session));
            }
            let kept = form.value("kept").as_bytes();
            let kept = url::form_urlencoded::parse(kept).into_owned().collect();
            let frame = Frame::open(&visitor, "You are signed in again").for_session(&session);
            let mut response = page(&GoOnPage { frame, to, kept })?;
            // A cookie that cannot be added would only ask to sign in once more.
            let _ = response.add_cookie(&cookies::signed_in(session));
            Ok(response)
        }
        Err(fault) => {
            let (frame, form) = (Frame::open(&visitor, "Sign in"), form.refused(fault));
            let registration = visitor.settings().registration;
            form_page(&form.clone(), &SignInPage { frame, form, again: false, registration })
        }
    }
}

async fn sign_out(visitor: Visitor, _: Form) -> PageResult {
    match visitor.read(&Logout {}).await {
        // A session that is over already is as good.
        Ok(_) | Err(Refused(Fault::Unauthenticated(_))) => {
            with_session("/sign-in", cookies::signed_out())
        }
        Err(refused) => Err(refused),
    }
}

async fn show_register(visitor: Visitor, query: web::Query<DestinationQuery>) -> PageResult {
    let to = own_address(&query.to);
    // The link of an invitation leads here over its own page.
    let invitation = to.strip_prefix("/invitations?token=").unwrap_or_default().to_owned();
    let form = Form::filled([("to", to), ("invitation", invitation)]);
    page(&register_page(&visitor, form))
}

fn register_page(visitor: &Visitor, form: Form) -> RegisterPage {
    let registration = visitor.settings().registration;
    RegisterPage { frame: Frame::open(visitor, "New account"), form, registration }
}

async fn register(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(RegisterUser {
            email: form.get("email")?,
            password: form.get("password")?,
            name: form.get("name")?,
            invitation: form.get("invitation")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(signed_in) => with_session(
            &own_address(form.value("to")),
            cookies::signed_in(signed_in.session_token),
        ),
        Err(fault) => {
            let form = form.refused(fault);
            form_page(&form.clone(), &register_page(&visitor, form))
        }
    }
}

async fn show_first(visitor: Visitor, query: web::Query<TokenQuery>) -> PageResult {
    let form = Form::filled([("token", query.into_inner().token)]);
    page(&FirstStartPage { frame: Frame::open(&visitor, "First administrator"), form })
}

async fn first(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(CreateFirstAdministrator {
            token: form.get("token")?,
            email: form.get("email")?,
            password: form.get("password")?,
            name: form.get("name")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(signed_in) => with_session("/", cookies::signed_in(signed_in.session_token)),
        Err(fault) => {
            let (frame, form) = (Frame::open(&visitor, "First administrator"), form.refused(fault));
            form_page(&form.clone(), &FirstStartPage { frame, form })
        }
    }
}

async fn show_forgot(visitor: Visitor) -> PageResult {
    page(&forgot_page(&visitor, Form::default()))
}

fn forgot_page(visitor: &Visitor, form: Form) -> ForgotPasswordPage {
    let sends_mail = visitor.settings().sends_mail;
    ForgotPasswordPage { frame: Frame::open(visitor, "Forgotten password"), form, sends_mail }
}

async fn forgot(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(RequestPasswordReset { email: form.get("email")? });
    match visitor.send(&form, params).await {
        Ok(_) => {
            let note = if visitor.settings().sends_mail {
                "If there is an account with this e-mail, a mail with a link is on its way to it."
            } else {
                "This server sends no mail. If there is an account with this e-mail, its operator finds the link in the log."
            };
            done("/reset-password", Note::plain(note))
        }
        Err(fault) => {
            let form = form.refused(fault);
            form_page(&form.clone(), &forgot_page(&visitor, form))
        }
    }
}

/// The token of a link, if the person followed one.
#[derive(Deserialize)]
struct TokenQuery {
    #[serde(default)]
    token: String,
}

async fn show_reset(visitor: Visitor, query: web::Query<TokenQuery>) -> PageResult {
    let form = Form::filled([("token", query.into_inner().token)]);
    page(&ResetPasswordPage { frame: Frame::open(&visitor, "New password"), form })
}

async fn reset(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        let (token, new_password) = (form.get("token")?, form.get("newPassword")?);
        Ok(ResetPassword { token, new_password, revoke_tokens: true })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done("/sign-in", "The new password holds from now on. Sign in with it."),
        Err(fault) => {
            let (frame, form) = (Frame::open(&visitor, "New password"), form.refused(fault));
            form_page(&form.clone(), &ResetPasswordPage { frame, form })
        }
    }
}

/// An address of this site. Anything else leads to the start.
fn own_address(to: &str) -> String {
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
