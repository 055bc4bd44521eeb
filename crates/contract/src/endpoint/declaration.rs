//! The declaration of endpoints, from which the program derives everything else.
//!
//! Every endpoint has a method and a path. The platform serves some endpoints through the same
//! pipeline as cloud functions ([`endpoints!`](crate::endpoints)). The edge answers the others
//! itself, because they transfer files or pages ([`edge_endpoints!`](crate::edge_endpoints)).

use crate::{Fault, FaultKind, Spec};
use futures_util::future::LocalBoxFuture;
use schemars::{Schema, SchemaGenerator};
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

/// The content of a body.
#[derive(Clone, Copy)]
pub enum Content {
    /// No body.
    Empty,
    /// JSON of this schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Bytes of this media type.
    Media(&'static str),
}

/// A successful answer.
#[derive(Clone, Copy)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The content of the body.
    pub content: Content,
    /// The meaning of the answer.
    pub why: &'static str,
    /// The names and meanings of headers that only this answer has.
    pub headers: &'static [(&'static str, &'static str)],
}

/// An endpoint.
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
    pub body: Content,
    /// The successful answers.
    pub answers: &'static [Answer],
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
pub enum Made<T> {
    /// This call created the object: 201.
    Now(T),
    /// The object existed before: 200.
    Before(T),
}

/// Reads a value from a path. A value that cannot be read is a missing object.
pub fn path_value<T: FromStr>(value: Option<&String>, noun: &'static str) -> Result<T, Fault> {
    value.and_then(|value| value.parse().ok()).ok_or(Fault::NotFound(noun))
}

/// A server of HTTP requests.
pub trait Edge: 'static {
    /// The type of a request.
    type Request;
    /// The type of an answer.
    type Answer;
}

/// Answers the endpoint `E`. The compiler requires an implementation for every declared endpoint.
#[allow(
    async_fn_in_trait,
    reason = "a request is answered on the thread that took it; Send is not needed"
)]
pub trait Answers<E>: Edge {
    /// Answers a request.
    async fn answer(request: Self::Request) -> Self::Answer;
}

/// An endpoint and the edge `P` that answers it.
pub struct EdgeRoute<P: Edge> {
    /// The declaration.
    pub endpoint: &'static Endpoint,
    /// Answers a request.
    pub answer: fn(P::Request) -> LocalBoxFuture<'static, P::Answer>,
}

/// Declares endpoints that the platform serves like functions.
///
/// One entry declares everything about an endpoint. The macro generates the operation's type, which
/// holds the path values and the body, its [`Operation`](crate::Operation) implementation, the
/// constant `OPERATIONS`, and `routes` for a server of all these endpoints.
#[macro_export]
macro_rules! endpoints {
    (
        group $group:literal;
        $(
            $(#[doc = $doc:literal])+
            $name:literal : $method:ident $path:literal => $operation:ident
            { $($field:ident : $id:ty = $noun:literal),* } with $body:ty => $reply:ty
            {
                who: $who:ident $(of ($($subject:ident).+))?,
                effect: $effect:ident
                $(, scopes: [$($scope:ident $(or own $own:ident)? $(when $asked:ident $when:literal)?),+ $(,)?])?
                $(, person: $person:ident)?
                $(, secret: $secret:literal)?
                $(, limit: $seconds:literal)?
                $(, cost: $cost:literal)?
                $(, created: $created:literal)?,
                done: $done:literal
                $(, errors: [$($kind:ident $why:literal),+ $(,)?])?
                $(,)?
            }
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, serde::Serialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $operation {
                $(#[doc = concat!("The ", $noun, ", from the path.")] pub $field: $id,)*
                /// The body of the request.
                pub body: $body,
            }

            impl $operation {
                const SPEC: $crate::Spec = $crate::Spec {
                    name: $name,
                    application: $crate::endpoint::is_below_base($path),
                    who: $crate::Standing::$who,
                    unnamed: None,
                    effect: $crate::Effect::$effect,
                    scopes: &[$($($crate::ScopeRule {
                        scope: $crate::Scope::$scope,
                        own: $crate::declared!(own $($own)?),
                        when: $crate::declared!(when $($when)?),
                    }),+)?],
                    any_token: false,
                    person: $crate::declared!(person $($person)?),
                    session: $crate::function::SessionUse::Read,
                    secret: $crate::declared!(secret $($secret)?),
                    creates: $crate::declared!(creates $($created)?),
                    limit: $crate::declared!(limit $($seconds)?),
                    weight: $crate::declared!(cost $($cost)?),
                    errors: &[$($(($crate::FaultKind::$kind, $why)),+)?],
                    params: |g| g.subschema_for::<$body>(),
                    reply: |g| g.subschema_for::<$reply>(),
                };
            }

            impl $crate::Operation for $operation {
                const NAME: &'static str = $name;
                const EFFECT: $crate::Effect = $crate::Effect::$effect;
                type Reply = $crate::declared!(reply $reply $(, $created)?);
                fn requirement(&self) -> $crate::Requirement {
                    let asked: &[bool] = &[$($($crate::declared!(asked self $($asked)?)),+)?];
                    let rules = Self::SPEC.scopes.iter().zip(asked);
                    $crate::Requirement {
                        who: $crate::Standing::$who,
                        scopes: rules.filter(|(_, asked)| **asked).map(|(rule, _)| *rule).collect(),
                        subject: $crate::declared!(subject self $(, $($subject).+)?),
                    }
                }
                fn is_created(reply: &Self::Reply) -> bool {
                    $crate::declared!(is_created reply $($created)?)
                }
            }
        )+

        /// The endpoints of this group.
        pub const OPERATIONS: $crate::endpoint::EndpointGroup = $crate::endpoint::EndpointGroup {
            name: $group,
            endpoints: &[$($crate::endpoint::Endpoint {
            name: $name,
            method: $crate::endpoint::Method::$method,
            path: $path,
            docs: concat!($($doc, "\n"),+),
            access: $crate::endpoint::Access::Operation($operation::SPEC),
            reads: &[],
            body: $crate::endpoint::Content::Json(|g| g.subschema_for::<$body>()),
            answers: &[
                $($crate::endpoint::Answer {
                    status: 201,
                    content: $crate::endpoint::Content::Json(|g| g.subschema_for::<$reply>()),
                    why: $created,
                    headers: &[],
                },)?
                $crate::endpoint::Answer {
                    status: 200,
                    content: $crate::endpoint::Content::Json(|g| g.subschema_for::<$reply>()),
                    why: $done,
                    headers: &[],
                },
            ],
            errors: &[],
        }),+] };

        /// A server of all endpoints of this group.
        pub trait Served: $crate::Server $(+ $crate::Serves<$operation>)+ {}
        impl<P: $crate::Server $(+ $crate::Serves<$operation>)+> Served for P {}

        /// The routes of this group.
        pub fn routes<P: Served>() -> Vec<$crate::Route<P>> {
            vec![$($crate::Route {
                spec: $operation::SPEC,
                prepare: |path, body| {
                    #[allow(unused_mut, reason = "some paths hold no values")]
                    let mut path = path.iter();
                    let operation = $operation {
                        $($field: $crate::endpoint::path_value(path.next(), $noun)?,)*
                        body: $crate::params::read::<$body>(body)?,
                    };
                    let _ = path;
                    Ok(std::rc::Rc::new(operation))
                },
            }),+]
        }
    };
}

/// Declares endpoints that the edge answers itself.
///
/// The macro generates a type for each endpoint, the constant `GROUP`, and `edge_routes` for an
/// edge that answers all of them.
#[macro_export]
macro_rules! edge_endpoints {
    (
        group $group:literal;
        $(
            $(#[doc = $doc:literal])+
            $name:literal : $method:ident $path:literal => $endpoint:ident
            {
                access: $access:ident
                $(, reads: [$($read:literal $read_why:literal),+ $(,)?])?
                $(, body: $body:ident ($($of:tt)*))?,
                answers: [$($status:literal $content:ident $(($($answered:tt)*))? $why:literal $([$($header:literal $header_why:literal),+ $(,)?])?),+ $(,)?]
                $(, errors: [$($kind:ident $error:literal),+ $(,)?])?
                $(,)?
            }
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy)]
            pub struct $endpoint;
        )+

        /// The endpoints of this group.
        pub const GROUP: $crate::endpoint::EndpointGroup = $crate::endpoint::EndpointGroup {
            name: $group,
            endpoints: &[$($crate::endpoint::Endpoint {
                name: $name,
                method: $crate::endpoint::Method::$method,
                path: $path,
                docs: concat!($($doc, "\n"),+),
                access: $crate::endpoint::Access::$access,
                reads: &[$($(($read, $read_why)),+)?],
                body: $crate::declared!(content $($body ($($of)*))?),
                answers: &[$($crate::endpoint::Answer {
                    status: $status,
                    content: $crate::declared!(content $content $(($($answered)*))?),
                    why: $why,
                    headers: &[$($(($header, $header_why)),+)?],
                }),+],
                errors: &[$($(($crate::FaultKind::$kind, $error)),+)?],
            }),+],
        };

        /// An edge that answers all endpoints of this group.
        pub trait Answered: $crate::endpoint::Edge $(+ $crate::endpoint::Answers<$endpoint>)+ {}
        impl<P: $crate::endpoint::Edge $(+ $crate::endpoint::Answers<$endpoint>)+> Answered for P {}

        /// The routes of this group.
        pub fn edge_routes<P: Answered>() -> Vec<$crate::endpoint::EdgeRoute<P>> {
            let mut declared = GROUP.endpoints.iter();
            let mut routes = Vec::new();
            $(if let Some(endpoint) = declared.next() {
                routes.push($crate::endpoint::EdgeRoute {
                    endpoint,
                    answer: |request| Box::pin(<P as $crate::endpoint::Answers<$endpoint>>::answer(request)),
                });
            })+
            routes
        }
    };
}
