//! `svc_listCloudFunctions` and `svc_runCloudFunction`, and the user counts of a backend: requests
//! to the Parse Server of an instance.

use super::{engine_fault, only_instance, seal_fault};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        hosting::instances::{Instance, container_spec},
        world::World,
    },
    ports::parse::{FunctionCall, ParseError, ParseServer, UserCounts},
};
use contract::{
    Fault, InstanceId, Serves,
    instance_helpers::{CloudFunctions, ListCloudFunctions, RunCloudFunction},
    instances::{InstanceKind, Role, ServiceState},
};
use serde_json::Value;
use std::net::SocketAddr;

/// The Parse Server of a backend. Its address is that of the instance's own container; no caller can
/// change it.
fn parse_server(world: &World, id: InstanceId, instance: &Instance) -> Result<ParseServer, Fault> {
    let server =
        instance.service(Role::Server).ok_or(Fault::NotFound("server of this instance"))?;
    let running = server.live.state == ServiceState::Running;
    let port = server.live.port.filter(|_| running);
    let port = port.ok_or_else(|| instance.not_running("server"))?;
    let host = world.host(instance.engine).map_err(engine_fault)?;
    let (site, sealer) = (&world.ports.site, &world.ports.sealer);
    let env = container_spec::environment(site, sealer, id, instance, &server.live);
    let mut env = env.map_err(seal_fault)?;
    let application_id = env.remove("PARSE_SERVER_APPLICATION_ID").ok_or_else(|| {
        Fault::NotNow(
            "this instance is not a Parse Server: its template does not set PARSE_SERVER_APPLICATION_ID"
                .into(),
        )
    })?;
    let path = |path: Option<String>, default: &str| path.unwrap_or_else(|| default.into());
    Ok(ParseServer {
        address: SocketAddr::new(host.address, port),
        mount_path: path(env.remove("PARSE_SERVER_MOUNT_PATH"), "/parse"),
        graphql_path: path(env.remove("PARSE_SERVER_GRAPHQL_PATH"), "/graphql"),
        application_id,
        master_key: env.remove("PARSE_SERVER_MASTER_KEY"),
    })
}

/// Counts the users and the active sessions of a backend; or says why it cannot.
pub(super) async fn count_users(
    world: &World,
    id: InstanceId,
    instance: &Instance,
) -> Result<UserCounts, String> {
    let server = parse_server(world, id, instance).map_err(|fault| fault.to_string())?;
    if server.master_key.is_none() {
        return Err("the template does not set PARSE_SERVER_MASTER_KEY".into());
    }
    let now = world.ports.clock.now();
    let counts = world.ports.parse.count_users(&server, now).await;
    counts.map_err(|e| fault(e).to_string())
}

impl Serves<ListCloudFunctions> for Platform {
    async fn serve(&self, _: &Call, p: ListCloudFunctions) -> Result<CloudFunctions, Fault> {
        let (id, seen) =
            only_instance(&self.world, p.app_id, p.kind.or(Some(InstanceKind::Backend)))?;
        let server = parse_server(&self.world, id, &seen.state)?;
        let functions = self.world.ports.parse.functions(&server).await.map_err(fault)?;
        Ok(CloudFunctions { functions: functions.into_iter().collect() })
    }
}

impl Serves<RunCloudFunction> for Platform {
    async fn serve(&self, cx: &Call, p: RunCloudFunction) -> Result<Value, Fault> {
        let (id, seen) =
            only_instance(&self.world, p.app_id, p.kind.or(Some(InstanceKind::Backend)))?;
        let server = parse_server(&self.world, id, &seen.state)?;
        let call = FunctionCall {
            name: p.function_name,
            parameters: p.parameters,
            session_token: p.session_token.map(String::from),
        };
        let run = async {
            let answer = self.world.ports.parse.run(&server, call).await;
            // After `NoAnswer` the function may have run, so the call is noted.
            if answer != Err(ParseError::NotConnected) {
                cx.note(&id.to_string());
            }
            answer.map_err(fault)
        };
        cx.do_once(run).await
    }
}

fn fault(e: ParseError) -> Fault {
    match e {
        ParseError::NotConnected => Fault::Unavailable("the backend"),
        ParseError::NoAnswer => Fault::NoAnswer("the backend"),
        ParseError::NoGraphql => Fault::NotNow(
            "this backend does not serve GraphQL, which lists its functions: set PARSE_SERVER_MOUNT_GRAPHQL in its template"
                .into(),
        ),
        ParseError::Failed { code, error } => Fault::CalledFailed { code, error },
    }
}
