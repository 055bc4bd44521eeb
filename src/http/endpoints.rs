//! Serves the endpoints that the contract lists, at their paths and with their methods, and no
//! others.

use super::{
    Edge, download, functions, install, operators, parse_rest, payments, push,
    reply::{self, Heading},
    source, upload,
};
use actix_web::{
    HttpRequest, HttpResponse, Resource,
    http::{Method, StatusCode},
    web,
};
use actors::call::pipeline::Target;
use contract::{
    Fault, Reply,
    endpoint::{
        self, Access, Answers, EdgeRoute, Endpoint,
        files::{DownloadArtifact, DownloadBackup, HeadArtifactContent, PutArtifactContent},
        install::{InstallManifest, InstallPage},
        operators::{CertificateQuestion, ConfigSchema, Healthz, Metrics, OpenApi, Readyz},
        payments::{CheckoutPage, PaymentNotice},
        pushes::RepositoryPush,
        sources::PutSource,
    },
};

/// Answers the endpoints that need HTTP itself, such as uploads.
pub struct Web;

pub struct Incoming {
    req: HttpRequest,
    edge: web::Data<Edge>,
    payload: web::Payload,
}

impl endpoint::Edge for Web {
    type Request = Incoming;
    type Answer = HttpResponse;
}

/// What an endpoint sees of the changes that other nodes acknowledged before the request.
enum Sees {
    /// All of them. Without the database, it answers 503.
    All,
    /// Those that arrive within a second: what is public is also served while the database is away.
    Most,
    /// It reads nothing that others change.
    None,
}

impl Sees {
    async fn catch_up(self, it: &Incoming) -> Result<(), Fault> {
        match self {
            Sees::All => it.edge.platform.world.store.catch_up().await,
            Sees::Most => {
                it.edge.catch_up().await;
                Ok(())
            }
            Sees::None => Ok(()),
        }
    }
}

macro_rules! answers {
    ($($sees:ident $endpoint:ty: |$it:ident| $answer:expr;)+) => {
        $(impl Answers<$endpoint> for Web {
            async fn answer($it: Incoming) -> HttpResponse {
                match Sees::$sees.catch_up(&$it).await {
                    Ok(()) => $answer.await,
                    Err(fault) => Heading::uncounted($it.req.head(), &$it.edge).fault_unread(&fault),
                }
            }
        })+
    };
}

answers! {
    All PutArtifactContent: |it| upload::put(it.req, it.edge, it.payload);
    All HeadArtifactContent: |it| upload::head(it.req, it.edge);
    Most DownloadArtifact: |it| download::get(it.req, it.edge);
    Most DownloadBackup: |it| download::get_backup(it.req, it.edge);
    All PutSource: |it| source::put(it.req, it.edge, it.payload);
    Most InstallPage: |it| install::page(it.req, it.edge);
    Most InstallManifest: |it| install::manifest(it.req, it.edge);
    All PaymentNotice: |it| payments::receive(it.req, it.edge, it.payload);
    Most CheckoutPage: |it| payments::page(it.req, it.edge);
    All RepositoryPush: |it| push::receive(it.req, it.edge, it.payload);
    None Healthz: |it| operators::healthz();
    None Readyz: |it| operators::readyz(it.req, it.edge);
    None Metrics: |it| operators::metrics(it.req, it.edge);
    Most CertificateQuestion: |it| operators::certificate_question(it.req, it.edge);
    None OpenApi: |it| operators::openapi(it.edge);
    None ConfigSchema: |it| operators::config_schema();
}

pub fn configure(app: &mut web::ServiceConfig) {
    let mut resources = Resources::default();
    for route in endpoint::edge_routes() {
        resources.serve_itself(route);
    }
    for endpoint in endpoint::all() {
        match endpoint.access {
            _ if endpoint::is_below_base(endpoint.path) => resources.serve_session(endpoint),
            Access::Operation(_) => resources.serve(endpoint),
            // Answered above, or passed on to an instance by the fast path.
            _ => {}
        }
    }
    // `/users/me` must match before `/users/{userId}`.
    resources.0.sort_by_key(|(path, _)| path.contains('{'));
    for (_, resource) in resources.0 {
        app.service(resource);
    }
}

/// The routes of each path.
#[derive(Default)]
struct Resources(Vec<(&'static str, Resource)>);

impl Resources {
    fn at(&mut self, path: &'static str, change: impl FnOnce(Resource) -> Resource) {
        let known = self.0.iter().position(|(known, _)| *known == path);
        let resource = match known.map(|at| self.0.remove(at)) {
            Some((_, resource)) => resource,
            None => web::resource(path).default_service(web::to(super::refuse_method)),
        };
        let at = known.unwrap_or(self.0.len());
        self.0.insert(at, (path, change(resource)));
    }

    /// Serves an endpoint that the edge answers itself. `HEAD` is served wherever `GET` is.
    fn serve_itself(&mut self, route: EdgeRoute<Web>) {
        let answer = route.answer;
        let handler = move |req: HttpRequest, edge: web::Data<Edge>, payload: web::Payload| {
            answer(Incoming { req, edge, payload })
        };
        let method = method(route.endpoint);
        self.at(route.endpoint.path, |resource| match method {
            Method::GET => resource.route(web::get().to(handler)).route(web::head().to(handler)),
            method => resource.route(web::method(method).to(handler)),
        });
    }

    /// Serves a session route. Its method may be in the body.
    fn serve_session(&mut self, endpoint: &Endpoint) {
        self.at(endpoint.path, |resource| resource.default_service(web::to(parse_rest::serve)));
    }

    /// Serves an endpoint that is an operation of the platform.
    fn serve(&mut self, endpoint: &'static Endpoint) {
        let handler = move |req: HttpRequest, edge: web::Data<Edge>, payload: web::Payload| {
            serve(endpoint, req, edge, payload)
        };
        self.at(endpoint.path, |resource| {
            resource.route(web::method(method(endpoint)).to(handler))
        });
    }
}

fn method(endpoint: &Endpoint) -> Method {
    match endpoint.method {
        endpoint::Method::Get => Method::GET,
        endpoint::Method::Head => Method::HEAD,
        endpoint::Method::Post => Method::POST,
        endpoint::Method::Put => Method::PUT,
    }
}

async fn serve(
    endpoint: &'static Endpoint,
    req: HttpRequest,
    edge: web::Data<Edge>,
    payload: web::Payload,
) -> HttpResponse {
    let done = async {
        let (_permit, body) = functions::read(&edge, req.head(), payload).await?;
        functions::invoke(req.head(), &edge, target(endpoint.name, &req), body).await
    };
    match done.await {
        Ok(done) => {
            let heading = Heading {
                head: req.head(),
                edge: &edge,
                request_id: done.request_id,
                allowance: Some(done.allowance),
            };
            match done.reply {
                Ok(Reply { json, created: true }) => heading.json(StatusCode::CREATED, json),
                Ok(Reply { json, created: false }) => heading.json(StatusCode::OK, json),
                Err(fault) => heading.fault(&fault),
            }
        }
        Err(fault) => reply::refuse(req.head(), &edge, fault),
    }
}

/// The operation of an endpoint, with the values from the path.
pub fn target(name: &'static str, req: &HttpRequest) -> Target {
    let path = req.match_info().iter().map(|(_, value)| value.to_owned()).collect();
    Target::Endpoint { name, path }
}
