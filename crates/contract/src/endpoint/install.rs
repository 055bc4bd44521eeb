//! The install page of a release that was published to `ota`. Its address holds the release's id,
//! which cannot be guessed; who has it may install.

edge_endpoints! {
    group "Install pages";

    /// The page from which people install a release, with a QR code of its address.
    "installPage": Get "/install/{releaseId}" => InstallPage
    {
        access: Anyone,
        answers: [200 Media("text/html") "The page."],
        errors: [NotFound "no such release, or it was not published to `ota`"],
    }

    /// The manifest that iOS asks for before it installs.
    "installManifest": Get "/install/{releaseId}/manifest.plist" => InstallManifest
    {
        access: Anyone,
        answers: [200 Media("text/xml") "The manifest."],
        errors: [NotFound "no such release, it has nothing for iOS, or it was taken back"],
    }
}
