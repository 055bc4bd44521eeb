//! The sentences of the fields that mean the same wherever they stand.
//!
//! A field whose meaning is its own has a doc comment where it is declared. Every other one is explained
//! here, by its name on the wire, for the OpenAPI document, the reference and the dashboard.

use serde_json::{Value, json};

/// The names, in alphabetical order, and what each of them says.
const MEANINGS: &[(&str, &str)] = &[
    ("appId", "The id of the app, from `listApps`."),
    ("artifactId", "The id of the file, from `svc_getArtifacts`."),
    ("artifactIds", "The ids of the files, from `svc_getArtifacts`."),
    ("at", "When it happened."),
    ("avatarUrl", "The address of a picture of the user."),
    ("backupId", "The id of the backup, from `svc_getBackups`."),
    ("buildId", "The id of the build, from `svc_getBuilds`."),
    ("channel", "The channel: the line of releases that a group of users follows, such as `beta`."),
    ("commit", "The commit of the repository, as its full hash."),
    ("company", "The company that the user works for."),
    (
        "cpuPercent",
        "The processor time in use, in percent of one processor. Null until there are two samples.",
    ),
    ("createdAt", "When it was made."),
    ("credentialId", "The id of the credential, from `svc_getCredentials`."),
    (
        "cursor",
        "Where the page begins: `nextCursor` of the page before it. Without it, the first page.",
    ),
    ("deleted", "The id of what was deleted."),
    ("deliveryId", "The id of the delivery, from `svc_getWebhookDeliveries`."),
    ("deploymentId", "The id of the deployment, from `listDeployments`."),
    ("email", "The address of the user's mail box. Capital letters make no difference."),
    ("engineId", "The id of the container engine, from `svc_admin_getEngines`."),
    ("expiresAt", "When it ceases to be valid."),
    ("finishedAt", "When it came to its end. Null while it goes on."),
    ("id", "Its id, by which functions name it. It never changes."),
    ("imageId", "The id of the registered image, from `searchDockerImages`."),
    ("instanceId", "The id of the instance, from `svc_getBackendInstances`."),
    ("items", "The items, in the order that the function names."),
    ("jobId", "The id of the image build, from `listBuildJobs`."),
    ("limit", "The maximum number of items on the page."),
    ("lines", "The lines of the log, the oldest first."),
    ("memoryBytes", "The memory in use, in bytes."),
    ("memoryLimitBytes", "The memory that may be used at most, in bytes."),
    ("memoryPercent", "The memory in use, in percent of its limit."),
    ("networkRxBytes", "Bytes received over the network since the start."),
    ("networkTxBytes", "Bytes sent over the network since the start."),
    ("organizationId", "The id of the organization, from `listOrganizations`."),
    ("pids", "The number of processes and threads."),
    ("platform", "The platform: `ios` or `android`."),
    ("projectId", "The id of the project, from `svc_getProjects`."),
    ("provider", "The payment provider."),
    ("publishedAt", "When it was published in its channel. Null before that."),
    ("reference", "The reference of the checkout, from `svc_checkout_create`."),
    ("releaseId", "The id of the release, from `svc_getReleases`."),
    ("sampledAt", "When the figures were taken."),
    ("sha256", "The SHA-256 of the bytes, in lower-case hexadecimal digits."),
    ("startedAt", "When its work began. Null before that."),
    ("templateId", "The id of the template, from `getTemplates`."),
    ("tier", "The tier of the account. It sets the rate limit."),
    ("updatedAt", "When it was last changed."),
    ("userId", "The id of the user."),
    ("webhookId", "The id of the webhook, from `svc_getWebhooks`."),
];

/// What a field with this name says wherever it stands. `None`: its meaning depends on the place.
pub fn meaning(name: &str) -> Option<&'static str> {
    let at = MEANINGS.binary_search_by_key(&name, |(known, _)| known).ok()?;
    MEANINGS.get(at).map(|(_, meaning)| *meaning)
}

/// Explains each field of the objects in a document that has no explanation of its own.
pub fn explain(document: &mut Value) {
    match document {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                for (name, schema) in properties {
                    let Value::Object(schema) = schema else { continue };
                    if let (None, Some(meaning)) = (schema.get("description"), meaning(name)) {
                        schema.insert("description".into(), json!(meaning));
                    }
                }
            }
            object.values_mut().for_each(explain);
        }
        Value::Array(items) => items.iter_mut().for_each(explain),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_stands_in_more_than_one_place() {
        let document = crate::openapi::document("https://svc.example.com", crate::PUBLISHED);
        let document = document.to_string();
        for (name, meaning) in MEANINGS {
            let told = format!("\"description\":{}", json!(meaning));
            assert!(document.matches(&told).count() > 1, "explain {name} where it is declared");
        }
    }

    #[test]
    fn names_are_found_and_explained_once() {
        assert!(MEANINGS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(meaning("cursor").is_some_and(|why| why.contains("nextCursor")));
        let own = json!({"description": "The source."});
        let mut document = json!({"properties": {"appId": own, "at": {}, "kind": {}}});
        explain(&mut document);
        let fields = &document["properties"];
        assert_eq!((&fields["appId"], &fields["kind"]), (&own, &json!({})));
        assert_eq!(fields["at"]["description"], "When it happened.");
    }
}
