//! Announcements: what the operators of the service tell everybody who uses it.

use crate::{AnnouncementId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Announcements";

    /// Tell everybody who uses the service something, such as when it is maintained.
    "svc_createAnnouncement": CreateAnnouncement {
        /// What the announcement says, 1 to 500 characters.
        text: AnnouncementText,
        /// How urgent the announcement is. The default is `info`.
        #[serde(default)]
        tone: AnnouncementTone,
        /// When the announcement ends, at most a year from now. Without it, the announcement stays until
        /// `svc_deleteAnnouncement`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    } -> Announcement
    { who: SuperAdmin, effect: Change, errors: [NotNow "20 announcements are in force, which is the most"] }

    /// List the announcements in force, newest first.
    "svc_getAnnouncements": GetAnnouncements {} -> AnnouncementList { who: User, effect: Read }

    /// Delete an announcement before it ends.
    "svc_deleteAnnouncement": DeleteAnnouncement {
        /// The id of the announcement, from `svc_getAnnouncements`.
        announcement_id: AnnouncementId,
    } -> DeletedAnnouncement
    { who: SuperAdmin, effect: Change }
}

records! {
    /// Something that the operators of the service tell everybody who uses it.
    pub struct Announcement {
        id: AnnouncementId,
        /// What the announcement says, 1 to 500 characters.
        text: AnnouncementText,
        /// How urgent it is: `warning` if whoever does not know it may lose work or time.
        tone: AnnouncementTone,
        /// When it ends. Null if it stays until it is deleted.
        until: Option<Timestamp>,
        created_at: Timestamp,
    }

    /// The announcements in force. There are at most 20.
    pub struct AnnouncementList { items: Vec<Announcement> }

    /// Which announcement is deleted.
    pub struct DeletedAnnouncement { deleted: AnnouncementId }
}

texts! {
    /// What an announcement says, 1 to 500 characters.
    AnnouncementText,
    schema: {"type": "string", "minLength": 1, "maxLength": 500},
    rule: |text| match text.trim().chars().count() {
        1..=500 => Ok(text.trim().to_owned()),
        _ => Err("must have 1 to 500 characters".into()),
    };
}

/// How urgent an announcement is. The default is `info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AnnouncementTone {
    /// It is good to know.
    #[default]
    Info,
    /// Whoever does not know it may lose work or time.
    Warning,
}
