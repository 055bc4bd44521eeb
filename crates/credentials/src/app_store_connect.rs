//! Keys of App Store Connect's API.
//!
//! Source: Apple, App Store Connect API, "Creating API Keys" and "Generating Tokens for API Requests".

use crate::facts::{AppStoreConnectKey, KeyKind};
use crate::identity::check_size;
use crate::key::PublicKey;
use crate::looks::Looks;
use crate::pem::Pem;
use crate::refusal::{File, Refusal};
use crate::warning::Warning;

/// Reads the key, and completes its id from the name of the file.
pub(crate) fn open(
    p8: &[u8],
    file_name: Option<&str>,
    key_id: Option<&str>,
    issuer_id: Option<&str>,
) -> Result<(AppStoreConnectKey, Vec<Warning>), Refusal> {
    check_size(File::P8, p8)?;
    let pem = Pem::read(p8).filter(|pem| pem.label == "PRIVATE KEY");
    let pem = pem.ok_or_else(|| Refusal::NotAP8 { looks: Looks::of(p8) })?;
    let key = PublicKey::of_private(&pem.der).map_err(|_| Refusal::NotP256)?.kind;
    if key != (KeyKind::Ec { bits: 256 }) {
        return Err(Refusal::NotP256);
    }
    let key_id = choose_key_id(given(key_id), file_name.and_then(named_key_id))?;
    let issuer_id = given(issuer_id).map(read_issuer_id).transpose()?;
    let warnings = if issuer_id.is_none() { vec![Warning::NoIssuerId] } else { Vec::new() };
    Ok((AppStoreConnectKey { key_id, issuer_id, key }, warnings))
}

/// A field of a form, which is empty where nothing was given.
fn given(field: Option<&str>) -> Option<&str> {
    field.map(str::trim).filter(|field| !field.is_empty())
}

fn choose_key_id(given: Option<&str>, named: Option<&str>) -> Result<String, Refusal> {
    match (given, named) {
        (None, None) => Err(Refusal::NoKeyId),
        (Some(given), _) if !is_key_id(given) => Err(Refusal::BadKeyId),
        (Some(given), Some(named)) if given != named => {
            Err(Refusal::OtherKeyId { given: given.to_owned(), named: named.to_owned() })
        }
        (Some(id), _) | (None, Some(id)) => Ok(id.to_owned()),
    }
}

/// The id in `AuthKey_2X9R4HXF34.p8`, or `AuthKey_2X9R4HXF34 (1).p8` as browsers name a copy.
fn named_key_id(file_name: &str) -> Option<&str> {
    let (_, id) = file_name.rsplit_once("AuthKey_")?;
    let (id, rest) = id.split_at_checked(10)?;
    let ends = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    (is_key_id(id) && ends).then_some(id)
}

fn is_key_id(text: &str) -> bool {
    text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn read_issuer_id(text: &str) -> Result<String, Refusal> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths = groups.iter().map(|group| group.len());
    let digits = text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    if digits && lengths.eq([8, 4, 4, 4, 12]) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(Refusal::BadIssuerId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_tells_the_key_id() {
        for name in
            ["AuthKey_2X9R4HXF34.p8", "AuthKey_2X9R4HXF34 (1).p8", "keys/AuthKey_2X9R4HXF34"]
        {
            assert_eq!(named_key_id(name), Some("2X9R4HXF34"), "{name}");
        }
        for name in ["", "AuthKey_.p8", "AuthKey_2X9R4HXF345.p8", "AuthKey_2x9r4hxf34.p8", "key.p8"]
        {
            assert_eq!(named_key_id(name), None, "{name}");
        }
    }

    #[test]
    fn ids_have_their_form() {
        assert_eq!(choose_key_id(None, None), Err(Refusal::NoKeyId));
        assert_eq!(choose_key_id(Some("2x9r4hxf34"), None), Err(Refusal::BadKeyId));
        assert_eq!(choose_key_id(Some("2X9R4HXF34"), None).unwrap(), "2X9R4HXF34");
        let other = choose_key_id(Some("2X9R4HXF34"), Some("ABCDEFGHI1")).unwrap_err();
        assert!(matches!(other, Refusal::OtherKeyId { .. }), "{other}");
        let uuid = "57246542-96FE-1A63-E053-0824D011072A";
        assert_eq!(read_issuer_id(uuid).unwrap(), uuid.to_lowercase());
        for bad in
            ["57246542", "57246542-96fe-1a63-e053-0824d011072g", "5724654296fe1a63e0530824d011072a"]
        {
            assert_eq!(read_issuer_id(bad), Err(Refusal::BadIssuerId), "{bad}");
        }
    }
}
