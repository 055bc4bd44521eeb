//! What is stored of an account.

use contract::{Email, Name, OrganizationId, Timestamp, WebUrl, authentication::Tier};
use serde::{Deserialize, Deserializer, Serialize};

/// The stored state of an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// As the user typed it. A comparison ignores case.
    pub email: Email,
    pub name: Name,
    pub avatar_url: Option<WebUrl>,
    pub company: Option<Name>,
    /// Argon2id, in PHC format.
    pub password_hash: String,
    /// The tier that an administrator gave.
    pub tier: Tier,
    /// The tier that a subscription pays for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_tier: Option<Tier>,
    /// Whether the user is one of the platform's own administrators.
    pub superadmin: bool,
    /// Whether this is the account of the first administrator. There is one at most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_administrator: bool,
    /// Grows when all sessions end. A session of an earlier epoch is not valid.
    pub epoch: u32,
    /// The personal organization, created with the account.
    pub personal: OrganizationId,
    /// Keyed digests of the addresses that signed in, newest last.
    #[serde(default)]
    pub known_addresses: Vec<String>,
    /// Password resets under way. Earlier versions stored at most one, as `reset`.
    #[serde(default, alias = "reset", deserialize_with = "one_or_many")]
    pub resets: Vec<Reset>,
    /// Other e-mails that the user asked for, and that nobody has confirmed yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email_changes: Vec<EmailChange>,
    /// Grows when all deploy tokens end. A token of an earlier epoch is not valid; trusted publishers
    /// and webhooks of an earlier epoch are ended by [`EndReach`](super::rules::Effect::EndReach).
    #[serde(default)]
    pub token_epoch: u32,
    /// When `token_epoch` last grew.
    #[serde(default)]
    pub tokens_ended_at: Option<Timestamp>,
    /// The call that asks for [`EndReach`](super::rules::Effect::EndReach), until that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_reach: Option<Cause>,
    pub created_at: Timestamp,
    /// When the user last changed the profile or the password.
    pub updated_at: Timestamp,
}

/// A password reset under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reset {
    /// The digest of the token.
    pub digest: String,
    pub expires_at: Timestamp,
}

/// Another e-mail for an account, which its owner has to confirm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmailChange {
    pub email: Email,
    /// The digest of the token that was sent to it.
    pub digest: String,
    pub expires_at: Timestamp,
}

fn one_or_many<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Reset>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Resets {
        Many(Vec<Reset>),
        One(Option<Reset>),
    }
    Ok(match Resets::deserialize(d)? {
        Resets::Many(resets) => resets,
        Resets::One(reset) => reset.into_iter().collect(),
    })
}

/// The call that an entry of the audit log names for work after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    pub function: String,
    pub request_id: String,
}

impl Account {
    /// Sets the rate limit: the higher one of the tiers that were given and paid.
    pub fn tier(&self) -> Tier {
        self.paid_tier.map_or(self.tier, |paid| paid.max(self.tier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kinds::people::accounts::Accounts,
        runtime::resource::{Resource, Unique},
    };
    use serde_json::{Value, json};

    fn stored(reset: Value) -> Value {
        json!({
            "email": "ada@example.com", "name": "Ada", "avatar_url": null, "company": null,
            "password_hash": "$argon2id$", "tier": "free", "superadmin": false, "epoch": 3,
            "personal": "org_01J9ZQ8F5W7V3T6M2K4N8R0P1S", "devices": ["12ca17b49af2"],
            "reset": reset,
            "created_at": "2026-01-31T12:00:00.000Z", "updated_at": "2026-01-31T12:00:00.000Z",
        })
    }

    #[test]
    fn an_account_of_an_earlier_version_keeps_its_reset_and_its_claims() {
        let reset = json!({"digest": "abc", "expires_at": "2026-01-31T13:00:00.000Z"});
        let account: Account = serde_json::from_value(stored(reset)).unwrap();
        let claims = <Accounts as Resource>::claims(&account);
        let claims: Vec<_> = claims.iter().map(Unique::to_string).collect();
        assert_eq!(claims, ["email/ada@example.com", "reset/abc"]);
        let again: Account = serde_json::from_value(json!(account)).unwrap();
        assert_eq!(again, account);
        let account: Account = serde_json::from_value(stored(Value::Null)).unwrap();
        assert_eq!((account.resets, account.token_epoch), (vec![], 0));
    }
}
