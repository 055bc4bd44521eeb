//! The values of examples.

use serde_json::{Value, json};

/// The fields that are null while nothing is wrong, and those at the end of a list.
const FAILURES: &[&str] = &[
    "deletedAt",
    "deprecationReason",
    "disabledReason",
    "dispute",
    "error",
    "givenUp",
    "lastError",
    "lastPanic",
    "nextCursor",
    "outdated",
    "problem",
    "renewalFailure",
    "restore",
    "revokedAt",
];

/// Whether a field is null while nothing is wrong.
pub(super) fn tells_of_a_failure(name: &str) -> bool {
    FAILURES.contains(&name)
}

/// A number for a field with this name.
pub(super) fn number(name: &str, schema: &Value) -> Value {
    match name {
        "size" => 48_318_022.into(),
        "port" => 49_153.into(),
        "memoryMb" => 512.into(),
        "amount" | "unitAmount" => 1_250.into(),
        _ => {
            let least = schema.get("minimum").cloned().filter(|least| least.as_f64() != Some(0.0));
            least.unwrap_or_else(|| json!(1))
        }
    }
}

/// A text for a field with this name, of the form that its type asks for.
pub(super) fn text(name: &str, type_name: &str, schema: &Value) -> String {
    let of = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(prefix) = of("pattern").and_then(id_prefix) {
        return format!("{prefix}01J9ZQ8F5W7V3T6M2K4N8R0P1S");
    }
    match of("format") {
        Some("email") => return "ada@example.com".into(),
        Some("uri") => return "https://example.com/".into(),
        Some("date-time") => return "2026-01-31T12:00:00.000Z".into(),
        Some("password") => return "correct horse".into(),
        _ => {}
    }
    let special = (name == "company").then_some("Acme");
    special.or_else(|| by_type(type_name)).or_else(|| by_name(name)).unwrap_or("example").into()
}

fn by_type(type_name: &str) -> Option<&'static str> {
    Some(match type_name {
        "AccessToken" => "ghp_0123456789",
        "CertificatePem" => "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "Channel" => "production",
        "CountryCode" => "DE",
        "CronExpression" => "30 3 * * *",
        "Currency" => "EUR",
        "Description" => "The app of our shop",
        "EngineAddress" => "10.0.0.21:2376",
        "FileData" => "dG9rZW4=",
        "FileName" => "app-release.apk",
        "FirebaseAppId" => "1:1234567890:android:0123abcd",
        "GitRef" => "main",
        "GitUrl" => "https://example.com/team/app.git",
        "HostId" => "1296269",
        "HostName" => "shop.example.com",
        "HttpPath" => "/health",
        "IdentityToken" => "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJzdmMifQ.c2lnbmF0dXJl",
        "ImageDigest" => "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "ImageRepository" => "parseplatform/parse-server",
        "Name" | "NewName" => "Shop",
        "Notes" => "Fixes a crash at the start.",
        "PlanCode" => "PLN_monthly",
        "PrivateAddress" => "10.0.0.21",
        "PrivateKeyPem" => "-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----",
        "Reason" => "1.4.1 has a known weakness",
        "RefPattern" => "refs/heads/main",
        "RepositoryName" => "acme/app",
        "RunnerKey" => "0123456789abcdefghij",
        "SemanticVersion" | "VersionName" | "ImageTag" => "1.4.2",
        "Sha256" => "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "Slug" => "my-app",
        "SshFingerprint" => "SHA256:uNiVztksCsDhcc0u9e8BrqJXVDpN4zlRfEJq2n+8mVY",
        "SshHostKey" | "SshPublicKey" => {
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
        }
        "StoreIdentifier" => "com.example.shop",
        "TrackName" => "internal",
        "WebhookEventType" => "release.published",
        "WorkflowFile" => "build.yml",
        "WorkflowPath" => "acme/ci/.github/workflows/build.yml",
        _ => return None,
    })
}

fn by_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "acceptToken" | "invitation" => "svc_inv_0123456789",
        "accessCode" => "0peioxfhpn",
        "address" => "203.0.113.7",
        "adminToken" => "vendure-token",
        "alias" => "upload",
        "artifact" => "app-release.apk",
        "branch" => "main",
        "buildNumber" => "142",
        "bundleId" => "com.example.shop",
        "certificateError" => "the name leads to another machine",
        "check" => "manifest",
        "checkMessage" => "the channel answers",
        "clientEmail" => "releases@example.iam.gserviceaccount.com",
        "command" => "svc login",
        "commit" => "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "countsUnavailable" => "the database does not answer",
        "cursor" => "7a7a7a7a",
        "databases" => "shop",
        "description" => "The app of our shop",
        "detail" => "the store is whole",
        "deviceEndings" => "4E5F6A",
        "dockerfile" => "Dockerfile",
        "environment" => "production",
        "events" => "push",
        "fileName" => "app-release.apk",
        "fix" => "Add the file to the repository.",
        "function" => "createApp",
        "functionName" => "hello",
        "functions" => "hello",
        "groups" => "testers",
        "hint" => "Install the app from the link.",
        "imageDigest" => "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "imageRef" => "parseplatform/parse-server:9.4.0",
        "issuer" => "https://token.actions.githubusercontent.com",
        "issuerId" => "57246542-96fe-1a63-e053-0824d011072a",
        "keyHint" => "sk_live_…9f2c",
        "keyId" => "2X9R4HXF34",
        "kind" => "app",
        "lastLog" | "logTail" | "log" => "Server running on port 1337",
        "message" => "index out of bounds",
        "method" => "POST",
        "name" => "Shop",
        "notes" => "Fixes a crash at the start.",
        "orderCode" => "K7Q2M9XW",
        "passwordSecret" => "POSTGRES_PASSWORD",
        "path" => "package.json",
        "payload" => "{}",
        "plainEnv" => "LOG_LEVEL",
        "planCode" | "paymentPlanCode" => "PLN_monthly",
        "privateKey" => "-----BEGIN OPENSSH PRIVATE KEY-----",
        "problem" => "the file is missing",
        "projectId" => "shop-1234",
        "providerId" => "SUB_vsyqdmlzble3uii",
        "providerPaymentId" => "4099260516",
        "providerStatus" => "active",
        "query" => "shop",
        "ref" => "refs/heads/main",
        "recordName" => "_svc-domain.shop.example.com",
        "recordText" => "svc-domain=Rv7yfFFkxHmTCimXzlScrfnMw8cQeuLq",
        "remoteId" => "6448311069",
        "reply" => "ok",
        "repository" => "acme/app",
        "repositoryId" => "1296269",
        "repositoryOwnerId" => "583231",
        "requestId" => "req_0123456789abcdef",
        "resource" => "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
        "resourceName" => "Shop",
        "runnerEnvironment" => "github-hosted",
        "scratch" => "/tmp",
        "secret" => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "serverVersion" => "16.4",
        "sessionToken" => "r:0123456789abcdef",
        "settledByHand" => "paid in cash",
        "signerWorkflow" => "acme/app/.github/workflows/build.yml@refs/heads/main",
        "storeState" => "READY_FOR_SALE",
        "subject" => "CN=Shop, O=Acme, C=DE",
        "summary" => "1 of 1 done",
        "teamId" => "ABCDE12345",
        "text" => "Done.",
        "token" => "svc_dt_0123456789",
        "user" => "1000:1000",
        "userAgent" => "Mozilla/5.0",
        "uuid" => "8d2c8a2e-6f0a-4a86-9d0b-2f1f7d6d8c11",
        "version" => "1.4.2",
        "volume" => "data",
        "warnings" => "the profile ends in 20 days",
        "within" => "Acme",
        "workflow" => "acme/app/.github/workflows/build.yml@refs/heads/main",
        name if name.ends_with("rl") => "https://example.com/",
        _ => return None,
    })
}

/// The beginning of an id: `app_` of `^app_[0-9A-HJKMNP-TV-Z]{26}$`.
fn id_prefix(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('^')?.strip_suffix("[0-9A-HJKMNP-TV-Z]{26}$")
}
