//! iOS app archives.

mod code_directory;
mod code_resources;
mod code_signature;
mod info_plist;
mod mach_o;
mod resources;

use crate::archive::{Archive, Entry};
use crate::refusal::{Failure, Refusal};
use crate::report::{Report, Signer, identifier, label, optional_text, text};

use code_signature::CodeSignature;
use info_plist::InfoPlist;
use resources::Bundle;

const INFO_PLIST: &str = "Info.plist";
const PROFILE: &str = "embedded.mobileprovision";

/// The property lists of all apps in the archive, `Payload/*.app/Info.plist`, without those of the
/// frameworks and extensions in an app.
pub(crate) fn info_plists<'a>(archive: &'a Archive) -> impl Iterator<Item = &'a Entry> {
    archive.entries().iter().filter(|entry| app_folder(entry.name()).is_some())
}

/// The folder `Payload/X.app/`, if `name` is the property list of that app.
fn app_folder(name: &[u8]) -> Option<&[u8]> {
    let folder = name.strip_suffix(INFO_PLIST.as_bytes())?;
    let app = folder.strip_prefix(b"Payload/")?.strip_suffix(b".app/")?;
    (!app.is_empty() && !app.contains(&b'/')).then_some(folder)
}

pub(crate) fn inspect(archive: &Archive) -> Result<Report, Failure> {
    archive.refuse_stray_bytes(archive.directory().offset)?;
    let mut apps = info_plists(archive);
    let (Some(entry), None) = (apps.next(), apps.next()) else {
        return Err(Refusal::SeveralApps.into());
    };
    let bytes = archive.read_manifest(entry)?;
    let info = InfoPlist::parse(&bytes).ok_or(Refusal::Unreadable { part: INFO_PLIST })?;
    if is_for_simulator(&info) {
        return Err(Refusal::SimulatorBuild.into());
    }
    let folder = app_folder(entry.name()).unwrap_or_default();
    let signer = signer(archive, folder, &info, &bytes)?;
    let profile = profile(archive, folder)?;
    Ok(Report {
        identifier: identifier("CFBundleIdentifier", info.text("CFBundleIdentifier"))?,
        version: Some(text("CFBundleShortVersionString", info.text("CFBundleShortVersionString"))?),
        build_number: optional_text("CFBundleVersion", info.text("CFBundleVersion"))?,
        display_name: label(info.text("CFBundleDisplayName"))
            .or_else(|| label(info.text("CFBundleName"))),
        minimum_os: optional_text("MinimumOSVersion", info.text("MinimumOSVersion"))?,
        signer,
        profile,
    })
}

/// The provisioning profile of an app. One that cannot be read is none: it is not judged here.
fn profile(archive: &Archive, folder: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    let entry = archive.find([folder, PROFILE.as_bytes()].concat());
    match entry.map(|entry| archive.read_manifest(entry)).transpose() {
        Err(Failure::Refused(_)) => Ok(None),
        read => read,
    }
}

fn signer(
    archive: &Archive,
    folder: &[u8],
    info: &InfoPlist,
    info_bytes: &[u8],
) -> Result<Option<Signer>, Failure> {
    let find = |name: &str| archive.find([folder, name.as_bytes()].concat());
    if let Some(executable) = info.text("CFBundleExecutable").and_then(|name| find(&name))
        && let Some(signature) = CodeSignature::find(archive, executable)?
    {
        let bundle = Bundle::new(archive, folder, info_bytes, executable);
        return signature.verify(|directory| bundle.verify(directory));
    }
    // Only signing writes this list of files, so the signature was removed.
    if find("_CodeSignature/CodeResources").is_some() {
        return Err(Refusal::StrippedSignature { scheme: code_signature::SCHEME }.into());
    }
    Ok(None)
}

fn is_for_simulator(info: &InfoPlist) -> bool {
    let platforms = ["DTPlatformName", "CFBundleSupportedPlatforms"];
    platforms
        .into_iter()
        .flat_map(|key| info.all(key))
        .any(|name| name.eq_ignore_ascii_case("iphonesimulator"))
}
