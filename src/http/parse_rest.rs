//! The session routes that client libraries of the Parse wire style call besides functions:
//! sign-up, sign-in, current user and session, log-out, password change and reset, health.
//!
//! Each route calls a declared operation through the common pipeline. Only the names of parameters
//! and the shape of replies differ.

use super::{
    Edge, endpoints,
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
use actors::call::{authn::Admission, pipeline::Target};
use bytes::Bytes;
use contract::{
    Fault, Operation,
    authentication::{GetCurrentUser, LoginWithEmail, Logout, RegisterUser, RequestPasswordReset},
    endpoint::{
        AnsweredBy, Answers, EdgeRoute, Endpoint,
        session_routes::{
            ChangeUser, ChangeUserObject, CurrentSession, CurrentUser, Health, HealthByPost, LogIn,
            LogInByGet, LogOut, RequestReset, SessionOperations, SessionRoutes, SignUp,
        },
    },
    params,
};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The edge for the routes of client libraries.
struct Parse;

struct Incoming {
    req: HttpRequest,
    edge: web::Data<Edge>,
    /// The fields of the body and of the query, including the reserved keys of the body.
    fields: Map<String, Value>,
}

impl contract::endpoint::Edge for Parse {
    type Request = Incoming;
    type Answer = Result<HttpResponse, Fault>;
}

static ROUTES: LazyLock<Vec<EdgeRoute<Parse>>> = LazyLock::new(SessionRoutes::routes);

/// Answers a session route. The body may name another method than the request.
pub async fn serve(req: HttpRequest, edge: web::Data<Edge>, payload: web::Payload) -> HttpResponse {
    if req.method() == Method::OPTIONS {
        return reply::refuse(req.head(), &edge, Fault::NoRoute);
    }
    let (_permit, body) = match functions::read(&edge, req.head(), payload).await {
        Ok(read) => read,
        Err(fault) => return reply::refuse(req.head(), &edge, fault),
    };
    let answered = answer(req.clone(), edge.clone(), &body).await;
    answered.unwrap_or_else(|fault| reply::refuse(req.head(), &edge, fault))
}

async fn answer(
    req: HttpRequest,
    edge: web::Data<Edge>,
    body: &Bytes,
) -> Result<HttpResponse, Fault> {
    let method = request::method_override(body).filter(|_| req.method() == Method::POST);
    let method = method.unwrap_or_else(|| req.method().to_string());
    let pattern = req.match_pattern().unwrap_or_default();
    let is_meant =
        |endpoint: &Endpoint| endpoint.path == pattern && endpoint.method.name() == method;
    let answered = ROUTES.iter().find(|route| is_meant(route.endpoint));
    let served = SessionOperations::GROUP.endpoints.iter().find(|endpoint| is_meant(endpoint));
    let mut incoming = Incoming { fields: params::object(body)?, req, edge };
    incoming.add_query();
    match (answered, served) {
        (Some(route), _) => (route.answer)(incoming).await,
        (None, Some(endpoint)) if endpoint.name == CurrentSession::NAME => {
            incoming.current_session().await
        }
        (None, Some(_)) => incoming.change_user().await,
        (None, None) => Err(Fault::Method(method)),
    }
}

impl Answers<LogIn> for Parse {
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        let exchange = it.call::<LoginWithEmail>(by_email(&it.fields)?).await?;
        Ok(it.shape(exchange, StatusCode::OK, |reply| user(&reply["user"], &reply["sessionToken"])))
    }
}

impl Answers<LogInByGet> for Parse {
    /// Client libraries that name the method in the body send the credentials there, too.
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        if it.req.method() == Method::GET && !it.edge.shared.login_by_get {
            return Err(Fault::Malformed(
                "a password in an address ends up in logs: send it in the body of POST /backend/login, \
                 or set SVC_LOGIN_BY_GET"
                    .into(),
            ));
        }
        <Parse as Answers<LogIn>>::answer(it).await
    }
}

impl Answers<SignUp> for Parse {
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        let mut exchange = it.call::<RegisterUser>(by_email(&it.fields)?).await?;
        if matches!(&exchange.reply, Err(fault) if fault.code() == 137) {
            exchange.reply = Err(Fault::UsernameTaken);
        }
        Ok(it.shape(exchange, StatusCode::CREATED, |reply| {
            let user = &reply["user"];
            json!({
                "objectId": user["id"],
                "createdAt": user["createdAt"],
                "sessionToken": reply["sessionToken"],
            })
        }))
    }
}

impl Answers<CurrentUser> for Parse {
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        let token = it.session_token()?;
        let exchange = it.by_session(it.call::<GetCurrentUser>(Map::new()).await?)?;
        Ok(it.shape(exchange, StatusCode::OK, |reply| user(reply, &token)))
    }
}

impl Answers<ChangeUserObject> for Parse {
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        it.change_user().await
    }
}

impl Answers<LogOut> for Parse {
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        let exchange = it.by_session(it.call::<Logout>(Map::new()).await?)?;
        Ok(it.shape(exchange, StatusCode::OK, |_| json!({})))
    }
}

impl Answers<RequestReset> for Parse {
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        let exchange = it.call::<RequestPasswordReset>(plain(&it.fields)).await?;
        Ok(it.shape(exchange, StatusCode::OK, |_| json!({})))
    }
}

impl Answers<Health> for Parse {
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        let (head, edge) = (it.head(), &it.edge);
        let origin = request::origin(head, edge);
        let nobody = Default::default();
        let platform = &edge.platform;
        let Admission { allowance, .. } = platform.authn.admit(&platform.world, &nobody, origin, 1);
        let request_id = request::request_id(head, edge);
        let heading = Heading { head, edge, request_id, allowance: Some(allowance) };
        Ok(heading.value(StatusCode::OK, &json!({"status": "ok"})))
    }
}

impl Answers<HealthByPost> for Parse {
    async fn answer(it: Incoming) -> Result<HttpResponse, Fault> {
        <Parse as Answers<Health>>::answer(it).await
    }
}

impl Incoming {
    fn head(&self) -> &RequestHead {
        self.req.head()
    }

    /// Adds the query; the body wins. Reserved keys in the query are ignored: proxies log URLs, so
    /// credentials do not belong there.
    fn add_query(&mut self) {
        if let Ok(query) = web::Query::<Map<String, Value>>::from_query(self.req.query_string()) {
            let query = query.into_inner().into_iter();
            for (name, value) in query.filter(|(name, _)| !name.starts_with('_')) {
                self.fields.entry(name).or_insert(value);
            }
        }
    }

    fn session_token(&self) -> Result<Value, Fault> {
        let credentials =
            request::credentials(self.head(), &with_credentials(&self.fields, Map::new()))?;
        Ok(json!(credentials.session_token.unwrap_or_default()))
    }

    /// Calls a function with the credentials of the request.
    async fn call<F: Operation>(&self, params: Map<String, Value>) -> Result<Exchange, Fault> {
        self.invoke(Target::Function(F::NAME.to_owned()), params).await
    }

    async fn invoke(&self, target: Target, params: Map<String, Value>) -> Result<Exchange, Fault> {
        functions::invoke(self.head(), &self.edge, target, with_credentials(&self.fields, params))
            .await
    }

    /// Returns the calling session. Only the caller knows the session token, so it comes from the
    /// request.
    async fn current_session(&self) -> Result<HttpResponse, Fault> {
        let token = self.session_token()?;
        let target = endpoints::target(CurrentSession::NAME, &self.req);
        let exchange = self.by_session(self.invoke(target, Map::new()).await?)?;
        Ok(self.shape(exchange, StatusCode::OK, |reply| {
            let mut session = reply.as_object().cloned().unwrap_or_default();
            session.insert("sessionToken".into(), token);
            Value::Object(session)
        }))
    }

    /// Changes the user. Client libraries delete a field with `{"__op": "Delete"}`.
    async fn change_user(&self) -> Result<HttpResponse, Fault> {
        let mut fields = plain(&self.fields);
        let deleted = json!({"__op": "Delete"});
        fields.values_mut().filter(|value| **value == deleted).for_each(|v| *v = Value::Null);
        let target = endpoints::target(ChangeUser::NAME, &self.req);
        let exchange = self.by_session(self.invoke(target, fields).await?)?;
        Ok(self.shape(exchange, StatusCode::OK, Value::clone))
    }

    /// Answers an invalid session with the code that client libraries expect, unless the
    /// application id or the JavaScript key is the reason.
    fn by_session(&self, mut exchange: Exchange) -> Result<Exchange, Fault> {
        if matches!(exchange.reply, Err(Fault::Unauthenticated(_))) {
            let body = with_credentials(&self.fields, Map::new());
            let credentials = request::credentials(self.head(), &body)?;
            if self.edge.platform.authn.check_application(&credentials, true).is_ok() {
                exchange.reply = Err(Fault::InvalidSession);
            }
        }
        Ok(exchange)
    }

    fn shape(
        &self,
        exchange: Exchange,
        status: StatusCode,
        shape: impl FnOnce(&Value) -> Value,
    ) -> HttpResponse {
        let Exchange { request_id, reply, allowance } = exchange;
        let heading =
            Heading { head: self.head(), edge: &self.edge, request_id, allowance: Some(allowance) };
        let reply = reply.and_then(|reply| {
            serde_json::from_slice::<Value>(&reply.json).map_err(|_| Fault::Internal)
        });
        match reply {
            Ok(reply) => heading.value(status, &shape(&reply)),
            Err(fault) => heading.fault(&fault),
        }
    }
}

/// The parameters without the reserved keys.
fn plain(fields: &Map<String, Value>) -> Map<String, Value> {
    fields
        .iter()
        .filter(|(key, _)| !key.starts_with('_'))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// The parameters of a sign-in or sign-up. The libraries' `username` is the e-mail address.
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

/// The parameters with the reserved keys of the request, which carry its credentials.
fn with_credentials(fields: &Map<String, Value>, params: Map<String, Value>) -> Bytes {
    let reserved = fields.iter().filter(|(key, _)| key.starts_with('_') && *key != "_method");
    let mut body: Map<String, Value> = reserved.map(|(k, v)| (k.clone(), v.clone())).collect();
    body.extend(params);
    // An object with string keys always serializes.
    serde_json::to_vec(&body).unwrap_or_default().into()
}

/// A user in the shape that client libraries read.
fn user(user: &Value, token: &Value) -> Value {
    let mut shaped = user.as_object().cloned().unwrap_or_default();
    // A session calls here, never a deploy token.
    shaped.remove("deployToken");
    let id = shaped.remove("id").unwrap_or_default();
    shaped.insert("objectId".into(), id);
    shaped.insert("username".into(), user["email"].clone());
    shaped.insert("sessionToken".into(), token.clone());
    Value::Object(shaped)
}
