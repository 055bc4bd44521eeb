//! The pages for people who prefer looking to typing.
//!
//! A page calls the same functions as any client, with the session of the person who looks, and so
//! with the same authorization, limits and errors. This crate cannot do anything else: it knows the
//! contract and a [`Service`] to call, and neither the store nor the owners.
//!
//! - [`visitor`] reads who looks, and calls functions for them.
//! - [`form`] reads what they send, and shows it again when it is refused.
//! - [`frame`] is what all pages show around their content, with the menu in [`side`].
//! - [`guard`] checks the host and the origin of each request, and puts the security headers and the
//!   pages of errors on each response.
//! - [`list`] reads the part of a long list that a page shows.
//! - [`live`] sends what changes while a page is open.
//! - [`job`] shows builds and deployments, with their logs as they grow.
//! - [`tone`] gives each state a colour and a mark.
//! - [`pages`] has one module for each group of pages.
//! - [`public`] are the pages for people who have no account, which the program serves.
//!
//! Every page works without scripts. Where a command does the same, the page names it.

mod arriving;
mod assets;
mod chart;
mod cookies;
mod deeds;
mod files;
mod form;
mod frame;
mod guard;
mod icon;
mod job;
mod list;
mod live;
mod pages;
pub mod public;
mod response;
mod side;
mod text;
mod theme;
mod tone;
mod visitor;

use actix_web::{dev::RequestHead, http::header::HeaderMap, middleware::from_fn, web};
use bytes::Bytes;
use contract::{Fault, Reply, Timestamp, service::Registration};
use futures_util::{future::LocalBoxFuture, stream::LocalBoxStream};
use std::{rc::Rc, time::Duration};

/// What the pages call.
pub trait Service: 'static {
    fn now(&self) -> Timestamp;

    /// Waits.
    fn sleep(&self, time: Duration) -> LocalBoxFuture<'static, ()>;

    /// Whether the service is about to stop.
    fn is_stopping(&self) -> bool;

    /// Room for what a request sends beside its head. Clients share it by their address.
    fn room(&self, head: &RequestHead) -> Result<Box<dyn Room>, Fault>;

    /// Calls a function for the person who looks at the page.
    fn call<'a>(&'a self, call: ServiceCall<'a>) -> LocalBoxFuture<'a, CallResponse>;

    /// The headers of the response to a request for which nothing is called. They are those of
    /// [`CallResponse`].
    fn headers(&self, head: &RequestHead) -> HeaderMap;

    /// Sends a file to an upload address that the service gave. The bytes go on as they come.
    fn upload<'a>(
        &'a self,
        address: &'a str,
        file: LocalBoxStream<'static, Result<Bytes, Fault>>,
    ) -> LocalBoxFuture<'a, Result<(), Fault>>;
}

/// The memory of a request that is still arriving. Dropped, it is free for others.
pub trait Room {
    /// Takes so many more bytes.
    fn grow(&mut self, bytes: usize) -> Result<(), Fault>;
}

/// The response to a call.
pub struct CallResponse {
    pub reply: Result<Reply, Fault>,
    /// The id of the request, and what is left of the rate limit. Every response of the service
    /// carries them, and so does the page.
    pub headers: HeaderMap,
}

/// A call of a function or of an endpoint.
pub struct ServiceCall<'a> {
    pub target: CallTarget,
    /// The parameters, as JSON.
    pub params: Vec<u8>,
    /// The session of the person, if there is one.
    pub session: Option<&'a str>,
    /// The master key, if the person entered it for this call.
    pub master_key: Option<String>,
    /// A change with this key happens once, also if the person sends the form twice.
    pub idempotency_key: Option<String>,
    /// Whether the call counts against the rate limit. Of the calls that make a page, one does.
    pub counts: bool,
    /// The request of the person: the rate limit depends on its address.
    pub head: &'a RequestHead,
}

/// What is called.
pub enum CallTarget {
    /// The name of a function.
    Function(&'static str),
    /// The name of an endpoint, and the values in its path.
    Endpoint(&'static str, Vec<String>),
}

/// Where the pages are, and what they tell people about the service.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address of the pages, such as `https://dashboard.example.com`. Only requests to its host
    /// are served.
    pub url: url::Url,
    /// The address of the service for clients.
    pub api_url: String,
    /// The application id that clients send.
    pub application_id: String,
    /// Whether the service has a mail server. Without one, its operator finds the mails in the log.
    pub sends_mail: bool,
    pub registration: Registration,
    /// Whether browsers keep a session: over https, or on the machine itself.
    pub keeps_sessions: bool,
    /// Whether only this machine reaches the service.
    pub is_only_here: bool,
}

/// One worker's pages.
struct Site {
    service: Rc<dyn Service>,
    settings: Settings,
}

/// Registers all pages.
pub fn configure(service: Rc<dyn Service>, settings: Settings, app: &mut web::ServiceConfig) {
    let site = web::Data::new(Site { service, settings });
    app.service(
        web::scope("")
            .app_data(site)
            .wrap(from_fn(guard::guard))
            .configure(assets::configure)
            .configure(theme::configure)
            .configure(pages::configure)
            .default_service(web::to(pages::nothing_here)),
    );
}
