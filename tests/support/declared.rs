//! The functions in the OpenAPI document, and valid parameters for each.

use crate::support::service::{Person, Service};
use serde_json::{Map, Value, json};

/// A function in the document.
pub struct Declared {
    pub name: String,
    pub standing: String,
    pub scope: Option<String>,
    /// Whether any deploy token may call it.
    pub any_token: bool,
    /// The name and the schema of each parameter, and whether it is required.
    pub fields: Vec<(String, Value, bool)>,
}

/// All functions of the document, with resolved schemas.
pub fn declared(service: &Service) -> Vec<Declared> {
    let document: Value =
        service.http.get(format!("{}/openapi.json", service.url)).send().unwrap().json().unwrap();
    let resolve = |schema: &Value| match schema["$ref"].as_str() {
        Some(to) => document.pointer(to.trim_start_matches('#')).unwrap().clone(),
        None => schema.clone(),
    };
    let mut functions = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(name) = path.strip_prefix("/functions/") else { continue };
        let operation = &item["post"];
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let required: Vec<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let fields = properties.into_iter().map(|(field, schema)| {
            let is_required = required.contains(&field.as_str());
            let mut schema = match schema["anyOf"].as_array() {
                Some(choices) => resolve(&choices[0]),
                None => resolve(&schema),
            };
            if schema.get("items").is_some() {
                schema["items"] = resolve(&schema["items"]);
            }
            (field, schema, is_required)
        });
        functions.push(Declared {
            name: name.to_owned(),
            standing: operation["x-required-role"].as_str().unwrap().to_owned(),
            scope: operation["x-scopes"][0]["scope"].as_str().map(str::to_owned),
            any_token: operation["security"]
                .as_array()
                .is_some_and(|ways| ways.contains(&json!({"deployToken": []}))),
            fields: fields.collect(),
        });
    }
    assert!(functions.len() > 30, "the document lists the functions");
    functions
}

/// Existing resources, and people with every standing.
pub struct Scene {
    pub ids: Map<String, Value>,
    pub owner: Person,
    pub admin: Person,
    pub supervisor: Person,
    /// A member of the organization whom the project lists.
    pub listed: Person,
    /// A member of the organization whom the project does not list.
    pub client: Person,
    /// A member of the organization who created the project, and whom it does not list.
    pub creator: Person,
    pub stranger: Person,
    pub superadmin: Person,
    /// A deploy token of the owner, bound to the app, only for uploads.
    pub token: Person,
    /// The same kind of token, bound to another app.
    pub other_token: Person,
}

pub fn scene(service: &Service) -> Scene {
    let names = ["owner", "admin", "supervisor", "listed", "client", "creator", "stranger"];
    let [owner, admin, supervisor, listed, client, creator, stranger] =
        names.map(|n| service.register(n));
    let call = |who: &Person, function: &str, params: Value| {
        service.call(Some(who), function, params).ok()
    };
    let organization = call(&owner, "createOrganization", json!({"name": "Acme"}))["id"].clone();
    for (person, role) in [
        (&admin, "admin"),
        (&supervisor, "supervisor"),
        (&listed, "client"),
        (&client, "client"),
        (&creator, "client"),
    ] {
        let invited = json!({"organizationId": organization, "email": person.email, "role": role});
        let token = call(&owner, "inviteMember", invited)["acceptToken"].clone();
        call(person, "acceptInvitation", json!({"token": token}));
    }
    let (project, app) = service.project_with_app(&creator, Some(&organization));
    call(&owner, "svc_updateProject", json!({"projectId": project, "memberIds": [listed.id]}));
    let artifact = service.upload(&owner, &app, "sample.apk", "1.4.2")["id"].clone();
    let release = json!({"appId": app, "artifactIds": [artifact], "version": "1.4.2", "channel": "production"});
    let release = call(&owner, "svc_createRelease", release)["id"].clone();
    let other_app =
        call(&owner, "createApp", json!({"projectId": project, "name": "Other"}))["id"].clone();
    // Nothing answers there; the repository is connected all the same.
    let repository = json!({"appId": app, "url": "https://127.0.0.1:1/team/app.git"});
    call(&owner, "svc_connectRepository", repository);
    let build = json!({"appId": app, "platform": "android"});
    let build = call(&owner, "svc_triggerBuild", build);
    let trusted = json!({"appId": app, "repository": "acme/app", "workflow": "svc-build.yml"});
    let trusted = call(&owner, "svc_addTrustedPublisher", trusted);
    let credential = json!({"appId": app, "kind": "repositoryHost", "name": "git.example.com", "data": "dG9rZW4="});
    let credential = call(&owner, "svc_setCredential", credential);
    let webhook = json!({"organizationId": organization, "url": "https://hooks.example.com/svc"});
    let webhook = call(&owner, "svc_createWebhook", webhook)["webhook"]["id"].clone();
    let delivery = call(&owner, "svc_testWebhook", json!({"webhookId": webhook}));
    let token = |app: &Value| {
        service
            .with_token(&owner, json!({"name": "ci", "appId": app, "scopes": ["artifact:upload"]}))
    };
    let (token, other_token) = (token(&app), token(&other_app));
    let template = call(&owner, "getTemplate", json!({"slug": "parse-server-postgresql"}));
    let instance = json!({"projectId": project, "appId": app, "name": "Backend"});
    let instance = call(&owner, "svc_createBackendInstance", instance);
    let deleted = json!({"projectId": project, "appId": other_app, "name": "Deleted"});
    let deleted = call(&owner, "svc_createBackendInstance", deleted);
    call(&owner, "svc_deleteBackendInstance", json!({"instanceId": deleted["id"]}));
    let deployment = json!({"appId": app, "source": {"templateVersion": "1.0.2"}});
    let deployment = call(&owner, "triggerDeployment", deployment);
    let tokens = call(&owner, "svc_getDeployTokens", json!({"appId": app}));
    let sessions = call(&owner, "svc_getSessions", json!({}));
    let invited =
        json!({"organizationId": organization, "email": "late@example.com", "role": "client"});
    let invited = call(&owner, "inviteMember", invited);
    let superadmin = service.administrator();
    let announcement = call(&superadmin, "svc_createAnnouncement", json!({"text": "Hello"}));
    let ids = json!({
        "organizationId": organization,
        "projectId": project,
        "appId": app,
        "artifactId": artifact,
        "artifactIds": [artifact],
        "addArtifactIds": [artifact],
        "releaseId": release,
        "toReleaseId": release,
        "tokenId": tokens["items"][0]["id"],
        "sessionId": sessions["items"][0]["id"],
        "invitationId": invited["id"],
        "userId": admin.id,
        "memberIds": [listed.id],
        "organizationIds": [organization],
        "appIds": [app],
        "actorId": project,
        "instanceId": instance["id"],
        "deletedInstanceId": deleted["id"],
        "templateId": template["id"],
        // Backups need an engine; see the tests of backups.
        "backupId": "bak_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
        "fromBackupId": null,
        "deploymentId": deployment["id"],
        "toDeploymentId": deployment["id"],
        "buildId": build["id"],
        "runner": "0123456789abcdefghij",
        "publisherId": trusted["id"],
        "webhookId": webhook,
        "deliveryId": delivery["id"],
        "jobId": "job_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
        "source": {"templateVersion": "1.0.2"},
        "target": "backend",
        "parameters": {},
        "engineId": "eng_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
        "imageId": template["versions"][0]["services"][0]["imageId"],
        "services": template["versions"][0]["services"],
        "env": {"LOG_LEVEL": "info"},
        "resources": {"memoryMb": 512, "cpus": 1.0},
        "pricing": {"model": "free"},
    });
    let of_repositories = json!({
        "repository": "acme/another",
        "workflow": "build.yml",
        "repositoryId": "7",
        "repositoryOwnerId": "8",
        "installationId": "9",
        "attestedBy": "acme/ci/.github/workflows/build.yml",
        // For ssh addresses only.
        "hostKey": null,
        "issuer": null,
        "credentialId": credential["id"],
        "data": "dG9rZW4=",
        "options": {},
        // Checkouts need a payment provider; see the tests of checkouts.
        "reference": "chk-01J9ZQ8F5W7V3T6M2K4N8R0P1S",
        "amount": null,
        "lineItems": [{"name": "Tea", "unitAmount": 450, "quantity": 2}],
        "currency": "EUR",
        "customer": {"email": "buyer@example.com"},
        "paymentPlanCode": null,
        "shippingAddress": null,
        "shippingMethod": null,
        "metadata": {"cart": "7"},
        "channelToken": "a-channel",
        "announcementId": announcement["id"],
        // A service without TLS has no certificate.
        "domainId": call(&owner, "svc_addDomain", json!({"appId": app, "hostName": "own.example.com"}))["id"],
        "hostName": "shop.example.com",
        "certificateId": format!("crt_{}", "0".repeat(26)),
    });
    let (Value::Object(mut ids), Value::Object(more)) = (ids, of_repositories) else {
        unreachable!()
    };
    ids.extend(more);
    Scene {
        ids,
        owner,
        admin,
        supervisor,
        listed,
        client,
        creator,
        stranger,
        superadmin,
        token,
        other_token,
    }
}

/// A valid value for a parameter: the id of an existing resource for the name of the field, else a
/// value that the schema allows.
fn value(scene: &Scene, function: &str, field: &str, schema: &Value) -> Value {
    if (function, field) == ("triggerDockerBuild", "source") {
        return json!({"git": {"url": "https://git.example.com/app.git"}});
    }
    match (function, field) {
        ("svc_claimBuild", "labels") => return json!(["android"]),
        ("svc_admin_addEngine" | "svc_admin_updateEngine", "labels") | (_, "engineLabels") => {
            return json!({"region": "eu"});
        }
        ("svc_admin_addEngine", "address") => return json!("127.0.0.1:9"),
        ("svc_admin_addEngine", "privateAddress") => return json!("10.0.0.21"),
        ("svc_admin_addEngine" | "svc_admin_updateEngine", "authority" | "certificate") => {
            return json!("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----");
        }
        ("svc_admin_addEngine" | "svc_admin_updateEngine", "key") => {
            return json!("-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----");
        }
        ("svc_addTrustedPublisher", "events") => return json!(["push"]),
        ("svc_addTrustedPublisher", "ref") => return json!("refs/heads/main"),
        ("svc_setCredential", "kind") => return json!("repositoryHost"),
        // For other kinds of credentials.
        (
            "svc_setCredential",
            "password" | "profile" | "alias" | "keyPassword" | "keyId" | "issuerId",
        ) => return Value::Null,
        _ => {}
    }
    let field = match (function, field) {
        ("svc_undeleteBackendInstance", "instanceId") => "deletedInstanceId",
        (_, field) => field,
    };
    if let Some(id) = scene.ids.get(field) {
        return id.clone();
    }
    if let Some(choices) = schema["enum"].as_array() {
        return choices[0].clone();
    }
    let is = |kind: &str| {
        schema["type"] == kind
            || schema["type"].as_array().is_some_and(|t| t.contains(&json!(kind)))
    };
    match schema["format"].as_str() {
        Some("email") => return json!("somebody@example.com"),
        Some("date-time") => return json!("2999-01-31T12:00:00.000Z"),
        Some("uri") => return json!("https://example.com/x"),
        Some("password") => return json!("another horse"),
        _ => {}
    }
    match schema["pattern"].as_str() {
        Some(pattern) if pattern.contains("_[0-9A-HJKMNP-TV-Z]{26}") => {
            panic!("{function}: teach this test an object for the field {field}")
        }
        Some(pattern) if pattern.starts_with("^(https?://") => {
            return json!("https://example.com/x");
        }
        Some(pattern) if pattern.starts_with("^sha256:") => {
            return json!(format!("sha256:{}", "0".repeat(64)));
        }
        Some(pattern) if pattern.starts_with("^[A-Za-z_]") => return json!("aName"),
        Some(pattern) if pattern.starts_with("^[0-9*/,") => return json!("30 3 * * *"),
        Some(pattern) if pattern.starts_with("^[a-z0-9]([a-z0-9-]") => return json!("a-name"),
        Some(pattern) if pattern.starts_with("^(0|[1-9]") => return json!("1.4.2"),
        Some(pattern) if pattern.contains(":[0-9]+)?/)?") => return json!("team/name"),
        Some(pattern) if pattern.contains("64}$") => return json!("0".repeat(64)),
        Some(pattern) if pattern.contains("\\.") => return json!("com.example.app"),
        Some(_) => return json!("1.4.2"),
        None => {}
    }
    if is("array") {
        json!([value(scene, function, field, &schema["items"])])
    } else if is("boolean") {
        json!(true)
    } else if is("integer") || is("number") {
        json!(1)
    } else if field == "cursor" {
        json!("7a7a7a7a")
    } else if is("string") {
        json!("name")
    } else {
        panic!("{function}: teach this test a value for the field {field}: {schema}")
    }
}

/// Valid parameters with every field.
pub fn parameters(scene: &Scene, function: &Declared) -> Map<String, Value> {
    let fields = function.fields.iter();
    fields
        .map(|(name, schema, _)| (name.clone(), value(scene, &function.name, name, schema)))
        .collect()
}
