//! The REST and GraphQL APIs of the Parse Servers in containers.

use super::servers::{self, ServerError, ServerRequest, ServerResponse};
use actors::ports::parse::{FunctionCall, ParseError, ParseServer, ParseServers, UserCounts};
use async_trait::async_trait;
use contract::Timestamp;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};

pub struct ParseClient;

/// The deadline of a cloud function. It is shorter than the default deadline of the function that
/// calls it.
const FUNCTION_LIMIT: Duration = Duration::from_secs(25);
const QUERY_LIMIT: Duration = Duration::from_secs(5);
/// The maximum length of an error message, in characters.
const MOST_ERROR: usize = 2_000;

enum ParseAccess {
    Master,
    Session(Option<String>),
}

#[async_trait]
impl ParseServers for ParseClient {
    /// GraphQL lists the functions that are defined in code. Webhook functions have an endpoint of
    /// their own.
    async fn functions(&self, server: &ParseServer) -> Result<BTreeSet<String>, ParseError> {
        let query = json!({"query": "{__type(name:\"CloudCodeFunction\"){enumValues{name}}}"});
        let path = server.graphql_path.clone();
        let in_code = send(server, path, ParseAccess::Master, Some(query), QUERY_LIMIT).await?;
        let in_code = in_code.json().filter(|body| body.get("data").is_some_and(Value::is_object));
        let in_code = in_code.ok_or(ParseError::NoGraphql)?;
        let path = format!("{}/hooks/functions", server.mount_path);
        let hooks = send(server, path, ParseAccess::Master, None, QUERY_LIMIT).await?.json();
        let mut functions = names(in_code.pointer("/data/__type/enumValues"), "name");
        functions.append(&mut names(hooks.as_ref(), "functionName"));
        Ok(functions)
    }

    async fn run(&self, server: &ParseServer, call: FunctionCall) -> Result<Value, ParseError> {
        let path = format!("{}/functions/{}", server.mount_path, call.name);
        let access = ParseAccess::Session(call.session_token);
        let parameters = Some(Value::Object(call.parameters));
        let answer = send(server, path, access, parameters, FUNCTION_LIMIT).await?;
        if answer.status == 200 {
            let body = answer.json().unwrap_or_default();
            return Ok(body.get("result").cloned().unwrap_or(Value::Null));
        }
        Err(failure(&answer))
    }

    async fn count_users(
        &self,
        server: &ParseServer,
        now: Timestamp,
    ) -> Result<UserCounts, ParseError> {
        // Without a condition, a Parse Server on PostgreSQL returns an estimate.
        let any = json!({"objectId": {"$exists": true}});
        let active = json!({"expiresAt": {"$gt": {"__type": "Date", "iso": now.to_string()}}});
        Ok(UserCounts {
            users: count(server, "_User", &any).await?,
            sessions: count(server, "_Session", &active).await?,
        })
    }
}

async fn count(server: &ParseServer, class: &str, condition: &Value) -> Result<u64, ParseError> {
    let condition = percent_encode(&condition.to_string());
    let path = format!("{}/classes/{class}?count=1&limit=0&where={condition}", server.mount_path);
    let answer = send(server, path, ParseAccess::Master, None, QUERY_LIMIT).await?;
    let count = answer.json().and_then(|body| body.get("count")?.as_u64());
    count.ok_or_else(|| failure(&answer))
}

/// The address that our requests come from, as Parse Servers see it: they take it from this header,
/// and the proxy overwrites the header of everybody else. It is the IPv4 dummy address (RFC 7600),
/// which no client has, so a server can allow its master key to us alone.
const OUR_ADDRESS: (&str, &str) = ("x-forwarded-for", "192.0.0.8");

async fn send(
    server: &ParseServer,
    path: String,
    access: ParseAccess,
    body: Option<Value>,
    within: Duration,
) -> Result<ServerResponse, ParseError> {
    let (forwarded, address) = OUR_ADDRESS;
    let mut headers = vec![
        ("x-parse-application-id", server.application_id.clone()),
        (forwarded, address.to_owned()),
    ];
    headers.extend(match access {
        ParseAccess::Master => server.master_key.clone().map(|key| ("x-parse-master-key", key)),
        ParseAccess::Session(token) => token.map(|token| ("x-parse-session-token", token)),
    });
    let request = ServerRequest { to: server.address, path, headers, body, within };
    servers::send(request).await.map_err(|e| match e {
        ServerError::NotConnected => ParseError::NotConnected,
        ServerError::NoAnswer => ParseError::NoAnswer,
        ServerError::TooLarge => {
            ParseError::Failed { code: None, error: "its answer is larger than 1 MiB".into() }
        }
    })
}

fn names(list: Option<&Value>, field: &str) -> BTreeSet<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| Some(item.get(field)?.as_str()?.to_owned())).collect()
}

/// The error of an answer, with Parse's code and message.
fn failure(answer: &ServerResponse) -> ParseError {
    let body = answer.json().unwrap_or_default();
    let error = match body.get("error") {
        Some(Value::String(error)) => error.clone(),
        None | Some(Value::Null) => format!("the backend answered with status {}", answer.status),
        Some(other) => other.to_string(),
    };
    let code = body.get("code").and_then(Value::as_i64);
    ParseError::Failed { code, error: error.chars().take(MOST_ERROR).collect() }
}

fn percent_encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
