//! Forms with small files, such as keys and certificates.

use crate::{answer::Refused, form::Form};
use actix_multipart::Multipart;
use actix_web::HttpRequest;
use contract::Fault;
use data_encoding::BASE64;
use futures_util::StreamExt;

/// The most bytes of a form with all its files.
const MOST: usize = 1 << 20;

/// What a part takes beside its name and its bytes.
const OF_A_PART: usize = 256;

/// Reads a form whose files become fields in base64, as functions take them. A field without a file is
/// left out.
pub async fn form_with_files(req: &HttpRequest, mut parts: Multipart) -> Result<Form, Refused> {
    let malformed = || Refused(Fault::Malformed("this is not a form".into()));
    let too_large = || Refused(Fault::TooLarge { limit: MOST as u64 });
    let (mut form, mut left) = (Form::default(), MOST);
    while let Some(part) = parts.next().await {
        let mut part = part.map_err(|_| malformed())?;
        let name = part.name().unwrap_or_default().to_owned();
        let is_file = part.content_disposition().is_some_and(|d| d.get_filename().is_some());
        let bytes = part.bytes(left).await.map_err(|_| too_large())?.map_err(|_| malformed())?;
        left = left.checked_sub(bytes.len() + name.len() + OF_A_PART).ok_or_else(too_large)?;
        match is_file {
            true if bytes.is_empty() => {}
            true => form.push(name, BASE64.encode(&bytes)),
            false => form.push(name, String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
    form.check(req)?;
    Ok(form)
}
