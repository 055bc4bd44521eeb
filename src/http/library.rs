//! The session routes that client libraries of the Parse wire style call besides functions:
//! sign-up, sign-in, the current user and session, log-out, password change and reset, health.
//!
//! Each is a cloud function in other clothes: the parameters are renamed, the call goes through
//! the same router, and the reply is put into the shape that the libraries read.

use super::{
    Edge, artifacts,
    functions::{self, Exchange},
    reply::{self, Heading},
    request,
};
use actix_http::RequestHead;
use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode},
    web,
};
use actors::call::{authn::Credentials, context::Call, rate_limit::Allowance};
use bytes::Bytes;
use contract::{Fault, Function, Password, Serves, authentication as auth, params};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Instant};

pub(super) fn configure(app: &mut web::ServiceConfig) {
    for path in [
        "/login",
        "/users",
        "/users/me",
        "/sessions/me",
        "/logout",
        "/requestPasswordReset",
        "/health",
    ] {
        app.service(web::resource(path).default_service(web::to(serve)));
    }
    app.service(web::resource("/classes/_User/{id}").default_service(web::to(serve)));
    app.service(web::resource("/users/{id}").default_service(web::to(serve)));
}

/// A route, once the method that the library means is known.
enum Route {
    LogIn,
    SignUp,
    CurrentUser,
    CurrentSession,
    ChangeUser,
    LogOut,
    RequestPasswordReset,
    Health,
}

fn route(path: &str, method: &str) -> Result<Route, Fault> {
    let tail = path.strip_prefix("/backend").unwrap_or(path);
    let route = match (tail, method) {
        ("/login", "GET" | "POST") => Route::LogIn,
        ("/users", "POST") => Route::SignUp,
        ("/users/me", "GET") => Route::CurrentUser,
        ("/sessions/me", "GET") => Route::CurrentSession,
        ("/logout", "POST") => Route::LogOut,
        ("/requestPasswordReset", "POST") => Route::RequestPasswordReset,
        ("/health", "GET" | "POST") => Route::Health,
        (user, "PUT") if user.starts_with("/classes/_User/") || user.starts_with("/users/") => {
            Route::ChangeUser
        }
        (_, method) => return Err(Fault::Method(method.to_owned())),
    };
    Ok(route)
}

async fn serve(req: HttpRequest, edge: web::Data<Edge>, payload: web::Payload) -> HttpResponse {
    if req.method() == Method::OPTIONS {
        return reply::refuse(req.head(), &edge, Fault::NoRoute);
    }
    let (_permit, body) = match functions::read(&edge, req.head(), payload).await {
        Ok(read) => read,
        Err(fault) => return reply::refuse(req.head(), &edge, fault),
    };
    let method = request::method_override(&body).filter(|_| req.method() == Method::POST);
    let method = method.unwrap_or_else(|| req.method().to_string());
    match route(req.path(), &method) {
        Ok(route) => answer(&req, &edge, &route, body)
            .await
            .unwrap_or_else(|fault| reply::refuse(req.head(), &edge, fault)),
        Err(fault) => reply::refuse(req.head(), &edge, fault),
    }
}

async fn answer(
    req: &HttpRequest,
    edge: &Edge,
    route: &Route,
    body: Bytes,
) -> Result<HttpResponse, Fault> {
    let mut fields = params::object(&body)?;
    if let Ok(query) = web::Query::<Map<String, Value>>::from_query(req.query_string()) {
        // Credentials do not belong into addresses, which are logged on the way.
        for (name, value) in query.into_inner().into_iter().filter(|(k, _)| !k.starts_with('_')) {
            fields.entry(name).or_insert(value);
        }
    }
    let credentials = request::credentials(req.head(), &body)?;
    let known = edge.platform.gate.check_application(&credentials, None).is_ok();
    // The libraries know an invalid session by its own code.
    let session_fault = move |fault| match fault {
        Fault::Unauthenticated(_) if known => Fault::InvalidSession,
        fault => fault,
    };
    let call = async |function: &str, params: Map<String, Value>| {
        functions::invoke(req.head(), edge, function.to_owned(), with_credentials(&fields, params))
            .await
    };
    let done = match route {
        Route::LogIn => {
            let exchange = call(auth::LoginWithEmail::NAME, by_email(&fields)?).await?;
            Shaped::of(exchange, |reply| {
                Some((StatusCode::OK, user(&reply["user"], &reply["sessionToken"])))
            })
        }
        Route::SignUp => {
            let exchange = call(auth::RegisterUser::NAME, by_email(&fields)?).await?;
            Shaped::of(exchange, |reply| {
                let user = &reply["user"];
                let made = json!({
                    "objectId": user["id"],
                    "createdAt": user["createdAt"],
                    "sessionToken": reply["sessionToken"],
                });
                Some((StatusCode::CREATED, made))
            })
            .refused(|fault| if fault.code() == 137 { Fault::UsernameTaken } else { fault })
        }
        Route::CurrentUser => {
            let token = json!(credentials.session_token.as_deref().unwrap_or_default());
            let exchange = call(auth::GetCurrentUser::NAME, Map::new()).await?;
            Shaped::of(exchange, |reply| Some((StatusCode::OK, user(reply, &token))))
                .refused(session_fault)
        }
        Route::CurrentSession => {
            let work = async |cx: &Call| session(cx, &credentials);
            by_session(req.head(), edge, &credentials, auth::GetSessions::NAME, work)
                .await
                .refused(session_fault)
        }
        Route::ChangeUser => {
            let id = req.match_info().get("id").unwrap_or_default();
            let work = async |cx: &Call| change_user(edge, cx, id, plain(&fields)).await;
            by_session(req.head(), edge, &credentials, auth::UpdateProfile::NAME, work)
                .await
                .refused(session_fault)
        }
        Route::LogOut => {
            let exchange = call(auth::Logout::NAME, Map::new()).await?;
            Shaped::of(exchange, |_| Some((StatusCode::OK, json!({})))).refused(session_fault)
        }
        Route::RequestPasswordReset => {
            let exchange = call(auth::RequestPasswordReset::NAME, plain(&fields)).await?;
            Shaped::of(exchange, |_| Some((StatusCode::OK, json!({}))))
        }
        Route::Health => return Ok(health(req.head(), edge)),
    };
    let heading = Heading {
        head: req.head(),
        edge,
        request_id: done.request_id,
        allowance: Some(done.allowance),
    };
    Ok(match done.shaped {
        Ok((status, body)) => heading.value(status, &body),
        Err(fault) => heading.fault(&fault),
    })
}

/// The parameters without the reserved keys.
fn plain(fields: &Map<String, Value>) -> Map<String, Value> {
    fields
        .iter()
        .filter(|(key, _)| !key.starts_with('_'))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// The parameters of a sign-in or sign-up: the libraries' user name is the e-mail.
fn by_email(fields: &Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    let mut renamed = plain(fields);
    let Some(username) = renamed.remove("username") else { return Ok(renamed) };
    let email = renamed.entry("email").or_insert_with(|| username.clone());
    let key = |value: &Value| value.as_str().map(|text| text.trim().to_lowercase());
    if key(email) == key(&username) {
        Ok(renamed)
    } else {
        Err(Fault::invalid("username", "is the e-mail address here: leave it out or send the same"))
    }
}

/// The parameters with the reserved keys that came along, so that the credentials stay with them.
fn with_credentials(fields: &Map<String, Value>, params: Map<String, Value>) -> Bytes {
    let reserved = fields.iter().filter(|(key, _)| key.starts_with('_') && *key != "_method");
    let mut body: Map<String, Value> = reserved.map(|(k, v)| (k.clone(), v.clone())).collect();
    body.extend(params);
    // An object with text keys always serializes.
    serde_json::to_vec(&body).unwrap_or_default().into()
}

/// An exchange whose reply has the shape that the libraries read.
struct Shaped {
    request_id: Arc<str>,
    allowance: Allowance,
    shaped: Result<(StatusCode, Value), Fault>,
}

impl Shaped {
    fn of(exchange: Exchange, shape: impl FnOnce(&Value) -> Option<(StatusCode, Value)>) -> Shaped {
        let shaped = exchange.reply.and_then(|json| {
            let reply: Value = serde_json::from_slice(&json).map_err(|_| Fault::Internal)?;
            shape(&reply).ok_or(Fault::InvalidSession)
        });
        Shaped { request_id: exchange.request_id, allowance: exchange.allowance, shaped }
    }

    fn refused(mut self, other: impl FnOnce(Fault) -> Fault) -> Shaped {
        self.shaped = self.shaped.map_err(other);
        self
    }
}

/// A user in the libraries' shape.
fn user(user: &Value, token: &Value) -> Value {
    let mut shaped = user.as_object().cloned().unwrap_or_default();
    let id = shaped.remove("id").unwrap_or_default();
    shaped.insert("objectId".into(), id);
    shaped.insert("username".into(), user["email"].clone());
    shaped.insert("sessionToken".into(), token.clone());
    Value::Object(shaped)
}

/// What no function does in this way, done on the strength of a session: counted and checked in
/// the same order, within the same time.
async fn by_session(
    head: &RequestHead,
    edge: &Edge,
    credentials: &Credentials,
    function: &'static str,
    work: impl AsyncFnOnce(&Call) -> Result<Value, Fault>,
) -> Shaped {
    let request_id = request::request_id(head, edge);
    let begun = Instant::now();
    let (allowance, admitted) = artifacts::admit(head, edge, &request_id, function, credentials);
    let done = async {
        if allowance.retry_after.is_none() {
            edge.platform.gate.check_application(credentials, None)?;
        }
        let cx = admitted?;
        cx.session()?;
        work(&cx).await
    };
    let limit = edge.platform.settings.function_limit;
    let done = tokio::time::timeout(limit, done).await;
    let done = done.unwrap_or(Err(Fault::NoAnswer("the service")));
    edge.shared.figures.called(Some(function), begun.elapsed(), done.as_ref().err());
    match &done {
        Ok(_) => tracing::info!(%request_id, function, code = 0, "called"),
        Err(fault) => {
            tracing::info!(%request_id, function, code = fault.code(), error = %fault, "refused");
        }
    }
    Shaped { request_id, allowance, shaped: done.map(|body| (StatusCode::OK, body)) }
}

/// The calling session in the libraries' shape.
fn session(cx: &Call, credentials: &Credentials) -> Result<Value, Fault> {
    let (_, session) = cx.session()?;

    Ok(json!({
        "objectId": session.id,
        "sessionToken": credentials.session_token,
        "user": {"__type": "Pointer", "className": "_User", "objectId": session.user},
        "createdAt": session.created_at,
        "updatedAt": session.last_used_at,
        "expiresAt": {"__type": "Date", "iso": session.expires_at},
    }))
}

/// A password change, which in the libraries needs no current password: the session is enough. Or
/// a change of the profile, or both. A user changes itself only.
async fn change_user(
    edge: &Edge,
    cx: &Call,
    id: &str,
    mut fields: Map<String, Value>,
) -> Result<Value, Fault> {
    if cx.user()?.id.to_string() != id {
        return Err(Fault::NotFound("user"));
    }
    let password: Option<Password> = fields
        .remove("password")
        .map(serde_json::from_value)
        .transpose()
        // What was sent in its place may be a password too: it is not repeated.
        .map_err(|_| Fault::invalid("password", "must be text of 8 to 256 characters"))?;
    let mut updated_at = cx.now;
    if !fields.is_empty() || password.is_none() {
        let deleted = json!({"__op": "Delete"});
        fields.values_mut().filter(|value| **value == deleted).for_each(|v| *v = Value::Null);
        let profile = serde_json::to_vec(&fields).map_err(|_| Fault::Internal)?;
        let profile: auth::UpdateProfile = params::read(&profile)?;
        updated_at = edge.platform.serve(cx, profile).await?.updated_at;
    }
    let Some(password) = password else { return Ok(json!({"updatedAt": updated_at})) };
    let session = edge.platform.set_password(cx, password).await?;
    Ok(json!({"updatedAt": updated_at, "sessionToken": session.session_token}))
}

fn health(head: &RequestHead, edge: &Edge) -> HttpResponse {
    let request_id = request::request_id(head, edge);
    let (allowance, _) = artifacts::admit(head, edge, &request_id, "health", &Default::default());
    Heading { head, edge, request_id, allowance: Some(allowance) }
        .value(StatusCode::OK, &json!({"status": "ok"}))
}
