//! Requests to the servers of instances. The fast path of the edge forwards all methods; this
//! declaration exists for the documents.

use super::{Access, BodyContent, Endpoint, EndpointGroup, Method, Success};
use crate::FaultKind;

/// The prefix of instance paths.
pub const PREFIX: &str = "/instances/";

/// The group “Instances”.
#[derive(Debug, Clone, Copy)]
pub struct Instances;

impl Instances {
    /// The endpoints of this group.
    pub const GROUP: EndpointGroup = EndpointGroup {
        name: "Instances",
        endpoints: &[Endpoint {
            name: "passToInstance",
            method: Method::Get,
            path: "/instances/{instanceId}/{path}",
            docs: "Forward a request to the live server of an instance.\n\n\
                   Requests of every method are forwarded. The server of the instance answers them, and \
                   decides who may do what.\n\n\
                   The id of the app stands for its backend, or for its market server if it has no \
                   backend. `~dashboard` or `~storefront` after the id of a market server names one of \
                   its other services.",
            access: Access::Anyone,
            reads: &[],
            body: BodyContent::Empty,
            answers: &[Success {
                status: 200,
                content: BodyContent::Media("*/*"),
                why: "The answer of the server.",
                headers: &[],
            }],
            errors: &[
                (FaultKind::NotFound, "no such instance"),
                (FaultKind::Unavailable, "the instance does not run or is unreachable"),
                (FaultKind::NoAnswer, "the server did not answer in time"),
            ],
        }],
    };
}
