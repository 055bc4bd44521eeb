//! Install pages of releases that were published to `ota`. The URL contains the release's id, which
//! nobody can guess. Everyone with the URL may install.

edge_endpoints! {
    group InstallPages "Install pages";

    /// The page to install a release, with a QR code of its URL.
    "installPage": Get "/install/{releaseId}" => InstallPage
    {
        access: Anyone,
        answers: [200 Media("text/html") "The page."],
        errors: [NotFound "no such release, or it was not published to `ota`"],
    }

    /// The manifest that iOS fetches before it installs.
    "installManifest": Get "/install/{releaseId}/manifest.plist" => InstallManifest
    {
        access: Anyone,
        answers: [200 Media("text/xml") "The manifest."],
        errors: [NotFound "no such release, it has nothing for iOS, or it was taken back"],
    }
}
