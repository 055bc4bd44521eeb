//! `svc register`, `login`, `logout` and `whoami`.

use crate::{
    Context, args,
    client::Client,
    failure::Failure,
    input,
    login_file::StoredLogin,
    printer::{Fields, moment, word},
    settings::{ClientCredential, ClientSettings},
    token,
};
use contract::{
    Email, Password, PasswordAttempt,
    authentication::{
        Caller, Empty, GetCurrentUser, LoginWithEmail, Logout, RegisterUser, SignedIn,
    },
};
pub fn login(cx: &Context<'_>, args: args::LoginArgs) -> Result<(), Failure> {
    let Entered { client, application_id, email, password } = Entered::ask(cx, args)?;
    let password = invalid_to_usage("password", password.parse::<PasswordAttempt>())?;
    let signed_in =
        client.call(&LoginWithEmail { email: email.into(), password }).map_err(|failure| {
            match failure.refused_with(101) {
                Some(_) => failure.advise("check e-mail, password and --api-url, and try again"),
                None => failure,
            }
        })?;
    keep(cx, &client, application_id, &signed_in)
}

pub fn register(cx: &Context<'_>, args: args::RegisterArgs) -> Result<(), Failure> {
    let Entered { client, application_id, email, password } = Entered::ask(cx, args.login)?;
    let password = invalid_to_usage("password", password.parse::<Password>())?;
    let registered = client.call(&RegisterUser {
        email,
        password,
        name: args.name,
        invitation: args.invitation,
    });
    let registered = registered.map_err(|failure| match failure.refused_with(137) {
        Some(_) => failure.advise("sign in with `svc login`"),
        None => failure,
    })?;
    keep(cx, &client, application_id, &registered)
}

/// What a person entered to sign in, and where to.
struct Entered {
    client: Client,
    application_id: String,
    email: Email,
    password: String,
}

impl Entered {
    fn ask(cx: &Context<'_>, args: args::LoginArgs) -> Result<Entered, Failure> {
        let client = cx.client()?.anonymous();
        // Ask for the password only when its destination is known.
        let api_url = client.api_url();
        let application_id = cx.settings.application_id.clone().ok_or_else(|| {
            Failure::usage(
                format!("the application id of {api_url} is not known"),
                "say --application-id; who operates the service knows it, and on its machine \
                 `svc admin application-id` prints it",
            )
        })?;
        let email = match args.email {
            Some(email) => email,
            None => invalid_to_usage("e-mail", cx.printer.ask("E-mail")?.parse::<Email>())?,
        };
        let password = if args.password_stdin {
            input::line("password")?
        } else {
            cx.printer.ask_secret(&format!("Password of {email} at {api_url}"))?
        };
        Ok(Entered { client, application_id, email, password })
    }
}

/// Writes the login file.
fn keep(
    cx: &Context<'_>,
    client: &Client,
    application_id: String,
    signed_in: &SignedIn,
) -> Result<(), Failure> {
    let api_url = client.api_url();
    cx.login_file.write(&StoredLogin {
        api_url: api_url.to_owned(),
        application_id,
        email: signed_in.user.email.clone(),
        session_token: signed_in.session_token.clone(),
        expires_at: signed_in.expires_at,
    })?;
    cx.printer
        .reply(signed_in, |signed_in| format!("signed in to {api_url} as {}", signed_in.user.email))
}

/// Removes the login also when the service cannot be told, and reports that failure.
pub fn logout(cx: &Context<'_>, login: Option<StoredLogin>) -> Result<(), Failure> {
    let Some(login) = login else {
        return cx.printer.reply(&Empty {}, |_| "nobody is signed in");
    };
    cx.login_file.remove()?;
    let client = Client::new(&ClientSettings {
        api_url: login.api_url.clone(),
        application_id: Some(login.application_id),
        credential: Some(ClientCredential::Session(login.session_token)),
        app: None,
        is_repositorys_choice: false,
    })?;
    let ended = client.call(&Logout {});
    let already_over = matches!(&ended, Err(failure)
        if failure.refused_with(119).is_some_and(|refusal| refusal.status == 401));
    if !already_over {
        ended.map_err(|failure| {
            let when = moment(login.expires_at);
            failure.advise(format!(
                "the session is forgotten here, but holds at {} until {when} UTC: sign in again \
                 and end it with svc_revokeSession",
                login.api_url
            ))
        })?;
    }
    cx.printer.reply(&Empty {}, |_| format!("signed out of {}", login.api_url))
}

pub fn whoami(cx: &Context<'_>) -> Result<(), Failure> {
    let caller = cx.client()?.call(&GetCurrentUser {})?;
    cx.printer.reply(&caller, |Caller { user, deploy_token }| {
        let fields = match deploy_token {
            Some(token) => token::fields(token),
            None => Fields::new().with("name", &user.name).with("id", user.id),
        };
        Fields::new()
            .with("user", &user.email)
            .and(fields)
            .with("role", word(&user.role))
            .with("tier", word(&user.tier))
            .with("service", &cx.settings.api_url)
    })
}

fn invalid_to_usage<T>(what: &str, read: Result<T, String>) -> Result<T, Failure> {
    read.map_err(|problem| Failure::usage(format!("the {what} {problem}"), "type it again"))
}
