//! What an app's backend is asked over HTTP: its cloud functions, its users and sessions. The
//! backend is a Parse Server; its address is the port of its own container, and nothing that a
//! caller sends can make it another one.

use crate::kinds::instances::{
    Instance, container_spec,
    handlers::helpers::{not_running, sealed_fault},
};
use crate::{
    call::context::Call,
    platform::Platform,
    ports::{Answered, Ask, UpstreamError},
};
use contract::{
    Fault, InstanceId, Serves, Timestamp,
    instance_helpers::{CloudFunctions, ListCloudFunctions, RunCloudFunction},
    instances::{InstanceKind, Role, ServiceState},
    text::CloudFunctionName,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};

/// How long a cloud function may take: less than the function that calls it.
const WITHIN: Duration = Duration::from_secs(25);
/// How long the backend's own questions may take.
const QUICK: Duration = Duration::from_secs(5);

/// Where a backend is, and how it knows us.
struct Backend {
    port: u16,
    mount: String,
    graphql: String,
    application_id: String,
    master_key: Option<String>,
}

impl Platform {
    fn backend(&self, id: InstanceId, instance: &Instance) -> Result<Backend, Fault> {
        let part = instance.part(Role::Server).ok_or(Fault::NotFound("server of this instance"))?;
        let running = part.live.state == ServiceState::Running;
        let port = part.live.port.filter(|_| running);
        let port = port.ok_or_else(|| not_running(instance, "server"))?;
        let (site, sealer) = (&self.world.ports.site, &self.world.ports.sealer);
        let env = container_spec::environment(site, sealer, id, instance, &part.live);
        let mut env = env.map_err(sealed_fault)?;
        let application_id = env.remove("PARSE_SERVER_APPLICATION_ID").ok_or_else(|| {
            Fault::NotNow("this backend is no Parse Server: its template does not set PARSE_SERVER_APPLICATION_ID".into())
        })?;
        Ok(Backend {
            port,
            mount: env.remove("PARSE_SERVER_MOUNT_PATH").unwrap_or_else(|| "/parse".into()),
            graphql: env.remove("PARSE_SERVER_GRAPHQL_PATH").unwrap_or_else(|| "/graphql".into()),
            application_id,
            master_key: env.remove("PARSE_SERVER_MASTER_KEY"),
        })
    }

    async fn ask_backend(
        &self,
        backend: &Backend,
        path: String,
        as_master: bool,
        session: Option<String>,
        body: Option<Value>,
        within: Duration,
    ) -> Result<Answered, Fault> {
        let mut headers = vec![("x-parse-application-id", backend.application_id.clone())];
        if as_master {
            headers.extend(backend.master_key.clone().map(|key| ("x-parse-master-key", key)));
        }
        headers.extend(session.map(|token| ("x-parse-session-token", token)));
        let ask = Ask { port: backend.port, path, headers, body, within };
        self.world.ports.upstream.ask(ask).await.map_err(|e| match e {
            UpstreamError::NotConnected => Fault::Unavailable("the backend"),
            UpstreamError::NoAnswer => Fault::NoAnswer("the backend"),
            UpstreamError::TooLarge => {
                Fault::CalledFailed { code: None, error: "its answer is larger than 1 MiB".into() }
            }
        })
    }

    /// How many users there are, and how many of their sessions have not ended.
    pub(in crate::kinds::instances) async fn count_users(
        &self,
        id: InstanceId,
        instance: &Instance,
    ) -> Result<(u64, u64), String> {
        let backend = self.backend(id, instance).map_err(|fault| fault.to_string())?;
        if backend.master_key.is_none() {
            return Err("the service does not know the master key of this backend".into());
        }
        // Without a condition, a Parse Server on PostgreSQL answers with an estimate.
        let users = json!({"objectId": {"$exists": true}});
        let now: Timestamp = self.world.ports.clock.now();
        let sessions = json!({"expiresAt": {"$gt": {"__type": "Date", "iso": now.to_string()}}});
        Ok((
            self.count(&backend, "_User", &users).await?,
            self.count(&backend, "_Session", &sessions).await?,
        ))
    }

    async fn count(
        &self,
        backend: &Backend,
        class: &str,
        condition: &Value,
    ) -> Result<u64, String> {
        let condition: String = url_encode(&condition.to_string());
        let path = format!("{}/classes/{class}?count=1&limit=0&where={condition}", backend.mount);
        let answered = self.ask_backend(backend, path, true, None, None, QUICK).await;
        let answered = answered.map_err(|fault| fault.to_string())?;
        let count = answered.json().and_then(|body| body.get("count")?.as_u64());
        count.ok_or_else(|| format!("the backend answered with status {}", answered.status))
    }
}

fn url_encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

impl Serves<ListCloudFunctions> for Platform {
    /// Parse Server lists functions that its code defines in its GraphQL schema only, and those that
    /// are webhooks at an address of their own.
    async fn serve(&self, _: &Call, p: ListCloudFunctions) -> Result<CloudFunctions, Fault> {
        let (id, seen) = self.only_instance(p.app_id, Some(InstanceKind::Backend))?;
        let backend = self.backend(id, &seen.state)?;
        let question = json!({"query": "{__type(name:\"CloudCodeFunction\"){enumValues{name}}}"});
        let graphql = backend.graphql.clone();
        let in_code =
            self.ask_backend(&backend, graphql, true, None, Some(question), QUICK).await?;
        let body = in_code.json().filter(|body| body.get("data").is_some_and(Value::is_object)).ok_or_else(|| {
            Fault::NotNow("this backend does not serve GraphQL, which is where its functions are listed: set PARSE_SERVER_MOUNT_GRAPHQL in its template".into())
        })?;
        let named = |list: Option<&Value>, field: &str| -> Vec<String> {
            let items = list.and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| Some(item.get(field)?.as_str()?.to_owned())).collect()
        };
        let mut functions: BTreeSet<String> =
            named(body.pointer("/data/__type/enumValues"), "name").into_iter().collect();
        let path = format!("{}/hooks/functions", backend.mount);
        let hooks = self.ask_backend(&backend, path, true, None, None, QUICK).await?;
        functions.extend(
            hooks.json().map(|body| named(Some(&body), "functionName")).unwrap_or_default(),
        );
        Ok(CloudFunctions { functions: functions.into_iter().collect() })
    }
}

impl Serves<RunCloudFunction> for Platform {
    async fn serve(&self, cx: &Call, p: RunCloudFunction) -> Result<Value, Fault> {
        let (id, seen) = self.only_instance(p.app_id, Some(InstanceKind::Backend))?;
        let backend = self.backend(id, &seen.state)?;
        let path = format!("{}/functions/{}", backend.mount, p.function_name);
        let session = p.session_token.map(String::from);
        let body = Some(Value::Object(p.parameters));
        let run = async {
            let answered = self.ask_backend(&backend, path, false, session, body, WITHIN).await?;
            cx.note(&self.world, &id.to_string());
            result(&answered, &p.function_name)
        };
        cx.do_once(&self.world, run).await
    }
}

/// The result of a cloud function; or its error, with its own code and message.
fn result(answered: &Answered, name: &CloudFunctionName) -> Result<Value, Fault> {
    let body = answered.json().unwrap_or_default();
    if answered.status == 200 {
        return Ok(body.get("result").cloned().unwrap_or(Value::Null));
    }
    let code = body.get("code").and_then(Value::as_i64);
    let error = match body.get("error") {
        Some(Value::String(error)) => error.clone(),
        None | Some(Value::Null) => format!("the backend answered with status {}", answered.status),
        Some(other) => other.to_string(),
    };
    if code == Some(141) && error == format!("Invalid function: \"{name}\"") {
        return Err(Fault::NotFound("cloud function"));
    }
    Err(Fault::CalledFailed { code, error: error.chars().take(2_000).collect() })
}
