//! What a request sends beside its head, within limits of size, time and memory.
//!
//! Without a session, a visitor may send as much as the forms for visitors need. So what costs more
//! memory is taken from people only who are signed in.

use crate::{Room, Site, response::Refused, visitor::Visitor};
use actix_web::{HttpRequest, web::Data};
use bytes::{Bytes, BytesMut};
use contract::Fault;
use futures_util::{
    Stream, StreamExt,
    future::{Either, select},
};
use std::{pin::pin, time::Duration};

/// How long a form may take to arrive.
const WITHIN: Duration = Duration::from_secs(30);
/// The most bytes of a visitor without a session.
const WITHOUT_SESSION: usize = 16 << 10;

/// Takes what arrives with a request.
pub struct Arriving {
    visitor: Visitor,
    room: Box<dyn Room>,
    len: usize,
    most: usize,
}

impl Arriving {
    /// `most` is how many bytes are taken at all.
    pub fn of(req: &HttpRequest, most: usize) -> Result<Arriving, Refused> {
        let site = req.app_data::<Data<Site>>().ok_or(Refused(Fault::Internal))?;
        let room = site.service.room(req.head())?;
        Ok(Arriving { visitor: Visitor::of(req)?, room, len: 0, most })
    }

    /// Counts bytes that came, or are about to be kept.
    pub async fn count(&mut self, bytes: usize) -> Result<(), Refused> {
        self.len += bytes;
        if self.len > self.most {
            return Err(Refused(Fault::TooLarge { limit: self.most as u64 }));
        }
        if self.len > WITHOUT_SESSION {
            self.visitor.user().await?;
        }
        Ok(self.room.grow(bytes)?)
    }

    /// All bytes of a stream.
    pub async fn all<E>(
        &mut self,
        mut stream: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<Bytes, Refused> {
        let mut all = BytesMut::new();
        while let Some(part) = stream.next().await {
            let part = part.map_err(|_| not_whole())?;
            self.count(part.len()).await?;
            all.extend_from_slice(&part);
        }
        Ok(all.freeze())
    }
}

/// Waits for what arrives, for as long as that may take.
pub async fn in_time<T>(
    req: &HttpRequest,
    work: impl Future<Output = Result<T, Refused>>,
) -> Result<T, Refused> {
    let site = req.app_data::<Data<Site>>().ok_or(Refused(Fault::Internal))?;
    match select(pin!(work), site.service.sleep(WITHIN)).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => Err(not_whole()),
    }
}

fn not_whole() -> Refused {
    Refused(Fault::Malformed("this form did not arrive whole; send it again".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallResponse, Service, ServiceCall, Settings, files::form_with_files, form::Form};
    use actix_multipart::Multipart;
    use actix_web::{
        FromRequest, HttpMessage, ResponseError,
        dev::{Payload, RequestHead},
        error::PayloadError,
        http::header::{CONTENT_TYPE, HeaderMap},
        test::TestRequest,
    };
    use contract::{Timestamp, authentication::User, service::Registration};
    use futures_util::{
        FutureExt,
        future::{LocalBoxFuture, pending, ready},
        stream::{self, LocalBoxStream},
    };
    use serde_json::json;
    use std::rc::Rc;

    /// A service where half a minute passes at once, and a longer time never.
    struct Hurried;

    impl Room for Hurried {
        fn grow(&mut self, _: usize) -> Result<(), Fault> {
            Ok(())
        }
    }

    impl Service for Hurried {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn sleep(&self, time: Duration) -> LocalBoxFuture<'static, ()> {
            if time <= Duration::from_secs(30) { ready(()).boxed() } else { pending().boxed() }
        }

        fn is_stopping(&self) -> bool {
            false
        }

        fn room(&self, _: &RequestHead) -> Result<Box<dyn Room>, Fault> {
            Ok(Box::new(Hurried))
        }

        fn call<'a>(&'a self, _: ServiceCall<'a>) -> LocalBoxFuture<'a, CallResponse> {
            pending().boxed()
        }

        fn headers(&self, _: &RequestHead) -> HeaderMap {
            HeaderMap::new()
        }

        fn upload<'a>(
            &'a self,
            _: &'a str,
            _: LocalBoxStream<'static, Result<Bytes, Fault>>,
        ) -> LocalBoxFuture<'a, Result<(), Fault>> {
            pending().boxed()
        }
    }

    /// A request of somebody who is signed in.
    fn request() -> HttpRequest {
        let settings = Settings {
            url: "http://localhost:8081".parse().unwrap(),
            api_url: "http://localhost:8080".to_owned(),
            application_id: "svc_test".to_owned(),
            sends_mail: false,
            registration: Registration::Open,
            keeps_sessions: true,
            is_only_here: true,
        };
        let site = Data::new(Site { service: Rc::new(Hurried), settings });
        let parts = (CONTENT_TYPE, "multipart/form-data; boundary=end");
        let request = TestRequest::default().app_data(site).insert_header(parts).to_http_request();
        let user: User = serde_json::from_value(json!({
            "id": "usr_01J9ZQ8F5W7V3T6M2K4N8R0P1S", "email": "ada@example.com", "name": "Ada",
            "role": "client", "tier": "free", "createdAt": Timestamp::from_millis(0),
            "updatedAt": Timestamp::from_millis(0),
        }))
        .unwrap();
        request.extensions_mut().insert(user);
        request
    }

    /// A body whose end does not come.
    fn half(
        begin: &'static str,
    ) -> impl Stream<Item = Result<Bytes, PayloadError>> + Unpin + 'static {
        stream::iter([Ok(Bytes::from_static(begin.as_bytes()))]).chain(stream::pending())
    }

    #[test]
    fn a_form_whose_end_does_not_come_is_refused_in_half_a_minute() {
        let request = request();
        let mut body = Payload::from(half("email=ada").boxed_local());
        let form = Form::from_request(&request, &mut body).now_or_never().unwrap();
        assert_eq!(form.unwrap_err().as_response_error().status_code(), 400);

        let visitor = Visitor::of(&request).unwrap();
        let begin = "--end\r\nContent-Disposition: form-data; name=\"email\"\r\n\r\nada";
        let parts = Multipart::new(request.headers(), half(begin));
        let form = form_with_files(&visitor, parts).now_or_never().unwrap();
        assert_eq!(form.unwrap_err().status_code(), 400);
    }
}
