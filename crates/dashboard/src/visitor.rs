//! Who looks at a page, and the calls that are made for them.

use crate::{Answered, Call, Site, Target, answer::Refused, cookies, form::Form};
use actix_web::{
    FromRequest, HttpMessage, HttpRequest, dev::Payload, http::header::HeaderMap, web::Data,
};
use bytes::Bytes;
use contract::{
    Fault, Function, Reply, Timestamp,
    authentication::{Caller, GetCurrentUser, User},
};
use data_encoding::BASE64URL_NOPAD;
use futures_util::stream::LocalBoxStream;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{
    future::{Ready, ready},
    time::Duration,
};

/// A call of this request was counted.
struct Counted;
/// The counted call was refused, because none is left. The others are, too.
struct Spent(Fault);

/// The headers that the newest call of this request gives its answer.
pub struct Told(pub HeaderMap);

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

    pub fn is_signed_in(&self) -> bool {
        self.session.is_some()
    }

    /// Calls a function that reads.
    pub async fn read<F: Function>(&self, params: &F) -> Result<F::Reply, Refused> {
        let params = serde_json::to_vec(params).map_err(|_| Refused(Fault::Internal))?;
        self.call::<F>(params, None).await.map_err(Refused)
    }

    /// Calls a function with what a person entered. The service checks it, so that its words about
    /// each field reach the form.
    pub async fn send<F: Function>(
        &self,
        params: &Value,
        key: Option<String>,
    ) -> Result<F::Reply, Fault> {
        self.call::<F>(params.to_string().into_bytes(), key).await
    }

    /// Searches. If the service refuses what was looked for, nothing is found, and the form says why.
    pub async fn search<F: Function>(
        &self,
        params: Map<String, Value>,
        form: Form,
    ) -> Result<(Option<F::Reply>, Form), Refused> {
        match self.send::<F>(&Value::Object(params), None).await {
            Ok(found) => Ok((Some(found), form)),
            Err(fault @ Fault::Invalid(_)) => Ok((None, form.refused(fault))),
            Err(fault) => Err(Refused(fault)),
        }
    }

    async fn call<F: Function>(
        &self,
        params: Vec<u8>,
        key: Option<String>,
    ) -> Result<F::Reply, Fault> {
        let reply = self.call_named(F::NAME, params, key).await?;
        serde_json::from_slice(&reply.json).map_err(|_| Fault::Internal)
    }

    /// Calls the function with this name. The service checks the parameters, which may be anything.
    pub async fn call_named(
        &self,
        function: &'static str,
        params: Vec<u8>,
        idempotency_key: Option<String>,
    ) -> Result<Reply, Fault> {
        self.request_of(Target::Function(function), params, idempotency_key, None).await
    }

    /// Calls a function for which the person entered the master key.
    pub async fn send_with_master_key<F: Function>(
        &self,
        params: &Value,
        key: Option<String>,
        master_key: &str,
    ) -> Result<F::Reply, Fault> {
        let (target, params) = (Target::Function(F::NAME), params.to_string().into_bytes());
        let reply = self.request_of(target, params, key, Some(master_key.to_owned())).await?;
        serde_json::from_slice(&reply.json).map_err(|_| Fault::Internal)
    }

    /// Calls an endpoint with this name and these values in its path.
    pub async fn ask<R: DeserializeOwned>(
        &self,
        endpoint: &'static str,
        path: Vec<String>,
        body: &impl Serialize,
    ) -> Result<R, Fault> {
        let params = serde_json::to_vec(body).map_err(|_| Fault::Internal)?;
        let reply = self.request_of(Target::Endpoint(endpoint, path), params, None, None).await?;
        serde_json::from_slice(&reply.json).map_err(|_| Fault::Internal)
    }

    async fn request_of(
        &self,
        target: Target,
        params: Vec<u8>,
        idempotency_key: Option<String>,
        master_key: Option<String>,
    ) -> Result<Reply, Fault> {
        if let Some(Spent(fault)) = self.req.extensions().get::<Spent>() {
            return Err(fault.clone());
        }
        let counts = self.req.extensions_mut().insert(Counted).is_none();
        let (session, head) = (self.session.as_deref(), self.req.head());
        let call = Call { target, params, session, master_key, idempotency_key, counts, head };
        let Answered { reply, headers } = self.site.service.call(call).await;
        self.req.extensions_mut().insert(Told(headers));
        if let Err(fault @ Fault::RateLimited { .. }) = &reply {
            self.req.extensions_mut().insert(Spent(fault.clone()));
        }
        reply
    }

    /// Makes the next call count again: it shows what is new on an open page.
    pub fn look_again(&self) {
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
