//! The handlers of the group Certificates.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::hosting::certificates::{Certificates, Command, State},
    runtime::pagination,
};
use contract::{
    Fault, Page, Serves,
    certificates::{GetCertificates, RenewCertificate, ServerCertificate},
};

impl Serves<GetCertificates> for Platform {
    async fn serve(&self, cx: &Call, p: GetCertificates) -> Result<Page<ServerCertificate>, Fault> {
        let page = (p.limit, p.cursor);
        pagination::whole::<Certificates, _>(&self.world.store, page, |id, certificate| {
            Ok(Some(certificate.view(id, cx.now)))
        })
    }
}

impl Serves<RenewCertificate> for Platform {
    async fn serve(&self, cx: &Call, p: RenewCertificate) -> Result<ServerCertificate, Fault> {
        let (id, now) = (p.certificate_id, cx.now);
        let reply = move |certificate: &State| Ok(certificate.view(id, now));
        cx.to::<Certificates>(id).change(Command::Renew, reply).await
    }
}
