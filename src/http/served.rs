//! What a listener serves.

use actix_http::Request;
use actix_service::ServiceFactory;
use actix_web::Error;

/// Makes the service of a worker, whose answers are of the type `A`.
pub trait Served<A>:
    ServiceFactory<
        Request,
        Config = (),
        Response = A,
        Error = Error,
        InitError = (),
        Service: 'static,
        Future: 'static,
    > + 'static
{
}

impl<A, T> Served<A> for T where
    T: ServiceFactory<
            Request,
            Config = (),
            Response = A,
            Error = Error,
            InitError = (),
            Service: 'static,
            Future: 'static,
        > + 'static
{
}
