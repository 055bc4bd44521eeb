//! Reports of hosts of repositories.

use crate::repositories::PushReceived;

edge_endpoints! {
    group RepositoryWebhooks "Webhooks of repositories";

    /// Report a push to the connected repository of an app. The service then checks it again.
    ///
    /// The host of the repository sends it: GitHub, Gitea and GitLab know how to. Address and secret
    /// come from `svc_getRepositoryWebhook`.
    "repositoryPush": Post "/api/v1/repositories/{appId}/push" => RepositoryPush
    {
        access: Anyone,
        reads: [
            "X-Hub-Signature-256" "`sha256=` and the HMAC-SHA256 of the body with the secret, in hexadecimal (GitHub, Gitea)",
            "X-Gitlab-Token" "the secret (GitLab)",
        ],
        body: Media("application/json"),
        answers: [202 Json(PushReceived) "The check begins, or the push was to another branch."],
        errors: [
            Unauthenticated "the signature or the secret is wrong, or the app has no repository",
            NotFound "the address has no id of an app",
            Invalid "the body is not JSON",
            TooLarge "the body exceeds the limit",
        ],
    }
}
