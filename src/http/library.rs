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
use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode},
    web,
};
use bytes::Bytes;
use contract::{Fault, Function, authentication as auth, params};
use serde_json::{Map, Value, json};

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
        return reply::refuse(&req, &edge, Fault::NoRoute);
    }
    let body = match functions::read(&req, payload).await {
        Ok(body) => body,
        Err(fault) => return reply::refuse(&req, &edge, fault),
    };
    let method = request::method_override(&body).filter(|_| req.method() == Method::POST);
    let method = method.unwrap_or_else(|| req.method().to_string());
    match route(req.path(), &method) {
        Ok(route) => answer(&req, &edge, &route, body)
            .await
            .unwrap_or_else(|fault| reply::refuse(&req, &edge, fault)),
        Err(fault) => reply::refuse(&req, &edge, fault),
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
        for (name, value) in query.into_inner() {
            fields.entry(name).or_insert(value);
        }
    }
    let token = request::credentials(req, &body)?.session_token.unwrap_or_default();
    let call = async |function: &str, renamed: Value| {
        functions::invoke(req, edge, function.to_owned(), with_credentials(&fields, renamed)).await
    };
    let field = |name: &str| fields.get(name).cloned().unwrap_or(Value::Null);
    let done = match route {
        Route::LogIn => {
            let who =
                if fields.contains_key("username") { field("username") } else { field("email") };
            let exchange = call(
                auth::LoginWithEmail::NAME,
                json!({"email": who, "password": field("password")}),
            )
            .await?;
            Shaped::of(exchange, |reply| {
                Some((StatusCode::OK, user(&reply["user"], &reply["sessionToken"])))
            })
        }
        Route::SignUp => {
            let email =
                if fields.contains_key("email") { field("email") } else { field("username") };
            let mut renamed = json!({"email": email, "password": field("password")});
            if let Some(name) = fields.get("name") {
                renamed["name"] = name.clone();
            }
            let exchange = call(auth::RegisterUser::NAME, renamed).await?;
            Shaped::of(exchange, |reply| {
                let made = json!({
                    "objectId": reply["user"]["id"],
                    "createdAt": reply["user"]["createdAt"],
                    "sessionToken": reply["sessionToken"],
                });
                Some((StatusCode::CREATED, made))
            })
            .refused(|fault| {
                if matches!(fault, Fault::Exists(_)) { Fault::UsernameTaken } else { fault }
            })
        }
        Route::CurrentUser => {
            let exchange = call(auth::GetCurrentUser::NAME, json!({})).await?;
            Shaped::of(exchange, |reply| Some((StatusCode::OK, user(reply, &json!(token)))))
                .refused(session_fault)
        }
        Route::CurrentSession => {
            let exchange = call(auth::GetSessions::NAME, json!({"limit": 200})).await?;
            Shaped::of(exchange, |reply| {
                let session =
                    reply["items"].as_array()?.iter().find(|s| s["current"] == json!(true))?;
                let shaped = json!({
                    "objectId": session["id"],
                    "sessionToken": token,
                    "createdAt": session["createdAt"],
                    "updatedAt": session["lastUsedAt"],
                    "expiresAt": {"__type": "Date", "iso": session["expiresAt"]},
                });
                Some((StatusCode::OK, shaped))
            })
            .refused(session_fault)
        }
        Route::ChangeUser => change_user(req, edge, &fields, &body).await?,
        Route::LogOut => {
            let exchange = call(auth::Logout::NAME, json!({})).await?;
            Shaped::of(exchange, |_| Some((StatusCode::OK, json!({})))).refused(session_fault)
        }
        Route::RequestPasswordReset => {
            let exchange =
                call(auth::RequestPasswordReset::NAME, json!({"email": field("email")})).await?;
            Shaped::of(exchange, |_| Some((StatusCode::OK, json!({}))))
        }
        Route::Health => return Ok(health(req, edge)),
    };
    let heading =
        Heading { req, edge, request_id: &done.request_id, allowance: Some(done.allowance) };
    Ok(match done.shaped {
        Ok((status, body)) => heading.value(status, &body),
        Err(fault) => heading.fault(&fault),
    })
}

/// The parameters with the reserved keys that came along, so that the credentials stay with them.
fn with_credentials(fields: &Map<String, Value>, renamed: Value) -> Bytes {
    let mut body: Map<String, Value> = fields
        .iter()
        .filter(|(key, _)| key.starts_with('_'))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    if let Value::Object(renamed) = renamed {
        body.extend(renamed);
    }
    body.remove("_method");
    // An object with text keys always serializes.
    serde_json::to_vec(&body).unwrap_or_default().into()
}

/// An exchange whose reply has the shape that the libraries read.
struct Shaped {
    request_id: std::sync::Arc<str>,
    allowance: actors::limiter::Allowance,
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

/// The libraries know an invalid session by its own code.
fn session_fault(fault: Fault) -> Fault {
    if matches!(fault, Fault::Unauthenticated(_)) { Fault::InvalidSession } else { fault }
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

/// A password change, which in the libraries needs no current password: the session is enough. Or
/// a change of the profile.
async fn change_user(
    req: &HttpRequest,
    edge: &Edge,
    fields: &Map<String, Value>,
    body: &[u8],
) -> Result<Shaped, Fault> {
    let plain: Map<String, Value> = fields
        .iter()
        .filter(|(key, _)| !key.starts_with('_'))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let id = req.match_info().get("id").unwrap_or_default().to_owned();
    let is_own = |reply: &Value| (reply["id"] == json!(id)).then_some(());
    let Some(password) = plain.get("password").cloned() else {
        let exchange = functions::invoke(
            req,
            edge,
            auth::UpdateProfile::NAME.into(),
            with_credentials(fields, Value::Object(plain)),
        )
        .await?;
        return Ok(Shaped::of(exchange, |reply| {
            is_own(reply)?;
            Some((StatusCode::OK, json!({"updatedAt": reply["updatedAt"]})))
        })
        .refused(session_fault));
    };
    let request_id = request::request_id(req, edge);
    let credentials = request::credentials(req, body)?;
    let (allowance, admitted) =
        artifacts::admit(req, edge, &request_id, auth::ChangePassword::NAME, &credentials);
    let shaped = async {
        edge.platform.gate.check_application(&credentials)?;
        let cx = admitted?;
        if cx.user()?.id.to_string() != id {
            return Err(Fault::InvalidSession);
        }
        let password = serde_json::from_value(password)
            .map_err(|e| Fault::invalid("password", e.to_string()))?;
        let session = edge.platform.set_password(&cx, password).await?;
        Ok((StatusCode::OK, json!({"updatedAt": cx.now, "sessionToken": session.session_token})))
    };
    let shaped = shaped.await;
    Ok(Shaped { request_id, allowance, shaped }.refused(session_fault))
}

fn health(req: &HttpRequest, edge: &Edge) -> HttpResponse {
    let request_id = request::request_id(req, edge);
    let (allowance, _) = artifacts::admit(req, edge, &request_id, "health", &Default::default());
    Heading { req, edge, request_id: &request_id, allowance: Some(allowance) }
        .value(StatusCode::OK, &json!({"status": "ok"}))
}
