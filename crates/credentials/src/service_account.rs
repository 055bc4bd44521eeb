//! Keys of Google service accounts, for Google Play and Firebase.
//!
//! Source: Google Cloud, "Create and delete service account keys".

use serde::Deserialize;
use serde::de::IgnoredAny;
use zeroize::Zeroizing;

use crate::facts::{GoogleServiceAccount, KeyKind};
use crate::identity::check_size;
use crate::key::PublicKey;
use crate::looks::Looks;
use crate::pem::Pem;
use crate::refusal::{File, Refusal};

/// Longest text that is kept, in bytes.
const LONGEST_TEXT: usize = 255;

/// The fields that are used, and those by which other files are known.
#[derive(Deserialize)]
struct Json {
    #[serde(rename = "type")]
    kind: Option<String>,
    client_email: Option<String>,
    project_id: Option<String>,
    private_key_id: Option<String>,
    private_key: Option<Zeroizing<String>>,
    client_id: Option<String>,
    installed: Option<IgnoredAny>,
    web: Option<IgnoredAny>,
    project_info: Option<IgnoredAny>,
}

/// Reads the JSON of a key, and the private key in it.
pub(crate) fn open(json: &[u8]) -> Result<GoogleServiceAccount, Refusal> {
    check_size(File::ServiceAccount, json)?;
    let not_json = |_| match Looks::of(json) {
        Looks::Json => Refusal::Damaged { file: File::ServiceAccount },
        Looks::PropertyList => Refusal::OtherGoogleFile {
            what: "a property list such as the GoogleService-Info.plist of an iOS app",
        },
        looks => Refusal::NotAServiceAccount { looks },
    };
    let file: Json = serde_json::from_slice(json).map_err(not_json)?;
    check_kind(&file)?;

    let client_email = line("client_email", file.client_email)?;
    let domain = client_email.split_once('@').filter(|(name, _)| !name.is_empty());
    if !domain.is_some_and(|(_, domain)| is_google(domain)) {
        return Err(Refusal::BadEmail);
    }
    let project_id = line("project_id", file.project_id)?;
    let private_key_id = line("private_key_id", file.private_key_id)?;
    let private_key = file.private_key.ok_or(Refusal::MissingField { field: "private_key" })?;
    let pem = Pem::read(private_key.as_bytes()).filter(|pem| pem.label == "PRIVATE KEY");
    let key = pem.and_then(|pem| PublicKey::of_private(&pem.der).ok());
    if !key.is_some_and(|key| matches!(key.kind, KeyKind::Rsa { .. })) {
        return Err(Refusal::BadServiceAccountKey);
    }
    let client_id = line("client_id", file.client_id).ok();
    Ok(GoogleServiceAccount { client_email, project_id, private_key_id, client_id })
}

fn check_kind(file: &Json) -> Result<(), Refusal> {
    let what = match file.kind.as_deref() {
        Some("service_account") => return Ok(()),
        Some("authorized_user") => "the log-in of a person (authorized_user)",
        Some("external_account") => "a configuration for workload identity (external_account)",
        Some("impersonated_service_account") => "a configuration for impersonation",
        Some(_) => "of a type that is not known here",
        None if file.installed.is_some() || file.web.is_some() => "an OAuth client",
        None if file.project_info.is_some() => "the google-services.json of an Android app",
        None => return Err(Refusal::MissingField { field: "type" }),
    };
    Err(Refusal::OtherGoogleFile { what })
}

/// A text on one line, which is not empty.
fn line(field: &'static str, text: Option<String>) -> Result<String, Refusal> {
    text.filter(|text| !text.is_empty() && text.len() <= LONGEST_TEXT)
        .filter(|text| !text.chars().any(char::is_control))
        .ok_or(Refusal::MissingField { field })
}

fn is_google(domain: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    domain.ends_with("gserviceaccount.com") && domain.chars().all(plain)
}
