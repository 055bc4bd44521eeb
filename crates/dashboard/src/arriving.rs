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
