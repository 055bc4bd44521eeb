//! The pages for people who have no account: who installs an app, and who has paid.
//!
//! They are served at the address of the service, by the program. They have no scripts, and take nothing
//! from elsewhere.

use actix_web::http::header::{self, HeaderMap};
pub use askama::Template;
use contract::{
    Timestamp,
    artifacts::{AppProfile, ArtifactKind, Distribution},
    checkouts::{CheckoutStatus, PaymentStatus},
    money::Money,
};
use messages::Messages;

/// The style of these pages, which stands in each.
pub(crate) const STYLE: &str = include_str!("../assets/public.css");

/// The page from which people install a release.
#[derive(Template)]
#[template(path = "public/install.html")]
pub struct InstallPage {
    pub messages: Messages,
    /// The title in the browser.
    pub title: String,
    /// The name of the app.
    pub name: String,
    pub version: String,
    pub now: Timestamp,
    pub channel: String,
    pub published_at: Option<Timestamp>,
    pub notes: Option<String>,
    /// What can be installed. Nothing: the release was taken back.
    pub files: Vec<InstallFile>,
    /// Whether iOS refuses the address of the service.
    pub needs_https: bool,
    /// The address of the page as a QR code, in SVG.
    pub code: String,
}

/// A file that people install.
pub struct InstallFile {
    pub kind: ArtifactKind,
    /// Where the button leads.
    pub address: String,
    pub name: String,
    /// In bytes.
    pub size: u64,
    pub sha256: String,
    /// Which devices install it, if its file says so.
    pub profile: Option<AppProfile>,
}

impl InstallPage {
    fn label(&self, file: &InstallFile) -> String {
        match file.kind {
            ArtifactKind::Ipa => self.messages.install_on_ios(),
            ArtifactKind::Apk => self.messages.install_on_android(),
            ArtifactKind::Aab => self.messages.download_bundle(),
        }
    }

    /// Which devices install a file.
    fn devices(&self, profile: &AppProfile) -> String {
        let count = profile.device_endings.len() as u64;
        match profile.distribution {
            Distribution::AppStore => self.messages.only_from_store(),
            Distribution::AdHoc | Distribution::Development => {
                self.messages.only_these_devices(count, self.messages.number(count))
            }
            Distribution::Enterprise => self.messages.any_device_of_company(),
        }
    }

    /// Until when an app with a profile opens.
    fn end(&self, profile: &AppProfile) -> Option<String> {
        if profile.distribution == Distribution::AppStore {
            return None;
        }
        let date = self.messages.date(profile.expires_at);
        Some(match profile.expires_at > self.now {
            true => self.messages.profile_ends(date),
            false => self.messages.profile_ended(date),
        })
    }
}

/// The page that tells a buyer whether their payment arrived. While that is not known, it loads itself
/// again.
#[derive(Template)]
#[template(path = "public/payment.html")]
pub struct PaymentPage {
    messages: Messages,
    title: String,
    status: CheckoutStatus,
}

impl PaymentPage {
    pub fn new(messages: Messages, status: CheckoutStatus) -> PaymentPage {
        let title = match status.status {
            PaymentStatus::Paid => messages.paid(),
            PaymentStatus::Pending => messages.pending(),
            PaymentStatus::Failed | PaymentStatus::Abandoned => messages.not_paid(),
        };
        PaymentPage { messages, title, status }
    }

    fn text(&self) -> String {
        let CheckoutStatus { amount, currency, status, .. } = &self.status;
        let total = Money { amount: *amount, currency: currency.clone() };
        let total = self.messages.money(&total);
        match status {
            PaymentStatus::Paid => self.messages.paid_text(total),
            PaymentStatus::Pending => self.messages.pending_text(total),
            PaymentStatus::Failed => self.messages.failed_text(total),
            PaymentStatus::Abandoned => self.messages.abandoned_text(total),
        }
    }
}

/// The page of a link that leads to nothing, or to nothing any more.
#[derive(Template)]
#[template(path = "public/nowhere.html")]
pub struct NowherePage {
    messages: Messages,
    title: String,
}

impl NowherePage {
    pub fn new(messages: Messages) -> NowherePage {
        NowherePage { messages, title: messages.not_found() }
    }
}

/// The sentences of the language that a browser asks for.
pub fn messages_of(headers: &HeaderMap) -> Messages {
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    Messages::accepted(accepted.unwrap_or_default())
}

/// A text as a QR code, in SVG.
pub fn qr_code(text: &str) -> String {
    let code = fast_qr::QRBuilder::new(text).build();
    code.map(|code| fast_qr::convert::svg::SvgBuilder::default().to_str(&code)).unwrap_or_default()
}
