//! `svc_testSqlConnection`: tests the connection to an SQL database from inside its network, step by
//! step. The first step that fails tells the cause.

use super::{engine_fault, only_instance, seal_fault};
use crate::{
    call::{context::Call, platform::Platform},
    functions::hosting::backups::no_database,
    kinds::hosting::{
        instances::{Instance, container_spec},
        names,
    },
};
use container_engine::{Engine, EngineError, Exec, Output};
use contract::{
    Fault, Serves,
    backups::BackupKind,
    instance_helpers::{SqlConnection, SqlStep, SqlStepName, TestSqlConnection},
    instances::{DesiredState, Role, ServiceState},
};
use futures_util::StreamExt;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

impl Serves<TestSqlConnection> for Platform {
    async fn serve(&self, _: &Call, p: TestSqlConnection) -> Result<SqlConnection, Fault> {
        let (id, seen) = only_instance(&self.world, p.app_id, p.kind)?;
        let instance = &seen.state;
        let service = instance.service(Role::SqlDb);
        let (service, database) = service
            .and_then(|service| Some((service, service.live.template().database.as_ref()?)))
            .ok_or_else(|| no_database(Some(BackupKind::SqlDb)))?;
        if service.live.state != ServiceState::Running {
            return Ok(stopped(instance));
        }
        let sealer = &self.world.ports.sealer;
        let password = match &database.password_secret {
            Some(name) => container_spec::secret(sealer, id, instance, name.as_str()),
            None => Ok(None),
        };
        let login = SqlLogin {
            user: database.user.as_str(),
            password: &password.map_err(seal_fault)?.unwrap_or_default(),
            database: p.database.as_ref().unwrap_or(&database.name).as_str(),
        };
        let name = names::container(id, Role::SqlDb, service.live.generation);
        let host = self.world.host(instance.engine).map_err(engine_fault)?;
        test(host.engine.as_ref(), &name, &login).await.map_err(engine_fault)
    }
}

/// The answer for a database that does not run.
fn stopped(instance: &Instance) -> SqlConnection {
    let hint = match instance.desired {
        DesiredState::Running => "see why with svc_getInstanceLogs, or restart the instance",
        DesiredState::Stopped | DesiredState::Deleted => "start the instance",
    };
    SqlConnection {
        ok: false,
        latency_ms: 0.0,
        server_version: None,
        databases: None,
        steps: Vec::new(),
        error: Some(format!(
            "this instance is {}, and its SQL database does not run",
            instance.state_name()
        )),
        hint: Some(hint.into()),
    }
}

struct SqlLogin<'a> {
    user: &'a str,
    password: &'a str,
    database: &'a str,
}

/// How long one step may take.
const STEP_LIMIT: Duration = Duration::from_secs(8);
/// Bytes of output that are read.
const MOST_OUTPUT: usize = 64 << 10;
/// The host name of the database on the instance's network.
const HOST: &str = "sqldb";

struct Finished {
    code: i64,
    out: String,
    err: String,
}

async fn run(
    engine: &dyn Engine,
    container: &str,
    login: &SqlLogin<'_>,
    command: &[&str],
) -> Result<Finished, EngineError> {
    let env = BTreeMap::from([
        ("PGPASSWORD".to_owned(), login.password.to_owned()),
        ("PGCONNECT_TIMEOUT".to_owned(), "5".to_owned()),
    ]);
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let exec = Exec { command, env, user: None, within: STEP_LIMIT };
    let mut output = engine.exec(container, exec, None).await?;
    let (mut out, mut err, mut code) = (Vec::new(), Vec::new(), None);
    while let Some(piece) = output.next().await {
        match piece? {
            Output::Out(bytes) if out.len() < MOST_OUTPUT => out.extend_from_slice(&bytes),
            Output::Err(bytes) if err.len() < MOST_OUTPUT => err.extend_from_slice(&bytes),
            Output::Out(_) | Output::Err(_) => {}
            Output::Exit(with) => code = Some(with),
        }
    }
    let code = code.ok_or_else(|| {
        EngineError::Unreachable("the exit code of a program was not read".into())
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Ok(Finished { code, out: text(&out), err: text(&err) })
}

async fn test(
    engine: &dyn Engine,
    container: &str,
    login: &SqlLogin<'_>,
) -> Result<SqlConnection, EngineError> {
    let started = Instant::now();
    let mut result = SqlConnection {
        ok: false,
        latency_ms: 0.0,
        server_version: None,
        databases: None,
        steps: Vec::new(),
        error: None,
        hint: None,
    };
    let connect = ["psql", "-h", HOST, "-U", login.user, "-d", login.database, "-XAtw", "-c"];
    let query = |sql: &'static str| [&connect[..], &[sql]].concat();
    let steps: [(SqlStepName, Vec<&str>); 4] = [
        (SqlStepName::Resolve, vec!["getent", "hosts", HOST]),
        (SqlStepName::Connect, vec!["pg_isready", "-h", HOST, "-t", "5"]),
        (SqlStepName::Authenticate, query("select current_setting('server_version')")),
        (
            SqlStepName::Query,
            query("select datname from pg_database where not datistemplate order by 1"),
        ),
    ];
    for (name, command) in steps {
        let step = Instant::now();
        let finished = run(engine, container, login, &command).await?;
        // PostgreSQL looks for the database after it accepted the password.
        let authenticated =
            name == SqlStepName::Authenticate && finished.err.contains("database \"");
        if authenticated && finished.code != 0 {
            result.steps.push(SqlStep { name, ok: true, latency_ms: millis(step.elapsed()) });
            continue;
        }
        let ok = finished.code == 0;
        result.steps.push(SqlStep { name, ok, latency_ms: millis(step.elapsed()) });
        match name {
            SqlStepName::Authenticate if ok => result.server_version = Some(finished.out),
            SqlStepName::Query if ok => {
                result.databases = Some(finished.out.lines().map(str::to_owned).collect());
            }
            _ if ok => {}
            _ => {
                let (error, hint) = explain(name, &finished);
                (result.error, result.hint) = (Some(error), Some(hint));
                result.latency_ms = millis(started.elapsed());
                return Ok(result);
            }
        }
    }
    result.ok = true;
    result.latency_ms = millis(started.elapsed());
    Ok(result)
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

/// The error, and what to do about it.
fn explain(step: SqlStepName, finished: &Finished) -> (String, String) {
    let text = if finished.err.is_empty() { &finished.out } else { &finished.err };
    let error = match finished.code {
        126 | 127 => format!("the database's image has no {}", tool(step)),
        124 | 137 => "no answer in time".to_owned(),
        _ => {
            text.lines().last().unwrap_or("it failed without a message").chars().take(300).collect()
        }
    };
    let hint = match step {
        _ if matches!(finished.code, 126 | 127) => {
            "use an image that contains PostgreSQL's client tools"
        }
        SqlStepName::Resolve => {
            "the instance's network does not know its database: restart the instance"
        }
        SqlStepName::Connect => {
            "the database does not accept connections: it may still be starting; see its log with svc_getInstanceLogs"
        }
        _ if text.contains("password authentication failed") => {
            "the password was changed inside the database: set it back to the instance's secret"
        }
        _ if text.contains("does not exist") => {
            "there is no such database or role: the test without `database` lists the databases"
        }
        _ if text.contains("too many clients") || text.contains("remaining connection slots") => {
            "all connections are in use: look for connections that the server never closes"
        }
        _ => "see the database's log with svc_getInstanceLogs",
    };
    (error, hint.to_owned())
}

fn tool(step: SqlStepName) -> &'static str {
    match step {
        SqlStepName::Resolve => "getent",
        SqlStepName::Connect => "pg_isready",
        SqlStepName::Authenticate | SqlStepName::Query => "psql",
    }
}
