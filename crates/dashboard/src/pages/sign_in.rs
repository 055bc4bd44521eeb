//! Signing in and out, new accounts, and forgotten passwords.

use crate::{
    cookies,
    form::Form,
    frame::Frame,
    response::{
        Note, PageResult, Refused, done, form_page, own_address, page, page_with, with_session,
    },
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
        ConfirmEmail, CreateFirstAdministrator, LoginWithEmail, Logout, RegisterUser,
        RequestPasswordReset, ResetPassword, SignedIn,
    },
    service::{GetServiceInfo, Registration},
};
use messages::Messages;
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
        .route("/reset-password", web::post().to(reset))
        .route("/confirm-email", web::get().to(show_confirm))
        .route("/confirm-email", web::post().to(confirm));
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    form: Form,
    /// Whether the person was signed in before.
    again: bool,
    registration: Registration,
    /// Whether the server has no administrator yet.
    awaits_administrator: bool,
}

impl SignInPage {
    async fn new(visitor: &Visitor, form: Form, again: bool) -> SignInPage {
        let info = visitor.read(&GetServiceInfo {}).await;
        SignInPage {
            frame: Frame::open(visitor, Messages::sign_in),
            form,
            again,
            registration: visitor.settings().registration,
            // Who has no calls left still sees the form.
            awaits_administrator: info.is_ok_and(|info| info.awaits_administrator),
        }
    }
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

#[derive(Template)]
#[template(path = "confirm_email.html")]
struct ConfirmEmailPage {
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
    page(&SignInPage::new(&visitor, form, false).await)
}

/// Asks a person to sign in whose session is missing or over. What they entered is kept, and can be
/// sent again.
pub async fn again(visitor: &Visitor, sent: Option<Form>) -> PageResult {
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
    let content = SignInPage::new(visitor, Form::new(fields), visitor.is_signed_in()).await;
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
            let frame = Frame::open(&visitor, Messages::signed_in_again).for_session(&session);
            let mut response = page(&GoOnPage { frame, to, kept })?;
            // A cookie that cannot be added would only ask to sign in once more.
            let _ = response.add_cookie(&cookies::signed_in(session));
            Ok(response)
        }
        Err(fault) => {
            let form = form.refused(fault);
            form_page(&form.clone(), &SignInPage::new(&visitor, form, false).await)
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
    RegisterPage { frame: Frame::open(visitor, Messages::new_account), form, registration }
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
    if visitor.read(&GetServiceInfo {}).await.is_ok_and(|info| !info.awaits_administrator) {
        return done("/sign-in", Note::plain(visitor.messages().has_administrator()));
    }
    let form = Form::filled([("token", query.into_inner().token)]);
    page(&FirstStartPage { frame: Frame::open(&visitor, Messages::first_administrator), form })
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
            let (frame, form) =
                (Frame::open(&visitor, Messages::first_administrator), form.refused(fault));
            form_page(&form.clone(), &FirstStartPage { frame, form })
        }
    }
}

async fn show_forgot(visitor: Visitor) -> PageResult {
    page(&forgot_page(&visitor, Form::default()))
}

fn forgot_page(visitor: &Visitor, form: Form) -> ForgotPasswordPage {
    let sends_mail = visitor.settings().sends_mail;
    ForgotPasswordPage {
        frame: Frame::open(visitor, Messages::forgotten_password),
        form,
        sends_mail,
    }
}

async fn forgot(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(RequestPasswordReset { email: form.get("email")? });
    match visitor.send(&form, params).await {
        Ok(_) => {
            let say = visitor.messages();
            let sends_mail = visitor.settings().sends_mail;
            let note = if sends_mail { say.asked_mail() } else { say.asked_no_mail() };
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
    page(&ResetPasswordPage { frame: Frame::open(&visitor, Messages::new_password), form })
}

async fn reset(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        let (token, new_password) = (form.get("token")?, form.get("newPassword")?);
        Ok(ResetPassword { token, new_password, revoke_tokens: true })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done("/sign-in", visitor.messages().password_set()),
        Err(fault) => {
            let (frame, form) =
                (Frame::open(&visitor, Messages::new_password), form.refused(fault));
            form_page(&form.clone(), &ResetPasswordPage { frame, form })
        }
    }
}

async fn show_confirm(visitor: Visitor, query: web::Query<TokenQuery>) -> PageResult {
    let form = Form::filled([("token", query.into_inner().token)]);
    page(&ConfirmEmailPage { frame: Frame::open(&visitor, Messages::confirm_email), form })
}

async fn confirm(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(ConfirmEmail { token: form.get("token")? });
    match visitor.send(&form, params).await {
        Ok(_) => done("/account", visitor.messages().email_confirmed()),
        Err(fault) => {
            let (frame, form) =
                (Frame::open(&visitor, Messages::confirm_email), form.refused(fault));
            form_page(&form.clone(), &ConfirmEmailPage { frame, form })
        }
    }
}
