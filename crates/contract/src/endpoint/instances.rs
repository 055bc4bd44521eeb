//! Requests to the servers of instances. The fast path of the edge forwards all methods; this
//! declaration exists for the documents.

use super::{Access, Answer, Content, Endpoint, EndpointGroup, Method};
use crate::FaultKind;

/// The prefix of instance paths.
pub const PREFIX: &str = "/instances/";

/// The endpoints of this group.
pub const GROUP: EndpointGroup = EndpointGroup {
    name: "Instances",
    endpoints: &[Endpoint {
        name: "passToInstance",
        method: Method::Get,
        path: "/instances/{instanceId}/{path}",
        docs: "Pass a request on to the live server of an instance.\n\n\
               Requests of every method are passed on, and their answers come back as the server \
               gave them. Who may do what there is the server's own to say.",
        access: Access::Anyone,
        reads: &[],
        body: Content::Empty,
        answers: &[Answer {
            status: 200,
            content: Content::Media("*/*"),
            why: "What the server answers.",
            headers: &[],
        }],
        errors: &[
            (FaultKind::NotFound, "no such instance"),
            (FaultKind::Unavailable, "the instance does not run, or cannot be reached"),
            (FaultKind::NoAnswer, "the server gave no answer in time"),
        ],
    }],
};
