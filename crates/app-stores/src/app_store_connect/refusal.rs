//! What Apple says when it refuses, and what somebody can do about it. Pure.
//!
//! Source: "Interpreting and Handling Errors" of Apple.

use remote::quotation;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The most reasons that are quoted.
const MOST_REASONS: usize = 12;
/// The longest quotation of a reason, in characters.
const LONGEST_REASON: usize = 400;

/// A refusal with its reasons. Where Apple names errors of other resources as the cause, such as
/// those of the version that is to be reviewed, they are the reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppleRefusal {
    status: u16,
    reasons: Vec<Reason>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Reason {
    code: String,
    text: String,
    /// The resource that it is about, such as `/v1/appDataUsages/`. Empty: the one of the request.
    about: String,
}

#[derive(Deserialize)]
struct Document {
    errors: Vec<Error>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    code: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    meta: Meta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    associated_errors: BTreeMap<String, Vec<Error>>,
}

impl AppleRefusal {
    /// The refusal in an answer. A body that is no list of errors is quoted.
    pub fn read(status: u16, body: &[u8]) -> AppleRefusal {
        let mut reasons = Vec::new();
        match serde_json::from_slice::<Document>(body) {
            Ok(document) => document.errors.into_iter().for_each(|e| collect(e, "", &mut reasons)),
            Err(_) => {
                reasons.push(Reason { text: quotation(body), ..Reason::default() });
            }
        }
        // A lack in every language is said once.
        let mut different: Vec<Reason> = Vec::new();
        for reason in reasons {
            if !different.contains(&reason) && different.len() < MOST_REASONS {
                different.push(reason);
            }
        }
        AppleRefusal { status, reasons: different }
    }

    /// Whether a reason has this code.
    pub fn has(&self, code: &str) -> bool {
        self.reasons.iter().any(|reason| reason.code == code)
    }

    /// Whether what was asked about does not exist.
    pub fn is_absence(&self) -> bool {
        self.status == 404
    }

    /// What to do, then Apple's words and codes.
    pub fn text(&self) -> String {
        let mut advice: Vec<&str> = Vec::new();
        for one in self.reasons.iter().filter_map(|reason| advice_for(self.status, reason)) {
            if !advice.contains(&one) {
                advice.push(one);
            }
        }
        let said: Vec<_> = self.reasons.iter().map(Reason::said).collect();
        let lead = advice.join(" ");
        let gap = if lead.is_empty() { "" } else { " " };
        format!("{lead}{gap}Apple answers {}: {}", self.status, said.join(" · "))
    }
}

impl Reason {
    fn said(&self) -> String {
        let text = self.text.trim_end_matches('.');
        if self.code.is_empty() { text.to_owned() } else { format!("{text} ({})", self.code) }
    }
}

fn collect(error: Error, about: &str, into: &mut Vec<Reason>) {
    if !error.meta.associated_errors.is_empty() {
        for (about, errors) in error.meta.associated_errors {
            errors.into_iter().for_each(|e| collect(e, about.trim_end_matches('/'), into));
        }
        return;
    }
    let text = if error.detail.is_empty() { error.title } else { error.detail };
    let text = text.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
    // The ids of resources differ by language; the reason is the same.
    let about = about.split('/').take(3).collect::<Vec<_>>().join("/");
    into.push(Reason { code: error.code, text, about });
}

/// What somebody can do, as one sentence.
fn advice_for(status: u16, reason: &Reason) -> Option<&'static str> {
    let (code, about) = (reason.code.as_str(), reason.about.as_str());
    let says = |word: &str| reason.text.contains(word);
    let lacks = |word: &str| code == "ENTITY_ERROR.ATTRIBUTE.REQUIRED" && says(word);
    Some(match code {
        "FORBIDDEN.REQUIRED_AGREEMENTS_MISSING_OR_EXPIRED" => {
            "The account holder must accept Apple's latest agreements at \
             https://appstoreconnect.apple.com/business."
        }
        "STATE_ERROR.CONCURRENT_REVIEW_SUBMISSION_LIMIT_EXCEEDED" => {
            "Too many submissions are unfinished: submit or cancel some in App Store Connect, under \
             App Review."
        }
        "STATE_ERROR.ITEM_PART_OF_ANOTHER_SUBMISSION" => {
            "The version is part of another submission: finish or cancel it in App Store Connect, \
             under App Review."
        }
        _ if about.contains("appDataUsages") => {
            "Answer the questions on app privacy in App Store Connect, and publish the answers."
        }
        _ if says("creenshot") => {
            "Add the missing screenshots to the version in App Store Connect."
        }
        _ if lacks("whatsNew") => "Every language of the version needs release notes.",
        _ if lacks("description") => "Every language of the version needs a description.",
        _ if lacks("keywords") => "Every language of the version needs keywords.",
        _ if lacks("supportUrl") => "Every language of the version needs a support URL.",
        _ if lacks("copyright") => "The version needs a copyright line.",
        _ if lacks("contentRightsDeclaration") => {
            "Declare in App Store Connect, under App Information, whether the app shows content of \
             others."
        }
        _ if says("ge rating") || about.contains("ageRating") => {
            "Answer the questions on the age rating in App Store Connect, under App Information."
        }
        _ if says("rimary category") || lacks("primaryCategory") => {
            "Choose a primary category in App Store Connect, under App Information."
        }
        _ if about.contains("appPrice") => {
            "Choose a price, or free of charge, in App Store Connect, under Pricing."
        }
        _ if about.contains("appStoreReviewDetails") => {
            "Complete the contact for App Review in the version in App Store Connect."
        }
        _ if says("create a new version of the App") => {
            "Another version of the app is not finished: release it, or remove it from review, in \
             App Store Connect."
        }
        _ if status == 401 => {
            "Apple does not accept the key: it was revoked, its issuer id or private key belongs to \
             another key, or the clock of this machine is wrong."
        }
        _ if status == 403 => {
            "The role of the key does not allow this: give it the role App Manager in App Store \
             Connect, under Users and Access."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(status: u16, body: serde_json::Value) -> String {
        AppleRefusal::read(status, body.to_string().as_bytes()).text()
    }

    #[test]
    fn the_errors_of_a_submission_are_one_sentence_each() {
        let required = |what: &str| {
            json!({"status": "409", "code": "ENTITY_ERROR.ATTRIBUTE.REQUIRED", "title": "A required \
            attribute is missing", "detail": format!("You must provide a value for the attribute \
            '{what}' with this request")})
        };
        let text = text(
            409,
            json!({"errors": [{
                "status": "409", "code": "STATE_ERROR.ENTITY_STATE_INVALID",
                "title": "appStoreVersions with id '1' is not in valid state.",
                "detail": "This resource cannot be reviewed, please check associated errors to see why.",
                "meta": {"associatedErrors": {
                    "/v1/appStoreVersionLocalizations/1": [required("whatsNew")],
                    "/v1/appStoreVersionLocalizations/2": [required("whatsNew"), required("keywords")],
                    "/v1/appDataUsages/": [{"code": "STATE_ERROR.APP_DATA_USAGES_REQUIRED",
                        "title": "Answers are needed", "detail": "Answers are needed."}],
                }},
            }]}),
        );
        assert_eq!(
            text,
            "Answer the questions on app privacy in App Store Connect, and publish the answers. \
             Every language of the version needs release notes. Every language of the version needs \
             keywords. Apple answers 409: Answers are needed (STATE_ERROR.APP_DATA_USAGES_REQUIRED) \
             · You must provide a value for the attribute 'whatsNew' with this request \
             (ENTITY_ERROR.ATTRIBUTE.REQUIRED) · You must provide a value for the attribute \
             'keywords' with this request (ENTITY_ERROR.ATTRIBUTE.REQUIRED)"
        );
    }

    #[test]
    fn a_refusal_that_is_no_list_of_errors_is_quoted() {
        let refusal = AppleRefusal::read(413, b"<html>\n too large </html>");
        assert_eq!(refusal.text(), "Apple answers 413: <html> too large </html>");
    }
}
