//! What is declared of an endpoint, and who serves it.

use crate::{Fault, FaultKind, Route, Server, Spec};
use futures_util::future::LocalBoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use std::str::FromStr;

/// The HTTP methods of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the method it names")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
}

impl Method {
    /// The method's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }
}

/// The access that an endpoint needs.
#[derive(Clone, Copy)]
pub enum Access {
    /// Everybody has access.
    Anyone,
    /// The URL itself grants access: it is signed, valid for one object and one use, and expires.
    SignedAddress,
    /// The application id.
    Application,
    /// The application id and a session.
    Session,
    /// The access that the operation requires.
    Operation(Spec),
}

/// What a request or an answer carries.
#[derive(Clone, Copy)]
pub enum BodyContent {
    /// No body.
    Empty,
    /// JSON of this schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Bytes of this media type.
    Media(&'static str),
}

impl BodyContent {
    /// JSON of a type.
    pub const fn json<T: JsonSchema>() -> BodyContent {
        BodyContent::Json(|schemas| schemas.subschema_for::<T>())
    }
}

/// A successful answer.
#[derive(Clone, Copy)]
pub struct Success {
    /// The HTTP status.
    pub status: u16,
    /// The content of the body.
    pub content: BodyContent,
    /// The meaning of the answer.
    pub why: &'static str,
    /// The names and meanings of headers that only this answer has.
    pub headers: &'static [(&'static str, &'static str)],
}

impl Success {
    /// An answer of the platform.
    pub const fn json<T: JsonSchema>(status: u16, why: &'static str) -> Success {
        Success { status, content: BodyContent::json::<T>(), why, headers: &[] }
    }
}

/// What the router and the documents know of one address outside the functions.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// The name in documents, in the log and in metrics.
    pub name: &'static str,
    /// The HTTP method. An endpoint with `GET` also answers `HEAD`.
    pub method: Method,
    /// The path, with `{names}` for variable parts.
    pub path: &'static str,
    /// The doc comment of the declaration.
    pub docs: &'static str,
    /// The access that a request needs.
    pub access: Access,
    /// The names and meanings of request headers that the endpoint reads.
    pub reads: &'static [(&'static str, &'static str)],
    /// The content of the request body.
    pub body: BodyContent,
    /// The successful answers.
    pub answers: &'static [Success],
    /// The faults of the endpoint, with their reasons.
    pub errors: &'static [(FaultKind, &'static str)],
}

impl Endpoint {
    /// The whole doc comment.
    pub fn documentation(&self) -> String {
        self.docs.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
    }

    /// The first paragraph of the doc comment, on one line.
    pub fn summary(&self) -> String {
        self.documentation().split("\n\n").next().unwrap_or_default().replace('\n', " ")
    }
}

/// A group of endpoints in the documentation.
pub struct EndpointGroup {
    /// The heading of the group.
    pub name: &'static str,
    /// The endpoints of the group, in the order of the documentation.
    pub endpoints: &'static [Endpoint],
}

/// A reply that tells whether this call created the object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Created<T> {
    /// This call created the object: 201.
    Now(T),
    /// The object existed before: 200.
    Before(T),
}

/// Reads the first of the values in a path, and returns it with the others. A value that cannot be
/// read is a missing object.
pub fn path_value<'a, T: FromStr>(
    values: &'a [String],
    noun: &'static str,
) -> Result<(T, &'a [String]), Fault> {
    let (value, others) = values.split_first().ok_or(Fault::NotFound(noun))?;
    Ok((value.parse().map_err(|_| Fault::NotFound(noun))?, others))
}

/// A group of endpoints that the platform `P` serves through the same pipeline as cloud functions.
pub trait ServedBy<P: Server> {
    /// The routes of the group.
    fn routes() -> Vec<Route<P>>;
}

/// A server of HTTP requests.
pub trait Edge: 'static {
    /// The type of a request.
    type Request;
    /// The type of an answer.
    type Answer;
}

/// Answers the endpoint `N`. The compiler requires an implementation for every declared endpoint.
#[allow(
    async_fn_in_trait,
    reason = "a request is answered on the thread that took it; Send is not needed"
)]
pub trait Answers<N>: Edge {
    /// Answers a request.
    async fn answer(request: Self::Request) -> Self::Answer;
}

/// A group of endpoints that the edge `E` answers itself.
pub trait AnsweredBy<E: Edge> {
    /// The routes of the group.
    fn routes() -> Vec<EdgeRoute<E>>;
}

/// An endpoint and the edge `E` that answers it.
pub struct EdgeRoute<E: Edge> {
    /// The declaration.
    pub endpoint: &'static Endpoint,
    /// Answers a request.
    pub answer: fn(E::Request) -> LocalBoxFuture<'static, E::Answer>,
}
