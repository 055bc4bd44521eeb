//! Android App Bundles.

mod manifest;
mod protobuf;
mod resources;

use crate::archive::Archive;
use crate::jar_signature;
use crate::refusal::{Failure, Refusal};
use crate::report::{Report, identifier, label, optional_text};

use manifest::Manifest;
use resources::{Item, ResourceTable};

/// The entry that makes an archive an aab.
pub(crate) const MANIFEST: &str = "base/manifest/AndroidManifest.xml";
const RESOURCE_TABLE: &str = "base/resources.pb";

pub(crate) fn inspect(archive: &Archive) -> Result<Report, Failure> {
    archive.refuse_stray_bytes(archive.directory().offset)?;
    let signer = jar_signature::verify(archive)?;
    let entry = archive.find(MANIFEST).ok_or(Refusal::Unreadable { part: MANIFEST })?;
    let bytes = archive.read_manifest(entry)?;
    let manifest = Manifest::parse(&bytes).ok_or(Refusal::Unreadable { part: MANIFEST })?;
    let table = match archive.find(RESOURCE_TABLE) {
        Some(entry) => archive.read_table(entry)?,
        None => Vec::new(),
    };
    let read = |item: Option<Item>| ResourceTable(&table).resolve(item?)?.into_text();
    Ok(Report {
        identifier: identifier("package", read(manifest.package))?,
        version: optional_text("android:versionName", read(manifest.version_name))?,
        build_number: version_code(read(manifest.version_code), read(manifest.version_code_major))?,
        display_name: label(read(manifest.label)),
        minimum_os: optional_text("android:minSdkVersion", read(manifest.min_sdk_version))?,
        signer,
        profile: None,
    })
}

/// A bundle may keep the numbers as the text of the source, so they are parsed from text.
fn version_code(low: Option<String>, high: Option<String>) -> Result<Option<String>, Refusal> {
    let number = |text: Option<String>| {
        text.map(|text| text.parse::<u32>())
            .transpose()
            .map_err(|_| Refusal::BadField { field: "android:versionCode" })
    };
    let high = u64::from(number(high)?.unwrap_or(0));
    Ok(number(low)?.map(|low| (high << 32 | u64::from(low)).to_string()))
}
