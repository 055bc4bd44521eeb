//! The OpenAPI 3.1 document, from the declarations alone.

use crate::{
    Effect, Spec, Standing,
    artifacts::Artifact,
    endpoint::{FinalizeRequest, Readiness, Received, UploadUrl, UploadUrlRequest},
    fault::Failure,
    function::Group,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The document of these groups, for a service at `api_url`.
pub fn document(api_url: &str, groups: &[Group]) -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for group in groups {
        for function in group.functions {
            paths.insert(
                format!("/functions/{}", function.name),
                json!({"post": operation(function, group.name, &mut schemas)}),
            );
        }
    }
    endpoints(api_url, &mut paths, &mut schemas);
    let tags = groups.iter().map(|g| g.name).chain(["Artifact endpoints", "Operator endpoints"]);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "svc",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Build, release and run mobile apps and their backends.",
        },
        "servers": [{"url": format!("{api_url}/backend")}],
        "tags": tags.map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {"schemas": schemas.take_definitions(true), "securitySchemes": security_schemes()},
    })
}

fn operation(function: &Spec, group: &str, schemas: &mut SchemaGenerator) -> Value {
    let params = (function.params)(schemas);
    let reply = (function.reply)(schemas);
    let failure = schemas.subschema_for::<Failure>();
    let mut responses = Map::new();
    let result = json!({"type": "object", "required": ["result"], "properties": {"result": reply}});
    responses.insert(
        "200".into(),
        json!({"description": "Done.", "content": {"application/json": {"schema": result}}}),
    );
    for (status, reasons) in refusals(function) {
        let text = reasons.join("; ");
        responses.insert(
            status.to_string(),
            json!({"description": text, "content": {"application/json": {"schema": failure}}}),
        );
    }
    json!({
        "operationId": function.name,
        "summary": function.summary(),
        "description": function.documentation(),
        "tags": [group],
        "security": security(function),
        "x-standing": function.who.label(),
        "x-effect": if function.effect == Effect::Read { "read" } else { "change" },
        "x-scope": function.scope.map(|s| s.name()),
        "x-own-scope": function.own_scope.map(|s| s.name()),
        "requestBody": {"required": false, "content": {"application/json": {"schema": params}}},
        "responses": responses,
    })
}

/// Every refusal of a function: its own, and those that come with its standing.
fn refusals(function: &Spec) -> BTreeMap<u16, Vec<String>> {
    let mut all: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let mut add = |status: u16, code: u16, why: &str| {
        all.entry(status).or_default().push(format!("{code}: {why}"))
    };
    for (code, why) in function.errors {
        add(status_of(*code), *code, why);
    }
    add(400, 142, "a parameter is missing, unknown or not valid");
    add(401, 119, "no or invalid application id");
    if !matches!(function.who, Standing::Public) {
        add(401, 119, "no or invalid session, token or key");
    }
    if !matches!(function.who, Standing::Public | Standing::User) {
        add(403, 403, &format!("this needs the standing {}", function.who.label()));
    }
    if matches!(function.who, Standing::Member | Standing::OwnerOrAdmin | Standing::Owner) {
        add(404, 101, "no such object, or one that the caller may not see");
    }
    add(429, 429, "too many requests");
    add(503, 100, "nothing was done; try again");
    if function.effect == Effect::Change {
        add(424, 141, "interrupted; it may have been done");
    }
    all
}

fn status_of(code: u16) -> u16 {
    match code {
        100 => 503,
        101 => 404,
        119 | 137 => 409,
        403 => 403,
        429 => 429,
        _ => 400,
    }
}

fn security(function: &Spec) -> Value {
    let mut ways = Vec::new();
    match function.who {
        Standing::Public => ways.push(json!({"applicationId": []})),
        Standing::Master => {}
        _ => ways.push(json!({"applicationId": [], "session": []})),
    }
    if function.scope.is_some() {
        ways.push(json!({"applicationId": [], "deployToken": []}));
    }
    ways.push(json!({"applicationId": [], "masterKey": []}));
    Value::Array(ways)
}

fn security_schemes() -> Value {
    json!({
        "applicationId": {"type": "apiKey", "in": "header", "name": "X-Backend-Application-Id"},
        "session": {"type": "apiKey", "in": "header", "name": "X-Backend-Session-Token"},
        "masterKey": {"type": "apiKey", "in": "header", "name": "X-Backend-Master-Key"},
        "deployToken": {"type": "http", "scheme": "bearer", "description": "svc_dt_ and 40 characters"},
    })
}

fn endpoints(api_url: &str, paths: &mut Map<String, Value>, schemas: &mut SchemaGenerator) {
    let body =
        |schema: schemars::Schema| json!({"content": {"application/json": {"schema": schema}}});
    let answers = |schema: schemars::Schema, why: &str| json!({"description": why, "content": {"application/json": {"schema": schema}}});
    let failure = schemas.subschema_for::<Failure>();
    let refused = |why: &str| answers(failure.clone(), why);
    let uploader = json!([{"deployToken": []}, {"session": []}]);
    let artifact_id =
        json!({"name": "artifactId", "in": "path", "required": true, "schema": {"type": "string"}});
    let signature = json!([
        artifact_id,
        {"name": "expires", "in": "query", "required": true, "schema": {"type": "integer"}},
        {"name": "signature", "in": "query", "required": true, "schema": {"type": "string"}},
    ]);
    let upload_url =
        answers(schema::<UploadUrl>(schemas), "The upload is open, or the bytes are held already.");
    let received = answers(schema::<Received>(schemas), "All bytes are stored.");
    let artifact = answers(schema::<Artifact>(schemas), "Verified.");
    let server = json!([{"url": api_url}]);

    paths.insert("/api/v1/artifacts/upload-url".into(), json!({"servers": server, "post": {
        "operationId": "createUploadUrl", "tags": ["Artifact endpoints"], "security": uploader,
        "summary": "Open an upload, or resume one.",
        "requestBody": body(schema::<UploadUrlRequest>(schemas)),
        "responses": {
            "201": upload_url, "200": upload_url,
            "400": refused("142: not valid"), "401": refused("119: no or invalid token or session"),
            "403": refused("403: the standing or scope is too low"), "404": refused("101: no such app"),
            "413": refused("142: larger than the limit"), "429": refused("429: too many requests"),
        },
    }}));
    paths.insert("/api/v1/artifacts/{artifactId}/content".into(), json!({"servers": server, "parameters": signature, "put": {
        "operationId": "putArtifactContent", "tags": ["Artifact endpoints"], "security": [],
        "summary": "Send the bytes, whole or as parts with Content-Range.",
        "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        "responses": {
            "200": received, "202": answers(schema::<Received>(schemas), "A part is stored; Upload-Offset says how far."),
            "400": refused("142: the part's digest or range is wrong"), "401": refused("119: forged or expired address"),
            "404": refused("101: no such artifact"),
            "409": refused("119: another writer, a wrong start, or not pending any more"), "413": refused("142: larger than the limit"),
        },
    }, "head": {
        "operationId": "headArtifactContent", "tags": ["Artifact endpoints"], "security": [],
        "summary": "Ask how far an upload is: Upload-Offset, Upload-Length, Upload-Complete.",
        "responses": {"200": {"description": "The headers say."}, "401": {"description": "Forged or expired address."}},
    }}));
    paths.insert("/api/v1/artifacts/{artifactId}/finalize".into(), json!({"servers": server, "parameters": [artifact_id], "post": {
        "operationId": "finalizeArtifact", "tags": ["Artifact endpoints"], "security": uploader,
        "summary": "Have the bytes verified.",
        "requestBody": body(schema::<FinalizeRequest>(schemas)),
        "responses": {
            "201": artifact, "200": artifact,
            "400": refused("142: not valid"), "401": refused("119: no or invalid token or session"),
            "403": refused("403: the standing or scope is too low"), "404": refused("101: no such artifact"),
            "409": refused("119: bytes are missing"), "422": refused("142: the bytes are not what was declared"),
            "424": refused("100: verification takes longer; ask again"), "429": refused("429: too many requests"),
        },
    }}));
    paths.insert("/api/v1/artifacts/{artifactId}/download".into(), json!({"servers": server, "parameters": signature, "get": {
        "operationId": "downloadArtifact", "tags": ["Artifact endpoints"], "security": [],
        "summary": "The bytes of a verified artifact; ranges are served.",
        "responses": {
            "200": {"description": "The bytes.", "content": {"application/octet-stream": {}}},
            "206": {"description": "A range of the bytes.", "content": {"application/octet-stream": {}}},
            "304": {"description": "The caller has them."}, "416": refused("142: no such range"),
            "401": refused("119: forged or expired address"), "404": refused("101: no such artifact"),
        },
    }}));
    for (path, id, summary) in [
        ("/healthz", "healthz", "Whether the process is alive."),
        ("/metrics", "metrics", "Figures in Prometheus' text format."),
    ] {
        paths.insert(path.into(), json!({"servers": server, "get": {
            "operationId": id, "tags": ["Operator endpoints"], "security": [], "summary": summary,
            "responses": {"200": {"description": "Yes."}},
        }}));
    }
    let ready = answers(schema::<Readiness>(schemas), "Calls are answered.");
    paths.insert(
        "/readyz".into(),
        json!({"servers": server, "get": {
            "operationId": "readyz", "tags": ["Operator endpoints"], "security": [],
            "summary": "Whether calls are answered, part by part.",
            "responses": {"200": ready, "503": ready},
        }}),
    );
}

fn schema<T: JsonSchema>(schemas: &mut SchemaGenerator) -> schemars::Schema {
    schemas.subschema_for::<T>()
}
