//! Forms with small files, such as keys and certificates.

use crate::{
    arriving::{Arriving, in_time},
    form::Form,
    response::Refused,
    visitor::Visitor,
};
use actix_multipart::Multipart;
use contract::Fault;
use data_encoding::BASE64;
use futures_util::StreamExt;

/// The most bytes of a form with all its files.
const MOST: usize = 1 << 20;

/// What a part takes beside its name and its bytes.
const OF_A_PART: usize = 256;

/// Reads a form whose files become fields in base64, as functions take them. A field without a file is
/// left out. Only people who are signed in send files.
pub async fn form_with_files(visitor: &Visitor, parts: Multipart) -> Result<Form, Refused> {
    visitor.user().await?;
    let mut arriving = Arriving::of(visitor.request(), MOST)?;
    let form = in_time(visitor.request(), read(&mut arriving, parts)).await?;
    form.check(visitor.request())?;
    Ok(form)
}

async fn read(arriving: &mut Arriving, mut parts: Multipart) -> Result<Form, Refused> {
    let malformed = || Refused(Fault::Malformed("this is not a form".into()));
    let mut form = Form::default();
    while let Some(part) = parts.next().await {
        let mut part = part.map_err(|_| malformed())?;
        let name = part.name().unwrap_or_default().to_owned();
        arriving.count(name.len() + OF_A_PART).await?;
        let is_file = part.content_disposition().is_some_and(|d| d.get_filename().is_some());
        let bytes = arriving.all(&mut part).await?;
        match is_file {
            true if bytes.is_empty() => {}
            true => form.push(name, BASE64.encode(&bytes)),
            false => form.push(name, String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
    Ok(form)
}
