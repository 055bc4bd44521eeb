//! Who looks at a page, and the calls that are made for them.

use crate::{
    CallResponse, CallTarget, ServiceCall, Site, cookies,
    form::Form,
    frame::{SIGNED_IN, View},
    public::messages_of,
    response::Refused,
};
use actix_web::{
    FromRequest, HttpMessage, HttpRequest, dev::Payload, http::header::HeaderMap, web::Data,
};
use bytes::Bytes;
use contract::{
    Fault, Function, Limit, Reply, Timestamp,
    authentication::{Caller, GetCurrentUser, User},
    projects::{GetProjects, Project},
};
use data_encoding::BASE64URL_NOPAD;
use futures_util::stream::LocalBoxStream;
use messages::Messages;
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::{
    future::{Ready, ready},
    time::Duration,
};

/// A call of this request was counted.
struct Counted;
/// The counted call was refused, because none is left. The others are, too.
struct Spent(Fault);

/// The headers that the newest call of this request gives its response.
pub struct ResponseHeaders(pub HeaderMap);

/// The person who looks, with their session if they have one.
pub struct Visitor {
    site: Data<Site>,
    req: HttpRequest,
    session: Option<String>,
}

impl FromRequest for Visitor {
    type Error = actix_web::Error;
    type Future = Ready<Result<Self, Self::Error>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Visitor::of(req).map_err(Into::into))
    }
}

impl Visitor {
    /// Who sent a request.
    pub fn of(req: &HttpRequest) -> Result<Visitor, Refused> {
        let site = req.app_data::<Data<Site>>().cloned().ok_or(Refused(Fault::Internal))?;
        Ok(Visitor { site, req: req.clone(), session: cookies::session(req) })
    }

    pub fn settings(&self) -> &crate::Settings {
        &self.site.settings
    }

    pub fn now(&self) -> Timestamp {
        self.site.service.now()
    }

    pub async fn sleep(&self, time: Duration) {
        self.site.service.sleep(time).await;
    }

    pub fn is_stopping(&self) -> bool {
        self.site.service.is_stopping()
    }

    pub fn request(&self) -> &HttpRequest {
        &self.req
    }

    /// The sentences of the language that the browser asks for.
    pub fn messages(&self) -> Messages {
        messages_of(self.req.headers())
    }

    /// The sentences for those who are signed in.
    pub fn say(&self) -> Messages {
        SIGNED_IN
    }

    /// What the parts of a page for those who are signed in know of it.
    pub fn view(&self) -> View {
        View { messages: self.say(), now: self.now() }
    }

    pub fn is_signed_in(&self) -> bool {
        self.session.is_some()
    }

    /// Calls a function that reads.
    pub async fn read<F: Function>(&self, params: &F) -> Result<F::Reply, Refused> {
        self.call(params, None).await.map_err(Refused)
    }

    /// Calls a function with the parameters that `params` reads from a form. A form that is sent twice
    /// is one change.
    pub async fn send<F: Function>(
        &self,
        form: &Form,
        params: impl FnOnce(&Form) -> Result<F, Fault>,
    ) -> Result<F::Reply, Fault> {
        self.call(&params(form)?, form.key()).await
    }

    /// The newest projects of the person, at most so many.
    pub async fn newest_projects(&self, most: u16) -> Result<Vec<Project>, Fault> {
        let limit = Limit::at_most(most);
        let newest = GetProjects { organization_id: None, query: None, limit, cursor: None };
        Ok(self.call(&newest, None).await?.items)
    }

    /// Searches with the parameters that `params` reads from a form. If one of them is refused, nothing
    /// is found, and the form says why.
    pub async fn search<F: Function>(
        &self,
        form: Form,
        params: impl FnOnce(&Form) -> Result<F, Fault>,
    ) -> Result<(Option<F::Reply>, Form), Refused> {
        let found = match params(&form) {
            Ok(params) => self.call(&params, None).await,
            Err(fault) => Err(fault),
        };
        match found {
            Ok(found) => Ok((Some(found), form)),
            Err(fault @ Fault::Invalid(_)) => Ok((None, form.refused(fault))),
            Err(fault) => Err(Refused(fault)),
        }
    }

    /// Calls a function. A change with the same key happens once.
    pub async fn call<F: Function>(
        &self,
        params: &F,
        key: Option<String>,
    ) -> Result<F::Reply, Fault> {
        self.call_with(params, key, None).await
    }

    /// Calls a function for which the person entered the master key.
    pub async fn call_with_master_key<F: Function>(
        &self,
        params: &F,
        key: Option<String>,
        master_key: &str,
    ) -> Result<F::Reply, Fault> {
        self.call_with(params, key, Some(master_key.to_owned())).await
    }

    async fn call_with<F: Function>(
        &self,
        params: &F,
        key: Option<String>,
        master_key: Option<String>,
    ) -> Result<F::Reply, Fault> {
        let params = serde_json::to_vec(params).map_err(|_| Fault::Internal)?;
        let reply = self.request_of(CallTarget::Function(F::NAME), params, key, master_key).await?;
        serde_json::from_slice(&reply.json).map_err(|_| Fault::Internal)
    }

    /// Calls the function with this name. The service checks the parameters, which may be anything.
    pub async fn call_named(
        &self,
        function: &'static str,
        params: Vec<u8>,
        idempotency_key: Option<String>,
    ) -> Result<Reply, Fault> {
        self.request_of(CallTarget::Function(function), params, idempotency_key, None).await
    }

    /// Calls an endpoint with this name and these values in its path.
    pub async fn call_endpoint<R: DeserializeOwned>(
        &self,
        endpoint: &'static str,
        path: Vec<String>,
        body: &impl Serialize,
    ) -> Result<R, Fault> {
        let params = serde_json::to_vec(body).map_err(|_| Fault::Internal)?;
        let reply =
            self.request_of(CallTarget::Endpoint(endpoint, path), params, None, None).await?;
        serde_json::from_slice(&reply.json).map_err(|_| Fault::Internal)
    }

    async fn request_of(
        &self,
        target: CallTarget,
        params: Vec<u8>,
        idempotency_key: Option<String>,
        master_key: Option<String>,
    ) -> Result<Reply, Fault> {
        if let Some(Spent(fault)) = self.req.extensions().get::<Spent>() {
            return Err(fault.clone());
        }
        let counts = self.req.extensions_mut().insert(Counted).is_none();
        let (session, head) = (self.session.as_deref(), self.req.head());
        let call =
            ServiceCall { target, params, session, master_key, idempotency_key, counts, head };
        let CallResponse { reply, headers } = self.site.service.call(call).await;
        self.req.extensions_mut().insert(ResponseHeaders(headers));
        if let Err(fault @ Fault::RateLimited { .. }) = &reply {
            self.req.extensions_mut().insert(Spent(fault.clone()));
        }
        reply
    }

    /// Makes the next call count again: it shows what is new on an open page.
    pub fn count_next_call(&self) {
        let mut extensions = self.req.extensions_mut();
        extensions.remove::<Counted>();
        extensions.remove::<Spent>();
    }

    /// Sends a file to an upload address.
    pub async fn upload(
        &self,
        address: &str,
        file: LocalBoxStream<'static, Result<Bytes, Fault>>,
    ) -> Result<(), Fault> {
        self.site.service.upload(address, file).await
    }

    /// The account of the person. One request reads it once.
    pub async fn user(&self) -> Result<User, Refused> {
        if let Some(user) = self.req.extensions().get::<User>() {
            return Ok(user.clone());
        }
        if self.session.is_none() {
            return Err(Refused(Fault::Unauthenticated("sign in first".into())));
        }
        let Caller { user, .. } = self.read(&GetCurrentUser {}).await?;
        self.req.extensions_mut().insert(user.clone());
        Ok(user)
    }

    /// The token that forms of this person carry. Only a page of this site can know it: it is made
    /// from the session, which no script and no other site can read.
    pub fn form_token(&self) -> String {
        form_token(self.session.as_deref())
    }
}

/// The form token of a session.
pub fn form_token(session: Option<&str>) -> String {
    let digest =
        Sha256::new_with_prefix(b"svc form token\0").chain_update(session.unwrap_or_default());
    BASE64URL_NOPAD.encode(&digest.finalize())
}
