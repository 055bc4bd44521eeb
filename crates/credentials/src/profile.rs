//! Provisioning profiles: property lists that Apple signed.
//!
//! Source: Apple, TN3125 "Inside Code Signing: Provisioning Profiles".

use std::time::{SystemTime, UNIX_EPOCH};

use app_inspect::cms::{self, CmsError};
use contract::Timestamp;
use plist::stream::{Event, Reader};
use plist::{Dictionary, Value};

use crate::ber;
use crate::certificate::printable;
use crate::facts::{InstallsOn, ProfileFacts, ProfileKind};
use crate::identity::check_size;
use crate::looks::Looks;
use crate::refusal::{File, Refusal, quote};

/// Most levels of a list. Profiles have four.
const MAX_DEPTH: usize = 16;
/// The devices on which an app can be installed, by their UDID.
const DEVICES: &str = "ProvisionedDevices";
/// Longest text that is kept, in characters.
const LONGEST_TEXT: usize = 255;

/// A profile whose signature covers it. The signer is not judged.
pub(crate) struct Profile {
    pub(crate) facts: ProfileFacts,
    /// The certificates that may sign apps with this profile, in DER.
    pub(crate) certificates: Vec<Vec<u8>>,
    /// Such as `iOS`. Old profiles have none.
    pub(crate) platforms: Vec<String>,
}

impl Profile {
    pub(crate) fn open(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::read(&Fields(&content(bytes)?))
    }

    fn read(fields: &Fields) -> Result<Self, Refusal> {
        let missing = |field| move || Refusal::IncompleteProfile { field };
        let entitlements = fields.0.get("Entitlements").and_then(Value::as_dictionary);
        let entitlements = Fields(entitlements.ok_or_else(missing("entitlements"))?);
        let application = entitlements.text("application-identifier");
        let application = application.ok_or_else(missing("application identifier"))?;
        let (_, bundle_id) =
            application.split_once('.').ok_or_else(missing("application identifier"))?;

        let certificates: Vec<Vec<u8>> = fields
            .all("DeveloperCertificates")
            .filter_map(|certificate| certificate.as_data().map(<[u8]>::to_vec))
            .collect();
        if certificates.is_empty() {
            return Err(missing("certificates")());
        }
        let get_task_allow = entitlements.flag("get-task-allow");
        let facts = ProfileFacts {
            name: fields.text("Name").ok_or_else(missing("name"))?,
            uuid: fields.text("UUID").ok_or_else(missing("UUID"))?,
            team_id: fields
                .all("TeamIdentifier")
                .find_map(Value::as_string)
                .map(short)
                .ok_or_else(missing("team"))?,
            team_name: fields.text("TeamName"),
            bundle_id: bundle_id.to_owned(),
            kind: kind(fields, get_task_allow),
            devices: fields.all(DEVICES).count() as u64,
            created_at: fields.moment("CreationDate"),
            expires_at: fields.moment("ExpirationDate").ok_or_else(missing("date of expiry"))?,
            get_task_allow,
            aps_environment: entitlements.text("aps-environment"),
        };
        let platforms = fields.all("Platform").filter_map(Value::as_string).map(short).collect();
        Ok(Self { facts, certificates, platforms })
    }

    /// Refuses a profile that has expired, or that is not for iOS.
    pub(crate) fn check(&self, now: Timestamp) -> Result<(), Refusal> {
        let name = || quote(&self.facts.name);
        if now > self.facts.expires_at {
            return Err(Refusal::ProfileExpired {
                name: name(),
                expired_at: self.facts.expires_at,
            });
        }
        if !self.platforms.is_empty() && !self.platforms.iter().any(|platform| platform == "iOS") {
            let platforms = quote(&self.platforms.join(", "));
            return Err(Refusal::OtherPlatform { name: name(), platforms });
        }
        Ok(())
    }
}

/// See [`crate::installs_on`].
pub(crate) fn installs_on(profile: &[u8]) -> Option<InstallsOn> {
    let fields = content(profile).ok()?;
    let fields = Fields(&fields);
    let entitlements = fields.0.get("Entitlements").and_then(Value::as_dictionary)?;
    Some(InstallsOn {
        kind: kind(&fields, Fields(entitlements).flag("get-task-allow")),
        devices: fields.all(DEVICES).filter_map(Value::as_string).map(short).collect(),
        expires_at: fields.moment("ExpirationDate")?,
    })
}

fn kind(fields: &Fields, get_task_allow: bool) -> ProfileKind {
    if fields.flag("ProvisionsAllDevices") {
        ProfileKind::Enterprise
    } else if get_task_allow {
        ProfileKind::Development
    } else if fields.0.contains_key(DEVICES) {
        ProfileKind::AdHoc
    } else {
        ProfileKind::AppStore
    }
}

/// The property list in a profile, whose signature covers it.
fn content(bytes: &[u8]) -> Result<Dictionary, Refusal> {
    check_size(File::Profile, bytes)?;
    let not_a_profile = || Refusal::NotAProfile { looks: Looks::of(bytes) };
    let der = ber::to_der(bytes).ok_or_else(not_a_profile)?;
    let content = cms::open_enclosed(&der).map_err(|error| match error {
        CmsError::Malformed if Looks::of(bytes) == Looks::SignedMessage => {
            Refusal::Damaged { file: File::Profile }
        }
        CmsError::Malformed => not_a_profile(),
        CmsError::Unsupported => Refusal::UnsupportedSignature,
        CmsError::OtherMessage | CmsError::Forged => Refusal::ProfileAltered,
    })?;
    read_list(content).ok_or_else(|| {
        let looks = Looks::of(content);
        if looks == Looks::PropertyList {
            Refusal::Damaged { file: File::Profile }
        } else {
            not_a_profile()
        }
    })
}

/// The dictionary at the top of a list in XML.
fn read_list(bytes: &[u8]) -> Option<Dictionary> {
    // Only XML: a few bytes of a binary list could describe an endless tree.
    bytes.trim_ascii_start().starts_with(b"<").then_some(())?;
    let mut depth: usize = 0;
    let mut too_deep = false;
    let events = Reader::new(std::io::Cursor::new(bytes)).take_while(|event| {
        match event {
            Ok(Event::StartArray(_) | Event::StartDictionary(_)) => depth += 1,
            Ok(Event::EndCollection) => depth = depth.saturating_sub(1),
            _ => {}
        }
        // A deeper tree would overflow the stack when it is dropped.
        too_deep |= depth > MAX_DEPTH;
        !too_deep
    });
    Value::from_events(events).ok()?.into_dictionary()
}

/// A dictionary, and its values by type.
struct Fields<'a>(&'a Dictionary);

impl<'a> Fields<'a> {
    /// A text that is not empty.
    fn text(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_string().filter(|text| !text.is_empty()).map(short)
    }

    fn flag(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_boolean).unwrap_or_default()
    }

    /// The items of an array.
    fn all(&self, key: &str) -> impl Iterator<Item = &'a Value> {
        self.0.get(key).and_then(Value::as_array).into_iter().flatten()
    }

    fn moment(&self, key: &str) -> Option<Timestamp> {
        let time = SystemTime::from(self.0.get(key)?.as_date()?);
        let seconds = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_secs()).ok()?,
            Err(before) => i64::try_from(before.duration().as_secs()).ok()?.checked_neg()?,
        };
        Some(printable(seconds))
    }
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}
