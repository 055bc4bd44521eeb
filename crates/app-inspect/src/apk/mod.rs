//! Android packages.

mod chunk;
mod content_digest;
mod manifest;
mod resource_table;
mod signature_scheme;
mod signing_block;

use crate::archive::Archive;
use crate::jar_signature;
use crate::refusal::{Failure, Refusal};
use crate::report::{Report, Signer, identifier, label, optional_text};

use chunk::Value;
use manifest::Manifest;
use resource_table::ResourceTable;
use signing_block::SigningBlock;

/// The entry that makes an archive an apk.
pub(crate) const MANIFEST: &str = "AndroidManifest.xml";
const RESOURCE_TABLE: &str = "resources.arsc";

pub(crate) fn inspect(archive: &Archive) -> Result<Report, Failure> {
    let block = SigningBlock::find(archive)?;
    archive.refuse_stray_bytes(
        block.as_ref().map_or(archive.directory().offset, |block| block.offset),
    )?;
    let signer = signer(archive, block.as_ref())?;
    let entry = archive.find(MANIFEST).ok_or(Refusal::Unreadable { part: MANIFEST })?;
    let bytes = archive.read_manifest(entry)?;
    let manifest = Manifest::parse(&bytes).ok_or(Refusal::Unreadable { part: MANIFEST })?;

    let table = resource_table(archive, &manifest)?;
    let table = match &table {
        Some(bytes) => {
            Some(ResourceTable::parse(bytes).ok_or(Refusal::Unreadable { part: RESOURCE_TABLE })?)
        }
        None => None,
    };
    let resolve = |value: Option<Value>| match value {
        Some(value @ Value::Reference(_)) => table.as_ref()?.resolve(value),
        value => value,
    };
    let read = |value| resolve(value).and_then(Value::into_text);
    Ok(Report {
        identifier: identifier("package", read(manifest.package))?,
        version: optional_text("android:versionName", read(manifest.version_name))?,
        build_number: version_code(
            resolve(manifest.version_code),
            resolve(manifest.version_code_major),
        )?,
        display_name: label(read(manifest.label)),
        minimum_os: optional_text("android:minSdkVersion", read(manifest.min_sdk_version))?,
        signer,
        profile: None,
    })
}

/// The resource table, if the manifest refers to it.
fn resource_table(archive: &Archive, manifest: &Manifest) -> Result<Option<Vec<u8>>, Failure> {
    let Manifest {
        package: _,
        version_name,
        version_code,
        version_code_major,
        label,
        min_sdk_version,
    } = manifest;
    let refers = [version_name, version_code, version_code_major, label, min_sdk_version]
        .into_iter()
        .any(|value| matches!(value, Some(Value::Reference(_))));
    match archive.find(RESOURCE_TABLE) {
        Some(entry) if refers => archive.read_table(entry).map(Some),
        _ => Ok(None),
    }
}

fn version_code(low: Option<Value>, high: Option<Value>) -> Result<Option<String>, Refusal> {
    let number = |value| match value {
        None => Ok(None),
        Some(Value::Integer(number)) => Ok(Some(number)),
        Some(_) => Err(Refusal::BadField { field: "android:versionCode" }),
    };
    let high = u64::from(number(high)?.unwrap_or(0));
    Ok(number(low)?.map(|low| (high << 32 | u64::from(low)).to_string()))
}

/// Verifies the signatures of every scheme from v2 on. As on a phone, the JAR signature counts only
/// without such a signature: newer schemes cover the older signatures.
fn signer(archive: &Archive, block: Option<&SigningBlock>) -> Result<Option<Signer>, Failure> {
    if let Some(block) = block
        && let Some(signer) = signature_scheme::verify(archive, block)?
    {
        return Ok(Some(signer));
    }
    jar_signature::verify(archive)
}
