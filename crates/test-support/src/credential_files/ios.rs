//! Certificates as Apple issues them, and provisioning profiles.

use credentials::UploadedFiles;

use super::Folder;

/// The team of the certificates and profiles here.
pub const TEAM: &str = "ABCDE12345";
pub const PASSWORD: &str = "a p12 password";

/// What a profile says.
#[derive(Clone)]
pub struct Profile {
    pub team: &'static str,
    pub application: &'static str,
    /// A key of the list and its value, such as `<key>Platform</key><array>…</array>`.
    pub more: &'static str,
    pub get_task_allow: bool,
    pub expires: &'static str,
    /// The certificate in it: the name of a PEM file.
    pub certificate: &'static str,
}

pub const DEVICES: &str =
    "<key>ProvisionedDevices</key><array><string>00008110-000A1B2C3D4E5F6A</string></array>";

pub const APP_STORE: Profile = Profile {
    team: TEAM,
    application: "ABCDE12345.com.example.app",
    more: "<key>Platform</key><array><string>iOS</string><string>visionOS</string></array>",
    get_task_allow: false,
    expires: "2098-01-01T00:00:00Z",
    certificate: "distribution.pem",
};

/// A folder with an authority that is called as Apple's, and a distribution and a development
/// certificate from it, each with its `.key` and its `.p12`.
pub fn folder() -> Folder {
    let folder = Folder::default();
    folder.self_signed(
        "ca",
        super::RSA,
        "/CN=Apple Worldwide Developer Relations/O=Apple Inc./C=US",
    );
    issue(&folder, "distribution", "Apple Distribution: Example", "1.2.840.113635.100.6.1.4");
    issue(&folder, "development", "Apple Development: Jane", "1.2.840.113635.100.6.1.2");
    folder
}

/// Makes `<name>.pem`, `<name>.key` and `<name>.p12`. The certificate has the marker.
pub fn issue(folder: &Folder, name: &str, common_name: &str, marker: &str) {
    folder.write(
        "extensions",
        format!("extendedKeyUsage=critical,codeSigning\n{marker}=critical,DER:0500\n"),
    );
    folder.sh(&format!(
        "openssl req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr \
         -subj '/UID=XYZ/CN={common_name} ({TEAM})/OU={TEAM}/O=Example/C=US' 2>&1
         openssl x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 \
         -extfile extensions -out {name}.pem 2>&1
         openssl pkcs12 -export -inkey {name}.key -in {name}.pem -out {name}.p12 \
         -passout 'pass:{PASSWORD}' -name '{common_name}'"
    ));
}

impl Profile {
    /// The property list.
    pub fn list(&self, folder: &Folder) -> String {
        let Self { team, application, more, expires, get_task_allow, certificate } = self;
        let der = folder.sh(&format!("openssl x509 -in {certificate} -outform DER | base64 -w0"));
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>Name</key><string>Example Profile</string>
<key>UUID</key><string>5e6f0b1c-1111-2222-3333-444455556666</string>
<key>CreationDate</key><date>2026-01-01T00:00:00Z</date>
<key>ExpirationDate</key><date>{expires}</date>
<key>TeamIdentifier</key><array><string>{team}</string></array>
<key>TeamName</key><string>Example</string>
<key>DeveloperCertificates</key><array><data>{der}</data></array>
<key>Entitlements</key><dict>
<key>application-identifier</key><string>{application}</string>
<key>aps-environment</key><string>production</string>
<key>get-task-allow</key><{get_task_allow}/></dict>{more}
</dict></plist>"#
        )
    }

    /// The signed list.
    pub fn sign(&self, folder: &Folder) -> Vec<u8> {
        sign(folder, &self.list(folder), "")
    }
}

/// A message that the authority signed. `options` are for `openssl cms`.
pub fn sign(folder: &Folder, content: &str, options: &str) -> Vec<u8> {
    folder.write("content", content);
    folder.sh(&format!(
        "openssl cms -sign -binary -nodetach -signer ca.pem -inkey ca.key {options} \
         -outform DER -in content -out signed"
    ));
    folder.read("signed")
}

pub fn signing<'a>(p12: &'a [u8], profile: &'a [u8]) -> UploadedFiles<'a> {
    UploadedFiles::IosSigning { p12, password: PASSWORD, profile }
}
